/// The public interface, as a user sees it.
#include <mutex>
#include <thread>

#include "tests/api/small_models.h"

namespace lamina {
namespace {

using namespace testing;

const std::string kModel = std::string(LAMINA_DEPS) + "/models/ch_ppocr_mobile_v2.0_cls_infer.onnx";

Tensor picture(std::int64_t batch, float value) {
  Tensor t(ElementType::f32, {batch, 3, 48, 192});
  for (auto& v : t.data<float>()) v = value;
  return t;
}

TEST(Api, ports) {
  const Model model(kModel);
  ASSERT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(model.inputs()[0].name, "x");
  EXPECT_EQ(model.inputs()[0].type, ElementType::f32);
  EXPECT_EQ(model.inputs()[0].shape.size(), 4u);
  EXPECT_EQ(model.format(), "ONNX");
  EXPECT_TRUE(model.unsupported().empty());
}

TEST(Api, runs_and_changes_shapes) {
  const CompiledModel compiled(Model(kModel), {.threads = 2});
  Request request = compiled.create_request();
  for (const std::int64_t batch : {1, 3, 1}) {
    request.set_input("x", picture(batch, 0.5f));
    request.run();
    const auto out = request.output(0);
    EXPECT_EQ(out.shape(), (Dims{batch, 2}));
    EXPECT_NEAR(out.data<float>()[0] + out.data<float>()[1], 1, 1e-4);
  }
  EXPECT_GT(compiled.weight_memory(), 0u);
  EXPECT_GT(request.memory(), 0u);
}

TEST(Api, optimised_and_unoptimised_agree) {
  const Model model(kModel);
  Options off;
  off.disable = {"all"};
  const auto a = CompiledModel(model)(picture(1, 0.25f)), b = CompiledModel(model, off)(picture(1, 0.25f));
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a.data<float>()[i], b.data<float>()[i], 1e-4);
  EXPECT_FALSE(CompiledModel(model).fusions().empty());
  EXPECT_TRUE(CompiledModel(model, off).fusions().empty());
}

TEST(Api, many_threads_on_one_model) {
  const CompiledModel compiled(Model(kModel), {.threads = 1});
  const auto wanted = compiled(picture(1, 0.5f));
  std::vector<std::thread> threads;
  std::vector<int> same(4, 0);
  for (std::size_t t = 0; t < same.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) same[t] += compiled(picture(1, 0.5f)).same_as(wanted);
    });
  for (auto& t : threads) t.join();
  for (const auto s : same) EXPECT_EQ(s, 10);
}

TEST(Api, a_request_outlives_its_model) {
  auto request = [] { return CompiledModel(Model(kModel)).create_request(); }();
  request.set_input(0, picture(1, 0));
  request.run();
  EXPECT_EQ(request.output(0).shape(), (Dims{1, 2}));
}

TEST(Api, layer_times) {
  const CompiledModel compiled(Model(kModel), {.profile = true});
  auto request = compiled.create_request();
  request.set_input(0, picture(1, 0));
  request.run();
  ASSERT_GT(request.layer_times().size(), 10u);
  for (const auto& layer : request.layer_times()) EXPECT_FALSE(layer.kernel.empty());
}

TEST(Api, output_memory_of_the_caller) {
  const CompiledModel compiled{Model(kModel)};
  auto request = compiled.create_request();
  std::vector<float> mine(2, -1);
  request.set_input(0, picture(1, 0));
  request.set_output(0, Tensor::wrap({1, 2}, mine.data()));
  request.run();
  EXPECT_NEAR(mine[0] + mine[1], 1, 1e-4);
}

TEST(Api, errors) {
  EXPECT_NE(error_of([] { Model("no/such/file.onnx"); }, ErrorCode::bad_file).find("no/such/file.onnx"),
            std::string::npos);
  const Model model(kModel);
  Options wrong;
  wrong.disable = {"fuse-linera"};
  EXPECT_NE(error_of([&] { CompiledModel(model, wrong); }, ErrorCode::bad_option).find("fuse-linear"),
            std::string::npos);
  auto request = CompiledModel(model).create_request();
  EXPECT_NE(error_of([&] { request.set_input("y", picture(1, 0)); }, ErrorCode::bad_input).find("\"x\""),
            std::string::npos);
  EXPECT_NE(error_of(
                [&] {
                  request.set_input(0, Tensor(ElementType::f32, {1, 4, 48, 192}));
                },
                ErrorCode::bad_input)
                .find("wanted"),
            std::string::npos);
  error_of([&] { request.set_input(7, picture(1, 0)); }, ErrorCode::bad_input);
  error_of([&] { request.run(); }, ErrorCode::bad_input);
  error_of([&] { (void)request.output(0); }, ErrorCode::bad_input);
  error_of([&] { (void)request.output("nothing"); }, ErrorCode::bad_input);
}

TEST(Options, keys) {
  Options o;
  o.set("CPU_THREADS_NUM", "3");
  EXPECT_EQ(o.threads, 3);
  o.set("KEY_PERF_COUNT", "YES");
  EXPECT_TRUE(o.profile);
  o.set("KEEP_WEIGHTS", "YES");
  EXPECT_TRUE(o.keep_weights);
  o.set("ENFORCE_BF16", "NO");
  EXPECT_EQ(o.enforce_bf16, false);
  o.set("DISABLE", "a,b");
  EXPECT_EQ(o.disable, (std::vector<std::string>{"a", "b"}));
  o.set("CACHE_DIR", "/tmp/models");
  EXPECT_EQ(o.cache_dir, "/tmp/models");
  o.set("CACHE_MODE", "OPTIMIZE_SIZE");
  EXPECT_EQ(o.cache_mode, CacheMode::size);
  o.set("CACHE_SIZE", "100");
  EXPECT_EQ(o.cache_size, 100u);
  EXPECT_NE(error_of([&] { o.set("CPU_THREADS_NUN", "3"); }, ErrorCode::bad_option).find("CPU_THREADS_NUM"),
            std::string::npos);
  EXPECT_NE(error_of([&] { o.set("CPU_THREADS_NUM", "-3"); }, ErrorCode::bad_option).find("0 to 1024"),
            std::string::npos);
  error_of([&] { o.set("MAX_ISA", "mmx"); }, ErrorCode::bad_option);
  EXPECT_GE(option_list().size(), 8u);
}

TEST(Options, a_bad_value_changes_nothing) {
  const auto text = [](const Options& o) {
    std::string out;
    for (const auto& p : properties(o)) out += p.key + "=" + p.asked + " ";
    return out;
  };
  for (const auto& option : option_list()) {
    if (option.key == "DISABLE" || option.key == "EXEMPT") continue;  // names are looked up by compiling
    if (option.key == "CACHE_DIR") continue;                          // any name may be one
    if (option.key.ends_with("_OPERATORS")) continue;                 // and so may one of an operator
    Options o;
    for (const auto* value : {"", "-2", "nonsense", "99999999999999999999"})
      EXPECT_NE(error_of([&] { o.set(option.key, value); }, ErrorCode::bad_option).find(option.values),
                std::string::npos)
          << option.key;
    EXPECT_EQ(text(o), text(Options())) << option.key;
  }
}

TEST(Options, what_the_text_of_an_option_allows_is_taken) {
  Options o;
  o.set("STOP_AFTER", "3000000000");
  EXPECT_EQ(o.stop_after, 3000000000);
  o.set("STOP_AFTER", "-1");
  EXPECT_EQ(o.stop_after, -1);
}

TEST(Options, messages_go_to_the_callback) {
  std::mutex mutex;
  std::vector<std::string> lines;
  Options o;
  o.precision = Precision::bf16;
  o.log = [&](LogLevel, std::string_view line) {
    std::lock_guard lock(mutex);
    lines.emplace_back(line);
  };
  CompiledModel compiled(Model(kModel), o);
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines[0].find("bf16"), std::string::npos);
}

}  // namespace
}  // namespace lamina
