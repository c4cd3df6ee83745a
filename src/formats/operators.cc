#include "formats/operators.h"

namespace lamina {
namespace {

/// Bodies that the reader has made have nodes of its own, too, which come from no layer of the file. Layers
/// in bodies are operators of the file by themselves.
void note_bodies(const Node& node, std::set<std::string, std::less<>>& made) {
  for (const auto& body : node.bodies)
    for (std::uint32_t n = 0; n < body.node_slots(); ++n) {
      const auto& inner = body.node({n});
      if (inner.erased() || !inner.sources.empty()) continue;
      if (!made.contains(inner.op.name())) made.insert(inner.op.name());
      note_bodies(inner, made);
    }
}

}  // namespace

std::string name_of(const FileOperator& op) {
  return op.domain.empty() ? op.type : op.domain + ":" + op.type;
}

Verdict OperatorGate::allows(const FileOperator& op) const {
  const auto name = name_of(op);
  const auto named_in = [&](const Names& list) { return list.contains(op.type) || list.contains(name); };
  if (named_in(denied_)) return Verdict::no("DENIED_OPERATORS has {}", op.type);
  for (const auto& made : op.made)
    if (denied_.contains(made)) return Verdict::no("DENIED_OPERATORS has {}", made);
  if (allowed_.empty() || named_in(allowed_)) return Verdict::yes();
  for (const auto& made : op.made)
    if (!allowed_.contains(made))
      return op.made.contains(op.type)
                 ? Verdict::no("ALLOWED_OPERATORS has no {}", op.type)
                 : Verdict::no("ALLOWED_OPERATORS has neither {} nor {}", op.type, made);
  return Verdict::yes();
}

void OperatorNotes::require(const FileOperator& op) const {
  const auto verdict = gate_.allows(op);
  if (verdict) return;
  if (names_nodes_)
    fail(ErrorCode::over_limit, "node \"{}\" ({}): {}", op.node, name_of(op), verdict.reason());
  fail(ErrorCode::over_limit, "{}", verdict.reason());
}

void OperatorNotes::before(std::string_view domain, std::string_view type, std::string_view node) const {
  require({std::string(type), std::string(domain), std::string(node), {}});
}

void OperatorNotes::after(std::string_view domain, std::string_view type, std::string_view node,
                          const Graph& graph, std::size_t first) {
  const auto [it, added] = index_.try_emplace({std::string(domain), std::string(type)}, all_.size());
  if (added) all_.push_back({std::string(type), std::string(domain), std::string(node), {}});
  auto& op = all_[it->second];
  const auto known = op.made.size();
  for (auto n = static_cast<std::uint32_t>(first); n < graph.node_slots(); ++n)
    if (const auto& made = graph.node({n}); !made.erased()) {
      if (!op.made.contains(made.op.name())) op.made.insert(made.op.name());
      note_bodies(made, op.made);
    }
  if (!added && op.made.size() == known) return;
  auto here = op;
  here.node = node;
  require(here);
}

}  // namespace lamina
