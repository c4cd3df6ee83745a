#include "graph/same.h"

#include <unordered_map>

namespace lamina {
namespace {

std::string describe(const Graph& g, ValueId id) {
  if (!id.valid()) return "no value";
  const auto& v = g.value(id);
  if (v.kind == ValueKind::input) return fmt::format("the input \"{}\"", v.name);
  if (v.kind == ValueKind::constant) return fmt::format("the constant \"{}\" {}", v.name, to_string(v.type));
  return fmt::format("\"{}\" of {}", v.name, g.node(v.producer).op.name());
}

std::string attributes(const Op& op) {
  std::string out;
  for (const auto& a : op->changed_attributes()) out += " " + a.name + "=" + to_string(a.value);
  return out.empty() ? " without attributes" : out;
}

class Comparison {
 public:
  Comparison(const Graph& a, const Graph& b, bool names) : a_(a), b_(b), names_(names) {}

  std::string run() {
    auto text = compare_inputs();
    if (text.empty() && a_.results().size() != b_.results().size())
      text = fmt::format("{} results and {}", a_.results().size(), b_.results().size());
    for (std::size_t i = 0; text.empty() && i < a_.results().size(); ++i) {
      const auto &x = a_.results()[i], &y = b_.results()[i];
      if (names_ && x.name != y.name)
        text = fmt::format("result {} is named \"{}\" and \"{}\"", i, x.name, y.name);
      else
        push(x.value, y.value, fmt::format("result {} \"{}\"", i, x.name));
    }
    while (text.empty() && !work_.empty()) {
      const auto item = std::move(work_.back());
      work_.pop_back();
      text = compare_values(item.a, item.b);
      if (!text.empty()) text = item.where + ": " + text;
    }
    return text;
  }

 private:
  struct Item {
    ValueId a, b;
    std::string where;
  };
  void push(ValueId a, ValueId b, std::string where) { work_.push_back({a, b, std::move(where)}); }

  std::string compare_inputs() {
    if (a_.inputs().size() != b_.inputs().size())
      return fmt::format("{} inputs and {}", a_.inputs().size(), b_.inputs().size());
    for (std::size_t i = 0; i < a_.inputs().size(); ++i) {
      const auto &x = a_.value(a_.inputs()[i]), &y = b_.value(b_.inputs()[i]);
      if (names_ && x.name != y.name)
        return fmt::format("input {} is named \"{}\" and \"{}\"", i, x.name, y.name);
      if (!(x.type == y.type))
        return fmt::format("input \"{}\" is {} and {}", x.name, to_string(x.type), to_string(y.type));
      pair_up(a_.inputs()[i], b_.inputs()[i]);
    }
    return "";
  }

  bool pair_up(ValueId x, ValueId y) {
    const auto one = there_.try_emplace(x, y);
    const auto two = back_.try_emplace(y, x);
    return one.first->second == y && two.first->second == x;
  }

  std::string compare_values(ValueId x, ValueId y) {
    if (!x.valid() && !y.valid()) return "";
    const auto differ = [&] { return fmt::format("{} and {}", describe(a_, x), describe(b_, y)); };
    if (!x.valid() || !y.valid()) return differ();
    const auto &v = a_.value(x), &w = b_.value(y);
    if (v.kind != w.kind) return differ();
    if (v.kind == ValueKind::constant) return v.constant.same_as(w.constant) ? "" : differ() + " differ";
    if (!(v.type == w.type))
      return fmt::format("{} is {}, {} is {}", describe(a_, x), to_string(v.type), describe(b_, y),
                         to_string(w.type));
    const bool known = there_.contains(x);
    if (!pair_up(x, y)) return differ() + ", of which one is shared where the other is not";
    if (known || v.kind == ValueKind::input) return "";
    if (v.output != w.output)
      return fmt::format("output {} and output {} of {}", v.output, w.output, describe(a_, x));
    return compare_nodes(v.producer, w.producer);
  }

  std::string compare_nodes(NodeId x, NodeId y) {
    const auto &m = a_.node(x), &n = b_.node(y);
    if (m.op.name() != n.op.name()) return fmt::format("{} and {}", m.op.name(), n.op.name());
    if (!(m.op == n.op)) return fmt::format("{}{} and{}", m.op.name(), attributes(m.op), attributes(n.op));
    if (m.inputs.size() != n.inputs.size() || m.outputs.size() != n.outputs.size())
      return fmt::format("{} has {} inputs and {} outputs, and {} and {}", m.op.name(), m.inputs.size(),
                         m.outputs.size(), n.inputs.size(), n.outputs.size());
    if (m.bodies.size() != n.bodies.size())
      return fmt::format("{} has {} bodies and {}", m.op.name(), m.bodies.size(), n.bodies.size());
    for (std::size_t i = 0; i < m.bodies.size(); ++i)
      if (const auto text = Comparison(m.bodies[i], n.bodies[i], false).run(); !text.empty())
        return fmt::format("{}, body {}: {}", m.op.name(), i, text);
    // Several outputs of one node must stay with one node.
    for (std::size_t i = 0; i < m.outputs.size(); ++i)
      if (!pair_up(m.outputs[i], n.outputs[i]))
        return fmt::format("output {} of {} is read from another node", i, m.op.name());
    for (std::size_t i = m.inputs.size(); i-- > 0;)
      push(m.inputs[i], n.inputs[i],
           fmt::format("input {} of {} \"{}\"", i, m.op.name(), a_.value(m.outputs[0]).name));
    return "";
  }

  const Graph &a_, &b_;
  bool names_;  // of inputs and results; those of bodies do not matter
  std::unordered_map<ValueId, ValueId> there_, back_;
  std::vector<Item> work_;
};

}  // namespace

std::string difference(const Graph& a, const Graph& b) { return Comparison(a, b, true).run(); }
bool same_graph(const Graph& a, const Graph& b) { return difference(a, b).empty(); }

}  // namespace lamina
