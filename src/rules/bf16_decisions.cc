/// What decides: which way control flow takes, how often, and shapes. What that is made of stays f32.
#include <algorithm>

#include "ops/control.h"
#include "ops/shaping.h"
#include "rules/bf16.h"

namespace lamina::bf16 {
namespace {

bool all_known(const Graph& g, const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](ValueId v) { return !v.valid() || g.type(v).shape.known(); });
}

/// By boxes and their scores. How many it chooses is no shape here: it reads f32, as all that makes integers.
bool chooses_boxes(const Op& op) { return op.family() == OpFamily::detection && op.info().min_inputs > 1; }

/// Sizes of results depend on the elements of that input.
bool decides_shapes(const Graph& g, const Node& n, std::size_t input) {
  if (all_known(g, n.outputs) || n.op.has(Trait::control_flow)) return false;
  if (n.op.has(Trait::data_dependent)) return !chooses_boxes(n.op);
  const auto& type = g.type(n.inputs[input]);
  if (input == 0 || n.op.has(Trait::elementwise) || !type.shape.known()) return false;
  return all_known(g, n.inputs) || !is_float(type.element);  // else sizes may be unknown because of others
}

bool decides_flow(const Node& n, std::size_t input) {
  return (n.op.is<If>() && input == 0) || (n.op.is<Loop>() && input < 2);
}

/// Of a graph, or of a body: `loop` is the operator that runs it again and again, if one does.
class Decisions {
 public:
  explicit Decisions(const Graph& g, const Loop* loop = nullptr) : g_(g), loop_(loop) {}

  KeptValues found(const std::string& condition = {}) {
    if (loop_) add(g_.results().at(0).value, condition);
    for (const auto id : g_.order()) {
      const Node& n = g_.node(id);
      for (std::size_t i = 0; i < n.inputs.size(); ++i) {
        if (!n.inputs[i].valid()) continue;
        if (decides_flow(n, i)) add(n.inputs[i], told("the way of", id));
        if (decides_shapes(g_, n, i)) add(n.inputs[i], told("the size of", id));
      }
      if (n.op.is<If>() || n.op.is<Loop>()) in_bodies(id);
    }
    while (!work_.empty()) {
      const auto v = work_.back();
      work_.pop_back();
      made_of(v);
    }
    return std::move(found_);
  }

 private:
  std::string told(const char* what, NodeId id) const {
    return fmt::format("{} '{}' depends on it", what, g_.label(id));
  }

  void add(ValueId v, const std::string& why) {
    if (v.valid() && found_.emplace(v, why).second) work_.push_back(v);
  }

  /// What the node gives to bodies that decide by it.
  void in_bodies(NodeId id) {
    const Node& n = g_.node(id);
    const std::size_t first = n.op.is<If>() ? 1 : 0;  // without parameter
    for (const auto& body : n.bodies) {
      const auto inside = Decisions(body, n.op.as<Loop>()).found(told("the way of", id));
      for (std::size_t p = 0; p < body.inputs().size(); ++p)
        if (const auto it = inside.find(body.inputs()[p]); it != inside.end())
          add(n.inputs.at(p + first), it->second);
    }
  }

  void made_of(ValueId v) {
    const auto why = found_.at(v);
    if (const auto p = g_.producer(v); p.valid()) {
      if (g_.node(p).op.is<ShapeOf>()) return;
      for (const auto input : g_.node(p).inputs) add(input, why);
      return;
    }
    for (std::int64_t i = 0; loop_ && i < loop_->carried; ++i)  // an iteration before
      if (g_.inputs().at(2 + i) == v) add(g_.results().at(1 + i).value, why);
  }

  const Graph& g_;
  const Loop* loop_;
  KeptValues found_;
  std::vector<ValueId> work_;
};

}  // namespace

KeptValues deciding_values(const Graph& g) { return Decisions(g).found(); }

}  // namespace lamina::bf16
