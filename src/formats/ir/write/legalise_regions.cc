// ROIAlign with ONNX's maximum: that of the corners around samples, each by its weight.
#include <algorithm>

#include "formats/ir/write/legalise.h"
#include "ops/activation.h"
#include "ops/detection.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina::ir {
namespace {

constexpr auto kFloat = ElementType::f32;

/// Samples of all regions along one axis of the picture, [R, samples].
struct Samples {
  ValueId low, high;  ///< pixels, i64
  ValueId low_weight, high_weight;
  ValueId inside;  ///< boolean
};

class CornerMaxima {
 public:
  explicit CornerMaxima(Legalisation& c) : c_(c), op_(c.op<ROIAlign>()) {}

  ValueId run() {
    if (op_.sampling_ratio == 0) c_.refuse("maxima of corners of as many samples as a region is large");
    if (c_.rank(c_.in(0)) != 4 || !c_.shape(c_.in(0))[1].known()) c_.refuse("maxima of corners of channels");
    const std::int64_t channels = c_.shape(c_.in(0))[1].size();
    const bool aligned = op_.aligned_mode != AlignedMode::asymmetric;
    ValueId regions = c_.converted(c_.in(1), kFloat, "regions");
    if (op_.aligned_mode == AlignedMode::half_pixel)
      regions = c_.add(Add{}, {regions, number(0.5, "half")}, "from_centres");
    regions = c_.add(Multiply{}, {regions, number(op_.spatial_scale, "scale")}, "scaled");
    if (aligned) regions = c_.add(Add{}, {regions, number(-0.5, "minus_half")}, "shifted");
    const Samples rows = along(regions, 1, 2, op_.pooled_h, "rows"),
                  columns = along(regions, 0, 3, op_.pooled_w, "columns");
    const ValueId image = spread(c_.converted(c_.in(2), ElementType::i64, "image"), {1, 2, 3}, "images");
    const ValueId last = c_.add(Transpose{}, {c_.in(0), c_.ints({0, 2, 3, 1}, "order")}, "channels_last");
    ValueId best;
    for (const bool low_row : {true, false})
      for (const bool low_column : {true, false}) {
        const std::string name = fmt::format("corner{}{}", low_row ? 0 : 1, low_column ? 0 : 1);
        const ValueId corner =
            weighted(last, image, low_row ? rows.low : rows.high, low_column ? columns.low : columns.high,
                     low_row ? rows.low_weight : rows.high_weight,
                     low_column ? columns.low_weight : columns.high_weight, name);
        best = best.valid() ? c_.add(Maximum{}, {best, corner}, name + "_best") : corner;
      }
    const ValueId inside = c_.add(
        LogicalAnd{}, {row(rows.inside, "rows_inside"), column(columns.inside, "columns_inside")}, "inside");
    best = c_.add(Select{}, {inside, best, c_.number(0, c_.element(best), "zero")}, "in_picture");
    const std::int64_t samples = op_.sampling_ratio;
    best = c_.reshaped(best, {-1, op_.pooled_h, samples, op_.pooled_w, samples, channels}, "by_bin");
    best = c_.add(ReduceMax{}, {best, c_.ints({2, 4}, "sample_axes")}, "maxima");
    return c_.add(Transpose{}, {best, c_.ints({0, 3, 1, 2}, "order_back")}, "channels_first");
  }

 private:
  ValueId number(double value, const std::string& name) { return c_.number(value, kFloat, name); }
  ValueId spread(ValueId value, const Ints& axes, const std::string& name) {
    return c_.add(Unsqueeze{}, {value, c_.ints(axes, name + "_axes")}, name);
  }
  /// [R, rows, 1, 1] and [R, 1, columns, 1]
  ValueId row(ValueId samples, const std::string& name) { return spread(samples, {2, 3}, name); }
  ValueId column(ValueId samples, const std::string& name) { return spread(samples, {1, 3}, name); }

  Samples along(ValueId regions, std::int64_t first, std::int64_t axis, std::int64_t bins,
                const std::string& name) {
    const auto bound = [&](std::int64_t i, const std::string& what) {
      return c_.add(Gather{}, {regions, c_.ints({i}, what + "_index"), c_.integer(1, what + "_axis")}, what);
    };
    const ValueId begin = bound(first, name + "_begin"), end = bound(first + 2, name + "_end");
    ValueId size = c_.add(Subtract{}, {end, begin}, name + "_size");
    if (op_.aligned_mode == AlignedMode::asymmetric)
      size = c_.add(Maximum{}, {size, number(1, name + "_one")}, name + "_at_least");
    std::vector<float> parts(static_cast<std::size_t>(bins * op_.sampling_ratio));
    for (std::size_t i = 0; i < parts.size(); ++i)
      parts[i] = (static_cast<float>(i) + 0.5F) / static_cast<float>(parts.size());
    const ValueId steps = c_.add_constant(Tensor::of(Dims{1, std::ssize(parts)}, parts), name + "_parts");
    const ValueId offset = c_.add(Multiply{}, {size, steps}, name + "_offsets");
    const ValueId place = c_.add(Add{}, {begin, offset}, name + "_places");
    const ValueId pixels = c_.size_of(c_.in(0), axis, name + "_pixels");
    const ValueId limit = c_.converted(pixels, kFloat, name + "_limit");
    const ValueId last = c_.add(Subtract{}, {limit, number(1, name + "_step")}, name + "_last");
    Samples out;
    out.inside =
        c_.add(LogicalAnd{},
               {c_.add(GreaterEqual{}, {place, number(-1, name + "_before")}, name + "_behind_begin"),
                c_.add(LessEqual{}, {place, limit}, name + "_before_end")},
               name + "_inside");
    const ValueId at_least = c_.add(Maximum{}, {place, number(0, name + "_zero")}, name + "_from_zero");
    const ValueId within = c_.add(Minimum{}, {at_least, last}, name + "_within");
    const ValueId low = c_.add(Floor{}, {within}, name + "_floor");
    const ValueId next = c_.add(Add{}, {low, number(1, name + "_next_step")}, name + "_next");
    out.high_weight = c_.add(Subtract{}, {within, low}, name + "_high_weight");
    out.low_weight = c_.add(Subtract{}, {number(1, name + "_whole"), out.high_weight}, name + "_low_weight");
    out.low = c_.converted(low, ElementType::i64, name + "_low");
    out.high = c_.converted(c_.add(Minimum{}, {next, last}, name + "_next_within"), ElementType::i64,
                            name + "_high");
    return out;
  }

  /// Pixels times weights, [R, rows, columns, C].
  ValueId weighted(ValueId picture, ValueId image, ValueId rows, ValueId columns, ValueId row_weights,
                   ValueId column_weights, const std::string& name) {
    const ValueId y = row(rows, name + "_y"), x = column(columns, name + "_x");
    const ValueId zeros = c_.add(
        Multiply{}, {c_.add(Add{}, {y, x}, name + "_both"), c_.integer(0, name + "_zero")}, name + "_zeros");
    const auto full = [&](ValueId index, const std::string& what) {
      return c_.add(Add{}, {index, zeros}, name + what);
    };
    const ValueId places =
        c_.add(Concat{-1}, {full(image, "_images"), full(y, "_rows"), full(x, "_columns")}, name + "_places");
    const ValueId pixels = c_.add(GatherND{}, {picture, places}, name + "_pixels");
    const ValueId weights =
        c_.add(Multiply{}, {row(row_weights, name + "_by_row"), column(column_weights, name + "_by_column")},
               name + "_weights");
    return c_.add(Multiply{}, {pixels, c_.converted(weights, c_.element(pixels), name + "_like")}, name);
  }

  Legalisation& c_;
  const ROIAlign& op_;
};

std::vector<ValueId> roi_align(Legalisation& c) {
  if (c.op<ROIAlign>().mode != RoiAlignMode::max_corner) return {};
  return {CornerMaxima(c).run()};
}

}  // namespace

void register_regions(LegalisationTable& t) { t.add("ROIAlign", roi_align); }

}  // namespace lamina::ir
