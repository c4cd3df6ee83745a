/// Connected element-wise operators become one node.
///
/// A group grows from its last operator backwards: an operator joins when all of its readers belong to the
/// group already, so a diamond (x * sigmoid(x)) is one group and no way leads out of a group and back into
/// it.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/element_types.h"
#include "graph/subgraph.h"
#include "ops/activation.h"
#include "ops/decompose.h"
#include "ops/elementwise.h"
#include "ops/quantization.h"
#include "rules/bf16.h"
#include "rules/int8.h"
#include "rules/rules.h"
#include "rules/support.h"

namespace lamina {
namespace {

constexpr std::size_t kMostOperands = 16;  // distinct tensors; numbers do not count
constexpr std::size_t kMostNodes = 1024;   // those in bodies that are merged count, too

bool is_elementwise(const Node& n) {
  return (n.op.has(Trait::elementwise) || (n.op.is<Elementwise>() && epilogue(n))) && n.outputs.size() == 1;
}

/// What the group's body reads: ConvertLike needs the type of its second input only.
std::size_t inputs_read(const Node& n) { return n.op.is<ConvertLike>() ? 1 : n.inputs.size(); }

Verdict suits(const Graph& g, ValueId v) {
  const auto& type = g.type(v);
  const auto& name = g.value(v).name;
  if (type.element == ElementType::undefined || is_storage_type(type.element))
    return Verdict::no("'{}' holds {}, wanted a type that is computed with", name, name_of(type.element));
  if (!type.shape.ranked()) return Verdict::no("the rank of '{}' is not known", name);
  for (const auto& d : type.shape.dims())
    if (!d.known() && d.name().empty())
      return Verdict::no("'{}' has shape {}: its sizes are found while running", name, to_string(type.shape));
  return Verdict::yes();
}

Verdict node_suits(const Graph& g, const Node& n) {
  for (std::size_t i = 0; i < inputs_read(n); ++i)
    if (n.inputs[i].valid())
      if (auto v = suits(g, n.inputs[i]); !v) return v;
  const auto* q = n.op.as<Quantize>();
  const auto* d = n.op.as<Dequantize>();
  if ((q && q->block_size > 0) || (d && d->block_size > 0))
    return Verdict::no("'{}' has one scale per block", n.name);
  const auto out = n.outputs[0];
  if (auto v = suits(g, out); !v) return v;
  if (is_integer(g.type(out).element) && g.type(out).shape.rank() < 2)
    return Verdict::no("'{}' may hold sizes: shapes are followed through it", g.value(out).name);
  return Verdict::yes();
}

/// The input is laid out by an axis of the node, not by broadcasting: it cannot be computed on the way.
bool placed_by_axis(const Node& n, std::size_t input) {
  if (const auto* body = epilogue(n)) {
    const auto& uses = body->value(body->inputs()[input]).uses;
    return std::any_of(uses.begin(), uses.end(),
                       [&](const Use& u) { return placed_by_axis(body->node(u.node), u.input); });
  }
  return input > 0 && (n.op.is<PRelu>() || n.op.is<Quantize>() || n.op.is<Dequantize>());
}

class Group {
 public:
  Group(const Graph& graph, NodeId root) : g_(graph) { take(root); }

  bool contains(NodeId id) const { return members_.contains(id.index); }
  std::size_t size() const { return members_.size(); }
  bool reads_constants_only() const {
    return std::all_of(operands_.values.begin(), operands_.values.end(),
                       [&](std::uint32_t v) { return g_.constant({v}); });
  }

  /// Whether the node's only readers are members and it may become one.
  Verdict accepts(NodeId id) const {
    const Node& n = g_.node(id);
    const auto out = n.outputs[0];
    if (g_.is_result(out)) return Verdict::no("'{}' is an output of the model", g_.value(out).name);
    for (const auto& use : g_.value(out).uses) {
      if (!contains(use.node))
        return Verdict::no("'{}' is also read by '{}'", g_.value(out).name, g_.label(use.node));
      if (placed_by_axis(g_.node(use.node), use.input))
        return Verdict::no("'{}' is a parameter of '{}'", g_.value(out).name, g_.label(use.node));
    }
    if (auto v = node_suits(g_, n); !v) return v;
    const auto operands = operands_with(n);
    if (operands > kMostOperands)
      return Verdict::no("with '{}' it would read {} tensors, at most {} are taken", g_.label(id), operands,
                         kMostOperands);
    if (operators_ + operators_in(n) > kMostNodes)
      return Verdict::no("with '{}' it would have {} operators, at most {} are taken", g_.label(id),
                         operators_ + operators_in(n), kMostNodes);
    return Verdict::yes();
  }

  /// Takes in what feeds it, until nothing more fits. Keeps the first refusal.
  Verdict grow(const std::function<bool(NodeId)>& exempt) {
    auto refusal = Verdict::yes();
    while (!work_.empty()) {
      const auto v = work_.back();
      work_.pop_back();
      const auto p = g_.producer(v);
      if (!p.valid() || contains(p) || !is_elementwise(g_.node(p))) continue;
      auto verdict = exempt(p) ? Verdict::no("'{}' is exempt", g_.label(p)) : accepts(p);
      if (verdict)
        take(p);
      else if (refusal)
        refusal = verdict;
    }
    return refusal;
  }

  /// Members so that each comes after those it reads from.
  std::vector<NodeId> order(NodeId root) const {
    std::vector<NodeId> out;
    std::unordered_set<std::uint32_t> done;
    std::vector<std::pair<NodeId, bool>> work{{root, false}};
    while (!work.empty()) {
      const auto [id, ready] = work.back();
      work.pop_back();
      if (ready) {
        out.push_back(id);
        continue;
      }
      if (!done.insert(id.index).second) continue;
      work.emplace_back(id, true);
      const Node& n = g_.node(id);
      for (auto i = inputs_read(n); i-- > 0;)
        if (const auto p = g_.producer(n.inputs[i]); p.valid() && contains(p) && !done.contains(p.index))
          work.emplace_back(p, false);
    }
    return out;
  }

 private:
  static std::size_t operators_in(const Node& n) {
    const auto* body = epilogue(n);
    return body ? body->node_slots() : 1;
  }

  bool counts(ValueId v) const {
    const auto* t = g_.constant(v);
    return v.valid() && (!t || t->size() != 1);
  }

  std::size_t operands_with(const Node& n) const {
    auto all = operands_;
    all.erase(n.outputs[0].index);
    for (std::size_t i = 0; i < inputs_read(n); ++i)
      if (counts(n.inputs[i]) && !contains(g_.producer(n.inputs[i]))) all.insert(n.inputs[i].index);
    if (const auto* body = epilogue(n)) all.insert_constants(*body);
    return all.size();
  }

  void take(NodeId id) {
    const Node& n = g_.node(id);
    members_.insert(id.index);
    operators_ += operators_in(n);
    operands_.erase(n.outputs[0].index);
    for (std::size_t i = 0; i < inputs_read(n); ++i) {
      const auto v = n.inputs[i];
      if (!v.valid()) continue;
      if (counts(v)) operands_.insert(v.index);
      work_.push_back(v);
    }
    if (const auto* body = epilogue(n)) operands_.insert_constants(*body);
  }

  /// Distinct tensors; constants of bodies that are merged count one each.
  struct Operands {
    std::unordered_set<std::uint32_t> values;
    std::size_t constants = 0;
    void erase(std::uint32_t v) { values.erase(v); }
    void insert(std::uint32_t v) { values.insert(v); }
    void insert_constants(const Graph& body) {
      for (std::uint32_t v = 0; v < body.value_slots(); ++v)
        if (const auto* t = body.constant({v}); t && t->size() != 1) ++constants;
    }
    std::size_t size() const { return values.size() + constants; }
  };

  const Graph& g_;
  std::unordered_set<std::uint32_t> members_;
  std::size_t operators_ = 0;
  Operands operands_;
  std::vector<ValueId> work_;
};

/// The node's only reader would take it in: that one fires.
bool reader_takes(const Graph& g, const Node& n) {
  const auto out = n.outputs[0];
  const auto& uses = g.value(out).uses;
  if (uses.empty() || g.is_result(out)) return false;
  const auto reader = uses[0].node;
  const bool one = std::all_of(uses.begin(), uses.end(), [&](const Use& u) { return u.node == reader; });
  if (!one || !is_elementwise(g.node(reader)) || !node_suits(g, g.node(reader))) return false;
  return static_cast<bool>(Group(g, reader).accepts(g.producer(out)));
}

bool may_end_a_group(const Graph& g, const Node& n) {
  if (!is_elementwise(n) || bf16::narrows_widened(g, n) || bf16::widens(g, n)) return false;
  if (int8::is_left_to_readers(g, n)) return false;
  const bool fed = std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
    const auto p = g.producer(v);
    return p.valid() && is_elementwise(g.node(p));
  });
  return fed && !reader_takes(g, n);
}

/// Copies members into one body.
class BodyBuilder {
 public:
  BodyBuilder(const Graph& graph, const std::vector<NodeId>& order) : g_(graph) {
    choose_base(order);
    for (const auto id : order) add(id);
    const auto result = g_.node(order.back()).outputs[0];
    body_.add_result("y", made_.at(result.index));
  }

  Graph take_body() { return std::move(body_); }
  const std::vector<ValueId>& inputs() const { return inputs_; }

 private:
  /// The first tensor of the result's shape, else the first that is no constant.
  void choose_base(const std::vector<NodeId>& order) {
    const auto& shape = g_.type(g_.node(order.back()).outputs[0]).shape;
    std::unordered_set<std::uint32_t> inside;
    for (const auto id : order) inside.insert(g_.node(id).outputs[0].index);
    ValueId base;
    for (const auto id : order)
      for (std::size_t i = 0; i < inputs_read(g_.node(id)); ++i) {
        const auto v = g_.node(id).inputs[i];
        if (!v.valid() || g_.constant(v) || inside.contains(v.index)) continue;
        if (!base.valid() || (!g_.type(base).shape.same(shape) && g_.type(v).shape.same(shape))) base = v;
      }
    LAMINA_CHECK(base.valid(), "a group reads constants only");
    value(base);
  }

  /// The value of the graph as one of the body.
  ValueId value(ValueId v) {
    if (!v.valid()) return {};
    if (const auto it = made_.find(v.index); it != made_.end()) return it->second;
    const auto& name = g_.value(v).name;
    if (const auto* t = g_.constant(v)) return made_[v.index] = body_.add_constant(*t, name);
    inputs_.push_back(v);
    return made_[v.index] = body_.add_input(name, g_.type(v));
  }

  void add(NodeId id) {
    const Node& n = g_.node(id);
    if (const auto* inner = epilogue(n)) return inline_body(n, *inner);
    std::vector<ValueId> in;
    for (std::size_t i = 0; i < inputs_read(n); ++i) in.push_back(value(n.inputs[i]));
    Op op = n.op;
    if (n.op.is<ConvertLike>()) op = Convert{g_.type(n.outputs[0]).element};
    const auto copy = body_.add_node(std::move(op), std::move(in), n.name);
    body_.set_sources(copy, n.sources);
    made_[n.outputs[0].index] = body_.node(copy).outputs[0];
  }

  void inline_body(const Node& n, const Graph& inner) {
    std::vector<ValueId> map(inner.value_slots());
    for (std::size_t p = 0; p < inner.inputs().size(); ++p) map[inner.inputs()[p].index] = value(n.inputs[p]);
    add_copies(body_, inner, inner.order(), map);
    made_[n.outputs[0].index] = map[inner.results()[0].value.index];
  }

  const Graph& g_;
  Graph body_;
  std::vector<ValueId> inputs_;
  std::unordered_map<std::uint32_t, ValueId> made_;
};

/// The members, the root last.
Found<std::vector<NodeId>> group_of(const Match& m) {
  if (auto v = node_suits(m.graph(), m.root_node()); !v) return v;
  Group group(m.graph(), m.root());
  const auto refusal = group.grow([&](NodeId n) { return m.is_exempt(n); });
  if (group.size() == 1) return refusal;
  if (group.reads_constants_only()) return Verdict::no("it reads constants only");
  return group.order(m.root());
}

void fuse(Rewrite& r, const std::vector<NodeId>& group) {
  BodyBuilder builder(r.graph(), group);
  const auto inputs = builder.inputs();
  std::vector<Graph> bodies;
  bodies.push_back(builder.take_body());
  r.named_after_text(name_of_group(bodies[0]));
  for (const auto id : group)
    if (id != r.match().root()) r.absorb(id);
  r.replace(r.add(Elementwise{}, inputs, std::move(bodies)));
}

}  // namespace

void add_fuse_elementwise(Rules& rules) {
  rules.push_back(rule("fuse-elementwise", "Connected element-wise operators become one node",
                       RuleSet::chains, node("element-wise operator", may_end_a_group, {}))
                      .when(group_of)
                      .make(fuse)
                      .in_later_sets_too());
}

}  // namespace lamina
