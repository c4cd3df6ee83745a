/// Slice, StridedSlice with its masks, ReverseV2.
#include <algorithm>
#include <limits>

#include "formats/tensorflow/call.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/slicing.h"

namespace lamina::tensorflow {
namespace {

constexpr auto kEnd = std::numeric_limits<std::int64_t>::max();

/// Begin, size; -1 is all that is left.
Values convert_slice(Call& c) {
  const auto begin = c.known_ints(c.in(1)), size = c.known_ints(c.in(2));
  if (begin && size) {
    if (begin->size() != size->size()) c.fail("has {} starts and {} sizes", begin->size(), size->size());
    if (begin->empty()) return {c.add(Identity{}, {c.in(0)})};
    Ints stop, axes;
    for (std::size_t i = 0; i < begin->size(); ++i) {
      const auto from = (*begin)[i], count = (*size)[i];
      if (from < 0 || count < -1) c.fail("has start {} and size {}", from, count);
      stop.push_back(count < 0 || from > kEnd - count ? kEnd : from + count);
      axes.push_back(static_cast<std::int64_t>(i));
    }
    return {c.add(Slice{}, {c.in(0), c.ints_constant(*begin), c.ints_constant(stop),
                            c.ints_constant(Ints(axes.size(), 1)), c.ints_constant(axes)})};
  }
  const auto start = c.convert(c.in(1), ElementType::i64), count = c.convert(c.in(2), ElementType::i64);
  const auto rest = c.add(Less{}, {count, c.int_constant(0)});
  const auto stop = c.add(Select{}, {rest, c.shape_of(c.in(0)), c.add(Add{}, {start, count})});
  const auto steps = c.filled(c.int_constant(1), c.shape_of(start));
  return {c.add(Slice{}, {c.in(0), start, stop, steps})};
}

/// What the masks of a StridedSlice make of each of its numbers.
struct Entry {
  enum Kind : std::uint8_t { range, shrink, new_axis, ellipsis };
  Kind kind = range;
  bool open_begin = false, open_end = false;
};

std::vector<Entry> read_entries(const Call& c, std::size_t count) {
  const auto bit = [&](std::string_view mask, std::size_t i) {
    return i < 64 && ((c.i(mask, 0) >> i) & 1) != 0;
  };
  std::vector<Entry> entries(count);
  bool ellipsis = false;
  for (std::size_t i = 0; i < count; ++i) {
    auto& e = entries[i];
    if (bit("ellipsis_mask", i)) {
      if (ellipsis) c.fail("has more than one ellipsis");
      ellipsis = true;
      e.kind = Entry::ellipsis;
    } else if (bit("new_axis_mask", i)) {
      e.kind = Entry::new_axis;
    } else if (bit("shrink_axis_mask", i)) {
      e.kind = Entry::shrink;
    }
    e.open_begin = bit("begin_mask", i);
    e.open_end = bit("end_mask", i);
  }
  return entries;
}

struct Bounds {
  Ints start, stop, step, axes;  // of a Slice
  Ints shrunk, added;            // axes that go from its result, and come into the result after that
};

/// Backwards from before the first element there is none; Slice would begin at the first.
bool begins_before(const Call& c, std::int64_t axis, const Entry& e, std::int64_t begin,
                   std::int64_t stride) {
  const auto& shape = c.shape(c.in(0));
  if (stride > 0 || e.open_begin || begin >= 0 || !shape.ranked()) return false;
  const auto at = axis < 0 ? axis + std::ssize(shape.dims()) : axis;
  if (at < 0 || at >= std::ssize(shape.dims())) return false;
  const auto& size = shape[static_cast<std::size_t>(at)];
  return size.known() && begin < -size.size();
}

/// Axes behind the ellipsis count from the end.
Bounds bounds_of(const Call& c, const std::vector<Entry>& entries, const Ints& begin, const Ints& end,
                 const Ints& strides) {
  Bounds b;
  std::int64_t behind_in = 0, behind_out = 0;  // axes from the ellipsis on, of the input and of the result
  bool seen = false;
  for (const auto& e : entries) {
    if (seen && e.kind != Entry::new_axis) ++behind_in;
    if (seen && e.kind != Entry::shrink) ++behind_out;
    if (e.kind == Entry::ellipsis) seen = true;
  }
  std::int64_t in = 0, out = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& e = entries[i];
    if (e.kind == Entry::ellipsis) {
      in = -behind_in;
      out = -behind_out;
    } else if (e.kind == Entry::new_axis) {
      b.added.push_back(out++);
    } else if (e.kind == Entry::shrink) {
      if (strides[i] <= 0) c.fail("takes one element with the stride {}", strides[i]);
      b.start.push_back(begin[i]);
      b.stop.push_back(begin[i] == -1 ? kEnd : begin[i] + 1);
      b.step.push_back(1);
      b.axes.push_back(in);
      b.shrunk.push_back(in++);
    } else {
      if (strides[i] == 0) c.fail("has a stride of 0");
      const bool whole = e.open_begin && e.open_end && strides[i] == 1;
      if (begins_before(c, in, e, begin[i], strides[i])) {
        b.start.push_back(0);
        b.stop.push_back(0);
        b.step.push_back(1);
        b.axes.push_back(in);
      } else if (!whole) {
        b.start.push_back(e.open_begin ? open_start(strides[i]) : begin[i]);
        b.stop.push_back(e.open_end ? open_stop(strides[i]) : end[i]);
        b.step.push_back(strides[i]);
        b.axes.push_back(in);
      }
      ++in;
      ++out;
    }
  }
  return b;
}

/// Known bounds: Slice, Squeeze and Unsqueeze, which rules and shape arithmetic follow.
Values sliced(Call& c, const Bounds& b) {
  auto v = c.in(0);
  const bool element = c.rank(v) == std::size_t{1} && b.axes == Ints{0} && b.shrunk == Ints{0};
  if (element) {
    v = c.pick(v, 0, b.start[0]);
  } else {
    if (!b.axes.empty())
      v = c.add(Slice{}, {v, c.ints_constant(b.start), c.ints_constant(b.stop), c.ints_constant(b.step),
                          c.ints_constant(b.axes)});
    v = c.squeeze(v, b.shrunk);
  }
  v = c.unsqueeze(v, b.added);
  return {v == c.in(0) ? c.add(Identity{}, {v}) : v};
}

/// Single elements of some axes, at computed places: nothing when other axes are cut as well. Axes behind an
/// ellipsis count from the end, so that those in front may go before or after them.
std::optional<ValueId> elements(Call& c, const std::vector<Entry>& entries, const Ints& strides) {
  const auto count = std::ssize(entries);
  std::vector<std::pair<std::int64_t, std::int64_t>> front, behind;  // axis, entry
  bool seen = false;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& e = entries[static_cast<std::size_t>(i)];
    const bool whole = e.open_begin && e.open_end && strides[static_cast<std::size_t>(i)] == 1;
    if (e.kind == Entry::new_axis || (e.kind == Entry::range && !whole)) return std::nullopt;
    seen = seen || e.kind == Entry::ellipsis;
    if (e.kind != Entry::shrink) continue;
    if (seen)
      behind.emplace_back(i - count, i);
    else
      front.emplace_back(i, i);
  }
  if (front.empty() && behind.empty()) return std::nullopt;
  std::reverse(front.begin(), front.end());
  front.insert(front.end(), behind.begin(), behind.end());
  auto v = c.in(0);
  for (const auto& [axis, i] : front) v = c.add(Gather{}, {v, c.pick(c.in(1), 0, i), c.int_constant(axis)});
  return v;
}

Values convert_strided_slice(Call& c) {
  const auto begin = c.known_ints(c.in(1)), end = c.known_ints(c.in(2)), strides = c.known_ints(c.in(3));
  if (begin && end && strides) {
    if (begin->size() != end->size() || begin->size() != strides->size())
      c.fail("has {} starts, {} ends and {} strides", begin->size(), end->size(), strides->size());
    return sliced(c, bounds_of(c, read_entries(c, begin->size()), *begin, *end, *strides));
  }
  std::optional<std::size_t> count;
  for (std::size_t i = 1; i < 4; ++i)
    if (const auto& s = c.shape(c.in(i)); s.ranked() && s.rank() == 1 && s[0].known() && s[0].size() <= 64)
      count = static_cast<std::size_t>(s[0].size());
  if (!count) c.unsupported("bounds of unknown number");
  const auto entries = read_entries(c, *count);
  if (strides && strides->size() == *count)
    if (const auto v = elements(c, entries, *strides)) return {*v};
  StridedSlice op;
  for (const auto& e : entries) {
    op.begin_mask.push_back(e.open_begin);
    op.end_mask.push_back(e.open_end);
    op.new_axis_mask.push_back(e.kind == Entry::new_axis);
    op.shrink_axis_mask.push_back(e.kind == Entry::shrink);
    op.ellipsis_mask.push_back(e.kind == Entry::ellipsis);
  }
  return {c.add(op, {c.in(0), c.in(1), c.in(2), c.in(3)})};
}

Values convert_reverse(Call& c) {
  const auto axes = c.wanted_ints(c.in(1), "axes");
  if (axes.empty()) return {c.add(Identity{}, {c.in(0)})};
  const Ints start(axes.size(), open_start(-1)), stop(axes.size(), open_stop(-1)), step(axes.size(), -1);
  return {c.add(Slice{}, {c.in(0), c.ints_constant(start), c.ints_constant(stop), c.ints_constant(step),
                          c.ints_constant(axes)})};
}

}  // namespace

void register_slicing(ConverterTable& t) {
  t.add("ReverseV2", convert_reverse);
  t.add("Slice", convert_slice);
  t.add("StridedSlice", convert_strided_slice);
}

}  // namespace lamina::tensorflow
