/// Shapes, joining, cutting, gathering.
#include <algorithm>
#include <numeric>

#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/shaping.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

/// Any value of at least that rank.
std::optional<ValueId> pick_any(GraphBuilder& b, std::size_t low_rank = 1) {
  return b.pick([&](ValueId v) { return b.rank(v) >= low_rank; });
}

std::int64_t random_axis(GraphBuilder& b, std::size_t rank) {
  const auto axis = b.below(static_cast<std::int64_t>(rank));
  return b.percent(25) ? axis - static_cast<std::int64_t>(rank) : axis;
}

void add_reshape(GraphBuilder& b) {
  const auto x = pick_any(b, 0);
  if (!x) return;
  const auto dims = b.dims(*x);
  const auto count = static_cast<std::int64_t>(b.sample(*x).size());
  Ints to;
  bool special_zero = false;
  switch (b.below(6)) {
    case 0:
      to = {-1};
      break;
    case 1:  // flatten
      to = {0, -1};
      special_zero = true;
      break;
    case 2:  // heads: split one axis in two
      for (auto d : dims) {
        if (d % 2 == 0 && b.percent(60)) to.push_back(2), d /= 2;
        to.push_back(d);
      }
      break;
    case 3:  // join two neighbours
      to = dims;
      if (to.size() >= 2) {
        const auto i = static_cast<std::size_t>(b.below(static_cast<std::int64_t>(to.size()) - 1));
        to[i] *= to[i + 1];
        to.erase(to.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
      break;
    case 4:
      to = dims;
      to.insert(to.begin() + b.below(static_cast<std::int64_t>(to.size()) + 1), 1);
      break;
    default: {  // any rectangle
      std::int64_t rows = 1;
      for (std::int64_t d = 2; d <= 12; ++d)
        if (count % d == 0 && b.percent(40)) rows = d;
      to = {rows, count / rows};
    }
  }
  if (!to.empty() && b.percent(25) && std::find(to.begin(), to.end(), -1) == to.end())
    to[static_cast<std::size_t>(b.below(static_cast<std::int64_t>(to.size())))] = -1;
  b.add(Reshape{special_zero}, {*x, b.ints(to)});
}

void add_squeeze(GraphBuilder& b) {
  const auto x = pick_any(b);
  if (!x) return;
  if (b.percent(50)) {
    const auto rank = static_cast<std::int64_t>(b.rank(*x));
    Ints axes{b.between(0, rank)};
    if (b.percent(25)) axes.push_back(-1);
    b.add(Unsqueeze{}, {*x, b.ints(axes)});
    return;
  }
  if (b.percent(30)) {
    b.add(Squeeze{}, {*x});
    return;
  }
  for (std::size_t i = 0; i < b.rank(*x); ++i)
    if (b.dims(*x)[i] == 1) {
      b.add(Squeeze{}, {*x, b.ints({static_cast<std::int64_t>(i)})});
      return;
    }
}

void add_transpose(GraphBuilder& b) {
  const auto x = pick_any(b, 2);
  if (!x) return;
  const auto rank = b.rank(*x);
  Ints order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (rank >= 3 && b.percent(50)) {  // channels last and back
    if (b.percent(50))
      std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    else
      std::rotate(order.begin() + 1, order.end() - 1, order.end());
  } else {
    for (std::size_t i = rank; i-- > 1;)
      std::swap(order[i], order[static_cast<std::size_t>(b.below(static_cast<std::int64_t>(i) + 1))]);
  }
  if (b.percent(5))
    b.add(Transpose{}, {*x});
  else
    b.add(Transpose{}, {*x, b.ints(order)});
}

void add_concat(GraphBuilder& b) {
  const auto x = pick_any(b);
  if (!x) return;
  const auto dims = b.dims(*x);
  const auto axis = b.rank(*x) >= 2 && b.percent(60) ? 1 : b.below(static_cast<std::int64_t>(dims.size()));
  const auto fits = [&](ValueId v) {
    if (b.element(v) != b.element(*x) || b.rank(v) != dims.size()) return false;
    auto d = b.dims(v);
    d[static_cast<std::size_t>(axis)] = dims[static_cast<std::size_t>(axis)];
    return d == dims;
  };
  std::vector<ValueId> parts{*x};
  for (auto n = b.between(0, 3); n-- > 0;) {
    const auto kind = b.below(100);
    if (kind < 65) {
      parts.push_back(*b.pick(fits));
    } else if (kind < 80 || !b.is_f32(*x)) {
      parts.push_back(*x);
    } else {
      auto d = dims;
      d[static_cast<std::size_t>(axis)] = b.between(1, 5);
      parts.push_back(b.percent(60) ? b.floats(d) : b.input(ElementType::f32, d));
    }
  }
  for (std::size_t i = parts.size(); i-- > 1;)
    std::swap(parts[i], parts[static_cast<std::size_t>(b.below(static_cast<std::int64_t>(i) + 1))]);
  b.add(Concat{b.percent(20) ? axis - static_cast<std::int64_t>(dims.size()) : axis}, parts);
}

void add_split(GraphBuilder& b) {
  const auto x = pick_any(b);
  if (!x) return;
  const auto axis = b.rank(*x) >= 2 && b.percent(60) ? 1 : b.below(static_cast<std::int64_t>(b.rank(*x)));
  const auto size = b.dims(*x)[static_cast<std::size_t>(axis)];
  const auto a = b.ints({axis}, true);
  std::vector<ValueId> parts;
  if (b.percent(50)) {
    const auto n = b.one_of<std::int64_t>({2, 2, 3, 4, size});
    if (n > 6 || size % n != 0) return;
    parts = b.add_many(Split{n}, {*x, a}, static_cast<int>(n));
  } else {
    if (size < 2) return;
    const auto first = b.between(1, size - 1);
    parts = b.add_many(VariadicSplit{}, {*x, a, b.ints({first, b.percent(50) ? -1 : size - first})}, 2);
  }
  if (parts.size() >= 2 && b.percent(30)) {  // joined again, in another order or one part twice
    std::vector<ValueId> joined;
    for (std::size_t i = 0; i < parts.size(); ++i)
      joined.push_back(b.percent(60) ? parts[i] : b.one_of(parts));
    b.add(Concat{axis}, joined);
  }
}

void add_slice(GraphBuilder& b) {
  const auto x = pick_any(b);
  if (!x) return;
  const auto dims = b.dims(*x);
  Ints start, stop, step, axes;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!b.percent(50)) continue;
    axes.push_back(static_cast<std::int64_t>(i));
    const bool back = b.percent(15);
    step.push_back((back ? -1 : 1) * b.one_of<std::int64_t>({1, 1, 1, 2, 3}));
    const auto from = b.below(dims[i]);
    start.push_back(back ? -1 - from : from);
    stop.push_back(back ? b.one_of<std::int64_t>({-100, -dims[i] - 1})
                        : b.one_of<std::int64_t>({dims[i], from + 1, 100, INT64_MAX}));
  }
  if (axes.empty()) return;
  b.add(Slice{}, {*x, b.ints(start),
                  b.constant(Tensor::of<std::int64_t>({static_cast<std::int64_t>(stop.size())}, stop)),
                  b.ints(step), b.ints(axes)});
}

void add_strided_slice(GraphBuilder& b) {
  const auto x = pick_any(b);
  if (!x) return;
  const auto dims = b.dims(*x);
  StridedSlice op;
  Ints begin, end;
  for (std::size_t i = 0; i < dims.size() && (i == 0 || b.percent(70)); ++i) {
    const auto from = b.below(dims[i]);
    begin.push_back(from);
    end.push_back(b.between(from + 1, dims[i]));
    op.begin_mask.push_back(b.percent(30));
    op.end_mask.push_back(b.percent(30));
    op.new_axis_mask.push_back(b.percent(8));
    op.shrink_axis_mask.push_back(b.percent(20));
  }
  b.add(op, {*x, b.ints(begin), b.ints(end)});
}

void add_pad(GraphBuilder& b) {
  const auto x = pick_any(b);
  if (!x) return;
  const auto dims = b.dims(*x);
  Pad op;
  op.pad_mode = b.one_of({PadMode::constant, PadMode::constant, PadMode::constant, PadMode::edge,
                          PadMode::reflect, PadMode::symmetric, PadMode::wrap});
  Ints begin, end;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool spatial = i >= 2 || b.percent(15);
    begin.push_back(spatial ? b.below(3) : 0);
    end.push_back(spatial ? b.below(3) : 0);
    if (op.pad_mode == PadMode::constant && b.percent(8)) end.back() = -1;
  }
  std::vector<ValueId> inputs{*x, b.ints(begin), b.ints(end)};
  if (op.pad_mode == PadMode::constant && b.is_f32(*x) && b.percent(60))
    inputs.push_back(b.number(b.one_of<double>({0, 0, 1, -0.5})));
  b.add(op, inputs);
}

void add_repetition(GraphBuilder& b) {
  const auto x = pick_any(b);
  if (!x) return;
  auto dims = b.dims(*x);
  if (b.percent(50)) {
    Ints repeats;
    for (std::size_t i = 0; i < dims.size(); ++i) repeats.push_back(b.one_of<std::int64_t>({1, 1, 2, 3}));
    if (b.percent(20)) repeats.insert(repeats.begin(), 2);
    if (b.percent(20) && repeats.size() > 1) repeats.erase(repeats.begin());
    b.add(Tile{}, {*x, b.ints(repeats)});
    return;
  }
  for (auto& d : dims)
    if (d == 1 && b.percent(70)) d = b.between(2, 4);
  if (b.percent(30)) dims.insert(dims.begin(), b.between(1, 2));
  b.add(Broadcast{b.percent(70) ? BroadcastMode::numpy : BroadcastMode::bidirectional}, {*x, b.ints(dims)});
}

void add_gather(GraphBuilder& b) {
  const auto x = pick_any(b);
  if (!x) return;
  const auto axis = random_axis(b, b.rank(*x));
  const auto size = b.dims(*x)[normalize_axis(axis, b.rank(*x), "axis")];
  const auto a = b.ints({axis}, true);
  if (size >= 5 && b.percent(15)) {  // indices -4..4 that come with the request
    b.add(Gather{},
          {*x, b.input(b.one_of({ElementType::i64, ElementType::i32}), b.percent(50) ? Dims{3} : Dims{2, 2}),
           a});
    return;
  }
  Ints indices;
  for (auto n = b.between(1, 4); n-- > 0;) indices.push_back(b.between(-size, size - 1));
  if (b.percent(25))
    b.add(Gather{}, {*x, b.ints({indices[0]}, true), a});
  else
    b.add(Gather{}, {*x, b.ints(indices), a});
}

void add_gather_of_elements(GraphBuilder& b) {
  const auto x = pick_any(b);
  if (!x) return;
  const auto axis = b.below(static_cast<std::int64_t>(b.rank(*x)));
  auto dims = b.dims(*x);
  const auto size = dims[static_cast<std::size_t>(axis)];
  dims[static_cast<std::size_t>(axis)] = b.between(1, 3);
  Ints indices(element_count(dims));
  for (auto& i : indices) i = b.between(-size, size - 1);
  b.add(GatherElements{axis}, {*x, b.constant(Tensor::of<std::int64_t>(dims, indices))});
}

void add_scatter_update(GraphBuilder& b) {
  const auto x = b.pick_f32(1, 5);
  if (!x) return;
  auto dims = b.dims(*x);
  const auto axis = b.below(static_cast<std::int64_t>(dims.size()));
  const auto size = dims[static_cast<std::size_t>(axis)];
  Ints indices{b.below(size)};
  if (size > 1) indices.push_back((indices[0] + 1) % size);
  dims[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(indices.size());
  b.add(ScatterUpdate{}, {*x, b.ints(indices), b.partner(dims), b.ints({axis}, true)});
}

void add_blocks_of_space(GraphBuilder& b) {
  const auto x = pick_any(b, 3);
  if (!x || b.rank(*x) > 5) return;
  const auto dims = b.dims(*x);
  const auto mode = b.one_of({DepthMode::blocks_first, DepthMode::depth_first});
  const auto volume = std::int64_t{1} << (dims.size() - 2);
  if (dims[1] % volume == 0 && b.percent(60)) {
    b.add(DepthToSpace{mode, 2}, {*x});
    return;
  }
  if (std::all_of(dims.begin() + 2, dims.end(), [](auto d) { return d % 2 == 0; }))
    b.add(SpaceToDepth{mode, 2}, {*x});
}

void add_shuffle(GraphBuilder& b) {
  const auto x = pick_any(b, 2);
  if (!x) return;
  if (b.percent(40)) {
    b.add(Roll{}, {*x, b.ints({b.between(-3, 3)}), b.ints({random_axis(b, b.rank(*x))})});
    return;
  }
  const auto c = b.dims(*x)[1];
  for (const std::int64_t group : {4, 3, 2})
    if (c % group == 0) {
      b.add(ShuffleChannels{1, group}, {*x});
      return;
    }
}

void add_identity(GraphBuilder& b) {
  if (const auto x = pick_any(b, 0)) b.add(Identity{}, {*x});
}

}  // namespace

void add_movement_families(Families& families) {
  families.push_back({"reshape", 8, add_reshape});
  families.push_back({"squeeze", 3, add_squeeze});
  families.push_back({"transpose", 7, add_transpose});
  families.push_back({"concat", 7, add_concat});
  families.push_back({"split", 5, add_split});
  families.push_back({"slice", 4, add_slice});
  families.push_back({"strided slice", 2, add_strided_slice});
  families.push_back({"pad", 4, add_pad});
  families.push_back({"repetition", 3, add_repetition});
  families.push_back({"gather", 4, add_gather});
  families.push_back({"gather of elements", 1, add_gather_of_elements});
  families.push_back({"scatter", 1, add_scatter_update});
  families.push_back({"blocks of space", 2, add_blocks_of_space});
  families.push_back({"shuffle", 2, add_shuffle});
  families.push_back({"identity", 1, add_identity});
}

}  // namespace lamina::testing
