/// Follows shape arithmetic (ShapeOf -> Gather -> Concat -> ...) back to the dimensions it comes from, so
/// that `Reshape(x, Concat(Gather(ShapeOf(x), 0), -1))` has a known first dimension on dynamic models.
#include <algorithm>

#include "graph/graph.h"
#include "graph/infer.h"

namespace lamina {

namespace {

using Known = std::optional<std::vector<Dim>>;

constexpr std::size_t kMostElements = 64;  // shapes are short; anything longer is data
constexpr int kDeepest = 64;
constexpr int kMostSteps = 4096;  // chains that fan out (x + x, again and again) would cost exponential time

class Follower {
 public:
  explicit Follower(const Graph& graph) : graph_(graph) {}

  Known of(ValueId v, int depth) {
    if (!v.valid() || depth > kDeepest || ++steps_ > kMostSteps) return std::nullopt;
    if (const auto* t = graph_.constant(v)) return constant(*t);
    const auto p = graph_.producer(v);
    if (!p.valid()) return std::nullopt;
    const Node& n = graph_.node(p);
    const std::string_view op = n.op.info().name;
    const auto input = [&](std::size_t i) {
      return i < n.inputs.size() ? of(n.inputs[i], depth + 1) : Known{};
    };
    if (op == "ShapeOf") return shape_of(n.inputs[0]);
    if (op == "Convert" || op == "Squeeze" || op == "Unsqueeze" || op == "Reshape" || op == "Identity")
      return same_elements(v, input(0));
    if (op == "Concat") return concat(n, depth);
    if (op == "Gather") return gather(n, input(0), input(1));
    if (op == "Slice") return slice(n, depth);
    if (op == "Add" || op == "Subtract" || op == "Multiply" || op == "Divide")
      return in_range(v, arithmetic(op, input(0), input(1)));
    return std::nullopt;
  }

 private:
  static Known constant(const Tensor& t) {
    if (!is_integer(t.element_type()) || t.rank() > 1 || t.size() > kMostElements) return std::nullopt;
    const auto values = to_ints(t);
    if (std::find(values.begin(), values.end(), INT64_MAX) != values.end()) return std::nullopt;  // no size
    return std::vector<Dim>(values.begin(), values.end());
  }

  /// What the value's own type may have cut off is not known: sums that wrapped, or a size in a byte. Sizes
  /// without an upper bound are taken to fit 32 bits and more.
  Known in_range(ValueId v, Known values) const {
    const auto type = graph_.type(v).element;
    if (!values || !is_integer(type)) return std::nullopt;
    const int bits = std::min(bits_of(type) - (is_signed(type) ? 1 : 0), 63);
    const auto most = bits == 63 ? INT64_MAX - 1 : (std::int64_t{1} << bits) - 1;
    const auto least = is_signed(type) ? -most - 1 : 0;
    for (const auto& d : *values) {
      const bool open = !d.known() && d.high() == Dim::kUnbounded && bits >= 31;
      if (d.low() < least || d.low() > most || (!open && d.high() > most)) return std::nullopt;
    }
    return values;
  }

  Known shape_of(ValueId v) const {
    const auto& shape = graph_.type(v).shape;
    if (!shape.ranked()) return std::nullopt;
    return shape.dims();
  }

  /// Only values of rank 0 and 1 are followed.
  Known same_elements(ValueId v, Known from) const {
    const auto& shape = graph_.type(v).shape;
    return shape.ranked() && shape.rank() > 1 ? std::nullopt : in_range(v, from);
  }

  Known concat(const Node& n, int depth) {
    std::vector<Dim> out;
    for (auto v : n.inputs) {
      const auto part = of(v, depth + 1);
      if (!part) return std::nullopt;
      out.insert(out.end(), part->begin(), part->end());
      if (out.size() > kMostElements) return std::nullopt;
    }
    return out;
  }

  Known gather(const Node& n, const Known& data, const Known& indices) const {
    if (!data || !indices || graph_.type(n.inputs[0]).shape.rank() != 1) return std::nullopt;
    std::vector<Dim> out;
    const auto size = static_cast<std::int64_t>(data->size());
    for (const auto& d : *indices) {
      if (!d.known()) return std::nullopt;
      const auto i = d.size() < 0 ? d.size() + size : d.size();
      if (i < 0 || i >= size) return std::nullopt;
      out.push_back((*data)[static_cast<std::size_t>(i)]);
    }
    return out;
  }

  /// INT64_MAX stands for the end here, whatever it was before it was saturated.
  std::optional<std::int64_t> bound(ValueId value, int depth) {
    if (const auto* t = graph_.constant(value); t && is_integer(t->element_type()) && t->size() == 1)
      return to_ints(*t)[0];
    const auto v = of(value, depth + 1);
    if (!v || v->size() != 1 || !(*v)[0].known()) return std::nullopt;
    return (*v)[0].size();
  }

  Known slice(const Node& n, int depth) {
    const auto data = of(n.inputs[0], depth + 1);
    if (!data || graph_.type(n.inputs[0]).shape.rank() != 1) return std::nullopt;
    std::int64_t bounds[3];
    for (std::size_t i = 0; i < 3; ++i) {
      const auto b = bound(n.inputs[i + 1], depth);
      if (!b) return std::nullopt;
      bounds[i] = *b;
    }
    const auto size = static_cast<std::int64_t>(data->size());
    if (bounds[2] != 1) return std::nullopt;
    const auto clamp = [&](std::int64_t b) {
      return std::clamp<std::int64_t>(b < 0 ? b + size : b, 0, size);
    };
    const auto first = clamp(bounds[0]), last = std::max(clamp(bounds[1]), clamp(bounds[0]));
    return std::vector<Dim>(data->begin() + first, data->begin() + last);
  }

  static Known arithmetic(std::string_view op, const Known& a, const Known& b) {
    if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return std::nullopt;
    std::vector<Dim> out;
    for (std::size_t i = 0; i < std::max(a->size(), b->size()); ++i) {
      const Dim x = (*a)[a->size() == 1 ? 0 : i], y = (*b)[b->size() == 1 ? 0 : i];
      if (x.low() < 0 || y.low() < 0) return std::nullopt;  // -1 is a mark, not a size
      if (op == "Add")
        out.push_back(x + y);
      else if (op == "Subtract")
        out.push_back(x - y);
      else if (op == "Multiply")
        out.push_back(x * y);
      else if (y.known() && y.size() > 0)
        out.push_back(floor_div(x, y.size()));
      else
        return std::nullopt;
    }
    return out;
  }

  const Graph& graph_;
  int steps_ = 0;
};

}  // namespace

std::optional<std::vector<Dim>> dims_of_value(const Graph& graph, ValueId value) {
  return Follower(graph).of(value, 0);
}

}  // namespace lamina
