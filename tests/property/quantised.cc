/// Quantize and Dequantize per tensor, per axis and per block, with what moves and joins integers between
/// them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "ops/shaping.h"
#include "tests/property/operators.h"

namespace lamina::testing {
namespace {

using Made = std::optional<ValueId>;

/// Scale and zero point for one axis of a shape, for the whole tensor or for blocks of an axis.
struct Parameters {
  ElementType type;
  Tensor scale, zero;  ///< zero: invalid when there is none
  std::int64_t axis = 0, block_size = 0;
  bool each() const { return scale.rank() > 0; }
};

Tensor zero_points(GraphBuilder& b, ElementType type, const Dims& dims) {
  Ints values(element_count(dims));
  const bool is_signed_type = is_signed(type);
  for (auto& v : values) v = is_signed_type ? b.between(-128, 127) : b.between(0, 255);
  return from_ints(type, dims, values);
}

Parameters parameters(GraphBuilder& b, ElementType type, const Dims& x) {
  Parameters p{type, {}, {}};
  Dims dims;
  if (!x.empty() && b.percent(80)) {
    p.axis = b.below(static_cast<std::int64_t>(x.size()));
    dims = {x[static_cast<std::size_t>(p.axis)]};
    if (b.percent(10)) {
      auto& along = (dims = x)[static_cast<std::size_t>(p.axis)];
      p.block_size = b.between(1, along);
      along = (along + p.block_size - 1) / p.block_size;
    }
  }
  std::vector<double> scales(element_count(dims));
  for (auto& s : scales) s = b.real(0.02, 0.5);
  p.scale = from_doubles(ElementType::f32, dims, scales);
  if (b.percent(65)) p.zero = zero_points(b, type, dims);
  return p;
}

std::vector<ValueId> inputs(GraphBuilder& b, ValueId x, const Parameters& p) {
  std::vector<ValueId> all{x, b.constant(p.scale)};
  if (p.zero.valid()) all.push_back(b.constant(p.zero));
  return all;
}

std::int64_t written_axis(GraphBuilder& b, ValueId x, const Parameters& p) {
  return p.axis - (b.percent(15) ? static_cast<std::int64_t>(b.rank(x)) : 0);
}

Made quantize(GraphBuilder& b, ValueId x, const Parameters& p) {
  Quantize op;
  op.destination_type = p.type;
  op.axis = p.each() ? written_axis(b, x, p) : op.axis;
  op.block_size = p.block_size;
  return b.add(op, inputs(b, x, p));
}

Made dequantize(GraphBuilder& b, ValueId x, const Parameters& p) {
  Dequantize op;
  op.axis = p.each() ? written_axis(b, x, p) : op.axis;
  op.block_size = p.block_size;
  return b.add(op, inputs(b, x, p));
}

/// A Transpose; the parameters go with their axis.
Made transpose(GraphBuilder& b, ValueId x, Parameters& p) {
  Ints order(b.rank(x));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i-- > 1;)
    std::swap(order[i], order[static_cast<std::size_t>(b.below(static_cast<std::int64_t>(i) + 1))]);
  const auto y = b.add(Transpose{}, {x, b.ints(order)});
  if (y && p.each()) p.axis = std::find(order.begin(), order.end(), p.axis) - order.begin();
  if (p.block_size > 0) p.block_size = -1;  // its scales would have to be transposed
  return y;
}

/// What may stand between a Quantize and its Dequantize.
Made between(GraphBuilder& b, ValueId x) {
  const auto rank = b.rank(x);
  const auto axis = b.below(static_cast<std::int64_t>(rank));
  switch (b.below(6)) {
    case 0:
      if (rank < 3 || rank > 5) return x;
      {
        MaxPool op;
        op.kernel = Ints(rank - 2, b.between(1, 2));
        op.strides = Ints(rank - 2, 1);
        op.pads_begin = Ints(rank - 2, 0);
        op.pads_end = op.kernel;
        for (auto& pad : op.pads_end) --pad;
        return b.add(op, {x});
      }
    case 1:
      return b.add(Roll{}, {x, b.ints({1}), b.ints({axis})});
    case 2: {
      const auto size = b.dims(x)[static_cast<std::size_t>(axis)];
      if (size < 2) return x;
      const auto parts = b.add_many(VariadicSplit{}, {x, b.ints({axis}, true), b.ints({1, -1})}, 2);
      if (parts.size() != 2) return x;
      return b.add(Concat{axis}, {parts[0], parts[1]});
    }
    case 3:
      return b.add(Relu{}, {x});
    case 4:
      return b.add(Clamp{2, 100}, {x});
    default:
      return x;
  }
}

ElementType level_type(GraphBuilder& b) {
  return b.one_of({ElementType::u8, ElementType::u8, ElementType::i8, ElementType::i8, ElementType::u16,
                   ElementType::i16, ElementType::i32});
}

/// Any of: Transpose, Quantize, Transpose, something, Transpose, Dequantize, Transpose.
void add_quantised_chain(GraphBuilder& b) {
  const auto x = b.pick_f32(1, 5);
  if (!x) return;
  auto p = parameters(b, level_type(b), b.dims(*x));
  Made y = b.percent(40) ? transpose(b, *x, p) : x;
  if (!y || p.block_size < 0) return;
  y = quantize(b, *y, p);
  if (y && b.percent(50)) y = transpose(b, *y, p);
  if (y && b.percent(40)) y = between(b, *y);
  if (y && b.percent(40)) y = transpose(b, *y, p);
  if (!y || p.block_size < 0 || b.percent(5)) return;
  y = dequantize(b, *y, p);
  if (y && b.percent(50)) transpose(b, *y, p);
}

/// Stored weights: whole range of levels, per axis, with a Transpose on either side.
void add_quantised_weights(GraphBuilder& b) {
  const auto x = b.pick_f32(2, 4);
  if (!x) return;
  const auto k = b.dims(*x).back(), n = b.channels();
  const auto type = b.one_of({ElementType::u8, ElementType::i8});
  const bool turned = b.percent(50);
  const Dims dims = turned ? Dims{n, k} : Dims{k, n};
  auto p = parameters(b, type, dims);
  const auto levels = b.constant(zero_points(b, type, dims));
  auto w = dequantize(b, levels, p);
  if (w) w = b.add(Multiply{}, {*w, b.number(0.05)});
  if (w && turned) w = b.add(Transpose{}, {*w, b.ints({1, 0})});
  if (w) b.add(MatMul{}, {*x, *w});
}

/// Levels that are in the graph already, of any integer type.
void add_dequantize(GraphBuilder& b) {
  const auto x = b.pick([&](ValueId v) {
    return is_integer(b.element(v)) && bits_of(b.element(v)) <= 16 && bits_of(b.element(v)) >= 8;
  });
  if (!x) return;
  auto p = parameters(b, b.element(*x), b.dims(*x));
  auto y = b.rank(*x) > 1 && b.percent(50) ? transpose(b, *x, p) : x;
  if (y && p.block_size >= 0) y = dequantize(b, *y, p);
  if (y && b.rank(*y) > 1 && p.block_size >= 0 && b.percent(50)) transpose(b, *y, p);
}

/// Quantised convolution as exporters write it: per channel, between two Quantize-Dequantize pairs.
void add_quantised_convolution(GraphBuilder& b) {
  const auto x = b.pick_f32(4, 4);
  if (!x) return;
  auto in = parameters(b, ElementType::u8, {});
  const auto q = quantize(b, *x, in);
  const auto d = q ? dequantize(b, *q, in) : q;
  const auto out = b.channels(), c = b.dims(*x)[1], size = b.one_of<std::int64_t>({1, 3});
  const Dims w{out, c, size, size};
  Parameters per_channel{
      ElementType::i8,
      from_doubles(ElementType::f32, {out}, std::vector<double>(static_cast<std::size_t>(out), 0.01)),
      {}};
  const auto weights = d ? dequantize(b, b.constant(zero_points(b, ElementType::i8, w)), per_channel) : d;
  Convolution op;
  op.pads_begin = op.pads_end = {size / 2, size / 2};
  const auto y = weights ? b.add(op, {*d, *weights}) : weights;
  if (!y) return;
  const auto p = parameters(b, b.one_of({ElementType::u8, ElementType::i8}), b.dims(*y));
  const auto z = quantize(b, *y, p);
  if (z) dequantize(b, *z, p);
}

}  // namespace

void add_quantised_families(Families& families) {
  families.push_back({"quantised chain", 6, add_quantised_chain});
  families.push_back({"quantised weights", 2, add_quantised_weights});
  families.push_back({"dequantize", 2, add_dequantize});
  families.push_back({"quantised convolution", 2, add_quantised_convolution});
}

}  // namespace lamina::testing
