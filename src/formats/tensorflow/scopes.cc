/// What hands values into bodies of loops, and on within them.
#include "base/error.h"
#include "formats/known.h"
#include "formats/tensorflow/importer.h"

namespace lamina::tensorflow {

/// What only hands values on within a loop, and the loop itself where it is left.
std::optional<Values> Importer::import_of_loop(std::uint32_t n) {
  const auto& node = def_.nodes[n];
  const auto& inputs = links_[n].inputs;
  const auto one = [&](std::size_t count) -> ValueId {
    if (inputs.size() < count) fail(ErrorCode::bad_file, "has {} inputs, wanted {}", inputs.size(), count);
    return lookup(inputs[0]);
  };
  if (is_exit(node.op) && links_.frames().left_by(n) != 0) return leave_loop(n);
  if (is_enter(node.op) && scope_->around) return Values{one(1)};
  if (is_next(node.op) || node.op == "LoopCond") return Values{one(1)};
  if (is_switch(node.op) && inputs.size() == 2 && def_.nodes[inputs[1].node].op == "LoopCond") {
    const auto v = one(2);
    return Values{v, v};
  }
  return std::nullopt;
}

/// A value from around a loop in its body: a constant again where it is known, else a parameter.
ValueId Importer::carried_in(Scope& scope, ValueId around) {
  if (&scope.graph == &scope.around->graph) return around;
  const auto [it, added] = scope.inside.try_emplace(around);
  if (!added) return it->second;
  const auto& outside = scope.around->graph;
  const auto name = outside.value(around).name;
  if (const auto* t = outside.constant(around)) return it->second = scope.graph.add_constant(*t, name);
  if (auto known = known_value(outside, around, folding_budget))
    return it->second = scope.graph.add_constant(std::move(*known), name);
  scope.captured.push_back(around);
  return it->second = scope.graph.add_input(name, outside.type(around));
}

const NodeDef& Importer::origin(std::string_view reference) const {
  auto n = links_.find(parse_reference(reference).name).value();
  for (std::size_t steps = 0; steps < links_.size(); ++steps) {
    const auto& node = def_.nodes[n];
    const auto& inputs = links_[n].inputs;
    const bool hands_on = is_enter(node.op) || is_merge(node.op) || is_switch(node.op) || is_exit(node.op) ||
                          node.op == "Identity";
    if (!hands_on || inputs.empty()) break;
    n = inputs[0].node;
  }
  return def_.nodes[n];
}

}  // namespace lamina::tensorflow
