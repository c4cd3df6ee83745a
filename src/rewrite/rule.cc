#include "rewrite/rule.h"

namespace lamina {

std::string_view name_of(RuleSet set) {
  constexpr std::string_view names[] = {"as_read",   "normalize", "folded",   "portable",
                                        "quantised", "levels",    "integers", "unfused",
                                        "runtime",   "fused",     "chains",   "precision"};
  return names[static_cast<std::size_t>(set)];
}

ValueId Rewrite::constant(Tensor data, const std::string& name) {
  return graph_.add_constant(std::move(data), name);
}

NodeId Rewrite::add_node(Op op, std::vector<ValueId> inputs, int outputs, std::vector<Graph> bodies) {
  const auto name = !name_.empty() ? name_ : match_.root_node().name;
  const auto id = graph_.add_node(std::move(op), std::move(inputs), name, outputs, std::move(bodies));
  added_.push_back(id);
  return id;
}

ValueId Rewrite::add(Op op, std::vector<ValueId> inputs, std::vector<Graph> bodies) {
  return graph_.node(add_node(std::move(op), std::move(inputs), -1, std::move(bodies))).outputs.at(0);
}

void Rewrite::name_value(ValueId value, std::string_view word) {
  const auto& name = graph_.value(match_.root_node().outputs.at(0)).name;
  if (!name.empty()) graph_.set_value_name(value, fmt::format("{}.{}", name, word));
}

ValueId Rewrite::add_for(NodeId old, Op op, std::vector<ValueId> inputs) {
  const auto name = graph_.node(old).name;
  const auto id = graph_.add_node(std::move(op), std::move(inputs), name);
  successors_.push_back({id, graph_.node(old).sources});
  absorb(old);
  return graph_.node(id).outputs.at(0);
}

ValueId Rewrite::add_beside(std::string_view word, Op op, std::vector<ValueId> inputs) {
  const auto name = fmt::format("{}.{}", match_.root_node().name, word);
  const auto id = graph_.add_node(std::move(op), std::move(inputs), name);
  successors_.push_back({id, match_.root_node().sources});
  return graph_.node(id).outputs.at(0);
}

std::vector<NodeId> Rewrite::added() const {
  auto all = added_;
  for (const auto& s : successors_) all.push_back(s.node);
  return all;
}

void Rewrite::add_sources(NodeId node, const std::vector<SourceId>& sources) {
  auto all = graph_.node(node).sources;
  all.insert(all.end(), sources.begin(), sources.end());
  graph_.set_sources(node, std::move(all));
}

void Rewrite::replace(std::size_t output, ValueId to) {
  LAMINA_CHECK(to.valid(), "replacement of '{}' is no value", graph_.label(match_.root()));
  replaced_.push_back({match_.root_node().outputs.at(output), to});
}

void Rewrite::replace_other(NodeId node, ValueId to) {
  LAMINA_CHECK(to.valid() && graph_.node(node).outputs.size() == 1, "replacement of '{}' is no value",
               graph_.label(node));
  replaced_.push_back({graph_.node(node).outputs[0], to});
  absorb(node);
}

}  // namespace lamina
