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
}  // namespace lamina
