/// Ports, names, shapes known ahead, warnings, printing.
#include <sstream>

#include "tests/api/small_models.h"

namespace lamina {
namespace {

using namespace testing;

template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(Names, ports_are_found) {
  const auto model = model_of(sums());
  EXPECT_EQ(model.find_input("b"), 1u);
  EXPECT_EQ(model.find_input("c"), std::nullopt);
  EXPECT_EQ(model.find_output("Add_2"), 1u);
  EXPECT_EQ(model.find_output("a"), std::nullopt);
  const CompiledModel compiled(model);
  EXPECT_EQ(compiled.find_input("a"), 0u);
  EXPECT_EQ(compiled.find_output("Negative_3"), 0u);
  EXPECT_EQ(compiled.find_output(""), std::nullopt);
}

TEST(Names, everywhere) {
  auto request = CompiledModel(model_of(sums())).create_request();
  std::vector<float> mine(8);
  request.set_input("a", rows(2, 1));
  request.set_input("b", rows(2, 2));
  request.set_output("Add_2", Tensor::wrap({2, 4}, mine.data()));
  request.run();
  EXPECT_EQ(mine, std::vector<float>(8, 3));
  EXPECT_EQ(request.output("Add_2").raw(), reinterpret_cast<std::byte*>(mine.data()));
  EXPECT_TRUE(request.output("Negative_3").same_as(rows(2, -3)));
  expect_error([&] { request.set_output("sum", {}); }, ErrorCode::bad_input, "\"Negative_3\", \"Add_2\"");
  expect_error([&] { request.set_input("sum", {}); }, ErrorCode::bad_input, "\"a\", \"b\"");
  expect_error([&] { request.variable("sum"); }, ErrorCode::bad_input,
               "there is no variable \"sum\": the model has none");
}

TEST(OutputPorts, of_given_shapes) {
  const CompiledModel compiled(model_of(sums()));
  EXPECT_EQ(compiled.outputs()[0].shape, (Dims{-1, 4}));
  const auto ports = compiled.output_ports({{5, 4}, {5, 4}});
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[1].name, "Add_2");
  EXPECT_EQ(ports[1].type, ElementType::f32);
  EXPECT_EQ(ports[1].shape, (Dims{5, 4}));
  EXPECT_EQ(compiled.output_ports({{1, 4}, {3, 4}})[0].shape, (Dims{3, 4}));
  expect_error([&] { compiled.output_ports({{5, 4}}); }, ErrorCode::bad_input, "wanted 2");
  expect_error([&] { compiled.output_ports({{5, 4}, {5, 3}}); }, ErrorCode::bad_input, "input \"b\"");
  expect_error([&] { compiled.output_ports({{5, 4}, {-1, 4}}); }, ErrorCode::bad_input, "input \"b\"");
  expect_error(
      [&] {
        compiled.output_ports({{5, 4}, {3, 4}});
      },
      ErrorCode::bad_input, "the model cannot run on \"a\" f32[5,4], \"b\" f32[3,4]");
}

TEST(OutputPorts, what_depends_on_values_stays_open) {
  const CompiledModel compiled(model_of(non_zeros()));
  EXPECT_EQ(compiled.output_ports({{6}})[0].shape, (Dims{1, -1}));
}

TEST(OutputPorts, as_a_run_finds_them) {
  const CompiledModel compiled(Model(std::string(LAMINA_DEPS) + "/models/ch_PP-OCRv4_rec_infer.onnx"));
  for (const std::int64_t width : {320, 333}) {
    const Tensor x(ElementType::f32, {2, 3, 48, width});
    const auto wanted = compiled(x);
    EXPECT_EQ(compiled.output_ports({x.shape()})[0].shape, wanted.shape());
  }
  const CompiledModel known(model_of([] {
    IrText ir;
    ir.result({ir.layer("ReLU", "opset1", "", {{ir.parameter("x", "2,3")}})});
    return ir;
  }()));
  EXPECT_EQ(known.output_ports({{2, 3}})[0].shape, (Dims{2, 3}));
  expect_error([&] { known.output_ports({{2, 4}}); }, ErrorCode::bad_input, "wanted f32[2,3]");
}

TEST(Warnings, of_the_reader) {
  EXPECT_TRUE(model_of(sums()).warnings().empty());
  auto text = sums().text();
  // The file says another shape than the operator gives.
  const std::string add = R"(type="Add")";
  const auto port = text.find(R"(<output><port id="2"/>)", text.find(add));
  ASSERT_NE(port, std::string::npos);
  text.replace(port, 22, R"(<output><port id="2"><dim>7</dim></port>)");
  const auto model = Model::from_memory({.model = bytes_of(text), .name = "odd.xml"});
  ASSERT_EQ(model.warnings().size(), 1u);
  EXPECT_NE(model.warnings()[0].find("odd.xml:"), std::string::npos) << model.warnings()[0];
}

TEST(Unsupported, hostile_names_make_one_short_line) {
  IrText ir;
  int x = ir.parameter("x", "4");
  for (int i = 0; i < 9; ++i)
    x = ir.layer("Wonder" + std::to_string(i) + std::string(5000, 'w'), "opset1", "", {{x}});
  ir.result({x});
  auto text = ir.text();
  for (std::size_t at = 0; (at = text.find("name=\"Wonder", at)) != std::string::npos; ++at)
    text.insert(at + 6, "&#10;&#27;[31m");
  const auto model = Model::from_memory({.model = bytes_of(text), .name = "bad.xml"});
  ASSERT_EQ(model.unsupported().size(), 9u);
  for (const auto& line : model.unsupported()) {
    EXPECT_LE(line.size(), 400u) << line;
    EXPECT_EQ(line.find_first_of("\n\x1b"), std::string::npos);
    EXPECT_NE(line.find("5007 characters"), std::string::npos) << line;
  }
  const auto found = error_of([&] { CompiledModel{model}; }, ErrorCode::unsupported);
  EXPECT_NE(found.find("bad.xml: unsupported: "), std::string::npos);
  EXPECT_NE(found.find("more"), std::string::npos) << found;
  EXPECT_EQ(found.find('\x1b'), std::string::npos);
}

TEST(Unsupported, many_nodes_keep_their_reason) {
  IrText ir;
  int x = ir.parameter("x", "4");
  for (int i = 0; i < 90; ++i) {
    const char* const types[] = {"Relu", "Tanh", "Sigmoid"};
    x = ir.layer(types[i % 3], "opset99", "", {{x}});
  }
  ir.result({ir.layer("Wonder", "opset1", "", {{x}})});
  const auto model = Model::from_memory({.model = bytes_of(ir.text()), .name = "many.xml"});
  const auto found = error_of([&] { CompiledModel{model}; }, ErrorCode::unsupported);
  EXPECT_NE(found.find("(90 nodes): opset99, known are 1 to 16"), std::string::npos) << found;
  EXPECT_NE(found.find("; Wonder-1 (1 node)"), std::string::npos) << found;
}

TEST(Printing, types_ports_and_tensors) {
  EXPECT_EQ(printed(ElementType::bf16), "bf16");
  EXPECT_EQ(printed(model_of(sums()).inputs()[0]), "a: f32[?,4]");
  EXPECT_EQ(printed(Tensor::of<float>({2, 2}, std::vector<float>{1, 0.5F, -3, 1e10F})),
            "f32[2,2] {1, 0.5, -3, 1e+10}");
  EXPECT_EQ(printed(Tensor::of<std::int8_t>({1}, std::vector<std::int8_t>{-7})), "i8[1] {-7}");
  EXPECT_EQ(printed(Tensor(ElementType::i64, {3, 4})), "i64[3,4] {0, 0, 0, 0, 0, 0, 0, 0, ...}");
  EXPECT_EQ(printed(Tensor::scalar(true)), "boolean[] {true}");
  EXPECT_EQ(printed(Tensor(ElementType::f16, {0})), "f16[0] {}");
  EXPECT_EQ(printed(Tensor()), "no tensor");
  Tensor packed(ElementType::i4, {3});
  packed.raw()[0] = std::byte{0xf2};
  EXPECT_EQ(printed(packed), "i4[3] {2, -1, 0}");
}

}  // namespace
}  // namespace lamina
