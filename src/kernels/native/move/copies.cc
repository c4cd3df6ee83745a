#include "kernels/native/move/copies.h"

#include <algorithm>

#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina {
namespace {

class Translator {
 public:
  Translator(const NodeView& v, Layout layout) : v_(v), layout_(layout) {}

  Verdict run() {
    const auto& op = v_.node().op;
    if (op.is<Transpose>()) return transpose();
    if (const auto* c = op.as<Concat>()) return concat(c->axis);
    if (op.is<Split>() || op.is<VariadicSplit>()) return split();
    if (op.is<Slice>()) return slice();
    if (const auto* s = op.as<StridedSlice>()) return strided_slice(*s);
    if (const auto* p = op.as<Pad>()) return pad(*p);
    if (const auto* b = op.as<Broadcast>()) return broadcast(*b);
    if (op.is<Tile>()) return tile();
    if (const auto* d = op.as<DepthToSpace>()) return depth_to_space(*d);
    if (const auto* s = op.as<SpaceToDepth>()) return space_to_depth(*s);
    return shuffle(*op.as<ShuffleChannels>());
  }

  Moves moves;

 private:
  Dims in_strides(std::size_t i = 0) const { return strides_of(v_.dims(i), layout_); }
  Dims out_strides(std::size_t i = 0) const { return strides_of(v_.out_dims(i), layout_); }
  std::optional<Ints> ints(std::size_t i) const {
    const auto* t = v_.constant(i);
    return t ? std::optional<Ints>(to_ints(*t)) : std::nullopt;
  }
  void add(Dims dims, Dims src, Dims dst, std::int64_t src_offset = 0, std::int64_t dst_offset = 0,
           std::size_t in = 0, std::size_t out = 0) {
    moves.jobs.push_back({std::move(dims), std::move(src), std::move(dst), src_offset, dst_offset, in, out});
  }

  Verdict transpose() {
    const auto given = v_.has(1) ? ints(1) : Ints();
    if (!given) return Verdict::no("the order is not constant");
    const auto from = in_strides();
    Dims src;
    for (auto axis : transpose_order(*given, v_.dims(0).size()))
      src.push_back(from[static_cast<std::size_t>(axis)]);
    add(v_.out_dims(), src, out_strides());
    return Verdict::yes();
  }

  Verdict concat(std::int64_t axis_given) {
    const auto axis = normalize_axis(axis_given, v_.out_dims().size(), "axis");
    std::int64_t at = 0;
    for (std::size_t i = 0; i < v_.inputs(); ++i) {
      add(v_.dims(i), in_strides(i), out_strides(), 0, at * out_strides()[axis], i);
      at += v_.dims(i)[axis];
    }
    return Verdict::yes();
  }

  Verdict split() {
    const auto axis_value = ints(1);
    if (!axis_value) return Verdict::no("the axis is not constant");
    const auto axis = normalize_axis(axis_value->at(0), v_.dims(0).size(), "axis");
    std::int64_t at = 0;
    for (std::size_t o = 0; o < v_.outputs(); ++o) {
      add(v_.out_dims(o), in_strides(), out_strides(o), at * in_strides()[axis], 0, 0, o);
      at += v_.out_dims(o)[axis];
    }
    return Verdict::yes();
  }

  /// First index that a slice reads; the number of elements is known from the output.
  static std::int64_t first(std::int64_t start, std::int64_t step, std::int64_t size) {
    if (size == 0) return 0;
    return std::clamp<std::int64_t>(start < 0 ? start + size : start, 0, step > 0 ? size : size - 1);
  }

  /// The stride of an axis of the output; a step that leads out of the tensor may be any number.
  std::int64_t stepped(std::int64_t stride, std::int64_t step, std::size_t out_axis) const {
    return v_.out_dims().at(out_axis) > 1 ? stride * step : 0;
  }

  Verdict slice() {
    const auto x = v_.dims(0);
    const auto start = ints(1), step = ints(3);
    std::optional<Ints> axes;
    if (v_.has(4)) axes = ints(4);
    if (!start || !step || (v_.has(4) && !axes)) return Verdict::no("the bounds are not constant");
    auto src = in_strides();
    const auto strides = src;
    std::int64_t offset = 0;
    for (std::size_t k = 0; k < start->size(); ++k) {
      const auto axis = axes ? normalize_axis((*axes)[k], x.size(), "axis") : k;
      offset += first((*start)[k], (*step)[k], x[axis]) * strides[axis];
      src[axis] = stepped(strides[axis], (*step)[k], axis);
    }
    add(v_.out_dims(), src, out_strides(), offset);
    return Verdict::yes();
  }

  static bool set(const Ints& mask, std::size_t i) { return i < mask.size() && mask[i] != 0; }

  Verdict strided_slice(const StridedSlice& op) {
    const auto x = v_.dims(0);
    const auto begin = ints(1);
    std::optional<Ints> strides_in;
    if (v_.has(3)) strides_in = ints(3);
    if (!begin || (v_.has(3) && !strides_in)) return Verdict::no("the bounds are not constant");
    if (std::any_of(op.ellipsis_mask.begin(), op.ellipsis_mask.end(), [](auto m) { return m != 0; }))
      return Verdict::no("an ellipsis");
    const auto from = in_strides();
    Dims src;
    std::int64_t offset = 0;
    std::size_t axis = 0;
    for (std::size_t k = 0; k < begin->size(); ++k) {
      if (set(op.new_axis_mask, k)) {
        src.push_back(0);
        continue;
      }
      const auto step = strides_in ? (*strides_in)[k] : 1;
      const bool shrink = set(op.shrink_axis_mask, k);
      const auto start =
          set(op.begin_mask, k) && !shrink ? (step > 0 ? 0 : x[axis] - 1) : first((*begin)[k], step, x[axis]);
      offset += start * from[axis];
      if (!shrink) src.push_back(stepped(from[axis], step, src.size()));
      ++axis;
    }
    for (; axis < x.size(); ++axis) src.push_back(from[axis]);
    if (layout_ != Layout::plain && src.size() != x.size()) return Verdict::no("the rank changes");
    add(v_.out_dims(), src, out_strides(), offset);
    return Verdict::yes();
  }

  Verdict pad(const Pad& op) {
    const auto x = v_.dims(0);
    const auto y = v_.out_dims();
    const auto begin = ints(1);
    if (!begin) return Verdict::no("the pads are not constant");
    if (op.pad_mode != PadMode::constant) return pad_by_index(op, *begin);
    moves.fill = v_.has(3) ? (v_.constant(3) ? *v_.constant(3) : Tensor()) : Tensor(v_.element(0), {});
    if (!moves.fill.valid()) return Verdict::no("the pad value is not constant");
    const auto from = in_strides(), to = out_strides();
    Dims dims;
    std::int64_t src = 0, dst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto b = (*begin)[i];
      const auto skipped = std::max<std::int64_t>(-b, 0), shifted = std::max<std::int64_t>(b, 0);
      dims.push_back(std::max<std::int64_t>(0, std::min(x[i] - skipped, y[i] - shifted)));
      src += skipped * from[i];
      dst += shifted * to[i];
    }
    if (std::find(dims.begin(), dims.end(), 0) != dims.end()) src = dst = 0;
    add_border(y, *begin, dims, to);
    add(dims, from, to, src, dst);
    return Verdict::yes();
  }

  /// What lies around `inside`, axis after axis: before and behind it, as wide as the axes before it leave
  /// and as long as the output in the axes after it.
  void add_border(const Dims& y, const Ints& begin, const Dims& inside, const Dims& to) {
    Dims size = y;
    std::int64_t first = 0;  // of what the axes before leave
    for (std::size_t a = 0; a < y.size(); ++a) {
      const auto before = std::min(std::max<std::int64_t>(begin[a], 0), y[a]), behind = before + inside[a];
      const auto fill = [&](std::int64_t from, std::int64_t count) {
        if (count <= 0) return;
        size[a] = count;
        moves.border.push_back(simplified({size, Dims(y.size(), 0), to, 0, first + from * to[a], 0, 0}));
      };
      fill(0, before);
      fill(behind, y[a] - behind);
      size[a] = inside[a];
      first += before * to[a];
    }
  }

  /// Where position i of an axis reads.
  static std::int64_t mirrored(PadMode mode, std::int64_t i, std::int64_t size) {
    if (mode == PadMode::edge || size == 1) return std::clamp<std::int64_t>(i, 0, size - 1);
    if (mode == PadMode::wrap) return ((i % size) + size) % size;
    const std::int64_t period = mode == PadMode::reflect ? 2 * size - 2 : 2 * size;
    i = ((i % period) + period) % period;
    return i < size ? i : (mode == PadMode::reflect ? period - i : period - 1 - i);
  }

  /// Edge, reflect and the like: each axis is cut into runs of constant step; one copy per combination.
  Verdict pad_by_index(const Pad& op, const Ints& begin) {
    const auto x = v_.dims(0);
    const auto y = v_.out_dims();
    struct Run {
      std::int64_t at, from, step, count;
    };
    std::vector<std::vector<Run>> runs(x.size());
    std::size_t combinations = 1;
    for (std::size_t a = 0; a < x.size(); ++a) {
      if (x[a] == 0) return Verdict::no("empty tensors");
      for (std::int64_t i = 0; i < y[a];) {
        Run r{i, mirrored(op.pad_mode, i - begin[a], x[a]), 1, 1};
        if (i + 1 < y[a]) r.step = mirrored(op.pad_mode, i + 1 - begin[a], x[a]) - r.from;
        while (i + r.count < y[a] &&
               mirrored(op.pad_mode, i + r.count - begin[a], x[a]) == r.from + r.step * r.count)
          ++r.count;
        i += r.count;
        runs[a].push_back(r);
      }
      combinations *= std::max<std::size_t>(1, runs[a].size());
      if (combinations > 4096) return Verdict::no("too many mirrored pieces");
    }
    const auto from = in_strides(), to = out_strides();
    for (std::size_t c = 0; c < combinations; ++c) {
      std::size_t rest = c;
      Dims dims, src, dst;
      std::int64_t src_offset = 0, dst_offset = 0;
      for (std::size_t a = 0; a < x.size(); ++a) {
        if (runs[a].empty()) return Verdict::no("empty tensors");
        const auto& r = runs[a][rest % runs[a].size()];
        rest /= runs[a].size();
        dims.push_back(r.count);
        src.push_back(r.step * from[a]);
        dst.push_back(to[a]);
        src_offset += r.from * from[a];
        dst_offset += r.at * to[a];
      }
      add(dims, src, dst, src_offset, dst_offset);
    }
    return Verdict::yes();
  }

  Verdict broadcast(const Broadcast& op) {
    const auto x = v_.dims(0), y = v_.out_dims();
    if (layout_ != Layout::plain) return Verdict::no("channels-last");
    const auto from = in_strides();
    Dims src(y.size(), 0);
    Ints axes;
    if (op.mode == BroadcastMode::explicit_) {
      const auto given = v_.has(2) ? ints(2) : std::nullopt;
      if (!given) return Verdict::no("the axes are not constant");
      axes = *given;
    } else {
      for (std::size_t i = 0; i < x.size(); ++i)
        axes.push_back(static_cast<std::int64_t>(i + y.size() - x.size()));
    }
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i] != 1) src[normalize_axis(axes[i], y.size(), "axes")] = from[i];
    add(y, src, out_strides());
    return Verdict::yes();
  }

  Verdict tile() {
    if (layout_ != Layout::plain) return Verdict::no("channels-last");
    const auto x = v_.dims(0), y = v_.out_dims(), from = in_strides(), to = out_strides();
    Dims dims, src, dst;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto k = i + x.size() < y.size() ? -1 : static_cast<std::int64_t>(i + x.size() - y.size());
      const auto size = k < 0 ? 1 : x[static_cast<std::size_t>(k)];
      if (size == 0) return Verdict::no("empty tensors");
      dims.push_back(y[i] / size), src.push_back(0), dst.push_back(to[i] * size);
      dims.push_back(size), src.push_back(k < 0 ? 0 : from[static_cast<std::size_t>(k)]),
          dst.push_back(to[i]);
    }
    add(dims, src, dst);
    return Verdict::yes();
  }

  /// Copies between the space side [N, C, D*b, ...] and the depth side [N, C*b^k, D, ...].
  void blocks(const Dims& space, const Dims& s, const Dims& d, std::int64_t b, DepthMode mode,
              bool to_space) {
    const std::size_t k = space.size() - 2;
    std::int64_t count = 1;
    for (std::size_t i = 0; i < k; ++i) count *= b;
    Dims dims{space[0], space[1]}, space_strides{s[0], s[1]}, depth_strides{d[0], d[1]};
    if (mode == DepthMode::depth_first) depth_strides[1] = d[1] * count;
    std::int64_t block = mode == DepthMode::depth_first ? d[1] * count / b : d[1] * space[1] * count / b;
    for (std::size_t i = 0; i < k; ++i, block /= b) {
      dims.push_back(space[i + 2] / b), space_strides.push_back(s[i + 2] * b),
          depth_strides.push_back(d[i + 2]);
      dims.push_back(b), space_strides.push_back(s[i + 2]), depth_strides.push_back(block);
    }
    if (to_space)
      add(dims, depth_strides, space_strides);
    else
      add(dims, space_strides, depth_strides);
  }
  Verdict depth_to_space(const DepthToSpace& op) {
    blocks(v_.out_dims(), out_strides(), in_strides(), op.block_size, op.mode, true);
    return Verdict::yes();
  }
  Verdict space_to_depth(const SpaceToDepth& op) {
    blocks(v_.dims(0), in_strides(), out_strides(), op.block_size, op.mode, false);
    return Verdict::yes();
  }

  Verdict shuffle(const ShuffleChannels& op) {
    const auto x = v_.dims(0), s = in_strides(), d = out_strides();
    const auto axis = normalize_axis(op.axis, x.size(), "axis");
    const auto per_group = x[axis] / op.group;
    Dims dims, src, dst;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i != axis) {
        dims.push_back(x[i]), src.push_back(s[i]), dst.push_back(d[i]);
        continue;
      }
      dims.push_back(per_group), src.push_back(s[i]), dst.push_back(d[i] * op.group);
      dims.push_back(op.group), src.push_back(s[i] * per_group), dst.push_back(d[i]);
    }
    add(dims, src, dst);
    return Verdict::yes();
  }

  const NodeView& v_;
  Layout layout_;
};

}  // namespace

Verdict copies_of(const NodeView& v, Layout layout, Moves& moves) {
  Translator t(v, layout);
  auto verdict = t.run();
  moves = std::move(t.moves);
  return verdict;
}

}  // namespace lamina
