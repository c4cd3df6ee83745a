/// Follows shape arithmetic (ShapeOf -> Gather -> Concat -> ...) back to the dimensions it comes from, so
/// that `Reshape(x, Concat(Gather(ShapeOf(x), 0), -1))` has a known first dimension on dynamic models. What
/// each operator makes of sizes says its hook.
#include "graph/shape_value.h"

#include <algorithm>

#include "graph/followed_sizes.h"

namespace lamina {

namespace {

constexpr std::size_t kMostElements = 64;  // shapes are short; anything longer is data
constexpr int kMostSteps = 4096;  // chains that fan out (x + x, again and again) would cost exponential time

class Follower {
 public:
  explicit Follower(const Graph& graph) : graph_(graph) {}
  const Graph& graph() const { return graph_; }
  ShapeValue of(ValueId v, int depth);

 private:
  static ShapeValue constant(const Tensor& t);
  static bool fits(const Shape& shape, const std::vector<Dim>& values);
  ShapeValue in_range(ValueId v, ShapeValue values) const;

  const Graph& graph_;
  int steps_ = 0;
};

class Context final : public ShapeValueContext {
 public:
  Context(Follower& follower, const Node& node, int depth)
      : follower_(follower), node_(node), depth_(depth) {}

  const Node& node() const override { return node_; }
  const Shape& shape(std::size_t i) const override { return follower_.graph().type(node_.inputs[i]).shape; }
  ShapeValue input(std::size_t i) override {
    return i < node_.inputs.size() ? follower_.of(node_.inputs[i], depth_ + 1) : std::nullopt;
  }
  std::optional<std::int64_t> bound(std::size_t i) override {
    if (i >= node_.inputs.size() || !node_.inputs[i].valid()) return std::nullopt;
    if (const auto* t = follower_.graph().constant(node_.inputs[i]);
        t && is_integer(t->element_type()) && t->size() == 1)
      return to_ints(*t)[0];
    const auto v = input(i);
    if (!v || v->size() != 1 || !(*v)[0].known()) return std::nullopt;
    return (*v)[0].size();
  }
  ShapeValue same_elements() override {
    const auto& out = follower_.graph().type(node_.outputs[0]).shape;
    return out.ranked() && out.rank() > 1 ? std::nullopt : input(0);
  }

 private:
  Follower& follower_;
  const Node& node_;
  int depth_;
};

ShapeValue Follower::of(ValueId v, int depth) {
  if (!v.valid() || depth > kFollowedSizes || ++steps_ > kMostSteps) return std::nullopt;
  if (const auto* t = graph_.constant(v)) return constant(*t);
  const auto p = graph_.producer(v);
  if (!p.valid() || v != graph_.node(p).outputs[0]) return std::nullopt;
  const Node& n = graph_.node(p);
  Context c(*this, n, depth);
  return in_range(v, n.op.has(Trait::keeps_values) ? c.same_elements() : n.op->shape_value(c));
}

ShapeValue Follower::constant(const Tensor& t) {
  if (!is_integer(t.element_type()) || t.rank() > 1 || t.size() > kMostElements) return std::nullopt;
  const auto values = to_ints(t);
  if (std::find(values.begin(), values.end(), INT64_MAX) != values.end()) return std::nullopt;  // no size
  return std::vector<Dim>(values.begin(), values.end());
}

/// The shape has room for so many elements, and is one that is followed. Callers take elements of the list by
/// what they know of the shape.
bool Follower::fits(const Shape& shape, const std::vector<Dim>& values) {
  if (!shape.ranked()) return true;
  const Dim count(static_cast<std::int64_t>(values.size()));
  return shape.rank() == 0 ? count.is(1) : shape.rank() == 1 && shape[0].fits(count);
}

/// What the value's own type may have cut off is not known: sums that wrapped, or a size in a byte. Sizes
/// without an upper bound are taken to fit 32 bits and more.
ShapeValue Follower::in_range(ValueId v, ShapeValue values) const {
  const auto type = graph_.type(v).element;
  if (!values || !is_integer(type) || values->size() > kMostElements) return std::nullopt;
  if (!fits(graph_.type(v).shape, *values)) return std::nullopt;
  const int bits = std::min(bits_of(type) - (is_signed(type) ? 1 : 0), 63);
  const auto most = bits == 63 ? INT64_MAX - 1 : (std::int64_t{1} << bits) - 1;
  const auto least = is_signed(type) ? -most - 1 : 0;
  for (const auto& d : *values) {
    if (d == any_value()) continue;
    const bool open = !d.known() && d.high() == Dim::kUnbounded && bits >= 31 && d.low() <= most / 2;
    if (d.low() < least || d.low() > most || (!open && d.high() > most)) return std::nullopt;
  }
  return values;
}

}  // namespace

/// Callers take elements that are not known for sizes.
std::optional<std::vector<Dim>> dims_of_value(const Graph& graph, ValueId value) {
  auto values = Follower(graph).of(value, 0);
  if (values) std::replace(values->begin(), values->end(), any_value(), Dim());
  return values;
}

}  // namespace lamina
