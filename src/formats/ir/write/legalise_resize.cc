// Resizing in ways that OpenVINO does not know: along each axis by itself it is a product with a matrix,
// which lamina's own operator gives for the rows of an identity.
#include <algorithm>
#include <array>
#include <numeric>

#include "formats/ir/write/legalise.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/matmul.h"
#include "ops/resize.h"
#include "ops/shaping.h"

namespace lamina::ir {
namespace {

constexpr std::int64_t kLargestMatrix = std::int64_t{1} << 24;

bool is_pillow(const Interpolate& op) {
  return op.mode == InterpolateMode::bilinear_pillow || op.mode == InterpolateMode::bicubic_pillow;
}

bool openvino_has(const Interpolate& op, int version) {
  const auto mode = op.coordinate_transformation_mode;
  if (is_pillow(op)) return version > 10;
  if (op.shape_calculation_mode == ShapeCalculationMode::rounded_scales) return false;
  return mode != CoordinateMode::half_pixel_symmetric && mode != CoordinateMode::tf_crop_and_resize &&
         !op.exclude_outside && (!op.antialias || op.mode == InterpolateMode::linear);
}

/// One axis of the picture alone.
struct AxisAlone {
  Interpolate op;
  std::int64_t in = 0;
  Tensor size, roi;  ///< size or scale; roi may be invalid

  /// What becomes of pictures [rows, in].
  Tensor of(const Tensor& rows, double extrapolation) const {
    Node node;
    Interpolate one = op;
    one.extrapolation_value = extrapolation;
    node.op = one;
    node.inputs.resize(4);
    node.outputs.resize(1);
    return evaluate_node(node, {rows, size, Tensor::of(Dims{1}, Ints{1}), roi}, {}).at(0);
  }
  /// [in, out]
  Tensor matrix() const {
    Tensor identity(ElementType::f32, {in, in});
    const auto numbers = identity.data<float>();
    for (std::int64_t i = 0; i < in; ++i) numbers[static_cast<std::size_t>(i * (in + 1))] = 1;
    return of(identity, 0);
  }
  /// 1 where a position of the output lies outside of the picture.
  std::vector<float> outside() const { return to_floats(of(Tensor(ElementType::f32, {1, in}), 1)); }
};

class Resizing {
 public:
  explicit Resizing(Legalisation& c) : c_(c), op_(c.op<Interpolate>()) {}

  ValueId run() {
    const Shape shape = c_.shape(c_.in(0));
    if (!shape.known()) c_.refuse("this mode for an input {}", to_string(shape));
    if (!c_.constant(c_.in(1))) c_.refuse("this mode with sizes or scales that are computed");
    sizes_ = *c_.constant(c_.in(1));
    if (c_.has(3)) {
      if (!c_.constant(c_.in(3))) c_.refuse("this mode with a region that is computed");
      roi_ = *c_.constant(c_.in(3));
    }
    rank_ = shape.rank();
    read_axes();
    const ElementType type = c_.element(c_.in(0));
    y_ = is_float(type) ? c_.in(0) : c_.converted(c_.in(0), ElementType::f32, "f32");
    for (std::size_t i = 0; i < rank_; ++i)
      if (place_[i] >= 0 || pad(op_.pads_begin, i) != 0 || pad(op_.pads_end, i) != 0)
        resize(i, shape[i].size());
    if (is_float(type)) return y_;
    if (is_pillow(op_) || op_.mode == InterpolateMode::linear)
      y_ = c_.add(Round{RoundMode::half_away_from_zero}, {y_}, "rounded");
    return c_.converted(y_, type, "like_picture");
  }

 private:
  static std::int64_t pad(const Ints& pads, std::size_t i) { return i < pads.size() ? pads[i] : 0; }

  void read_axes() {
    place_.assign(rank_, -1);
    Ints axes(rank_);
    std::iota(axes.begin(), axes.end(), 0);
    if (c_.has(2)) {
      const auto given = c_.known_ints(c_.in(2));
      if (!given) c_.refuse("this mode with axes that are computed");
      axes = *given;
    }
    count_ = axes.size();
    for (std::size_t k = 0; k < axes.size(); ++k)
      place_[normalize_axis(axes[k], rank_, "axis")] = static_cast<std::int64_t>(k);
  }

  AxisAlone alone(std::size_t axis, std::int64_t in) const {
    AxisAlone out;
    out.op = op_;
    out.op.pads_begin = {0, pad(op_.pads_begin, axis)};
    out.op.pads_end = {0, pad(op_.pads_end, axis)};
    out.in = in;
    const bool by_scales = op_.by_scales();
    const auto k = static_cast<std::size_t>(place_[axis]);
    if (place_[axis] < 0) {  // only padded
      const std::int64_t padded = in + out.op.pads_begin[1] + out.op.pads_end[1];
      out.op.shape_calculation_mode = ShapeCalculationMode::sizes;
      out.op.coordinate_transformation_mode = CoordinateMode::asymmetric;
      out.size = Tensor::of(Dims{1}, Ints{padded});
      return out;
    }
    if (by_scales)
      out.size = Tensor::of(Dims{1}, std::vector<float>{to_floats(sizes_).at(k)});
    else
      out.size = Tensor::of(Dims{1}, Ints{to_ints(sizes_).at(k)});
    if (!roi_.valid() || roi_.size() == 0) return out;
    const auto roi = to_floats(roi_);
    out.roi = Tensor::of(Dims{2}, std::vector<float>{roi.at(k), roi.at(k + count_)});
    return out;
  }

  void resize(std::size_t axis, std::int64_t in) {
    if (in > kLargestMatrix / std::max<std::int64_t>(in, 1)) c_.refuse("this mode of {} pixels", in);
    const AxisAlone one = alone(axis, in);
    const Tensor matrix = one.matrix();
    if (static_cast<std::int64_t>(matrix.size()) > kLargestMatrix) c_.refuse("this mode of {} pixels", in);
    const std::string name = fmt::format("axis{}", axis);
    multiply(axis, c_.converted(c_.add_constant(matrix, name + "_matrix"), c_.element(y_), name), name);
    if (op_.coordinate_transformation_mode != CoordinateMode::tf_crop_and_resize) return;
    auto outside = one.outside();
    if (std::all_of(outside.begin(), outside.end(), [](float v) { return v == 0; })) return;
    for (float& v : outside) v *= static_cast<float>(op_.extrapolation_value);
    Dims dims(rank_ - axis, 1);
    dims[0] = std::ssize(outside);
    const ValueId added = c_.add_constant(Tensor::of(dims, outside), name + "_outside");
    y_ = c_.add(Add{}, {y_, c_.converted(added, c_.element(y_), name + "_like")}, name + "_extrapolated");
  }

  void multiply(std::size_t axis, ValueId matrix, const std::string& name) {
    if (axis + 1 == rank_) {
      y_ = c_.add(MatMul{}, {y_, matrix}, name + "_resized");
      return;
    }
    if (axis + 2 == rank_) {
      y_ = c_.add(MatMul{true, false}, {matrix, y_}, name + "_resized");
      return;
    }
    Ints order(rank_);
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[axis], order[rank_ - 1]);
    const ValueId swapped = c_.ints(order, name + "_order");
    y_ = c_.add(Transpose{}, {y_, swapped}, name + "_last");
    y_ = c_.add(MatMul{}, {y_, matrix}, name + "_resized");
    y_ = c_.add(Transpose{}, {y_, swapped}, name + "_back");
  }

  Legalisation& c_;
  const Interpolate& op_;
  Tensor sizes_, roi_;
  std::size_t rank_ = 0, count_ = 0;
  Ints place_;  // of each axis in the lists; -1: it is not resized
  ValueId y_;
};

/// One number as a list.
ValueId as_list(Legalisation& c, ValueId value, const std::string& name) {
  return c.rank(value) == 0 ? c.reshaped(value, {1}, name) : value;
}

/// OpenVINO wants axes to be said, and lists.
std::vector<ValueId> interpolate(Legalisation& c) {
  const auto& op = c.op<Interpolate>();
  if (!openvino_has(op, c.version())) return {Resizing(c).run()};
  const bool lists = c.rank(c.in(1)) == 1 && c.has(2) && c.rank(c.in(2)) == 1;
  if (lists) return {};
  Ints all(c.rank(c.in(0)));
  std::iota(all.begin(), all.end(), 0);
  const ValueId axes = c.has(2) ? as_list(c, c.in(2), "axes") : c.ints(all, "axes");
  return {c.add(op, {c.in(0), as_list(c, c.in(1), "sizes"), axes}, "resized")};
}

}  // namespace

void register_resizing(LegalisationTable& t) { t.add("Interpolate", interpolate); }

}  // namespace lamina::ir
