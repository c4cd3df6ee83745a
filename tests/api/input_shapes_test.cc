/// Models that are read with other shapes than their files say, and plans that are made ahead of the first
/// run.
#include "lamina/explain.h"
#include "lamina/optimize.h"
#include "tests/api/saved.h"

namespace lamina {
namespace {

using namespace testing;

class InputShapes : public Saved {
 protected:
  InputShapes() : file_(put("m.onnx", network("1"))) {}
  Model with(PartialShape shape, const std::string& name = "x") const {
    return Model(file_, {.input_shapes = {{name, std::move(shape)}}});
  }
  const std::string file_;
};

TEST_F(InputShapes, replace_those_of_the_file) {
  const auto model = with({-1, 16, 12, {8, 32}});
  EXPECT_EQ(to_string(model.inputs()[0]), "f32[?,16,12,?]");
  EXPECT_EQ(to_string(model.outputs()[0]), "f32[?,100]");
  const auto x = random_tensor({3, 16, 12, 9}, 5);
  const CompiledModel compiled(model);
  const auto y = compiled(std::vector{x});
  const auto same =
      CompiledModel(Model(put("n.onnx", network("N"))))(std::vector{random_tensor({3, 16, 8, 8}, 5)});
  EXPECT_EQ(y[0].shape(), same[0].shape());
  expect_error([&] { compiled(std::vector{random_tensor({3, 16, 12, 33}, 5)}); }, ErrorCode::bad_input, "x");
  expect_error([&] { CompiledModel(Model(file_))(std::vector{x}); }, ErrorCode::bad_input, "x");
}

TEST_F(InputShapes, of_a_model_in_memory) {
  const auto bytes = network("1");
  const auto model = Model::from_memory({.model = bytes_of(bytes)}, {.input_shapes = {{"x", {5, 16, 4, 4}}}});
  EXPECT_EQ(to_string(model.outputs()[0]), "f32[5,100]");
}

TEST_F(InputShapes, that_cannot_be) {
  expect_error([&] { with({1, 16, 8, 8}, "X"); }, ErrorCode::bad_input, "there is no input \"X\"");
  expect_error([&] { with({1, 17, 8, 8}); }, ErrorCode::bad_input, "conv1");
  expect_error([&] { with({1, 16}); }, ErrorCode::bad_input, "conv1");
  expect_error([&] { with({{5, 2}, 16, 8, 8}); }, ErrorCode::bad_option, "a size from 5 to 2");
  expect_error([&] { with({-2, 16, 8, 8}); }, ErrorCode::bad_option, "a size from -2 to -2");
}

TEST_F(InputShapes, count_for_the_cache) {
  const auto wide = with({1, 16, 8, 32});
  const CompiledModel first(wide, cached());
  EXPECT_FALSE(loaded(first));
  EXPECT_FALSE(loaded(CompiledModel(Model(file_), cached())));
  EXPECT_FALSE(loaded(CompiledModel(with({1, 16, 8, {8, 32}}), cached())));
  const CompiledModel second(with({1, 16, 8, 32}), cached());
  EXPECT_TRUE(loaded(second));
  expect_same_bits(first, second, {1, 16, 8, 32});
  EXPECT_TRUE(loaded(CompiledModel(Model(file_), cached())));
  EXPECT_EQ(entries().size(), 3u);
}

TEST_F(InputShapes, of_a_compiled_model_fix_what_is_open) {
  const auto file = path("open.lamina");
  const Model any(put("n.onnx", network("N")));
  EXPECT_FALSE(any.is_compiled());
  CompiledModel(any).save(file);
  const Model saved(file);
  EXPECT_TRUE(saved.is_compiled());
  EXPECT_TRUE(saved.compiled_for().empty());
  const Model two(file, {.input_shapes = {{"x", {2, 16, 8, 8}}}});
  EXPECT_EQ(to_string(two.outputs()[0]), "f32[2,100]");
  expect_same_bits(CompiledModel(two), CompiledModel(any), {2, 16, 8, 8});
  expect_error(
      [&] {
        Model(file, {.input_shapes = {{"x", {2, 16, 9, 8}}}});
      },
      ErrorCode::bad_input, "was compiled for f32[N,16,8,8]");
}

TEST_F(InputShapes, of_a_compiled_model_that_fix_nothing) {
  const auto file = path("two.lamina");
  const CompiledModel compiled(Model(put("n.onnx", network("N"))));
  compiled.plan({{2, 16, 8, 8}});
  compiled.save(file);
  const Model same(file, {.input_shapes = {{"x", {-1, 16, 8, 8}}}});
  EXPECT_TRUE(same.is_compiled());
  EXPECT_EQ(same.compiled_for().size(), 1u);
  const Model three(file, {.input_shapes = {{"x", {3, 16, 8, 8}}}});
  EXPECT_FALSE(three.is_compiled());
  EXPECT_TRUE(three.compiled_for().empty());
  expect_same_bits(CompiledModel(three), compiled, {3, 16, 8, 8});
}

TEST_F(InputShapes, of_a_cache_entry_without_weights) {
  auto options = cached();
  options.cache_mode = CacheMode::size;
  const CompiledModel first(Model(put("n.onnx", network("N"))), options);
  ASSERT_EQ(entries().size(), 1u);
  expect_error(
      [&] {
        Model(path(entries()[0]), {.input_shapes = {{"x", {3, 16, 8, 8}}}});
      },
      ErrorCode::bad_file, "holds no weights");
}

TEST_F(InputShapes, planning_ahead_is_stopped) {
  const CompiledModel compiled(Model(put("n.onnx", network("N"))));
  std::stop_source stop;
  stop.request_stop();
  expect_error([&] { compiled.plan({{2, 16, 8, 8}}, stop.get_token()); }, ErrorCode::canceled, "planning");
  compiled.plan({{2, 16, 8, 8}});
  EXPECT_EQ(compiled.plans(), 1u);
}

TEST_F(InputShapes, hold_when_the_model_is_read_again) {
  const auto wide = with({2, 16, 8, 32});
  const auto xml = path("wide.xml");
  optimize(wide, xml);
  EXPECT_EQ(to_string(Model(xml).inputs()[0]), "f32[2,16,8,32]");
  optimize(file_, xml, {.reading = {.input_shapes = {{"x", {3, 16, 8, 32}}}}});
  EXPECT_EQ(to_string(Model(xml).inputs()[0]), "f32[3,16,8,32]");
  // What optimize() itself is asked for goes before it.
  expect_error(
      [&] {
        optimize(file_, xml, {.reading = {.input_shapes = {{"X", {3}}}}});
      },
      ErrorCode::bad_input, "there is no input \"X\"");
  optimize(wide, xml, {.shape = {{"x", {4, 16, 8, 8}}}});
  EXPECT_EQ(to_string(Model(xml).inputs()[0]), "f32[4,16,8,8]");
}

TEST_F(InputShapes, of_outputs_by_the_layers_alone) {
  const auto model = with({-1, 16, -1, -1});
  EXPECT_EQ(to_string(model.output_ports({{"x", {3, 16, 9, 9}}})[0]), "f32[3,100]");
  EXPECT_EQ(to_string(model.output_ports({{"x", {{1, 5}, 16, 9, 9}}})[0]), "f32[?,100]");
  EXPECT_EQ(to_string(model.outputs()[0]), "f32[?,100]");  // the model itself stays as it is
  expect_error([&] { (void)model.output_ports({{"x", {3, 15, 9, 9}}}); }, ErrorCode::bad_input, "conv1");
  EXPECT_EQ(to_string(model.output_ports({})[0]), "f32[?,100]");
  expect_error(
      [&] {
        (void)model.output_ports({{"z", {3}}});
      },
      ErrorCode::bad_input, "there is no input \"z\"");
  expect_error([&] { (void)model.output_ports({{"x", {3, -2, 9, 9}}}); }, ErrorCode::bad_option, "-2");
}

/// Readers make constants of sizes that a file fixes: here the pattern of a Reshape.
TEST_F(InputShapes, of_outputs_are_those_of_a_model_that_is_read_with_them) {
  const Model fixed(file_);
  for (const PartialShape& shape : {PartialShape{2, 16, 8, 8}, {5, 16, 9, 12}, {{1, 4}, 16, -1, 8}}) {
    const auto ports = fixed.output_ports({{"x", shape}});
    EXPECT_EQ(to_string(ports[0]), to_string(with(shape).outputs()[0]));
  }
  expect_error([&] { (void)fixed.output_ports({{"x", {2, 15, 8, 8}}}); }, ErrorCode::bad_input, "conv1");
}

TEST_F(InputShapes, a_value_of_another_shape_is_dropped) {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"2", "3"}).input("k", ElementType::f32, {"2", "3"});
  g.initializer("k", random_tensor({2, 3}, 1));
  g.node("Add", {"x", "k"}, {"y"}, {}, "add").output("y");
  const auto bytes = onnx_model(g);
  const Model model = Model::from_memory({.model = bytes_of(bytes)},
                                         {.settable = {"k"}, .input_shapes = {{"x", {4, 3}}, {"k", {4, 3}}}});
  EXPECT_FALSE(model.inputs()[*model.find_input("k")].value.valid());
  const auto x = random_tensor({4, 3}, 2);
  EXPECT_EQ(CompiledModel(model)(std::vector{x, x})[0].shape(), (Dims{4, 3}));
}

TEST_F(InputShapes, a_range_of_a_named_size_of_a_compiled_model) {
  const auto file = path("open.lamina");
  CompiledModel(Model(put("n.onnx", network("N")))).save(file);
  const CompiledModel compiled(Model(file, {.input_shapes = {{"x", {{1, 2}, 16, 8, 8}}}}));
  (void)compiled(random_tensor({2, 16, 8, 8}, 5));
  expect_error([&] { (void)compiled(random_tensor({5, 16, 8, 8}, 5)); }, ErrorCode::bad_input, "x");
}

TEST_F(InputShapes, plans_made_ahead) {
  const Model any(put("n.onnx", network("N")));
  const CompiledModel compiled(any);
  EXPECT_EQ(compiled.plans(), 0u);
  compiled.plan({{2, 16, 8, 8}});
  EXPECT_EQ(compiled.plans(), 1u);
  (void)compiled(random_tensor({2, 16, 8, 8}, 5));
  EXPECT_EQ(compiled.plans(), 1u);
  expect_error([&] { compiled.plan({{2, 16, 9, 8}}); }, ErrorCode::bad_input, "x");
  compiled.save(path("two.lamina"));
  EXPECT_EQ(Model(path("two.lamina")).compiled_for(), (std::vector<std::vector<Dims>>{{{2, 16, 8, 8}}}));
}

TEST_F(InputShapes, precision_of_the_last_run) {
  const CompiledModel compiled(Model{file_}, {.precision = Precision::f32});
  auto request = compiled.create_request();
  EXPECT_EQ(precision_used(request), "no layer computes with floats or 8-bit integers");
  request.set_input(0, random_tensor({1, 16, 8, 8}, 5));
  request.run();
  EXPECT_TRUE(precision_used(request).starts_with("f32: ")) << precision_used(request);
}

}  // namespace
}  // namespace lamina
