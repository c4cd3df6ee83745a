// Poolings whose roundings, divisors, dilations or positions OpenVINO's revisions lack, or get wrong.
#include <algorithm>
#include <numeric>

#include "formats/ir/write/legalise.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/pooling.h"
#include "ops/shaping.h"

namespace lamina::ir {
namespace {

/// Windows along one spatial axis.
struct Axis {
  Dim in;
  std::int64_t kernel, stride, dilation, begin, end;

  std::int64_t extent() const { return (kernel - 1) * dilation + 1; }
  /// How many there are; `in` is known.
  std::int64_t count(RoundingType rounding) const {
    const std::int64_t room = in.size() + begin + end - extent();
    if (rounding == RoundingType::floor) return room < 0 ? 0 : room / stride + 1;
    const std::int64_t up = (room + stride - 1) / stride + 1;
    return rounding == RoundingType::ceil_torch && (up - 1) * stride >= in.size() + begin ? up - 1 : up;
  }
  /// Padding behind, with which windows end where the last one does, but not in the picture.
  std::int64_t reach(std::int64_t windows) const {
    return std::max<std::int64_t>((windows - 1) * stride + extent() - in.size() - begin, 0);
  }
};

/// Automatic paddings are what they come to where sizes are known, else none.
template <class Pool>
std::vector<Axis> axes_of(Legalisation& c, const Pool& op) {
  const Shape& x = c.shape(c.in(0));
  const std::vector<Dim> unknown(op.kernel.size());
  const auto spatial = x.ranked() ? std::span(x.dims()).subspan(2) : std::span<const Dim>(unknown);
  const auto w = resolve(op, spatial, op.kernel);
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < op.kernel.size(); ++i)
    axes.push_back({spatial[i], op.kernel[i], w.strides[i], w.dilations[i], w.pads_begin[i], w.pads_end[i]});
  return axes;
}

bool sizes_are_known(const std::vector<Axis>& axes) {
  return std::all_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.in.known(); });
}

/// The simplest rounding that gives as many windows.
RoundingType simplest(const std::vector<Axis>& axes, RoundingType own) {
  if (!sizes_are_known(axes)) return own;
  for (const auto type : {RoundingType::floor, RoundingType::ceil})
    if (std::all_of(axes.begin(), axes.end(),
                    [&](const Axis& axis) { return axis.count(type) == axis.count(own); }))
      return type;
  return own;
}

bool has_automatic_pads(const Window& op) {
  return op.auto_pad == AutoPad::same_upper || op.auto_pad == AutoPad::same_lower;
}

/// [0, 0, list]
Ints with_outer_axes(const Ints& list) {
  Ints out = {0, 0};
  out.insert(out.end(), list.begin(), list.end());
  return out;
}

ValueId padded(Legalisation& c, ValueId x, const Ints& begins, const Ints& ends, const std::string& name) {
  const auto none = [](const Ints& list) {
    return std::all_of(list.begin(), list.end(), [](auto v) { return v == 0; });
  };
  if (none(begins) && none(ends)) return x;
  return c.add(Pad{},
               {x, c.ints(with_outer_axes(begins), name + "_begins"),
                c.ints(with_outer_axes(ends), name + "_ends"), c.number(0, c.element(x), name + "_value")},
               name);
}

template <class Of>
Ints collected(const std::vector<Axis>& axes, const Of& of) {
  Ints out;
  for (const Axis& axis : axes) out.push_back(of(axis));
  return out;
}
Ints begins_of(const std::vector<Axis>& axes) {
  return collected(axes, [](const Axis& axis) { return axis.begin; });
}
Ints ends_of(const std::vector<Axis>& axes) {
  return collected(axes, [](const Axis& axis) { return axis.end; });
}

/// Spatial sizes of the input, computed.
ValueId spatial_sizes(Legalisation& c, const std::vector<Axis>& axes) {
  Ints which(axes.size());
  std::iota(which.begin(), which.end(), 2);
  return c.add(Gather{}, {c.sizes_of(c.in(0), "sizes"), c.ints(which, "spatial"), c.integer(0, "along")},
               "spatial_sizes");
}

/// Removes windows that begin in the padding at the end, which rounding up would count.
ValueId without_late_windows(Legalisation& c, const std::vector<Axis>& axes, ValueId y) {
  const Ints strides = collected(axes, [](const Axis& axis) { return axis.stride; });
  const ValueId room = c.add(
      Add{},
      {spatial_sizes(c, axes),
       c.ints(collected(axes, [](const Axis& axis) { return axis.begin + axis.stride - 1; }), "before_end")},
      "room");
  const ValueId counts = c.add(Divide{}, {room, c.ints(strides, "strides")}, "windows");
  const ValueId ends = c.add(Concat{}, {c.ints({0, 0}, "outer"), counts}, "window_ends");
  const Ints zeros(axes.size() + 2, 0), ones(axes.size() + 2, 1);
  StridedSlice slice;
  slice.begin_mask = ones;
  slice.end_mask = Ints(axes.size() + 2, 0);
  slice.end_mask[0] = slice.end_mask[1] = 1;
  return c.add(slice, {y, c.ints(zeros, "window_begins"), ends, c.ints(ones, "window_steps")}, "in_picture");
}

/// Means of windows that all lie within the padded picture, divided by all their positions: `mean` has no
/// padding and rounds down.
ValueId whole_means(Legalisation& c, const AvgPool& mean, ValueId x, const std::string& name) {
  const bool dilated =
      std::any_of(mean.dilations.begin(), mean.dilations.end(), [](auto v) { return v != 1; });
  if (!dilated || c.version() > 10) return c.add(mean, {x}, name);
  // each channel a picture of its own
  if (!c.shape(x).ranked() || !c.shape(x)[1].known()) c.refuse("dilated means of a number of channels");
  const std::int64_t channels = c.shape(x)[1].size();
  Convolution sum;
  static_cast<Window&>(sum) = mean;
  sum.groups = channels;
  Dims dims = {channels, 1};
  dims.insert(dims.end(), mean.kernel.begin(), mean.kernel.end());
  double positions = 1;
  for (const auto k : mean.kernel) positions *= static_cast<double>(k);
  const auto count = static_cast<std::size_t>(element_count(dims));
  const Tensor parts = from_doubles(c.element(x), dims, std::vector<double>(count, 1 / positions));
  return c.add(sum, {x, c.add_constant(parts, name + "_parts")}, name);
}

/// A mean without padding that rounds down, as `op` is otherwise.
AvgPool plain_mean(const AvgPool& op) {
  AvgPool mean = op;
  mean.auto_pad = AutoPad::explicit_;
  mean.pads_begin = mean.pads_end = Ints(op.kernel.size(), 0);
  mean.exclude_pad = false;
  mean.rounding_type = RoundingType::floor;
  return mean;
}

/// Along an axis: all positions of a window by those that count.
std::vector<float> corrections(const Axis& axis, std::int64_t windows, bool exclude_pad) {
  std::vector<float> out;
  const std::int64_t low = exclude_pad ? 0 : -axis.begin,
                     high = axis.in.size() + (exclude_pad ? 0 : axis.end);
  for (std::int64_t w = 0; w < windows; ++w) {
    std::int64_t counted = 0;
    for (std::int64_t k = 0; k < axis.kernel; ++k) {
      const std::int64_t position = w * axis.stride - axis.begin + k * axis.dilation;
      counted += position >= low && position < high ? 1 : 0;
    }
    out.push_back(counted == 0 ? 0.0F : static_cast<float>(axis.kernel) / static_cast<float>(counted));
  }
  return out;
}

/// A window has nothing to count, and gives 0; OpenVINO divides by none.
bool has_empty_windows(const AvgPool& op, const std::vector<Axis>& axes) {
  return sizes_are_known(axes) && std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) {
           const auto factors = corrections(axis, axis.count(op.rounding_type), op.exclude_pad);
           return std::find(factors.begin(), factors.end(), 0.0F) != factors.end();
         });
}

/// Sums over a picture with as much around it as windows reach, by the positions that count. This is right
/// in every revision, since no window overhangs.
ValueId quotient_of_known(Legalisation& c, const AvgPool& op, const std::vector<Axis>& axes) {
  const RoundingType rounding = op.rounding_type;
  const Ints ends = collected(axes, [&](const Axis& axis) { return axis.reach(axis.count(rounding)); });
  ValueId y = whole_means(c, plain_mean(op), padded(c, c.in(0), begins_of(axes), ends, "framed"), "means");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto factors = corrections(axes[i], axes[i].count(rounding), op.exclude_pad);
    if (std::all_of(factors.begin(), factors.end(), [](float v) { return v == 1; })) continue;
    Dims dims(axes.size() - i, 1);
    dims[0] = std::ssize(factors);
    const std::string name = fmt::format("axis{}", i);
    const ValueId factor = c.add_constant(Tensor::of(dims, factors), name + "_factors");
    y = c.add(Multiply{}, {y, c.converted(factor, c.element(y), name + "_like")}, name + "_divided");
  }
  return y;
}

/// The quotient for unknown sizes: the mean of an input of ones.
ValueId quotient_of_unknown(Legalisation& c, const AvgPool& op, const std::vector<Axis>& axes) {
  const ElementType type = c.element(c.in(0));
  Ints begins = begins_of(axes), ends = ends_of(axes);
  const bool up = op.rounding_type != RoundingType::floor;
  const auto beyond = [up](const Axis& axis) { return axis.end + (up ? axis.stride - 1 : 0); };
  const AvgPool mean = plain_mean(op);
  const ValueId y =
      whole_means(c, mean, padded(c, c.in(0), begins, collected(axes, beyond), "framed"), "means");
  ValueId counted = spatial_sizes(c, axes);
  Ints around_begins = begins, around_ends = collected(axes, beyond);
  if (!op.exclude_pad) {
    Ints both = begins;
    for (std::size_t i = 0; i < axes.size(); ++i) both[i] += ends[i];
    counted = c.add(Add{}, {counted, c.ints(both, "pads")}, "frame_sizes");
    around_begins.assign(axes.size(), 0);
    around_ends = collected(axes, [&](const Axis& axis) { return beyond(axis) - axis.end; });
  }
  const ValueId shape = c.add(Concat{}, {c.ints({1, 1}, "outer_ones"), counted}, "ones_shape");
  const ValueId ones = c.add(Broadcast{}, {c.number(1, type, "one"), shape}, "ones");
  const ValueId parts =
      whole_means(c, mean, padded(c, ones, around_begins, around_ends, "framed_ones"), "parts");
  double least = 1;
  for (const auto k : op.kernel) least /= static_cast<double>(k);
  const ValueId some = c.add(Maximum{}, {parts, c.number(least / 2, type, "least")}, "some_part");
  return c.add(Divide{}, {y, some}, "divided");
}

/// Zeros around the picture, and means of what is inside then.
ValueId mean_of_framed(Legalisation& c, const AvgPool& op, const std::vector<Axis>& axes) {
  AvgPool mean = plain_mean(op);
  mean.exclude_pad = true;
  const bool known = sizes_are_known(axes);
  mean.rounding_type = known ? op.rounding_type : RoundingType::ceil;
  // no window is to begin in what is the picture's now
  const Ints ends = collected(axes, [&](const Axis& axis) {
    return known ? std::min(axis.end, axis.reach(axis.count(op.rounding_type))) : axis.end;
  });
  return c.add(mean, {padded(c, c.in(0), begins_of(axes), ends, "framed")}, "means");
}

bool is_dilated(const Window& op) {
  return std::any_of(op.dilations.begin(), op.dilations.end(), [](auto v) { return v != 1; });
}

bool has_pads(const std::vector<Axis>& axes) {
  return std::any_of(axes.begin(), axes.end(),
                     [](const Axis& axis) { return axis.begin != 0 || axis.end != 0; });
}

/// IR 10 has opset1's revision: no dilations, no ceil_torch.
std::vector<ValueId> old_mean_pool(Legalisation& c, const AvgPool& op, const std::vector<Axis>& axes) {
  if (has_automatic_pads(op) && !is_dilated(op)) return {};
  if (has_automatic_pads(op) && !sizes_are_known(axes)) c.refuse("dilated means with automatic padding");
  AvgPool mean = op;
  mean.rounding_type = simplest(axes, op.rounding_type);
  const bool overhangs = mean.rounding_type != RoundingType::floor;
  const bool late = mean.rounding_type == RoundingType::ceil_torch;
  const bool counted_wrongly =
      overhangs && ((!op.exclude_pad && has_pads(axes)) || c.is_made_by<Pad>(c.in(0)));
  if (is_dilated(op) || counted_wrongly || (late && sizes_are_known(axes))) {
    if (sizes_are_known(axes)) return {quotient_of_known(c, mean, axes)};
    const ValueId y = quotient_of_unknown(c, mean, axes);
    return {late ? without_late_windows(c, axes, y) : y};
  }
  if (op.rounding_type != RoundingType::ceil_torch) return {};
  if (late) mean.rounding_type = RoundingType::ceil;
  const ValueId y = c.add(mean, {c.in(0)}, "means");
  return {late ? without_late_windows(c, axes, y) : y};
}

/// A window that overhangs the padded picture, because their number was rounded up, counts what it has in
/// there. OpenVINO's revisions count other positions where paddings count; opset1's does so where a Pad
/// stands before it, too, which OpenVINO folds into it.
std::vector<ValueId> mean_pool(Legalisation& c) {
  AvgPool op = c.op<AvgPool>();
  if (has_automatic_pads(op)) op.rounding_type = RoundingType::floor;  // which says nothing then
  const auto axes = axes_of(c, op);
  if (has_empty_windows(op, axes)) return {quotient_of_known(c, op, axes)};
  if (c.version() == 10) return old_mean_pool(c, op, axes);
  const bool overhangs = simplest(axes, op.rounding_type) != RoundingType::floor;
  if (!overhangs || op.exclude_pad || !has_pads(axes)) return {};
  const ValueId y = mean_of_framed(c, op, axes);
  const bool late = op.rounding_type == RoundingType::ceil_torch && !sizes_are_known(axes);
  return {late ? without_late_windows(c, axes, y) : y};
}

/// Positions in planes row by row, counted column by column.
ValueId column_by_column(Legalisation& c, ValueId positions, const Ints& plane) {
  ValueId rest = positions, sum;
  std::int64_t stride = 1;
  for (const auto size : plane) stride *= size;
  std::int64_t wanted = 1;
  for (std::size_t i = 0; i < plane.size(); ++i) {
    stride /= plane[i];
    const std::string name = fmt::format("axis{}", i);
    const ValueId step = c.integer(stride, name + "_stride");
    const ValueId place = c.add(Divide{}, {rest, step}, name + "_place");
    rest = c.add(FloorMod{}, {rest, step}, name + "_rest");
    const ValueId term = c.add(Multiply{}, {place, c.integer(wanted, name + "_step")}, name + "_part");
    sum = sum.valid() ? c.add(Add{}, {sum, term}, name + "_sum") : term;
    wanted *= plane[i];
  }
  return sum;
}

std::vector<ValueId> positions_by_column(Legalisation& c, const MaxPool& op) {
  const Shape shape = c.shape(c.in(0));
  if (!shape.known()) c.refuse("indices column by column for an input {}", to_string(shape));
  const Dims dims = shape.sizes();
  const Ints plane(dims.begin() + 2, dims.end());
  std::int64_t pixels = 1, range = 1;
  for (const auto size : plane) pixels *= size;
  for (std::size_t i = normalize_axis(op.axis, dims.size(), "axis"); i < dims.size(); ++i) range *= dims[i];
  MaxPool rows = op;
  rows.storage_order = 0;
  rows.axis = 0;
  rows.index_element_type = ElementType::i64;
  const auto made = c.add_many(rows, {c.in(0)}, 2, "rows");
  const ValueId size = c.integer(pixels, "pixels");
  const ValueId in_plane = c.add(FloorMod{}, {made[1], size}, "in_plane");
  const ValueId before = c.add(Subtract{}, {made[1], in_plane}, "before");
  const ValueId places = c.add(Add{}, {before, column_by_column(c, in_plane, plane)}, "places");
  const ValueId within = c.add(FloorMod{}, {places, c.integer(range, "range")}, "within");
  return {made[0], c.converted(within, op.index_element_type, "indices")};
}

/// IR 10 has no ceil_torch.
std::vector<ValueId> max_pool(Legalisation& c) {
  const auto& op = c.op<MaxPool>();
  if (op.storage_order != 0 && c.outputs() > 1) return positions_by_column(c, op);
  if (c.version() > 10 || op.rounding_type != RoundingType::ceil_torch) return {};
  const auto axes = axes_of(c, op);
  MaxPool pool = op;
  pool.rounding_type = has_automatic_pads(op) ? RoundingType::floor : simplest(axes, op.rounding_type);
  const bool late = pool.rounding_type == RoundingType::ceil_torch;
  if (late) pool.rounding_type = RoundingType::ceil;
  auto made = c.add_many(pool, {c.in(0)}, c.outputs(), "maxima");
  if (late)
    for (ValueId& value : made) value = without_late_windows(c, axes, value);
  return made;
}

}  // namespace

void register_pooling(LegalisationTable& t) {
  t.add("AvgPool", mean_pool);
  t.add("MaxPool", max_pool);
}

}  // namespace lamina::ir
