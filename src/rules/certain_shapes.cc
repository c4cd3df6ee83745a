#include "rules/certain_shapes.h"

#include <algorithm>

#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/require.h"
#include "ops/shaping.h"
#include "ops/slicing.h"

namespace lamina {
namespace {

/// An element of a value of rank 0 or 1.
struct Element {
  ValueId value;
  std::int64_t at;
};

/// The number of elements of a value of rank 0 or 1.
std::optional<std::int64_t> length_of(const Graph& g, ValueId v) {
  const auto& shape = g.type(v).shape;
  if (!shape.known() || shape.rank() > 1) return std::nullopt;
  return shape.count().size();
}

std::optional<Element> part_of_concat(const Graph& g, const Node& n, std::int64_t at) {
  for (const auto v : n.inputs) {
    const auto length = length_of(g, v);
    if (!length) return std::nullopt;
    if (at < *length) return Element{v, at};
    at -= *length;
  }
  return std::nullopt;
}

std::optional<Element> element_of_gather(const Graph& g, const Node& n, std::int64_t at) {
  const auto indices = constant_ints(g, n, 1);
  const auto length = length_of(g, n.inputs[0]);
  if (!indices || !length || at >= std::ssize(*indices)) return std::nullopt;
  const auto i = (*indices)[static_cast<std::size_t>(at)];
  return Element{n.inputs[0], i < 0 ? i + *length : i};
}

std::optional<Element> element_of_slice(const Graph& g, const Node& n, std::int64_t at) {
  const auto start = single_value(g, n.inputs[1]), stop = single_value(g, n.inputs[2]);
  const auto step = constant_ints(g, n, 3);
  const auto length = length_of(g, n.inputs[0]);
  if (!start || !stop || !step || !length || !all_are(*step, 1)) return std::nullopt;
  const auto range = slice_range(*length, constant_ints(g, n, 1)->at(0), constant_ints(g, n, 2)->at(0), 1);
  return at < range.count ? std::optional(Element{n.inputs[0], range.first + at}) : std::nullopt;
}

/// The element of an input that the node hands on as this element of its result.
std::optional<Element> handed_on(const Graph& g, const Node& n, std::int64_t at) {
  if (n.op.is<Concat>()) return part_of_concat(g, n, at);
  if (n.op.is<Gather>()) return element_of_gather(g, n, at);
  if (n.op.is<Slice>()) return element_of_slice(g, n, at);
  const auto is_of_sizes = [&](ValueId v) { return is_integer(g.type(v).element) && length_of(g, v); };
  const bool keeps = n.op.has(Trait::keeps_values) || n.op.is<Convert>();
  return keeps && is_of_sizes(n.inputs[0]) && is_of_sizes(n.outputs[0])
             ? std::optional(Element{n.inputs[0], at})
             : std::nullopt;
}

/// The axis of a value whose size a ShapeOf gave as the element.
struct Axis {
  ValueId of;
  std::size_t axis;
};
std::optional<Axis> axis_read(const Graph& g, Element e) {
  constexpr std::size_t kMostNodes = 64;  // between a ShapeOf and who reads its sizes
  for (std::size_t passed = 0; passed < kMostNodes; ++passed) {
    const auto maker = g.producer(e.value);
    if (!maker.valid() || e.at < 0) return std::nullopt;
    const Node& n = g.node(maker);
    if (n.op.is<ShapeOf>()) return Axis{n.inputs[0], static_cast<std::size_t>(e.at)};
    const auto next = handed_on(g, n, e.at);
    if (!next) return std::nullopt;
    e = *next;
  }
  return std::nullopt;
}

/// A size in a list, which is known, has a name or was read from an axis.
struct ListedSize {
  Dim size;
  std::optional<Axis> read;

  ListedSize(const Graph& g, ValueId list, std::size_t i, const Dim& d) : size(d) {
    if (!d.known()) read = axis_read(g, {list, static_cast<std::int64_t>(i)});
  }
  /// Provably the size of that axis of x.
  bool is_of(const Graph& g, ValueId x, std::size_t axis) const {
    return size.same(g.type(x).shape[axis]) || (read && read->of == x && read->axis == axis);
  }
};

/// Axes of the input as factors of its number of elements, of which a pattern's sizes take one after another.
class Factors {
 public:
  Factors(const Graph& g, const Node& reshape) : g_(g), list_(reshape.inputs[1]), x_(reshape.inputs[0]) {
    left_.resize(g.type(x_).shape.rank());
    for (std::size_t axis = 0; axis < left_.size(); ++axis) left_[axis] = axis;
  }
  /// Element i of the pattern is the size of an axis that was left; a 0 there would not be taken for another.
  bool take(std::size_t i, const Dim& d, bool special_zero) {
    const ListedSize size(g_, list_, i, d);
    const auto found = std::ranges::find_if(left_, [&](std::size_t axis) {
      const bool stays = !special_zero || axis == i || dim(axis).low() > 0;
      return stays && size.is_of(g_, x_, axis);
    });
    if (found == left_.end()) return false;
    left_.erase(found);
    return true;
  }
  /// The pattern keeps this axis.
  bool take_axis(std::size_t axis) {
    const auto found =
        std::ranges::find_if(left_, [&](std::size_t i) { return dim(i).same(dim(axis)) || i == axis; });
    if (found == left_.end()) return false;
    left_.erase(found);
    return true;
  }
  bool all_known() const {
    return std::ranges::all_of(left_, [&](std::size_t axis) { return dim(axis).known(); });
  }
  std::int64_t known_product() const {
    std::int64_t product = 1;
    for (const auto axis : left_)
      if (dim(axis).known()) product = saturated_mul(product, dim(axis).size());
    return product;
  }

 private:
  const Dim& dim(std::size_t axis) const { return g_.type(x_).shape[axis]; }

  const Graph& g_;
  ValueId list_, x_;
  std::vector<std::size_t> left_;
};

bool reshape_fits(const Graph& g, const Node& n) {
  const auto& from = g.type(n.inputs[0]).shape;
  const auto pattern = dims_of_value(g, n.inputs[1]);
  if (!pattern) return length_of(g, n.inputs[1]) == 0 && from.ranked() && from.rank() == 0;
  if (!from.ranked()) return pattern->size() == 1 && (*pattern)[0].is(-1);
  const bool special_zero = n.op.as<Reshape>()->special_zero;
  Factors factors(g, n);
  std::int64_t taken = 1;
  bool marked = false;
  for (std::size_t i = 0; i < pattern->size(); ++i) {
    const Dim& d = (*pattern)[i];
    if (d.is(-1)) {
      marked = true;
    } else if (special_zero && d.is(0)) {
      if (i >= from.rank() || !factors.take_axis(i)) return false;
    } else if (d.known()) {
      taken = saturated_mul(taken, d.size());
    } else if (!factors.take(i, d, special_zero)) {
      return false;
    }
  }
  const auto left = factors.known_product();
  return marked ? taken > 0 && left % taken == 0 : factors.all_known() && left == taken;
}

/// True if the axes that the Squeeze removes are known to be 1, or if it skips other ones.
bool squeeze_fits(const Graph& g, const Node& n) {
  const auto& from = g.type(n.inputs[0]).shape;
  if (!has_input(n, 1)) return true;
  const auto axes = constant_ints(g, n, 1);
  if (!axes || !from.ranked()) return axes && axes->empty();
  return n.op.as<Squeeze>()->allow_axis_skip || std::ranges::all_of(*axes, [&](std::int64_t axis) {
           return from[normalize_axis(axis, from.rank(), "axes")].is(1);
         });
}

/// The product of a pattern's sizes but for the -1; with one of 0 nothing is certain.
struct Sizes {
  std::int64_t product = 1;
  bool open = false;
};
Sizes sizes_of(const Ints& pattern) {
  Sizes out;
  for (const auto size : pattern) {
    if (size == -1)
      out.open = true;
    else
      out.product = saturated_mul(out.product, size);
  }
  return out;
}

}  // namespace

bool broadcasts_within(const Graph& g, ValueId list, ValueId x) {
  const auto& shape = g.type(x).shape;
  const auto sizes = dims_of_value(g, list);
  if (!sizes || !shape.ranked() || sizes->size() > shape.rank()) return false;
  const auto skipped = shape.rank() - sizes->size();
  for (std::size_t i = 0; i < sizes->size(); ++i) {
    const Dim& d = (*sizes)[i];
    if (!d.is(1) && !ListedSize(g, list, i, d).is_of(g, x, skipped + i)) return false;
  }
  return true;
}

bool is_certain_to_fit(const Graph& g, const Node& n) {
  if (n.op.is<Reshape>()) return reshape_fits(g, n);
  if (n.op.is<Squeeze>()) return squeeze_fits(g, n);
  return n.op.is<Unsqueeze>() && g.type(n.inputs[0]).shape.ranked() && constant_ints(g, n, 1);
}

bool is_certain_to_fit(const Graph& g, const Node& n, const Ints& pattern) {
  if (is_certain_to_fit(g, n)) return true;
  const auto checked = sizes_of(pattern);
  if (checked.product < 1) return false;
  const auto axes_or_sizes = constant_ints(g, n, 1);
  if (!axes_or_sizes) return false;
  const auto& to = g.type(n.outputs[0]).shape;
  const bool given = !n.op.is<Reshape>() || std::ranges::find(*axes_or_sizes, 0) == axes_or_sizes->end();
  if (!checked.open && given && to.known() && to.count().is(checked.product)) return true;
  if (!n.op.is<Reshape>() || !given) return false;
  const auto asked = sizes_of(*axes_or_sizes);
  return asked.open && asked.product > 0 && checked.product % asked.product == 0;
}

Verdict never_fails(const Match& m, const Pattern& reshape) {
  if (is_certain_to_fit(m.graph(), m.node(reshape))) return Verdict::yes();
  return Verdict::no("{} may have more or fewer elements than its shape", m.label(reshape));
}

}  // namespace lamina
