#include "ops/quantization.h"

#include <algorithm>
#include <cmath>

#include "base/cancellation.h"
#include "base/work_partition.h"
#include "graph/op_model.h"
#include "graph/permute.h"
#include "ops/fake_quantize.h"
#include "ops/operators.h"
#include "ops/require.h"
#include "ops/scalar.h"
#include "ops/walk.h"

namespace lamina {
namespace {

void require_float(const InferContext& c, std::size_t input) {
  const auto e = c.element(input);
  c.require(e == ElementType::undefined || is_float(e), "input {} is {}, wanted a floating-point type", input,
            name_of(e));
}

/// Scale and zero point of Quantize and Dequantize.
void check_parameters(const InferContext& c, std::int64_t axis, std::int64_t block_size) {
  require_float(c, 1);
  const auto fault =
      quantization_fault(c.shape(0), c.shape(1), c.has(2) ? &c.shape(2) : nullptr, axis, block_size);
  c.require(fault.empty(), "{}", fault);
}

/// Finds the element of scale and zero point for an element of x.
class ParameterIndex {
 public:
  ParameterIndex(const EvalContext& c, std::int64_t axis, std::int64_t block_size)
      : shared_(block_size == 0 && c.in(1).size() == 1), block_(block_size) {
    if (shared_) return;
    const Dims& x = c.dims(0);
    const auto a = normalize_axis(axis, x.size(), "axis");
    size_ = x[a];
    for (std::size_t i = a + 1; i < x.size(); ++i) inner_ *= x[i];
    if (block_ != 0) blocks_ = c.dims(1)[a];
  }
  std::size_t operator()(std::size_t element) const {
    if (shared_) return 0;
    const auto i = static_cast<std::int64_t>(element);
    const auto along = i / inner_ % size_;
    if (block_ == 0) return static_cast<std::size_t>(along);
    return static_cast<std::size_t>((i / inner_ / size_ * blocks_ + along / block_) * inner_ + i % inner_);
  }
  /// As many elements, from each multiple of that number on, have one.
  std::int64_t run() const {
    if (shared_) return 1 << 12;
    if (block_ == 0) return std::max<std::int64_t>(inner_, 1);
    return inner_ == 1 && size_ % block_ == 0 ? block_ : 1;
  }

 private:
  bool shared_;
  std::int64_t block_, blocks_ = 1, inner_ = 1, size_ = 1;
};

/// NaN becomes 0.
float saturate_u8(float v) { return v > 0 ? std::min(v, 255.0f) : 0.0f; }

}  // namespace

std::string quantization_fault(const Shape& x, const Shape& scale, const Shape* zero_point, std::int64_t axis,
                               std::int64_t block_size) {
  if (block_size < 0) return fmt::format("block_size is {}, wanted 0 or more", block_size);
  const bool zero_fits = !zero_point || !scale.ranked() || !zero_point->ranked() || scale.fits(*zero_point) ||
                         (scale.count().fits(1) && zero_point->count().fits(1));
  if (!zero_fits)
    return fmt::format("zero point has shape {}, wanted {} like the scale", to_string(*zero_point),
                       to_string(scale));
  if (!x.ranked() || !scale.ranked()) return {};
  if (block_size == 0) {
    if (scale.rank() == 0 || (scale.rank() == 1 && scale[0].is(1))) return {};
    if (scale.rank() != 1)
      return fmt::format("scale has shape {}, wanted a scalar or one dimension", to_string(scale));
    if (!scale[0].known()) return {};
    const auto a = normalize_axis(axis, x.rank(), "axis");
    if (scale[0].fits(x[a])) return {};
    return fmt::format("scale has {} elements, wanted 1 or {} (axis {} of {})", to_string(scale[0]),
                       to_string(x[a]), a, to_string(x));
  }
  const auto a = normalize_axis(axis, x.rank(), "axis");
  Shape blocks = x;
  blocks[a] = x[a].known() ? Dim(x[a].size() / block_size + (x[a].size() % block_size != 0)) : Dim();
  if (scale.fits(blocks)) return {};
  return fmt::format("scale has shape {}, wanted {} (blocks of {})", to_string(scale), to_string(blocks),
                     block_size);
}

void FakeQuantize::infer(InferContext& c) const {
  c.require(levels >= 2 && levels <= (std::int64_t{1} << 32), "levels is {}, wanted 2..2^32", levels);
  for (std::size_t i = 0; i < 5; ++i) require_float(c, i);
  for (std::size_t i = 1; i < 5; ++i) require_broadcast(c, i, c.shape(0), fmt::format("input {}", i));
  c.set(0, c.type(0));
}

void FakeQuantize::evaluate(EvalContext& c) const {
  const Dims& dims = c.dims(0);
  std::array<Ints, 4> strides;
  std::array<std::vector<float>, 4> range;
  std::array<std::int64_t, 4> step{};
  for (std::size_t k = 0; k < 4; ++k) {
    range[k] = c.floats(k + 1);
    strides[k] = broadcast_strides(c.dims(k + 1), dims);
    step[k] = dims.empty() ? 0 : strides[k].back();
  }
  auto x = c.floats(0);
  const auto steps = static_cast<float>(levels - 1);
  for_each_row<4>(dims, strides, [&](std::int64_t first, const auto& at, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto bound = [&](std::size_t k) {
        return range[k][static_cast<std::size_t>(at[k] + i * step[k])];
      };
      float& v = x[static_cast<std::size_t>(first + i)];
      v = fake_quantize(v, bound(0), bound(1), bound(2), bound(3), steps);
    }
  });
  c.store(0, x);
}

void Quantize::infer(InferContext& c) const {
  c.require(is_integer(destination_type), "destination_type is {}, wanted an integer type",
            name_of(destination_type));
  const auto e = c.element(0);
  c.require(e == ElementType::undefined || is_float(e) || e == ElementType::i32,
            "input is {}, wanted floats or i32", name_of(e));
  check_parameters(c, axis, block_size);
  if (c.has(2)) {
    const auto z = c.element(2);
    c.require(z == destination_type || z == ElementType::undefined, "zero point is {}, wanted {}", name_of(z),
              name_of(destination_type));
  }
  c.set(0, destination_type, c.shape(0));
}

void Quantize::evaluate(EvalContext& c) const {
  const auto x = c.floats(0), scale = c.floats(1);
  const ParameterIndex parameter(c, axis, block_size);
  with_number_type(destination_type, [&]<class T>() {
    if constexpr (!std::is_floating_point_v<T>) {
      const auto zero = c.has(2) ? c.numbers<T>(2) : std::vector<T>(scale.size(), 0);
      const auto [low, high] = integer_range<T>(destination_type);
      std::vector<T> out(x.size());
      for_pieces(x.size(), [&](std::size_t begin, std::size_t end) {
        for (auto i = begin; i < end; ++i) {
          const auto p = parameter(i);
          const auto level =
              static_cast<double>(std::nearbyintf(x[i] / scale[p])) + static_cast<double>(zero[p]);
          out[i] = std::clamp(scalar::rounded<T>(level), low, high);
        }
      });
      c.store(0, out);
    }
  });
}

namespace {

float difference(std::int64_t x, std::int64_t zero) { return static_cast<float>(scalar::wrap_sub(x, zero)); }
float difference(std::uint64_t x, std::uint64_t zero) {
  return x < zero ? -static_cast<float>(zero - x) : static_cast<float>(x - zero);
}

/// Numbers of 4 bits lie two to a byte, the low one first.
template <bool is_signed>
float half_byte(const std::byte* from, std::int64_t i) {
  const auto bits = std::to_integer<int>(from[i / 2]) >> (i % 2 * 4) & 15;
  return static_cast<float>(is_signed && bits > 7 ? bits - 16 : bits);
}

/// Calls f with what gives number i of integers of 8 bits and less as f32, which are exact.
template <class F>
void with_small_numbers(const Tensor& t, const F& f) {
  const auto* from = t.raw();
  switch (t.element_type()) {
    case ElementType::i4:
      return f([=](std::int64_t i) { return half_byte<true>(from, i); });
    case ElementType::u4:
      return f([=](std::int64_t i) { return half_byte<false>(from, i); });
    case ElementType::i8:
      return f([=](std::int64_t i) { return static_cast<float>(static_cast<std::int8_t>(from[i])); });
    default:
      return f([=](std::int64_t i) { return static_cast<float>(static_cast<std::uint8_t>(from[i])); });
  }
}

bool is_small(ElementType type) {
  return type == ElementType::i4 || type == ElementType::u4 || type == ElementType::i8 ||
         type == ElementType::u8;
}

/// Weights of many elements are: on all cores, without copies.
void dequantize_small(EvalContext& c, const ParameterIndex& parameter) {
  const auto scale = c.floats(1), zero = c.has(2) ? c.floats(2) : std::vector<float>(scale.size());
  const auto size = static_cast<std::int64_t>(c.in(0).size()), run = parameter.run();
  auto* y = c.out().data<float>().data();
  with_small_numbers(c.in(0), [&](const auto& number) {
    parallel_for(ceil_div(size, run), std::max<std::int64_t>(1, (1 << 14) / run),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (auto r = begin; r < end; ++r) {
                     const auto p = parameter(static_cast<std::size_t>(r * run));
                     const float z = zero[p], s = scale[p];
                     const auto last = std::min(size, (r + 1) * run);
                     for (auto i = r * run; i < last; ++i) y[i] = (number(i) - z) * s;
                   }
                 });
  });
}

}  // namespace

void Dequantize::infer(InferContext& c) const {
  const auto e = c.element(0);
  c.require(e == ElementType::undefined || is_integer(e), "input is {}, wanted integers", name_of(e));
  check_parameters(c, axis, block_size);
  if (c.has(2)) {
    const auto z = c.element(2);
    c.require(z == e || z == ElementType::undefined || e == ElementType::undefined,
              "zero point is {}, wanted {}", name_of(z), name_of(e));
  }
  c.set(0, c.element(1), c.shape(0));
}

void Dequantize::evaluate(EvalContext& c) const {
  const ParameterIndex parameter(c, axis, block_size);
  if (is_small(c.in(0).element_type()) && c.out_element(0) == ElementType::f32)
    return dequantize_small(c, parameter);
  const auto scale = c.floats(1);
  with_number_type(c.in(0).element_type(), [&]<class T>() {
    if constexpr (!std::is_floating_point_v<T>) {
      const auto x = c.numbers<T>(0);
      const auto zero = c.has(2) ? c.numbers<T>(2) : std::vector<T>(scale.size(), 0);
      std::vector<float> out(x.size());
      for_pieces(x.size(), [&](std::size_t begin, std::size_t end) {
        for (auto i = begin; i < end; ++i) {
          const auto p = parameter(i);
          out[i] = difference(x[i], zero[p]) * scale[p];
        }
      });
      c.store(0, out);
    }
  });
}

void ConvertSmallFloat::infer(InferContext& c) const {
  c.require(is_small_float(destination_type), "destination_type is {}, wanted a float of 8 or 4 bits",
            name_of(destination_type));
  c.set(0, destination_type, c.shape(0));
}

void ConvertSmallFloat::evaluate(EvalContext& c) const {
  c.set(0, convert(c.in(0), destination_type, {saturate, round_mode}));
}

void DynamicQuantize::infer(InferContext& c) const {
  require_float(c, 0);
  c.set(0, ElementType::u8, c.shape(0));
  const Shape single(std::vector<Dim>{});
  c.set(1, ElementType::f32, single);
  c.set(2, ElementType::u8, single);
}

void DynamicQuantize::evaluate(EvalContext& c) const {
  const auto x = c.floats(0);
  float low = 0, high = 0;
  for_pieces(x.size(), [&](std::size_t begin, std::size_t end) {
    for (auto i = begin; i < end; ++i) {
      low = std::min(low, x[i]);
      high = std::max(high, x[i]);
    }
  });
  const float scale = low == high ? 1.0f : (high - low) / 255.0f;
  const float zero = std::nearbyintf(std::clamp(-low / scale, 0.0f, 255.0f));
  std::vector<float> y(x.size());
  for_pieces(x.size(), [&](std::size_t begin, std::size_t end) {
    for (auto i = begin; i < end; ++i) y[i] = saturate_u8(std::nearbyintf(x[i] / scale) + zero);
  });
  c.store(0, y);
  c.store(1, std::vector<float>{scale});
  c.store(2, std::vector<float>{zero});
}

namespace {

/// Scale and zero point of Quantize and Dequantize: single numbers, lines along `axis`, or blocks.
template <class T>
Verdict move_parameters(PermuteContext& c, const T& op) {
  const Shape& scale = c.node().shape(1);
  if (op.block_size != 0) {
    for (std::size_t i = 1; i < c.node().inputs(); ++i)
      if (c.node().has(i))
        if (auto v = c.follow(i); !v) return v;
    return c.move_axis(op);
  }
  if (!scale.ranked()) return Verdict::no("the shape of its scale is not known");
  const bool single = scale.rank() == 0 || scale[0].is(1);
  return single ? Verdict::yes() : c.move_axis(op);
}

}  // namespace

Verdict Quantize::permute(PermuteContext& c) const { return move_parameters(c, *this); }
Verdict Dequantize::permute(PermuteContext& c) const { return move_parameters(c, *this); }

void register_quantization(Registry& r) {
  r.add<ConvertSmallFloat>();
  r.add<DynamicQuantize>();
  r.add<Dequantize>();
  r.add<FakeQuantize>();
  r.add<Quantize>();
}

}  // namespace lamina
