/// Pad and Roll of movement.h: every output index of an axis has one input index (or none).
#include <algorithm>
#include <cstring>

#include "graph/permute.h"
#include "ops/movement.h"
#include "ops/packed.h"
#include "ops/require.h"
#include "ops/walk.h"

namespace lamina {
namespace {

/// out[o0, o1, ...] = x[from[0][o0], from[1][o1], ...]; where an index is negative, `filler`.
void gather_axes(EvalContext& c, const std::vector<Ints>& from, const std::byte* filler) {
  const Dims& out = c.out_dims();
  const auto bytes = element_bytes(c.out_element(0));
  const auto strides = dense_strides(c.dims(0));
  const std::size_t rank = out.size();
  const std::byte* x = c.in(0).raw();
  std::byte* to = c.out().raw();
  if (rank == 0) {
    std::memcpy(to, x, bytes);
    return;
  }
  const auto dense = dense_strides(out);
  for_each_row<1>(out, {dense}, [&](std::int64_t first, const auto&, std::int64_t count) {
    const auto begin = first % out[rank - 1];
    std::int64_t base = 0;
    bool inside = true;
    for (std::size_t i = 0; i + 1 < rank; ++i) {
      const auto at = from[i][static_cast<std::size_t>(first / dense[i] % out[i])];
      inside = inside && at >= 0;
      base += at * strides[i];
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const auto at = from[rank - 1][static_cast<std::size_t>(begin + i)];
      const auto* element = inside && at >= 0 ? x + static_cast<std::size_t>(base + at) * bytes : filler;
      std::memcpy(to + static_cast<std::size_t>(first + i) * bytes, element, bytes);
    }
  });
}

std::int64_t floored_mod(std::int64_t a, std::int64_t b) { return (a % b + b) % b; }

/// Input index that pad position i (relative to the input's start) repeats; -1 for the constant.
std::int64_t source_of(PadMode mode, std::int64_t i, std::int64_t size) {
  if (i >= 0 && i < size) return i;
  switch (mode) {
    case PadMode::constant:
      return -1;
    case PadMode::edge:
      return i < 0 ? 0 : size - 1;
    case PadMode::reflect: {
      if (size == 1) return 0;
      const auto at = floored_mod(i, 2 * (size - 1));
      return at < size ? at : 2 * (size - 1) - at;
    }
    case PadMode::symmetric: {
      const auto at = floored_mod(i, 2 * size);
      return at < size ? at : 2 * size - 1 - at;
    }
    case PadMode::wrap:
      return floored_mod(i, size);
  }
  return -1;
}

void check_pads(const InferContext& c, PadMode mode, std::int64_t size, std::int64_t begin, std::int64_t end,
                std::size_t axis) {
  if (mode == PadMode::constant || (begin <= 0 && end <= 0)) return;
  c.require(size > 0, "axis {} has no elements to pad with", axis);
  const std::int64_t most = mode == PadMode::reflect     ? size - 1
                            : mode == PadMode::symmetric ? size
                                                         : INT64_MAX;
  c.require(begin <= most && end <= most, "axis {} of {} elements is padded by {} and {}, wanted at most {}",
            axis, size, begin, end, most);
}

}  // namespace

void Pad::infer(InferContext& c) const {
  const auto element = c.element(0);
  const Shape& x = c.shape(0);
  const Dim begins = require_list(c, 1, "pads_begin"), ends = require_list(c, 2, "pads_end");
  c.require(begins.fits(ends), "pads_begin has {} elements, pads_end {}", to_string(begins), to_string(ends));
  if (c.has(3)) {
    c.require(c.element(3) == element || c.element(3) == ElementType::undefined ||
                  element == ElementType::undefined,
              "pad value is {}, wanted {}", name_of(c.element(3)), name_of(element));
    c.require(!c.shape(3).ranked() || c.shape(3).count().fits(1),
              "pad value has shape {}, wanted one element", to_string(c.shape(3)));
  }
  if (!x.ranked()) return c.set(0, element, Shape());
  const auto rank = static_cast<std::int64_t>(x.rank());
  c.require(begins.fits(rank) && ends.fits(rank), "pads have {} and {} elements, the input has rank {}",
            to_string(begins), to_string(ends), rank);
  const auto begin = c.ints(1), end = c.ints(2);
  if (!begin || !end) return c.set(0, element, Shape::of_rank(x.rank()));
  Shape out = x;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    const std::int64_t b = (*begin)[i], e = (*end)[i], limit = std::int64_t{1} << 40;
    c.require(b >= -limit && b <= limit && e >= -limit && e <= limit,
              "pads {} and {} of axis {}, wanted at most 2^40", b, e, i);
    c.require(b + e >= 0 || x[i].high() >= -(b + e), "axis {} of {} is cropped by {} and {}", i, to_string(x),
              -b, -e);
    if (x[i].known()) check_pads(c, pad_mode, x[i].size(), b, e, i);
    out[i] = b + e >= 0 ? x[i] + Dim(b + e) : x[i] - Dim(-(b + e));
  }
  c.set(0, element, std::move(out));
}

void Pad::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const Dims &x = c.dims(0), &out = c.out_dims();
  const Ints begin = c.ints(1);
  std::vector<Ints> from(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::int64_t o = 0; o < out[i]; ++o) from[i].push_back(source_of(pad_mode, o - begin[i], x[i]));
  const Tensor value = c.has(3) ? c.in(3) : Tensor(c.out_element(0), {});
  gather_axes(c, from, value.raw());
}

void Roll::infer(InferContext& c) const {
  const Dim shifts = require_list(c, 1, "shift"), axes = require_list(c, 2, "axes");
  c.require(shifts.fits(axes) || shifts.fits(1), "shift has {} elements, axes has {}", to_string(shifts),
            to_string(axes));
  if (const auto given = c.ints(2); given && c.shape(0).ranked())
    for (auto axis : *given) normalize_axis(axis, c.shape(0).rank(), "axes");
  c.set(0, c.type(0));
}

void Roll::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const Dims& x = c.dims(0);
  const Ints shift = c.ints(1), axes = c.ints(2);
  Ints moved(x.size(), 0);
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const auto a = normalize_axis(axes[k], x.size(), "axes");
    if (x[a] > 0) moved[a] = floored_mod(moved[a] + shift[shift.size() == 1 ? 0 : k] % x[a], x[a]);
  }
  std::vector<Ints> from(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::int64_t o = 0; o < x[i]; ++o) from[i].push_back(floored_mod(o - moved[i], x[i]));
  gather_axes(c, from, nullptr);
}

Verdict Pad::permute(PermuteContext& c) const {
  for (std::size_t i = 1; i < 3; ++i) {
    const auto pads = c.node().ints(i);
    if (!pads || pads->size() != c.rank()) return not_known("pads");
    c.replace(i, c.per_axis(*pads));
  }
  return Verdict::yes();
}

Verdict Roll::permute(PermuteContext& c) const { return c.move_axes_input(2); }

}  // namespace lamina
