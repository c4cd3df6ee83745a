#pragma once
/// Rules that are wrong, to be found.
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "ops/reduction.h"
#include "rewrite/rule.h"

namespace lamina::testing {

/// Each fires at its place once: what it makes does not fit its own pattern.
inline std::vector<Rule> planted_rules() {
  std::vector<Rule> rules;
  const auto plant = [&](std::string name, Pattern pattern, std::function<void(Rewrite&)> make) {
    rules.push_back(
        rule("planted-" + std::move(name), "", RuleSet::normalize, std::move(pattern)).make(std::move(make)));
  };
  const auto x = any(), y = any(), c = constant_only();
  plant("lost-bias", is<Add>(is<Convolution>(x, y), c), [=](Rewrite& r) {
    const auto& conv = r.match().root_node().inputs[0];
    const auto& n = r.graph().node(r.graph().producer(conv));
    r.replace(r.add(n.op, n.inputs));
  });
  plant("wrong-scale", is<Multiply>(x, number(0.7)), [=](Rewrite& r) {
    const auto factor = r.constant(Tensor::scalar(0.7f * 1.01f));
    r.replace(r.add(Multiply{}, {r.match().value(x), factor}));
  });
  plant("wrong-levels", is<FakeQuantize>(x).that([](const Graph&, const Node& n) {
    return n.op.as<FakeQuantize>()->levels == 16;
  }),
        [=](Rewrite& r) { r.replace(r.add(FakeQuantize{.levels = 15}, r.match().root_node().inputs)); });
  plant("swapped-operands", is<Subtract>(variable(), c), [=](Rewrite& r) {
    const auto& in = r.match().root_node().inputs;
    r.replace(r.add(Subtract{}, {in[1], in[0]}));
  });
  plant("lost-zero-point", is<Dequantize>(x, y, c), [=](Rewrite& r) {
    const auto& in = r.match().root_node().inputs;
    r.replace(r.add(r.match().root_node().op, {in[0], in[1]}));
  });
  plant("wrong-axis",
        is<Softmax>(x).that([](const Graph&, const Node& n) { return n.op.as<Softmax>()->axis == 1; }),
        [=](Rewrite& r) { r.replace(r.add(Softmax{.axis = 2}, {r.match().value(x)})); });
  return rules;
}

}  // namespace lamina::testing
