#include "ops/shape_rules.h"

#include <algorithm>

namespace lamina {
namespace {

bool unknown(ElementType e) { return e == ElementType::undefined; }

}  // namespace

void require_float(const InferContext& c, std::size_t i, std::string_view name) {
  const auto e = c.element(i);
  c.require(unknown(e) || is_float(e), "{} is {}, wanted a floating-point type", name, name_of(e));
}

void require_number(const InferContext& c, std::size_t i, std::string_view name) {
  const auto e = c.element(i);
  c.require(unknown(e) || is_float(e) || is_integer(e), "{} is {}, wanted numbers", name, name_of(e));
}

void require_integer(const InferContext& c, std::size_t i, std::string_view name) {
  const auto e = c.element(i);
  c.require(unknown(e) || is_integer(e), "{} is {}, wanted integers", name, name_of(e));
}

void require_same_element(const InferContext& c, std::size_t i, std::size_t j, std::string_view name) {
  const auto a = c.element(i), b = c.element(j);
  c.require(unknown(a) || unknown(b) || a == b, "{} is {}, wanted {}", name, name_of(b), name_of(a));
}

void require_rank(const InferContext& c, std::size_t i, std::size_t low, std::size_t high,
                  std::string_view name) {
  const auto& s = c.shape(i);
  if (!s.ranked() || (s.rank() >= low && s.rank() <= high)) return;
  if (low == high) c.fail("{} has shape {}, wanted rank {}", name, to_string(s), low);
  c.fail("{} has shape {}, wanted rank {} to {}", name, to_string(s), low, high);
}

void require_dim(const InferContext& c, const Dim& dim, const Dim& wanted, std::string_view what) {
  c.require(dim.fits(wanted), "{} is {}, wanted {}", what, to_string(dim), to_string(wanted));
}

void require_shape(const InferContext& c, std::size_t i, const Shape& wanted, std::string_view name) {
  c.require(c.shape(i).fits(wanted), "{} has shape {}, wanted {}", name, to_string(c.shape(i)),
            to_string(wanted));
}

void require_broadcast(const InferContext& c, std::size_t i, const Shape& shape, std::string_view name) {
  const auto& s = c.shape(i);
  if (!s.ranked() || !shape.ranked()) return;
  bool fits = s.rank() <= shape.rank();
  for (std::size_t k = 0; fits && k < s.rank(); ++k) {
    const auto& d = s[s.rank() - 1 - k];
    fits = d.fits(Dim(1)) || d.fits(shape[shape.rank() - 1 - k]);
  }
  c.require(fits, "{} has shape {}, which does not broadcast to {}", name, to_string(s), to_string(shape));
}

bool one_element(const Shape& shape) { return shape.known() && shape.count().is(1); }

std::vector<bool> axis_flags(const InferContext& c, const Ints& axes, std::size_t rank) {
  std::vector<bool> flags(rank);
  for (auto a : axes) {
    const auto axis = normalize_axis(a, rank, "axis");
    c.require(!flags[axis], "axis {} is given twice", a);
    flags[axis] = true;
  }
  return flags;
}

std::vector<bool> axis_flags(const EvalContext& c, std::size_t i, std::size_t rank) {
  std::vector<bool> flags(rank);
  for (auto a : c.ints(i)) flags[normalize_axis(a, rank, "axis")] = true;
  return flags;
}

Shape reduced_shape(const Shape& shape, const std::vector<bool>& axes, bool keep_dims) {
  std::vector<Dim> out;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (!axes[i])
      out.push_back(shape[i]);
    else if (keep_dims)
      out.emplace_back(1);
  }
  return Shape(std::move(out));
}

Dim window_count(const Dim& in, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
                 std::int64_t pad_begin, std::int64_t pad_end, WindowRounding rounding) {
  const std::int64_t extent = (kernel - 1) * dilation + 1;
  const std::int64_t pads = pad_begin + pad_end;
  const Dim padded = in + Dim(pads);
  // Rounded up, a last window may lack less than a stride: even where it is the only one.
  const std::int64_t lacking = rounding == WindowRounding::floor ? 0 : stride - 1;
  if ((padded + Dim(lacking)).high() < extent)
    fail(ErrorCode::bad_file, "an input of {} with padding {} is smaller than the window of {}",
         to_string(in), pads, extent);
  if (stride == 1 && pads == extent - 1) return in;
  const Dim room = padded + Dim(lacking) - Dim(extent);
  Dim count = floor_div(room, stride) + Dim(1);
  if (rounding == WindowRounding::torch && count.known() && in.known() &&
      (count.size() - 1) * stride >= in.size() + pad_begin)
    count = Dim(count.size() - 1);
  if (rounding == WindowRounding::torch && !count.known())
    count = Dim(std::max<std::int64_t>(count.low() - 1, 0), count.high());
  return count;
}

Dim same_count(const Dim& in, std::int64_t stride) { return floor_div(in + Dim(stride - 1), stride); }

std::vector<std::int64_t> offsets_along(const Dims& shape, const std::vector<bool>& selected) {
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (selected[axis] && shape[axis] == 0) return {};  // however many the others make
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!selected[axis]) continue;
    std::vector<std::int64_t> longer;
    longer.reserve(offsets.size() * static_cast<std::size_t>(shape[axis]));
    for (auto o : offsets)
      for (std::int64_t i = 0; i < shape[axis]; ++i) longer.push_back(o + i * strides[axis]);
    offsets = std::move(longer);
  }
  return offsets;
}

std::vector<std::int64_t> broadcast_offsets(const Dims& from, const Dims& to) {
  if (std::find(to.begin(), to.end(), 0) != to.end()) return {};
  std::vector<std::int64_t> offsets{0};
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    const auto missing = to.size() - from.size();
    const std::int64_t size = axis < missing ? 1 : from[axis - missing];
    const std::int64_t stride = axis < missing ? 0 : count_of(from, axis - missing + 1, from.size());
    std::vector<std::int64_t> longer;
    longer.reserve(offsets.size() * static_cast<std::size_t>(to[axis]));
    for (auto o : offsets)
      for (std::int64_t i = 0; i < to[axis]; ++i) longer.push_back(o + (size == 1 ? 0 : i * stride));
    offsets = std::move(longer);
  }
  return offsets;
}

std::vector<double> broadcast_values(const std::vector<double>& values, const Dims& from, const Dims& to) {
  if (from == to) return values;
  const auto offsets = broadcast_offsets(from, to);
  std::vector<double> out(offsets.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = values[static_cast<std::size_t>(offsets[i])];
  return out;
}

std::int64_t count_of(const Dims& dims, std::size_t begin, std::size_t end) {
  std::int64_t product = 1;
  for (std::size_t i = begin; i < end; ++i) product *= dims[i];
  return product;
}

}  // namespace lamina
