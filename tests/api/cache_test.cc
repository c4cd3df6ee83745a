/// Compiled models in a folder (CACHE_DIR).
#include <filesystem>
#include <thread>

#include "tests/api/saved.h"

namespace lamina {
namespace {

using namespace testing;
namespace fs = std::filesystem;

TEST_F(Saved, the_folder_has_it_next_time) {
  const Model model(put("m.onnx", network("2")));
  const CompiledModel first(model, cached());
  EXPECT_FALSE(loaded(first));
  ASSERT_EQ(entries().size(), 1u);
  const CompiledModel second(Model(path("m.onnx")), cached());
  EXPECT_TRUE(loaded(second));
  expect_same_bits(first, second, {2, 16, 8, 8});
  // Path, date, threads, counters do not matter; another content and what changes results do.
  put("n.onnx", network("2"));
  auto options = cached();
  options.threads = 1;
  options.profile = true;
  EXPECT_TRUE(loaded(CompiledModel(Model(path("n.onnx")), options)));
  EXPECT_FALSE(loaded(CompiledModel(Model(put("o.onnx", network("2", 9))), cached())));
  options.disable = {"fuse-linear"};
  EXPECT_FALSE(loaded(CompiledModel(model, options)));
  EXPECT_EQ(entries().size(), 3u);
  EXPECT_TRUE(lines_.empty()) << lines_[0];
  EXPECT_TRUE(loaded(CompiledModel(Model(path(entries()[0])))));  // an entry is a model, too
}

TEST_F(Saved, plans_for_shapes_that_are_met_are_kept) {
  const Model model(put("m.onnx", network("N")));
  {
    const CompiledModel first(model, cached());
    (void)first(random_tensor({3, 16, 8, 8}, 5));
  }
  {
    const CompiledModel second(model, cached());
    EXPECT_TRUE(loaded(second));
    expect_same_bits(second, CompiledModel(model), {3, 16, 8, 8});
    EXPECT_EQ(Inside::of(second).program()->kept_plans(), 1u);
    (void)second(random_tensor({1, 16, 8, 8}, 5));  // the entry gets this one
  }
  const CompiledModel third(model, cached());
  for (const std::int64_t batch : {3, 1, 2}) expect_same_bits(third, CompiledModel(model), {batch, 16, 8, 8});
  EXPECT_EQ(Inside::of(third).program()->kept_plans(), 2u);
  EXPECT_EQ(entries().size(), 1u);
  EXPECT_TRUE(lines_.empty()) << lines_[0];
}

/// Kernels may want their weights otherwise for another number of threads.
TEST_F(Saved, plans_are_kept_by_threads) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"1", "1024", "14", "14"});
  g.initializer("w", random_tensor({512, 1024, 1, 1}, 4));
  g.node("Conv", {"x", "w"}, {"y"}, {attribute("strides", std::vector<std::int64_t>{2, 2})}, "c").output("y");
  const Model model(put("m.onnx", onnx_model(g)));
  for (const auto mode : {CacheMode::speed, CacheMode::size})
    for (int round = 0; round < 3; ++round)
      for (const int threads : {2, 1}) {
        auto options = cached();
        options.threads = threads;
        options.cache_mode = mode;
        const CompiledModel compiled(model, options);
        EXPECT_EQ(loaded(compiled), round != 0 || threads == 1 || mode == CacheMode::size);
        EXPECT_TRUE(round == 0 || Inside::of(compiled).program()->made_plans() == 0);
        expect_same_bits(compiled, CompiledModel(model, {.threads = threads}), {1, 1024, 14, 14});
      }
  EXPECT_EQ(entries().size(), 1u);
  EXPECT_TRUE(lines_.empty()) << lines_[0];
}

TEST_F(Saved, streams_are_chosen_as_when_it_was_compiled) {
  const Model model(put("m.onnx", network("2")));
  auto options = cached();
  options.streams = Streams::automatic();
  const CompiledModel fresh(model, options), again(model, options);
  EXPECT_TRUE(loaded(again));
  const auto &one = Inside::of(fresh).settings().placement.forecast,
             &other = Inside::of(again).settings().placement.forecast;
  ASSERT_EQ(one.size(), other.size());
  ASSERT_FALSE(one.empty());
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].per_second, other[i].per_second);
  EXPECT_EQ(fresh.streams(), again.streams());
}

TEST_F(Saved, an_entry_without_weights_takes_them_from_the_model) {
  const Model model(put("m.onnx", network("2")));
  auto options = cached();
  options.cache_mode = CacheMode::size;
  const CompiledModel first(model, options), second(model, options);
  EXPECT_TRUE(loaded(second));
  expect_same_bits(first, second, {2, 16, 8, 8});
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_LT(content(entries()[0]).size(), content("m.onnx").size() / 2);
  expect_error([&] { CompiledModel(Model(path(entries()[0]))); }, ErrorCode::bad_file, "holds no weights");
}

TEST_F(Saved, a_damaged_entry_is_rebuilt_and_one_line_says_so) {
  const Model model(put("m.onnx", network("2")));
  const CompiledModel first(model, cached());
  const auto entry = entries().at(0);
  const auto good = content(entry);
  SplitMix random(5);
  for (int i = 0; i < 60; ++i) {
    auto bad = good;
    if (i % 6 == 0)
      bad.resize(random.below(bad.size()));
    else
      bad[random.below(bad.size())] ^= 0x20;
    put(entry, bad);
    lines_.clear();
    const CompiledModel compiled(model, cached());
    expect_same_bits(first, compiled, {2, 16, 8, 8});
    if (loaded(compiled)) continue;  // a byte of the model as it was read
    ASSERT_EQ(lines_.size(), 1u);
    EXPECT_TRUE(lines_[0].starts_with("cache: rebuilt: ")) << lines_[0];
    EXPECT_TRUE(content(entry) == good);
    EXPECT_TRUE(loaded(CompiledModel(model, cached())));
  }
}

TEST_F(Saved, what_comes_from_a_file_is_warned_of_as_what_is_compiled) {
  OnnxGraph g;
  g.input("x", ElementType::f16, {"2", "8"}).node("Relu", {"x"}, {"y"}, {}, "relu").output("y");
  const Model model(put("m.onnx", onnx_model(g)));
  auto options = cached();
  options.exempt = {"no such node"};
  const CompiledModel fresh(model, options);
  const auto said = std::exchange(lines_, {});
  ASSERT_EQ(said.size(), 2u);
  EXPECT_NE(said[0].find("half-precision"), std::string::npos) << said[0];
  EXPECT_NE(said[1].find("no such node"), std::string::npos) << said[1];
  const CompiledModel hit(model, options);
  EXPECT_TRUE(loaded(hit));
  EXPECT_EQ(std::exchange(lines_, {}), said);
  options.cache_dir.clear();
  CompiledModel(model, options).save(path("m.lamina"));
  lines_.clear();
  const CompiledModel opened(Model(path("m.lamina")), options);
  EXPECT_TRUE(loaded(opened));
  EXPECT_EQ(lines_, said);
}

TEST_F(Saved, says_where_it_was_found_or_why_not) {
  const Model model(put("m.onnx", network("2")));
  const auto reason = [&](const Options& o) {
    for (const auto& p : CompiledModel(model, o).properties())
      if (p.key == "LOADED_FROM_CACHE") return p.reason;
    return std::string();
  };
  EXPECT_EQ(reason({}), "no CACHE_DIR is given");
  EXPECT_TRUE(reason(cached()).starts_with("there is no entry "));
  EXPECT_EQ(reason(cached()), path(entries().at(0)));
  auto kept = cached();
  kept.keep_weights = true;
  EXPECT_TRUE(reason(kept).starts_with("KEEP_WEIGHTS=YES"));
  put(entries().at(0), "LAMINA\r\n");
  EXPECT_TRUE(reason(cached()).starts_with("rebuilt: "));
}

TEST_F(Saved, saving_what_came_from_the_folder_warns_of_nothing_again) {
  const Model model(put("m.onnx", network("2")));
  auto options = cached();
  options.exempt = {"no such node"};
  CompiledModel(model, options);
  const auto told = lines_.size();
  EXPECT_GT(told, 0u);
  const CompiledModel second(model, options);
  EXPECT_TRUE(loaded(second));
  EXPECT_EQ(lines_.size(), 2 * told);
  second.save(path("saved.lamina"));
  EXPECT_EQ(lines_.size(), 2 * told);
}

TEST_F(Saved, trouble_with_the_folder_is_a_warning) {
  const Model model(put("m.onnx", network("2")));
  put("cache", "a file");
  const CompiledModel compiled(model, cached());
  EXPECT_FALSE(loaded(compiled));
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("is no folder"), std::string::npos);
}

TEST_F(Saved, properties_say_in_which_precision_a_file_runs) {
  const CompiledModel made(Model(put("m.onnx", network("2"))), {.precision = Precision::f32});
  EXPECT_EQ(made.property("INFERENCE_PRECISION_HINT"), "f32");
  made.save(path("m.lamina"));
  const CompiledModel compiled(Model(path("m.lamina")));
  ASSERT_TRUE(loaded(compiled));
  EXPECT_EQ(compiled.property("INFERENCE_PRECISION_HINT"), "f32");
  EXPECT_EQ(Inside::of(compiled).precision_reason(), "");  // nothing was asked for
}

TEST_F(Saved, many_at_once) {
  const Model model(put("m.onnx", network("2")));
  const CompiledModel fresh(model, {.threads = 1});  // other threads, other orders of sums
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      const CompiledModel compiled(Model(path("m.onnx")), {.threads = 1, .cache_dir = path("cache")});
      expect_same_bits(fresh, compiled, {2, 16, 8, 8});
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(entries().size(), 1u);
  EXPECT_TRUE(loaded(CompiledModel(model, cached())));
}

TEST_F(Saved, a_model_that_was_replaced_is_another_one) {
  put("m.onnx", network("2", 1));
  const auto date = fs::last_write_time(path("m.onnx"));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const CompiledModel first(Model(path("m.onnx")), cached());
  EXPECT_TRUE(fs::exists(folder_ / "cache" / ".lamina-hashes"));
  put("m.onnx", network("2", 2));  // the same size
  fs::last_write_time(path("m.onnx"), date);
  const CompiledModel second(Model(path("m.onnx")), cached());
  EXPECT_FALSE(loaded(second));
  expect_same_bits(second, CompiledModel(Model::from_memory({.model = bytes_of(network("2", 2))})),
                   {2, 16, 8, 8});
}

/// What was made of one content is not kept under the key of another.
TEST_F(Saved, a_model_that_changes_while_it_is_compiled_is_not_kept) {
  put("m.onnx", network("2", 1));
  const auto overwrite = [&](std::uint64_t seed) {
    std::fstream(path("m.onnx"), std::ios::in | std::ios::out | std::ios::binary) << network("2", seed);
  };
  auto options = cached();
  bool once = false;
  options.progress = [&](std::string_view, double) {
    if (!std::exchange(once, true)) overwrite(2);
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  (void)CompiledModel(Model(path("m.onnx")), options);
  overwrite(1);
  expect_same_bits(CompiledModel(Model(path("m.onnx")), cached()),
                   CompiledModel(Model::from_memory({.model = bytes_of(network("2", 1))})), {2, 16, 8, 8});
}

TEST_F(Saved, a_wrong_size_of_the_folder_is_refused) {
  expect_error([] { CompiledModel(model_of(sums()), {.cache_size = 0}); }, ErrorCode::bad_option,
               "cache_size 0");
}

}  // namespace
}  // namespace lamina
