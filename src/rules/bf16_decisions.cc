/// What decides: which way control flow takes, how often, and shapes. What that is made of stays f32.
#include <algorithm>

#include "graph/infer.h"
#include "ops/control.h"
#include "ops/detection.h"
#include "ops/shaping.h"
#include "rules/bf16.h"

namespace lamina::bf16 {
namespace {

bool all_known(const Graph& g, const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](ValueId v) { return !v.valid() || g.type(v).shape.known(); });
}

/// Where inference stopped before it asked: sizes of results may depend on the elements of that input. How
/// many boxes are chosen is no size in the sense of this file: see made_of().
bool may_be_sizes(const Graph& g, const Node& n, std::size_t input) {
  const auto& type = g.type(n.inputs[input]);
  if (input == 0 || n.op.has(Trait::counts_boxes) || !type.shape.known()) return false;
  return all_known(g, n.inputs) || !is_float(type.element);  // else sizes may be unknown because of others
}

/// Inputs on whose elements sizes of results depend.
std::vector<ValueId> sizes_of(const Graph& g, const Node& n) {
  if (all_known(g, n.outputs) || n.op.has(Trait::elementwise | Trait::control_flow)) return {};
  if (n.op.has(Trait::data_dependent) && !n.op.has(Trait::counts_boxes)) return n.inputs;
  InferContext asked(g, n);
  n.op->infer(asked);
  const std::size_t limits = n.op.is<NonMaxSuppression>() ? 2 : n.inputs.size();  // counts and thresholds
  std::vector<ValueId> out;
  for (std::size_t i = 0; i < n.inputs.size(); ++i)
    if (n.inputs[i].valid() && (i >= limits || asked.lacks(i) || may_be_sizes(g, n, i)))
      out.push_back(n.inputs[i]);
  return out;
}

bool decides_flow(const Node& n, std::size_t input) {
  return (n.op.is<If>() && input == 0) || (n.op.is<Loop>() && input < 2);
}

std::vector<Carried> carried_by(const Loop* loop) {
  std::vector<Carried> out;
  for (std::size_t i = 0; loop && i < static_cast<std::size_t>(loop->carried); ++i)
    out.push_back({2 + i, 1 + i});
  return out;
}

enum class About { flow, sizes };

/// Decisions of a graph, or of a body.
class Decisions {
 public:
  Decisions(const Graph& g, About about, std::vector<Carried> carried)
      : g_(g), about_(about), carried_(std::move(carried)) {}

  /// `condition`: what the first result decides, of a body that is run again and again.
  void find(const std::string& condition = {}) {
    if (!condition.empty()) add(g_.results().at(0).value, condition);
    for (const auto& c : carried_)
      if (!c.input) add(g_.results().at(c.result).value, "a later run depends on it");
    for (const auto id : g_.order()) {
      const Node& n = g_.node(id);
      if (about_ == About::sizes) add(sizes_of(g_, n), told("the size of", id));
      for (std::size_t i = 0; about_ == About::flow && i < n.inputs.size(); ++i)
        if (decides_flow(n, i)) add(n.inputs[i], told("the control flow of", id));
      if (n.op.is<If>() || n.op.is<Loop>()) in_bodies(id);
    }
    for (;;)
      if (const auto v = taken_from(work_); v.valid())
        made_of(v);
      else if (const auto s = taken_from(sized_work_); s.valid())
        sized_by(s);
      else
        return;
  }

  const KeptValues& values() const { return values_; }
  const KeptValues& sized() const { return sized_; }  ///< those whose sizes decide

 private:
  static ValueId taken_from(std::vector<ValueId>& work) {
    if (work.empty()) return {};
    const auto v = work.back();
    work.pop_back();
    return v;
  }
  std::string told(const char* what, NodeId id) const {
    return fmt::format("{} '{}' depends on it", what, g_.label(id));
  }

  void add(ValueId v, const std::string& why) {
    if (v.valid() && values_.emplace(v, why).second) work_.push_back(v);
  }
  void add(const std::vector<ValueId>& values, const std::string& why) {
    for (const auto v : values) add(v, why);
  }
  void add_size(ValueId v, const std::string& why) {
    if (v.valid() && !g_.type(v).shape.known() && sized_.emplace(v, why).second) sized_work_.push_back(v);
  }

  /// What the node gives to bodies that decide by it.
  void in_bodies(NodeId id) {
    const Node& n = g_.node(id);
    const auto* loop = n.op.as<Loop>();
    const std::size_t first = loop ? 0 : 1;  // without parameter
    for (const auto& body : n.bodies) {
      Decisions inside(body, about_, carried_by(loop));
      inside.find(loop && about_ == About::flow ? told("the control flow of", id) : "");
      for (std::size_t p = 0; p < body.inputs().size(); ++p) {
        const auto v = body.inputs()[p];
        if (const auto it = inside.values().find(v); it != inside.values().end())
          add(n.inputs.at(p + first), it->second);
        if (const auto it = inside.sized().find(v); it != inside.sized().end())
          add_size(n.inputs.at(p + first), it->second);
      }
    }
  }

  /// Sizes of what is computed decide about sizes as they are, and about flow by what they are made of: so
  /// that those of all who choose boxes need no f32 before it.
  void made_of(ValueId v) {
    const auto why = values_.at(v);
    const auto p = g_.producer(v);
    if (!p.valid())
      for (const auto before : handed_on(v)) add(before, why);
    else if (!g_.node(p).op.is<ShapeOf>())
      add(g_.node(p).inputs, why);
    else if (about_ == About::flow)
      add_size(g_.node(p).inputs[0], why);
  }

  void sized_by(ValueId v) {
    const auto why = sized_.at(v);
    const auto p = g_.producer(v);
    if (!p.valid()) {
      for (const auto before : handed_on(v)) add_size(before, why);
      return;
    }
    const Node& n = g_.node(p);
    const bool by_all = n.op.has(Trait::data_dependent | Trait::control_flow);
    add(by_all ? n.inputs : sizes_of(g_, n), why);
    for (const auto input : n.inputs) add_size(input, why);
  }

  /// What the input was before it was handed on.
  std::vector<ValueId> handed_on(ValueId input) const {
    std::vector<ValueId> out;
    for (const auto& c : carried_)
      if (c.input && g_.inputs().at(*c.input) == input) out.push_back(g_.results().at(c.result).value);
    return out;
  }

  const Graph& g_;
  About about_;
  std::vector<Carried> carried_;
  KeptValues values_, sized_;
  std::vector<ValueId> work_, sized_work_;
};

}  // namespace

KeptValues deciding_values(const Graph& g, const std::vector<Carried>& carried) {
  Decisions flow(g, About::flow, carried), sizes(g, About::sizes, carried);
  flow.find();
  sizes.find();
  auto out = flow.values();
  out.insert(sizes.values().begin(), sizes.values().end());
  return out;
}

}  // namespace lamina::bf16
