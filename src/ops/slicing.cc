#include "ops/slicing.h"

#include <algorithm>

namespace lamina {
namespace {

/// Exporters write 2^31 - 1 for "to the end".
constexpr std::int64_t kEnd = INT32_MAX;

}  // namespace

SliceRange slice_range(std::int64_t size, std::int64_t start, std::int64_t stop, std::int64_t step) {
  // A negative step may stop before the first element, which is -1 here.
  if (size == 0) return {};
  const std::int64_t high = step > 0 ? size : size - 1;
  const auto clamped = [&](std::int64_t b, std::int64_t low) {
    return std::clamp(b < 0 ? b + size : b, low, high);
  };
  const std::int64_t first = clamped(start, 0), last = clamped(stop, step > 0 ? 0 : -1);
  const std::int64_t distance = step > 0 ? last - first : first - last;
  if (distance <= 0) return {};
  const auto stride = step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  return {first, static_cast<std::int64_t>((static_cast<std::uint64_t>(distance) - 1) / stride + 1)};
}

namespace {

/// Count for an unknown size and known bounds. The count never falls as the size grows, with two exceptions
/// that are left unknown.
Dim sliced_unknown(const Dim& size, std::int64_t start, std::int64_t stop, std::int64_t step) {
  const bool to_end = step > 0 ? stop >= kEnd : stop <= -kEnd;
  const bool from_end = step > 0 ? start == 0 : start == -1 || start >= kEnd;
  if (from_end && to_end && (step == 1 || step == -1)) return size;
  if (step == 1 && start >= 0 && to_end) {  // the first ones are cut off
    return size - Dim(start);
  }
  if (to_end) stop = open_stop(step);
  if (from_end) start = open_start(step);
  if (step < 0 && !from_end && !to_end) return {0, size.high()};
  const std::int64_t most = slice_range(Dim::kUnbounded, start, stop, step).count;
  if (step > 0 && start < 0 && stop >= 0 && !to_end) return {0, size.high()};
  const auto high = size.high() == Dim::kUnbounded ? most : slice_range(size.high(), start, stop, step).count;
  const bool grows = size.high() == Dim::kUnbounded && most > (std::int64_t{1} << 32);
  return {slice_range(size.low(), start, stop, step).count, grows ? Dim::kUnbounded : high};
}

}  // namespace

Dim sliced(const Dim& size, const Dim* start, const Dim* stop, std::optional<std::int64_t> step) {
  if (!step) return {0, size.high()};
  const Dim first = start ? *start : Dim(open_start(*step)), last = stop ? *stop : Dim(open_stop(*step));
  if (first.known() && last.known()) {
    if (size.known()) return slice_range(size.size(), first.size(), last.size(), *step).count;
    return sliced_unknown(size, first.size(), last.size(), *step);
  }
  if (*step == 1 && first.is(0) && last.low() >= 0) {
    if (last.same(size)) return size;
    if (last.high() <= size.low()) return last;
    return {0, std::min(last.high(), size.high())};
  }
  return {0, size.high()};
}

}  // namespace lamina
