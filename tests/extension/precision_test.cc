// Layers of libraries in bf16: only those that allow it.
#include <gtest/gtest.h>

#include <cstring>

#include "api/inside.h"
#include "rules/optimize.h"
#include "tests/api/small_models.h"
#include "tests/extension/libraries.h"

namespace lamina::testing {
namespace {

int operations(const lamina_host* host, lamina_registrar* registrar) {
  static const std::int32_t both[] = {LAMINA_F32, LAMINA_BF16, LAMINA_NO_TYPE};
  static const lamina_port port{sizeof(port), "x", "", 0, 0, nullptr},
      wide{sizeof(wide), "x", "", 0, 0, both};
  lamina_operation op{};
  op.struct_size = sizeof(op);
  op.domain = "test.precision";
  op.in = op.out = &port;
  op.inputs = op.outputs = 1;
  op.elementwise = [](const void*, const float* in, float* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) out[i] = in[i] > 0 ? in[i] : 0;
  };
  op.type = "Undeclared";
  auto failed = host->add_operation(registrar, &op);
  op.type = "Allowed";
  op.flags = LAMINA_ALLOWS_BF16;
  failed |= host->add_operation(registrar, &op);
  op.elementwise = nullptr;
  op.in = op.out = &wide;
  op.run = [](const lamina_call* call) {
    std::memcpy(call->out[0]->data, call->in[0]->data, call->in[0]->bytes);
    return lamina_status{LAMINA_OK};
  };
  op.type = "Copy";
  failed |= host->add_operation(registrar, &op);
  static const lamina_host* known;
  known = host;
  static lamina_configuration picky{};
  picky.struct_size = sizeof(picky);
  picky.name = "picky";
  picky.accepts = [](const lamina_node* node) -> lamina_status {
    return node->in[0]->type == LAMINA_BF16 ? known->fail(node->context, "no bf16 today") : LAMINA_OK;
  };
  op.configuration = &picky;
  op.configurations = 1;
  op.type = "Refuses";
  failed |= host->add_operation(registrar, &op);
  static const std::int32_t floats[] = {LAMINA_F32, LAMINA_F32}, narrow[] = {LAMINA_BF16, LAMINA_BF16};
  static lamina_configuration alike[2]{};
  for (auto& c : alike) c.struct_size = sizeof(c);
  alike[0].name = "f32";
  alike[0].in_types = alike[0].out_types = floats;
  alike[1].name = "bf16";
  alike[1].in_types = alike[1].out_types = narrow;
  static const lamina_port two[] = {wide, wide};
  op.in = two;
  op.inputs = 2;
  op.configuration = alike;
  op.configurations = 2;
  op.type = "Two";
  failed |= host->add_operation(registrar, &op);
  op.in = &wide;
  op.inputs = 1;
  op.configuration = nullptr;
  op.configurations = 0;
  op.flags = 0;
  op.type = "UndeclaredCopy";
  return failed | host->add_operation(registrar, &op);
}

/// "Convolution f32" for each node of convolution, layer, convolution in bf16: with the type that it gives.
std::vector<std::string> nodes_with(const std::string& type) {
  register_extension("test-precision", operations);
  const std::string data = R"(strides="1,1" dilations="1,1" pads_begin="1,1" pads_end="1,1")";
  const std::vector<float> weights(std::size_t{32} * 32 * 9, 0.125F);
  IrText ir;
  const int x = ir.parameter("x", "1,32,16,16");
  const int first = ir.layer("Convolution", "opset1", data, {{x}, {ir.constant("32,32,3,3", weights)}});
  std::vector<From> from{{first}};
  if (type == "Two") from.push_back({x});
  const int layer = ir.layer(type, "test.precision", "", from);
  ir.result({ir.layer("Convolution", "opset1", data, {{layer}, {ir.constant("32,32,3,3", weights)}})});
  const TemporaryFolder folder;
  const Model model(ir.write(folder), {"test-precision"});
  auto g = Inside::of(model).loaded().graph;
  RuleOptions options;
  options.bf16 = options.verify = true;
  Ledger ledger;
  optimize(g, options, ledger);
  std::vector<std::string> out;
  for (const auto id : g.order())
    out.push_back(fmt::format("{} {}", g.node(id).op.name(), name_of(g.type(g.node(id).outputs[0]).element)));
  return out;
}

using Nodes = std::vector<std::string>;

TEST(Precision, WhatIsNotDeclaredStaysF32) {
  EXPECT_EQ(nodes_with("Undeclared"),
            (Nodes{"Convert bf16", "Convolution f32", "Convert bf16", "Convolution f32"}));
  EXPECT_EQ(nodes_with("UndeclaredCopy"), (Nodes{"Convert bf16", "Convolution f32", "UndeclaredCopy f32",
                                                 "Convert bf16", "Convolution f32"}));
}

TEST(Precision, WhatNoConfigurationTakesStaysF32) {
  for (const std::string type : {"Refuses", "Two"})
    EXPECT_EQ(nodes_with(type),
              (Nodes{"Convert bf16", "Convolution f32", type + " f32", "Convert bf16", "Convolution f32"}));
}

TEST(Precision, WhatAllowsBf16GetsAndGivesIt) {
  EXPECT_EQ(nodes_with("Allowed"), (Nodes{"Convert bf16", "Convolution bf16", "Convolution f32"}));
  EXPECT_EQ(nodes_with("Copy"), (Nodes{"Convert bf16", "Convolution bf16", "Copy bf16", "Convolution f32"}));
}

}  // namespace
}  // namespace lamina::testing
