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
  const int layer = ir.layer(type, "test.precision", "", {{first}});
  ir.result({ir.layer("Convolution", "opset1", data, {{layer}, {ir.constant("32,32,3,3", weights)}})});
  const TemporaryFolder folder;
  const Model model(ir.write(folder), {"test-precision"});
  auto g = Inside::of(model).loaded().graph;
  OptimizeOptions options;
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

TEST(Precision, WhatAllowsBf16GetsAndGivesIt) {
  EXPECT_EQ(nodes_with("Allowed"), (Nodes{"Convert bf16", "Convolution bf16", "Convolution f32"}));
  EXPECT_EQ(nodes_with("Copy"), (Nodes{"Convert bf16", "Convolution bf16", "Copy bf16", "Convolution f32"}));
}

}  // namespace
}  // namespace lamina::testing
