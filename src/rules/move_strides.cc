/// Strides of convolutions over a window of 1 are moved to the convolutions above, which compute less then:
/// the last blocks of a ResNet's stages, where the first layer of the next block has the stride.
#include <algorithm>

#include "ops/movement.h"
#include "ops/pooling.h"
#include "rules/pointwise.h"
#include "rules/rules.h"
#include "rules/subsampling.h"

namespace lamina {
namespace {

bool is_strided_point(const Graph& g, const Node& n) { return strided_window(g, n) != nullptr; }

Op with_window(const Op& op, const Window& window) {
  const auto changed = [&](auto copy) {
    static_cast<Window&>(copy) = window;
    return Op(copy);
  };
  if (const auto* conv = op.as<Convolution>()) return changed(*conv);
  if (const auto* pool = op.as<MaxPool>()) return changed(*pool);
  return changed(*op.as<BinaryConvolution>());
}

/// Every step-th position of a constant; its axes are the last ones of the picture.
Tensor every_step_th(const Tensor& t, const Ints& step) {
  Ints axes, steps;
  for (std::size_t back = 1; back <= std::min(step.size(), t.rank()); ++back) {
    axes.push_back(static_cast<std::int64_t>(t.rank() - back));
    steps.push_back(step[step.size() - back]);
  }
  Node node;
  node.op = Slice{};
  node.inputs.resize(5);
  node.outputs.resize(1);
  return evaluate_node(node,
                       {t.to_aligned(), ints_tensor(Ints(axes.size(), 0)),
                        ints_tensor(Ints(axes.size(), INT64_MAX)), ints_tensor(steps), ints_tensor(axes)},
                       {})
      .at(0);
}

/// Makes the nodes that compute less.
class Mover {
 public:
  Mover(Rewrite& r, const Subsampled& all) : r_(r), g_(r.graph()), all_(all) {}

  void move() {
    for (const auto v : all_.values) made_.insert_or_assign(v, again(v));
    for (const auto n : all_.points) replace_point(n);
    r_.note(said());
  }

 private:
  /// Every step-th position of an operand.
  ValueId operand(ValueId v) {
    if (const auto found = made_.find(v); found != made_.end()) return found->second;
    const auto* t = g_.constant(v);
    const auto made = t ? r_.constant(every_step_th(*t, all_.step), g_.value(v).name) : pooled(v);
    made_.emplace(v, made);
    return made;
  }

  ValueId pooled(ValueId v) {
    if (!is_float(g_.type(v).element)) {  // of which there is no maximum
      Ints axes;
      for (std::size_t i = 0; i < all_.step.size(); ++i) axes.push_back(static_cast<std::int64_t>(i + 2));
      const auto list = [&](Ints ints) { return r_.constant(ints_tensor(ints)); };
      return r_.add_beside(
          "slice", Slice{},
          {v, list(Ints(axes.size(), 0)), list(Ints(axes.size(), INT64_MAX)), list(all_.step), list(axes)});
    }
    MaxPool pool;
    pool.kernel = Ints(all_.step.size(), 1);
    pool.strides = all_.step;
    return r_.add_beside("pooling", pool, {v});
  }

  ValueId again(ValueId v) {
    const auto id = g_.producer(v);
    const Node old = g_.node(id);
    if (const auto found = all_.windows.find(id); found != all_.windows.end())
      return r_.add_for(id, with_window(old.op, found->second), old.inputs);
    auto inputs = old.inputs;
    if (convolution_window(old)) {
      inputs[0] = operand(inputs[0]);
    } else {
      const auto spreads = pointwise(g_, old, all_.step);
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if ((*spreads)[i] == Spread::positions) inputs[i] = operand(inputs[i]);
    }
    return r_.add_for(id, Op(old.op), std::move(inputs));
  }

  void replace_point(NodeId id) {
    const Node old = g_.node(id);
    Window w = *strided_window(g_, old);
    for (std::size_t i = 0; i < all_.step.size(); ++i) w.strides[i] /= all_.step[i];
    const bool rests = std::any_of(w.strides.begin(), w.strides.end(), [](auto s) { return s > 1; });
    auto inputs = old.inputs;
    inputs[0] = made_.at(inputs[0]);
    if (old.op.is<MaxPool>() && !rests)
      r_.replace_other(id, inputs[0]);
    else
      r_.replace_other(id, r_.add_for(id, with_window(old.op, w), std::move(inputs)));
  }

  std::string said() const {
    std::string out = "strides " + to_string(all_.step) + " moved to";
    const auto name = [&](ValueId v) {
      const auto maker = g_.producer(v);
      return "'" + (maker.valid() ? g_.label(maker) : g_.value(v).name) + "'";
    };
    std::string separator = " ";
    for (const auto v : all_.values)
      if (all_.windows.contains(g_.producer(v))) {
        out += separator + name(v);
        separator = ", ";
      }
    separator = "; poolings behind ";
    for (const auto v : all_.pooled) {
      out += separator + name(v);
      separator = ", ";
    }
    return out;
  }

  Rewrite& r_;
  const Graph& g_;
  const Subsampled& all_;
  std::unordered_map<ValueId, ValueId> made_;  // by what they are every step-th position of
};

}  // namespace

void add_move_strides(Rules& rules) {
  rules.push_back(rule("move-strides",
                       "Moves strides of 1x1 convolutions to earlier convolutions, which then compute less",
                       RuleSet::portable, node("1x1 convolution with strides", is_strided_point, {any()}))
                      .when([](const Match& m) { return subsampled_above(m, m.root()); })
                      .make([](Rewrite& r, const Subsampled& all) { Mover(r, all).move(); }));
}

}  // namespace lamina
