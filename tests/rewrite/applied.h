#pragma once
/// A chain of Relus, rules for it, and what they come to.
#include <fmt/format.h>

#include "graph/text.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/operators.h"
#include "rewrite/driver.h"

namespace lamina {

inline Graph parse(const std::string& text) { return parse_graph(text, operators()); }

/// Relu -> Abs
inline Rule relu_to_abs() {
  const auto x = any();
  return rule("relu-to-abs", "", RuleSet::normalize, is<Relu>(x)).make([=](Rewrite& r) {
    r.replace(r.add(Abs{}, {r.match().value(x)}));
  });
}

/// Abs(Abs(x)) -> Abs(x)
inline Rule join_abs() {
  const auto x = any();
  return rule("join-abs", "", RuleSet::normalize, is<Abs>(is<Abs>(x).used_once())).make([=](Rewrite& r) {
    r.replace(r.add(Abs{}, {r.match().value(x)}));
  });
}

inline const std::string kChain = R"(graph (x: f32[2]) -> (y) {
  sources {
    0 "first" "Relu"
    1 "second" "Relu"
    2 "third" "Relu"
  }
  a = Relu(x) @"first" from [0]
  b = Relu(a) @"second" from [1]
  y = Relu(b) @"third" from [2]
})";

inline std::size_t count(const Graph& g, std::string_view op) {
  std::size_t n = 0;
  for (auto id : g.order()) n += g.node(id).op.info().name == op;
  return n;
}

struct Applied {
  Graph graph = parse(kChain);
  Ledger ledger;
  std::size_t rewrites = 0;
  Applied(const std::vector<Rule>& rules, RewriteOptions options = {}, const std::string& text = kChain)
      : graph(parse(text)) {
    options.verify = true;
    Driver driver(rules, options, ledger);
    rewrites = driver.run(graph, RuleSet::normalize);
  }
};

inline NodeId last_of(const Graph& g) { return g.producer(g.results()[0].value); }

}  // namespace lamina
