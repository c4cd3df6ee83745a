#include "kernels/native/stages/integer_epilogue.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/element_types.h"
#include "base/work_partition.h"
#include "kernels/epilogue.h"
#include "kernels/family.h"
#include "kernels/native/stages/few_rows.h"
#include "kernels/native/stages/finish.h"
#include "kernels/native/stages/sign_changes.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/quantization.h"

namespace lamina {

using Added = IntegerFinish::Added;
using Stored = IntegerFinish::Stored;

/// Takes stages in their order.
class IntegerChain {
 public:
  IntegerChain(const NodeView& v, std::size_t axis, std::vector<Stage> stages)
      : v_(v), axis_(axis), stages_(std::move(stages)), at_(stages_.begin()) {}

  std::optional<IntegerEpilogue> read() {
    const auto dims = v_.out_dims();
    e_.channels_ = axis_ == dims.size() ? 1 : dims.at(axis_);
    if (stages_.empty()) return e_;
    if (!floats_from_sums()) return std::nullopt;
    e_.finish_.stored = Stored::floats;
    constant_of<Multiply>(e_.scale_);
    constant_of<Add>(e_.shift_);
    levels();
    second_tensor();
    joined_levels();
    if (at_ != stages_.end())
      if (const auto finish = finish_of(*at_)) e_.finish_.finish = *finish, ++at_;
    slopes();
    constant_of<Multiply>(e_.post_scale_);
    constant_of<Add>(e_.post_shift_);
    e_.finish_.has_post = e_.post_scale_.valid() || e_.post_shift_.valid();
    if (at_ != stages_.end() && !quantize()) return std::nullopt;
    if (at_ != stages_.end() || !all_f32()) return std::nullopt;
    e_.finish_.nan = may_be_nan();
    merge_bounds();
    set_inverse();
    set_packs();
    return e_;
  }

 private:
  const Graph& body() const { return *epilogue(v_.node()); }

  /// Converts sums to floats; sums of signs are floats already.
  bool floats_from_sums() {
    if (body().type(body().inputs()[0]).element == ElementType::f32) return true;
    const auto* convert = at_->node->op.as<Convert>();
    if (!convert || convert->destination_type != ElementType::f32) return false;
    return ++at_, true;
  }

  /// All results but the last are; that of a Quantize is the output.
  bool all_f32() const {
    for (const auto& s : stages_)
      if (!s.node->op.is<Quantize>() && body().type(s.node->outputs[0]).element != ElementType::f32)
        return false;
    return true;
  }

  /// One number, or one for each channel.
  bool by_channels(const Tensor& t) const { return by_channels(t, t.shape()); }
  bool by_channels(const Tensor& t, const Dims& dims) const {
    if (t.element_type() != ElementType::f32) return false;
    const auto size = static_cast<std::int64_t>(t.size());
    const auto behind = v_.out_dims().size() - axis_;  // axes from that of the channels on
    if (size == 1) return dims.size() <= v_.out_dims().size();
    return size == e_.channels_ && dims.size() >= behind && dims.size() <= v_.out_dims().size() &&
           dims[dims.size() - behind] == size;
  }

  /// The other operand, if it is an unchanged constant.
  const Tensor* constant_operand() const {
    if (at_->operand_element != ElementType::undefined) return nullptr;
    return at_->constant ? at_->constant : at_->extra ? v_.constant(*at_->extra) : nullptr;
  }

  template <class Operator>
  void constant_of(Tensor& to) {
    if (at_ == stages_.end() || !at_->node->op.is<Operator>()) return;
    const auto* constant = constant_operand();
    if (!constant || !by_channels(*constant)) return;
    to = *constant;
    ++at_;
  }

  /// Takes the slopes of a PRelu that is not a leaky ReLU.
  void slopes() {
    if (at_ == stages_.end() || at_->running != 0 || !at_->node->op.is<PRelu>()) return;
    const auto* slope = constant_operand();
    if (!slope) return;
    const auto placed = prelu_slope_shape(Shape::of(v_.out_dims()), Shape::of(slope->shape())).sizes();
    if (!by_channels(*slope, placed)) return;
    e_.slope_ = *slope;
    e_.finish_.slopes = true;
    ++at_;
  }

  /// A constant of the output's shape.
  void constant_tensor(const Tensor& t) {
    if (t.element_type() != ElementType::f32 || t.shape() != v_.out_dims()) return;
    e_.finish_.added = Added::floats;
    e_.added_constant_ = t;
    ++at_;
  }

  /// [Relu or Clamp] Quantize Dequantize: neither division by a step nor rounding changes an order, so that
  /// one bound does for both. Of values within +-`largest`.
  std::optional<IntegerFinish::Levels> levels_within(float largest) {
    auto at = at_;
    Finish bounds{Finish::Kind::clamp, -IntegerFinish::kMost, IntegerFinish::kMost};
    if (at != stages_.end())
      if (const auto finish = finish_of(*at)) bounds = *finish, ++at;
    if (stages_.end() - at < 2 || bounds.kind != Finish::Kind::clamp) return std::nullopt;
    const auto there = levels_of<Quantize>(at[0]), back = levels_of<Dequantize>(at[1]);
    if (!there || !back || !(there->step > 0) || !std::isfinite(there->step) || !std::isfinite(largest))
      return std::nullopt;
    const float low = there->low - there->zero_point, high = there->high - there->zero_point;
    at_ = at + 2;
    return IntegerFinish::Levels{true,
                                 step_of(there->step, largest),
                                 std::clamp(bounds.low / there->step, low, high),
                                 std::clamp(bounds.high / there->step, low, high),
                                 there->zero_point - back->zero_point,
                                 back->step};
  }

  void levels() {
    if (const auto found = levels_within(largest_value())) e_.finish_.levels = *found;
  }

  /// Behind the second tensor, or one behind the other.
  void joined_levels() {
    const auto& f = e_.finish_;
    if (f.added == Added::floats && !e_.added_constant_.valid()) return;
    if (const auto found = levels_within(largest_joined())) e_.finish_.joined = *found;
  }

  void second_tensor() {
    if (at_ == stages_.end() || !at_->node->op.is<Add>()) return;
    if (const auto* constant = constant_operand()) return constant_tensor(*constant);
    if (!at_->extra) return;
    const auto type = v_.element(*at_->extra);
    if (v_.dims(*at_->extra) != v_.out_dims()) return;
    auto& f = e_.finish_;
    if (type == ElementType::f32)
      f.added = Added::floats;
    else if (is_byte(type))
      f.added = type == ElementType::u8 ? Added::unsigned_bytes : Added::signed_bytes;
    else
      return;
    if (at_->dequantized) {
      f.added_scale = at_->dequantized->scale;
      f.added_zero = at_->dequantized->zero_point;
    }
    e_.added_ = at_->extra;
    ++at_;
  }

  /// What Quantize and Dequantize of bytes, or of floats to them, have.
  struct Steps {
    float step, zero_point;
    float low, high;  ///< of the bytes' type
  };
  template <class Operator>
  std::optional<Steps> levels_of(const Stage& stage) const {
    const auto& n = *stage.node;
    const auto steps = n.op.is<Operator>() && stage.running == 0 ? steps_of(body(), n) : std::nullopt;
    if (!steps) return std::nullopt;
    const auto bytes = std::is_same_v<Operator, Quantize> ? n.outputs[0] : n.inputs[0];
    const bool is_signed = body().type(bytes).element == ElementType::i8;
    return Steps{steps->scale, steps->zero_point, is_signed ? -128.0f : 0.0f, is_signed ? 127.0f : 255.0f};
  }

  bool quantize() {
    const auto steps = levels_of<Quantize>(*at_);
    if (!steps) return false;
    auto& f = e_.finish_;
    is_signed_ = steps->low < 0;
    f.stored = Stored::bytes;
    f.step.step = steps->step;
    f.zero_point = static_cast<std::int32_t>(steps->zero_point);
    f.low = steps->low - steps->zero_point;
    f.high = steps->high - steps->zero_point;
    return ++at_, true;
  }

  /// One bound does both: neither division by a step nor rounding changes an order.
  void merge_bounds() {
    auto& f = e_.finish_;
    if (f.finish.kind != Finish::Kind::clamp || f.has_post || f.slopes) return;
    const auto step = f.step.step;
    if (!(step > 0) || !std::isfinite(step)) return;
    const auto low = f.low, high = f.high;
    f.low = std::clamp(f.finish.low / step, low, high);
    f.high = std::clamp(f.finish.high / step, low, high);
    f.finish = {};
  }

  static constexpr float kMostSteps = 510;  // from -255 to 255

  /// Bound of scaled and shifted sums, whatever they are; NaN where one of the constants is.
  float largest_value() const { return 0x1p31f * largest(e_.scale_, 1) + largest(e_.shift_, 0); }
  static float largest(const Tensor& t, float none) {
    if (!t.valid()) return none;
    float most = 0;
    for (const float x : to_floats(t)) most = std::isnan(x) ? x : std::max(most, std::fabs(x));
    return most;
  }

  /// Bound with a second tensor of integers.
  float largest_joined() const {
    const auto& f = e_.finish_;
    if (f.joined.any) return kMostSteps * std::fabs(f.joined.scale);
    return (f.levels.any ? kMostSteps * std::fabs(f.levels.scale) : largest_value()) +
           kMostSteps * std::fabs(f.added_scale) + largest(e_.added_constant_, 0);
  }
  /// Bound with a second scale and shift.
  float largest_later() const {
    return largest_joined() * largest(e_.post_scale_, 1) + largest(e_.post_shift_, 0);
  }

  float largest_slope() const {
    const auto& finish = e_.finish_.finish;
    const float leaky = finish.kind == Finish::Kind::leaky ? std::fabs(finish.slope) : 0;
    const float by_channel = largest(e_.slope_, 0);
    return leaky <= by_channel || std::isnan(by_channel) ? by_channel : leaky;
  }

  /// Where the largest numbers are finite, nothing is NaN.
  bool may_be_nan() const {
    const auto& f = e_.finish_;
    const bool unknown = f.added == Added::floats && !e_.added_constant_.valid();
    if (unknown || f.step.step == 0 || !std::isfinite(f.step.step)) return true;
    return !std::isfinite(largest_later()) || !std::isfinite(largest_slope());
  }

  /// With an inverse where values within +-`largest` do not leave the range in which f32 keeps all bits.
  static IntegerFinish::Step step_of(float step, float largest) {
    IntegerFinish::Step out{step, 0, 0};
    if (!(step > 0x1p-60f && step < 0x1p60f && largest < 0x1p60f)) return out;
    out.inverse = 1 / step;
    out.inverse_rest = static_cast<float>(1 / static_cast<double>(step) - static_cast<double>(out.inverse));
    return out;
  }
  void set_inverse() {
    auto& f = e_.finish_;
    if (!f.nan && largest_slope() < 0x1p6f) f.step = step_of(f.step.step, largest_later());
  }

  void set_packs() {
    auto& f = e_.finish_;
    if (f.stored != Stored::bytes) return;
    const int shift = f.zero_point + (is_signed_ ? 128 : 0);
    f.packs.zero_point = static_cast<std::int16_t>(shift);
    f.packs.turned = is_signed_ ? 0x80 : 0;
    if (!f.simple() || !(f.low <= f.high) || !(largest_value() < 0x1p30f)) return;
    const auto level = [&](float bound) {
      return static_cast<std::uint8_t>(static_cast<int>(std::nearbyint(bound)) + shift);
    };
    f.packs.bounds_last = true;
    f.packs.low = level(f.low);
    f.packs.high = level(f.high);
  }

  const NodeView& v_;
  std::size_t axis_;
  std::vector<Stage> stages_;
  std::vector<Stage>::const_iterator at_;
  IntegerEpilogue e_;
  bool is_signed_ = false;  ///< of bytes
};

std::optional<IntegerEpilogue> IntegerEpilogue::of(const NodeView& v, std::size_t axis) {
  if (v.out_element() == ElementType::boolean && axis == 1) return of_signs(v);
  auto stages = chain_of(v.node());
  if (!stages) return std::nullopt;
  return IntegerChain(v, axis, std::move(*stages)).read();
}

/// What is above a whole number is at least 1 above it: bounds and rounding make 0 or 1 of the difference.
std::optional<IntegerEpilogue> IntegerEpilogue::of_signs(const NodeView& v) {
  constexpr double kLeast = std::numeric_limits<std::int32_t>::min(),
                   kMost = std::numeric_limits<std::int32_t>::max();
  const auto changes = sign_changes(v, ElementType::i32, kLeast, kMost);
  if (!changes) return std::nullopt;
  std::vector<double> scale, shift;
  for (std::size_t c = 0; c < changes->at.size(); ++c) {
    const bool first = changes->first[c], changing = first != changes->last[c];
    scale.push_back(changing ? (first ? -1 : 1) : 0);
    // The sum behind the change may be the same number in f32.
    shift.push_back(!changing ? first : first ? static_cast<float>(changes->at[c] + 1) : -changes->at[c]);
  }
  IntegerEpilogue e;
  e.channels_ = static_cast<std::int64_t>(scale.size());
  e.scale_ = from_doubles(ElementType::f32, {e.channels_}, scale);
  e.shift_ = from_doubles(ElementType::f32, {e.channels_}, shift);
  auto& f = e.finish_;
  f.stored = Stored::bytes;
  f.low = 0, f.high = 1;
  const auto near = std::all_of(shift.begin(), shift.end(), [](double v) { return std::fabs(v) < 0x1p29; });
  f.packs = {near, 0, 0, 1, 0};
  return e;
}

ElementType IntegerEpilogue::added_element() const {
  switch (finish_.added) {
    case Added::unsigned_bytes:
      return ElementType::u8;
    case Added::signed_bytes:
      return ElementType::i8;
    default:
      return ElementType::f32;
  }
}

Cost IntegerEpilogue::cost(const Machine& machine, std::size_t elements) const {
  if (finish_.stored == Stored::sums) return {};
  const double each = finish_.simple() ? 1.5 : 3;
  return cost_of(machine, Family::vector_light, each * static_cast<double>(elements), 0, 0);
}

void IntegerEpilogue::lay_constant(WeightStore& store, Layout layout) {
  if (auto few = few_rows(added_constant_, layout, channels_, store)) {
    added_constant_ = few->numbers;
    rows_ = few->rows;
    finish_.added = Added::rows;
    finish_.rows = rows_.data<float>().data();
    finish_.row = rows_.shape()[1];
    return;
  }
  added_constant_ = store.moved(added_constant_, fmt::format("integer epilogue as {}", name_of(layout)),
                                size_laid_out(added_constant_, layout),
                                [&](const Tensor& t) { return laid_out(t, layout); });
}

void IntegerEpilogue::pack(WeightStore& store, Layout layout) {
  if (finish_.stored == Stored::sums) return;
  if (added_constant_.valid()) lay_constant(store, layout);
  const auto padded = padded_row(channels_);
  const auto packed = [&](const Tensor& source, float none) {
    const auto spread = [&](const std::vector<float>& values) {
      Tensor out(ElementType::f32, {padded});
      const auto to = out.data<float>();
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = values[std::min(i, values.size() - 1)];
      return out;
    };
    if (!source.valid()) return spread({none});
    return store.moved(source, fmt::format("integer epilogue {}", channels_), {ElementType::f32, padded},
                       [&](const Tensor& t) { return spread(to_floats(t)); });
  };
  scale_ = packed(scale_, 1);
  shift_ = packed(shift_, -0.0f);  // the sum with it is what it was
  finish_.scale = scale_.data<float>().data();
  finish_.shift = shift_.data<float>().data();
  if (slope_.valid()) {
    slope_ = packed(slope_, 1);
    finish_.slope = slope_.data<float>().data();
  }
  if (!finish_.has_post) return;
  post_scale_ = packed(post_scale_, 1);
  post_shift_ = packed(post_shift_, -0.0f);
  finish_.post_scale = post_scale_.data<float>().data();
  finish_.post_shift = post_shift_.data<float>().data();
}

}  // namespace lamina
