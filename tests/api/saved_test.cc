/// Compiled models in files (CompiledModel::save).
#include "tests/api/saved.h"
#include "api/saving.h"

namespace lamina {
namespace {

using namespace testing;

TEST_F(Saved, a_file_is_a_model_that_is_ready) {
  const Model model(put("m.onnx", network("2")));
  const CompiledModel fresh(model);
  fresh.save(path("m.lamina"));
  const Model back(path("m.lamina"));
  EXPECT_EQ(back.format(), "ONNX");
  EXPECT_EQ(to_string(back.inputs()[0]), to_string(model.inputs()[0]));
  EXPECT_EQ(back.outputs()[0].name, "y");
  const CompiledModel compiled(back);
  EXPECT_TRUE(loaded(compiled));
  EXPECT_FALSE(loaded(fresh));
  expect_same_bits(fresh, compiled, {2, 16, 8, 8});
  EXPECT_NEAR(static_cast<double>(compiled.weight_memory()), static_cast<double>(fresh.weight_memory()),
              1024);
  ASSERT_EQ(compiled.fusions().size(), fresh.fusions().size());
}

TEST_F(Saved, nothing_is_packed_or_chosen_again) {
  CompiledModel(Model(put("m.onnx", network("2")))).save(path("m.lamina"));
  const CompiledModel compiled(Model(path("m.lamina")));
  const auto& program = *Inside::of(compiled).program();
  EXPECT_EQ(program.kept_plans(), 1u);
  EXPECT_EQ(program.packing_seconds(), 0.0);
  EXPECT_EQ(program.rewriting_seconds(), 0.0);
}

TEST_F(Saved, the_same_model_and_options_are_the_same_bytes) {
  for (const auto* batch : {"2", "N"}) {
    const Model model(put("m.onnx", network(batch)));
    CompiledModel(model).save(path("a"));
    CompiledModel(Model(put("other.onnx", network(batch)))).save(path("b"));
    EXPECT_TRUE(content("a") == content("b"));
    CompiledModel(Model(path("a"))).save(path("c"));  // and again, from there
    CompiledModel(Model(path("c"))).save(path("e"));
    EXPECT_TRUE(content("c") == content("e"));
    CompiledModel(model, {.disable = {"fuse-conv-simple"}}).save(path("d"));
    EXPECT_FALSE(content("a") == content("d"));
  }
}

TEST_F(Saved, other_threads_and_shapes_use_it) {
  const Model model(put("m.onnx", network("N")));
  const CompiledModel fresh(model, {.threads = 2});
  (void)fresh(random_tensor({3, 16, 8, 8}, 5));
  fresh.save(path("m.lamina"));
  for (const int threads : {1, 2, 4}) {
    const CompiledModel compiled(Model(path("m.lamina")), {.threads = threads});
    EXPECT_TRUE(loaded(compiled));
    const CompiledModel other(model, {.threads = threads});
    for (const std::int64_t batch : {3, 1, 5}) expect_same_bits(other, compiled, {batch, 16, 8, 8});
    // A machine with fewer processors gives fewer threads than asked for.
    EXPECT_EQ(Inside::of(compiled).program()->kept_plans(), compiled.threads() == fresh.threads() ? 1u : 0u);
    EXPECT_EQ(compiled.output_ports({{7, 16, 8, 8}})[0].shape, (Dims{7, 100}));
  }
}

TEST_F(Saved, what_it_was_compiled_with_counts_unless_something_else_is_asked_for) {
  const Model model(put("m.onnx", network("2")));
  const Options all{.disable = {"all"}};
  CompiledModel(model, all).save(path("m.lamina"));
  const CompiledModel as_it_was(Model(path("m.lamina")));
  EXPECT_TRUE(loaded(as_it_was));
  EXPECT_TRUE(as_it_was.fusions().empty());
  EXPECT_TRUE(loaded(CompiledModel(Model(path("m.lamina")), all)));
  const CompiledModel anew(Model(path("m.lamina")), {.disable = {"fuse-linear"}});
  EXPECT_FALSE(loaded(anew));
  EXPECT_FALSE(anew.fusions().empty());
  expect_same_bits(anew, CompiledModel(model, {.disable = {"fuse-linear"}}), {2, 16, 8, 8});
}

/// The first key for precision that is given decides, whatever the file was compiled with.
TEST_F(Saved, precision_of_the_file_unless_one_is_asked_for) {
  const Model model(put("m.onnx", network("2")));
  const CompiledModel narrow(model, {.precision = Precision::bf16});
  if (Inside::of(narrow).precision() != Precision::bf16) GTEST_SKIP() << "no bf16 here";
  narrow.save(path("m.lamina"));
  const CompiledModel as_it_was(Model(path("m.lamina")));
  EXPECT_TRUE(loaded(as_it_was));
  EXPECT_EQ(as_it_was.property("INFERENCE_PRECISION_HINT"), "bf16");
  EXPECT_EQ(as_it_was.property("ENFORCE_BF16"), "YES");
  for (const auto& [key, value] : {std::pair("INFERENCE_PRECISION_HINT", "model"),
                                   {"ENFORCE_BF16", "NO"},
                                   {"EXECUTION_MODE_HINT", "ACCURACY"}}) {
    Options o;
    o.set(key, value);
    const CompiledModel asked(Model(path("m.lamina")), o);
    EXPECT_EQ(Inside::of(asked).precision(), Precision::model) << key;
    expect_same_bits(asked, CompiledModel(model), {2, 16, 8, 8});
  }
  // A processor of the same level may lack what the file was made for.
  auto other = host();
  other.features = other.features.without({Feature::avx512_bf16, Feature::amx_bf16});
  const CompiledFile file(MappedFile::open(path("m.lamina")));
  expect_error([&] { require_isa(file, other); }, ErrorCode::unsupported, "needs bf16 instructions");
  require_isa(file, host());

  CompiledModel(model, {.disable = {"all"}}).save(path("all.lamina"));
  EXPECT_EQ(CompiledModel(Model(path("all.lamina"))).property("DISABLE"), "all");
}

TEST_F(Saved, who_keeps_weights_looks_into_one_that_is_compiled_anew) {
  CompiledModel(Model(put("m.onnx", network("2")))).save(path("m.lamina"));
  const CompiledModel compiled(Model(path("m.lamina")), {.keep_weights = true});
  EXPECT_FALSE(loaded(compiled));
  EXPECT_FALSE(Inside::of(compiled).program()->packings().empty());
}

TEST_F(Saved, without_packed_weights_it_is_smaller_and_does_the_same) {
  const Model model(put("m.onnx", network("2")));
  const CompiledModel fresh(model);
  fresh.save(path("speed"));
  CompiledModel(model, {.cache_mode = CacheMode::size}).save(path("size"));
  EXPECT_LT(content("size").size(), 0.7 * static_cast<double>(content("speed").size()));
  const CompiledModel compiled(Model(path("size")));
  EXPECT_TRUE(loaded(compiled));
  EXPECT_EQ(Inside::of(compiled).program()->kept_plans(), 1u);
  expect_same_bits(fresh, compiled, {2, 16, 8, 8});
}

TEST_F(Saved, models_with_variables) {
  IrText ir;
  const int x = ir.parameter("x", "2");
  const int kept =
      ir.layer("ReadValue", "opset6", R"(variable_id="v" variable_shape="2" variable_type="f32")", {});
  const int sum = ir.layer("Add", "opset1", "", {{x}, {kept}});
  ir.layer("Assign", "opset6", R"(variable_id="v")", {{sum}});
  ir.result({sum});
  CompiledModel(model_of(ir)).save(path("m.lamina"));
  const CompiledModel compiled(Model(path("m.lamina")));
  EXPECT_TRUE(loaded(compiled));
  auto request = compiled.create_request();
  request.set_input(0, Tensor::of<float>({2}, {1, 2}));
  for (float step = 1; step < 4; ++step) {
    request.run();
    EXPECT_TRUE(request.output(0).same_as(Tensor::of<float>({2}, {step, 2 * step})));
  }
}

TEST_F(Saved, data_dependent_shapes) {
  const CompiledModel fresh(model_of(non_zeros()));
  (void)fresh(Tensor::of<float>({6}, {1, 0, 1, 0, 0, 1}));
  fresh.save(path("m.lamina"));
  const CompiledModel compiled(Model(path("m.lamina")));
  const auto x = Tensor::of<float>({6}, {0, 0, 3, 0, 5, 0});
  EXPECT_TRUE(compiled(x).same_as(fresh(x)));
}

TEST_F(Saved, read_from_memory) {
  CompiledModel(Model(put("m.onnx", network("2")))).save(path("m.lamina"));
  const auto bytes = "x" + content("m.lamina");  // at an odd address
  const auto model = Model::from_memory({.model = bytes_of(std::string_view(bytes).substr(1))});
  EXPECT_TRUE(loaded(CompiledModel(model)));
  expect_same_bits(CompiledModel(model), CompiledModel(Model(path("m.onnx"))), {2, 16, 8, 8});
}

TEST_F(Saved, settable_inputs_are_those_it_was_read_with) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2"}).input("w", ElementType::f32, {"2"});
  g.initializer("w", Tensor::of<float>({2}, {3, 4})).node("Mul", {"x", "w"}, {"y"}).output("y");
  const Model model(put("m.onnx", onnx_model(g)), {.settable = {"w"}});
  CompiledModel(model).save(path("m.lamina"));
  const Model back(path("m.lamina"), {.settable = {"w"}});
  ASSERT_EQ(back.inputs().size(), 2u);
  EXPECT_TRUE(back.inputs()[1].value.same_as(Tensor::of<float>({2}, {3, 4})));
  const auto y = CompiledModel(back)({Tensor::of<float>({2}, {1, 2}), {}});
  EXPECT_TRUE(y[0].same_as(Tensor::of<float>({2}, {3, 8})));
  expect_error([&] { Model(path("m.lamina"), {.settable = {"x"}}); }, ErrorCode::bad_option,
               "settable \"x\"");
}

TEST_F(Saved, a_damaged_file_is_refused_or_does_the_same) {
  CompiledModel(Model(put("m.onnx", network("2")))).save(path("m.lamina"));
  const CompiledModel fresh(Model(path("m.onnx")));
  const auto good = content("m.lamina");
  SplitMix random(3);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    auto bad = good;
    const auto at = random.below(bad.size());
    bad[at] = static_cast<char>(bad[at] ^ (1 << random.below(8)));
    if (i % 10 == 0) bad.resize(random.below(bad.size()));
    put("bad.lamina", bad);
    try {
      const CompiledModel compiled(Model(path("bad.lamina")));
      expect_same_bits(fresh, compiled, {2, 16, 8, 8});  // where the byte is not used
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_file);
      EXPECT_NE(std::string(e.what()).find("bad.lamina: "), std::string::npos) << e.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 50);
}

/// A file whose sections are changed, and whose checksums fit them.
std::string changed(const CompiledFile& good, const std::string& path, SplitMix& random) {
  CompiledFileWriter writer;
  const auto victim = random.below(good.sections().size());
  for (std::size_t i = 0; i < good.sections().size(); ++i) {
    const auto bytes = good.section(i);
    std::vector<std::byte> copy(bytes.begin(), bytes.end());
    const bool text =
        good.sections()[i].kind != SectionKind::constant && good.sections()[i].kind != SectionKind::weights;
    if (i == victim && text && !copy.empty())
      for (auto n = random.below(3) + 1; n-- > 0;) {
        copy[random.below(copy.size())] = static_cast<std::byte>(random.below(256));
        if (random.below(10) == 0) copy.resize(random.below(copy.size()) + 1);
      }
    writer.add(good.sections()[i].kind, std::move(copy));
  }
  writer.write(path, good.header());
  return path;
}

TEST_F(Saved, what_is_wrong_under_right_checksums_is_refused_or_runs) {
  CompiledModel(Model(put("m.onnx", network("2")))).save(path("m.lamina"));
  const CompiledFile good(MappedFile::open(path("m.lamina")));
  SplitMix random(8);
  const int times = std::getenv("LAMINA_MUTATIONS") ? 20 * std::atoi(std::getenv("LAMINA_MUTATIONS")) : 400;
  int refused = 0;
  for (int i = 0; i < times; ++i) try {
      const CompiledModel compiled(Model(changed(good, path("bad.lamina"), random)));
      std::vector<Tensor> inputs;
      for (const auto& port : compiled.inputs()) inputs.push_back(random_tensor(port.shape, 1));
      (void)compiled(inputs);
    } catch (const Error&) {
      ++refused;
    }
  EXPECT_GT(refused, times / 20);
}

}  // namespace
}  // namespace lamina
