/// Models read from memory.
#include <fstream>
#include <iterator>
#include <protozero/pbf_writer.hpp>

#include "tests/api/small_models.h"
#include "tests/support/onnx_model.h"

namespace lamina {
namespace {

using namespace testing;

/// x * w, with w among the bytes of the model.
IrText scaled() {
  IrText ir;
  const int x = ir.parameter("x", "4"), w = ir.constant("4", std::vector<float>{1, 2, 3, 4});
  ir.result({ir.layer("Multiply", "opset1", "", {{x}, {w}})});
  return ir;
}

Tensor ones() { return Tensor::of<float>({4}, std::vector<float>(4, 1)); }

void expect_scaled(const Model& model) {
  const auto y = CompiledModel(model)(ones());
  EXPECT_TRUE(y.same_as(Tensor::of<float>({4}, std::vector<float>{1, 2, 3, 4}))) << y;
}

TEST(FromMemory, ir_is_copied_without_an_owner) {
  auto ir = scaled();
  auto text = ir.text();
  const auto model = Model::from_memory({.model = bytes_of(text), .weights = bytes_of(ir.bin)});
  EXPECT_EQ(model.format(), "OpenVINO IR");
  std::fill(text.begin(), text.end(), 'x');
  std::fill(ir.bin.begin(), ir.bin.end(), 'x');
  expect_scaled(model);
}

TEST(FromMemory, an_owner_is_kept_as_long_as_the_bytes_are_read) {
  struct Held {
    std::string xml, bin;
  };
  const auto ir = scaled();
  auto held = std::make_shared<const Held>(Held{ir.text(), ir.bin});
  const std::weak_ptr<const Held> watch = held;
  {
    auto model = std::make_unique<Model>(
        Model::from_memory({.model = bytes_of(held->xml), .weights = bytes_of(held->bin), .owner = held}));
    held.reset();
    EXPECT_FALSE(watch.expired());
    const CompiledModel compiled(*model, {.keep_weights = true});
    model.reset();
    EXPECT_FALSE(watch.expired());
    const auto y = compiled(ones());
    EXPECT_TRUE(y.same_as(Tensor::of<float>({4}, std::vector<float>{1, 2, 3, 4}))) << y;
  }
  EXPECT_TRUE(watch.expired());
}

TEST(FromMemory, missing_weights_are_named) {
  const auto text = scaled().text();
  expect_error([&] { Model::from_memory({.model = bytes_of(text), .name = "net.xml"}); }, ErrorCode::bad_file,
               "net.xml");
  expect_error([&] { Model::from_memory({.model = bytes_of(text)}); }, ErrorCode::bad_file,
               "no weights were given");
}

/// f32[4] "w" with its data elsewhere.
std::string external_tensor(const std::string& location) {
  std::string bytes;
  protozero::pbf_writer out(bytes);
  out.add_int64(1, 4);
  out.add_int32(2, 1);
  out.add_string(8, "w");
  {
    protozero::pbf_writer entry(out, 13);
    entry.add_string(1, "location");
    entry.add_string(2, location);
  }
  out.add_int32(14, 1);
  return bytes;
}

std::string external_model() {
  OnnxGraph g;
  g.input("x", ElementType::f32, {"4"}).output("y");
  g.raw_initializer(external_tensor("data/./w.bin"));
  g.node("Mul", {"x", "w"}, {"y"});
  return onnx_model(g);
}

TEST(FromMemory, onnx_with_external_data) {
  const auto bytes = external_model();
  const std::vector<float> w{1, 2, 3, 4};
  const auto data = std::as_bytes(std::span(w));
  expect_scaled(Model::from_memory({.model = bytes_of(bytes), .external_data = {{"data/w.bin", data}}}));
  expect_error([&] { Model::from_memory({.model = bytes_of(bytes)}); }, ErrorCode::bad_file,
               "\"data/./w.bin\", which was not given");
  expect_error(
      [&] {
        Model::from_memory({.model = bytes_of(bytes), .external_data = {{"data/w.bin", data.first(8)}}});
      },
      ErrorCode::bad_file, "16 bytes");
}

TEST(FromMemory, onnx_as_from_the_file) {
  const auto path = std::string(LAMINA_DEPS) + "/models/ch_ppocr_mobile_v2.0_cls_infer.onnx";
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  ASSERT_FALSE(bytes.empty()) << path;
  Tensor x(ElementType::f32, {1, 3, 48, 192});
  for (auto& v : x.data<float>()) v = 0.5F;
  const auto a = CompiledModel(Model::from_memory({.model = bytes_of(bytes)}))(x);
  EXPECT_TRUE(a.same_as(CompiledModel(Model(path))(x)));
}

TEST(FromMemory, what_is_no_model) {
  expect_error([] { Model::from_memory({}); }, ErrorCode::bad_file, "model in memory: is empty");
  expect_error([] { Model::from_memory({.model = bytes_of("hello"), .name = "this"}); }, ErrorCode::bad_file,
               "this: ");
  expect_error([] { Model::from_memory({.model = bytes_of("<net")}); }, ErrorCode::bad_file, "XML");
  const std::span<const std::byte> null(static_cast<const std::byte*>(nullptr), 8);
  expect_error([&] { Model::from_memory({.model = null}); }, ErrorCode::bad_input, "null");
}

}  // namespace
TEST(Api, taken_output_is_left_alone) {
  const CompiledModel compiled(model_of(sums()));
  auto request = compiled.create_request();
  const Tensor ones = Tensor::of(Dims{1, 4}, std::vector<float>(4, 1.F)),
               twos = Tensor::of(Dims{1, 4}, std::vector<float>(4, 2.F));
  expect_error([&] { (void)request.take_output(1); }, ErrorCode::bad_call, "nothing has run yet");
  request.set_input(0, ones);
  request.set_input(1, ones);
  request.run();
  const Tensor first = request.take_output(1);
  EXPECT_TRUE(first.same_as(twos));
  expect_error([&] { (void)request.output(1); }, ErrorCode::bad_call, "was taken");
  expect_error([&] { (void)request.take_output(1); }, ErrorCode::bad_call, "was taken");
  EXPECT_TRUE(request.output(0).valid());
  request.set_input(1, twos);
  request.run();
  EXPECT_NE(request.output(1).raw(), first.raw());
  EXPECT_TRUE(first.same_as(twos));
  EXPECT_EQ(request.output(1).data<float>()[0], 3);

  // The caller's memory stays set.
  Tensor mine(ElementType::f32, {1, 4});
  request.set_output(1, mine);
  request.run();
  EXPECT_EQ(request.take_output(1).raw(), mine.raw());
  request.run();
  EXPECT_EQ(request.output(1).raw(), mine.raw());
  expect_error([&] { (void)request.take_output(2); }, ErrorCode::bad_input, "output 2");
}

TEST(Api, taken_output_whose_shape_depends_on_values) {
  const CompiledModel compiled(model_of(non_zeros()));
  auto request = compiled.create_request();
  request.set_input(0, Tensor::of(Dims{6}, std::vector<float>{0, 1, 0, 0, 2, 0}));
  request.run();
  const Tensor first = request.take_output(0);
  request.set_input(0, Tensor::of(Dims{6}, std::vector<float>{3, 0, 0, 0, 0, 0}));
  request.run();
  const Tensor second = request.take_output(0);
  EXPECT_EQ(first.data<std::int64_t>()[1], 4);
  EXPECT_EQ(second.data<std::int64_t>()[0], 0);
  request.run();
  EXPECT_NE(request.output(0).raw(), second.raw());
}

}  // namespace lamina
