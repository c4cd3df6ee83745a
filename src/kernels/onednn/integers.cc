#include "kernels/onednn/integers.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"

namespace lamina::onednn {

Verdict multiplies_bytes(const Machine& machine) {
  const bool wide = machine.features.has(Feature::avx512_vnni) && machine.library == Isa::avx512;
  const bool narrow = machine.features.has(Feature::avx_vnni) && machine.library >= Isa::avx2;
  if (wide || narrow) return Verdict::yes();
  return Verdict::no("int8: without VNNI its sums saturate at 16 bits, and weights of s8 sources are halved");
}

std::string_view operands_name(const NodeView& v) {
  const auto type = multiplied(v);
  return type == ElementType::u8 ? "u8s8" : type == ElementType::i8 ? "s8s8" : name_of(type);
}

namespace {

Tensor one_number(std::int64_t value) {
  return Tensor::of({1}, std::vector<std::int32_t>{static_cast<std::int32_t>(value)});
}

Desc numbers(std::int64_t count) { return desc({count}, ElementType::i32, Layout::plain); }

/// Zero points of weights that are known now.
struct Shift {
  std::vector<int> zero;  // one, or one per channel
  WeightChannels channels;
  bool is_signed;

  int number(const std::byte* weights, std::int64_t i) const {
    const auto w = is_signed ? static_cast<int>(static_cast<std::int8_t>(weights[i]))
                             : static_cast<int>(static_cast<std::uint8_t>(weights[i]));
    const auto c = zero.size() == 1 ? 0 : static_cast<std::size_t>(channels.of(i));
    return w - zero[c];
  }
  bool fits(const Tensor& weights) const {
    const auto *from = weights.raw(), *end = from + weights.bytes();
    if (zero.size() == 1) {
      const auto [low, high] = std::minmax_element(
          from, end, [&](std::byte a, std::byte b) { return number(&a, 0) < number(&b, 0); });
      return number(low, 0) >= -128 && number(high, 0) <= 127;
    }
    for (std::int64_t i = 0; i < end - from; ++i)
      if (const int w = number(from, i); w < -128 || w > 127) return false;
    return true;
  }
  Tensor operator()(const Tensor& weights) const {
    Tensor out(ElementType::i8, weights.shape());
    auto to = out.data<std::int8_t>();
    const auto* from = weights.raw();
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = static_cast<std::int8_t>(number(from, static_cast<std::int64_t>(i)));
    return out;
  }
  std::string key() const {
    return fmt::format("minus {}", to_string(hash_of(std::as_bytes(std::span(zero)))));
  }
};

/// A zero point that is a constant, which is set then, or comes at run time.
Arg zero_argument(const NodeView& v, std::size_t input, int of) {
  Arg arg{DNNL_ARG_ATTR_ZERO_POINTS | of, numbers(1), Arg::From::constant, input, {}};
  if (v.has(input) && !v.constant(input))
    arg.from = v.element(input) == ElementType::u8 ? Arg::From::unsigned_number : Arg::From::signed_number;
  return arg;
}

}  // namespace

void Integers::set_source_zero(const NodeView& v, const ZeroPoints& zeros) {
  if (!zeros.source_at_run && zeros.source == 0) return;
  auto arg = zero_argument(v, zeros.source_input, DNNL_ARG_SRC);
  if (!zeros.source_at_run) arg.constant = one_number(zeros.source);
  args_.push_back(std::move(arg));
  key_ += " zero";
}

Verdict Integers::set_weights(const NodeView& v, const ZeroPoints& zeros, const Tensor* packed,
                              WeightChannels channels, bool keeps_zero) {
  const bool is_signed = v.element(1) == ElementType::i8;
  Shift shift{zeros.weights.empty() ? std::vector<int>{0} : zeros.weights, channels, is_signed};
  auto arg = zero_argument(v, zeros.weights_input, DNNL_ARG_WEIGHTS);
  if (zeros.weights_at_run) {
    if (!keeps_zero || !is_signed || element_count(v.dims(zeros.weights_input)) != 1)
      return Verdict::no("int8: zero points of weights that are given at run time");
    args_.push_back(std::move(arg));
    return Verdict::yes();
  }
  const bool one = shift.zero.size() == 1;
  if (!one && static_cast<std::int64_t>(shift.zero.size()) != channels.total())
    return Verdict::no("int8: {} zero points of {} channels of the weights", shift.zero.size(),
                       channels.total());
  if (is_signed && one && shift.zero[0] == 0) return Verdict::yes();
  looks_at_weights_ = packed != nullptr;
  if (!packed || !shift.fits(*packed)) {
    if (!keeps_zero || !one || (!packed && !is_signed))
      return Verdict::no("int8: weights of {} without their zero points are no s8 numbers that are known",
                         name_of(v.element(1)));
    const int sign = is_signed ? 0 : 128;  // u8 weights become s8
    arg.constant = one_number(shift.zero[0] - sign);
    args_.push_back(std::move(arg));
    if (is_signed) return Verdict::yes();
    shift.zero[0] = sign;
  }
  key_ += " " + shift.key();
  prepare_ = shift;
  return Verdict::yes();
}

Verdict Integers::describe(const NodeView& v, const Tensor* packed, WeightChannels channels, bool keeps_zero,
                           Integers& out) {
  if (v.has(2)) return Verdict::no("int8: a bias of integers");
  out.key_ = fmt::format(" {}", operands_name(v));
  out.unsigned_source_ = multiplied(v) == ElementType::u8;
  ZeroPoints zeros;
  if (const auto verdict = zero_points_of(v, zeros); !verdict)
    return Verdict::no("int8: {}", verdict.reason());
  out.consumed_ = zeros.constants;
  out.set_source_zero(v, zeros);
  return out.set_weights(v, zeros, packed, channels, keeps_zero);
}

void Integers::set(dnnl::primitive_attr& attr) const {
  for (const auto& arg : args_) attr.set_zero_points_mask(arg.id & ~DNNL_ARG_ATTR_ZERO_POINTS, 0);
}

bool Integers::stores_sums(std::string_view implementation, std::int64_t products) const {
  if (implementation.starts_with("br") && unsigned_source_ && args_.empty()) return true;
  constexpr std::int64_t kExact = 1 << 24;  // integers that f32 has
  const bool keeps_zero = std::any_of(args_.begin(), args_.end(), [](const Arg& a) {
    return a.id == (DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_WEIGHTS);
  });
  return products <= kExact / (255 * (keeps_zero ? 255 : 128));
}

void Scaling::count_in(const Dequantized& steps) {
  if (scales.empty()) scales = {1};
  for (auto& s : scales) s /= steps.scale;
  if (bias.empty() && steps.zero_point == 0) return;
  if (bias.empty()) bias = {0};
  for (auto& b : bias) b = b / steps.scale - steps.zero_point;
}

std::vector<float> Scaling::bias_of_channels(std::int64_t channels) const {
  return bias.size() == 1 ? std::vector<float>(static_cast<std::size_t>(channels), bias[0]) : bias;
}

}  // namespace lamina::onednn
