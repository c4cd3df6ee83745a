#include "ops/require.h"

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

ElementType sums_element(const InferContext& c, ElementType operands, ElementType sums) {
  if (sums == ElementType::undefined || unknown(operands)) return operands;
  c.require(sums == ElementType::f32, "sums of {}, wanted f32", name_of(sums));
  c.require(is_float(operands) && bits_of(operands) <= 32, "f32 sums of {}", name_of(operands));
  return sums;
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

void require_one_element(const InferContext& c, std::size_t i, std::string_view name) {
  const auto& s = c.shape(i);
  if (!s.ranked()) return;
  for (const auto& d : s.dims())
    c.require(d.fits(1), "{} has shape {}, wanted one element", name, to_string(s));
}

void require_boxes_and_scores(const InferContext& c) {
  require_rank(c, 0, 3, "boxes");
  require_rank(c, 1, 3, "scores");
  const auto &boxes = c.shape(0), &scores = c.shape(1);
  if (boxes.ranked())
    c.require(boxes[2].fits(4), "boxes have shape {}, wanted 4 coordinates", to_string(boxes));
  if (boxes.ranked() && scores.ranked())
    c.require(boxes[0].fits(scores[0]) && boxes[1].fits(scores[2]), "boxes {} and scores {} do not fit",
              to_string(boxes), to_string(scores));
}

bool one_element(const Shape& shape) { return shape.known() && shape.count().is(1); }

std::int64_t saturated_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? INT64_MAX : r;
}

Dim require_list(const InferContext& c, std::size_t input, std::string_view what) {
  require_integer(c, input, what);
  require_rank(c, input, 0, 1, what);
  const auto& shape = c.shape(input);
  Dim length;
  if (shape.ranked()) length = shape.rank() == 0 ? Dim(1) : shape[0];
  if (const auto values = c.dims(input)) {  // its length may be known where the shape is not
    const Dim count = static_cast<std::int64_t>(values->size());
    c.require(length.fits(count), "{} has {} elements and the shape {}", what, to_string(count),
              to_string(shape));
    length = count;
  }
  return length;
}

std::optional<std::int64_t> known_int(const InferContext& c, std::size_t i, std::string_view what) {
  require_integer(c, i, what);
  require_one_element(c, i, what);
  const auto v = c.ints(i);
  if (!v) return std::nullopt;
  c.require(v->size() == 1, "{} has {} elements, wanted one", what, v->size());
  return v->front();
}

std::vector<std::size_t> distinct_axes(const Ints& axes, std::size_t rank, std::string_view what) {
  std::vector<std::size_t> out;
  std::vector<bool> seen(rank);
  for (const auto given : axes) {
    out.push_back(normalize_axis(given, rank, what));
    if (seen[out.back()]) fail(ErrorCode::bad_file, "axis {} is given twice", given);
    seen[out.back()] = true;
  }
  return out;
}

std::vector<bool> axis_flags(const Ints& axes, std::size_t rank) {
  std::vector<bool> flags(rank);
  for (const auto axis : distinct_axes(axes, rank)) flags[axis] = true;
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

}  // namespace lamina
