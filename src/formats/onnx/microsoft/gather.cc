/// com.microsoft GatherBlockQuantized: rows of weights of few bits, such as an embedding's. Only what is
/// taken is unpacked and dequantised; the table stays as it is.
#include <algorithm>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/heads.h"
#include "formats/onnx/microsoft/microsoft.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/movement.h"
#include "ops/quantization.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

/// One table: numbers of `bits`, in bytes along the last axis, low bits first, or as tensors hold them.
struct Table {
  ValueId data, scales, zeros;  ///< zeros: packed as the data; may be absent
  std::int64_t gather_axis = 0, quantize_axis = 1, block = 128, bits = 4;
  std::size_t rank = 0;
  bool in_bytes = false, is_signed = false;

  std::int64_t last() const { return static_cast<std::int64_t>(rank) - 1; }
};

bool has_four_bits(ElementType type) { return type == ElementType::i4 || type == ElementType::u4; }

Table read_table(Call& c) {
  Table t;
  t.data = c.in(0), t.scales = c.in(2), t.zeros = c.maybe(3);
  t.rank = c.known_rank(t.data);
  check_rank(c, t.scales, "the tensor of scales", t.rank);
  if (t.zeros.valid()) check_rank(c, t.zeros, "the tensor of zero points", t.rank);
  t.gather_axis = static_cast<std::int64_t>(c.axis(c.i("gather_axis", 0), t.rank));
  t.quantize_axis = static_cast<std::int64_t>(c.axis(c.i("quantize_axis", 1), t.rank));
  if (t.gather_axis == t.quantize_axis) c.fail("gather_axis and quantize_axis are both {}", t.gather_axis);
  t.block = c.i("block_size", 128);
  if (t.block < 16 || t.block > (1 << 20) || (t.block & (t.block - 1)) != 0)
    c.fail("block_size is {}, wanted a power of 2, 16 or more", t.block);
  t.bits = c.i("bits", 4);
  const auto type = c.known_element(t.data);
  if (has_four_bits(type)) {
    t.is_signed = type == ElementType::i4;
    if (t.bits != 4) c.fail("bits is {} for data of {}", t.bits, name_of(type));
    return t;
  }
  if (type != ElementType::u8) c.fail("the data is {}, wanted u8, u4 or i4", name_of(type));
  if (t.bits != 2 && t.bits != 4 && t.bits != 8) c.fail("bits is {}, wanted 2, 4 or 8", t.bits);
  t.in_bytes = true;
  if (t.zeros.valid() && c.known_element(t.zeros) != type)
    c.fail("zero points are {}, wanted {}", name_of(c.element(t.zeros)), name_of(type));
  return t;
}

/// Numbers of u8, or i8, one to an element. `size`: how many there are along the last axis, where a last byte
/// may hold more.
ValueId unpacked(Call& c, const Table& t, ValueId v, const Dim& size) {
  if (!t.in_bytes) return c.convert(v, t.is_signed ? ElementType::i8 : ElementType::u8);
  if (t.bits == 8) return v;
  Values parts;
  const auto mask = c.number_like((1 << t.bits) - 1, v);
  for (std::int64_t at = 0; at < 8; at += t.bits) {
    const auto low = at == 0 ? v : c.add(BitwiseRightShift{}, {v, c.number_like(static_cast<double>(at), v)});
    parts.push_back(
        c.unsqueeze(c.add(BitwiseAnd{}, {low, mask}), {static_cast<std::int64_t>(c.known_rank(v))}));
  }
  const auto rank = static_cast<std::int64_t>(c.known_rank(v));
  Ints pattern(static_cast<std::size_t>(rank - 1), 0);
  pattern.push_back(-1);
  const auto all = c.add(Reshape{true}, {c.concat(std::move(parts), rank), c.ints_constant(pattern)});
  return size.known() && !c.type(all).shape[static_cast<std::size_t>(rank - 1)].is(size.size())
             ? c.slice(all, rank - 1, 0, size.size())
             : all;
}

/// Numbers, scales and zero points with blocks along `axis`, as floats.
ValueId dequantized(Call& c, const Table& t, ValueId data, ValueId scales, ValueId zeros, std::int64_t axis) {
  const auto size = c.type(data).shape[static_cast<std::size_t>(axis)];
  const auto blocks = c.type(scales).shape[static_cast<std::size_t>(axis)];
  if (!size.known() || !blocks.known()) c.unsupported("a quantised axis of unknown size");
  const auto whole = blocks.size() * t.block;
  if (whole < size.size() || whole - size.size() >= t.block)
    c.fail("{} blocks of {} for {} numbers", blocks.size(), t.block, size.size());
  Dequantize op;
  op.axis = axis;
  op.block_size = t.block;
  if (whole != size.size()) {  // the last block is cut off
    const auto rank = c.known_rank(data);
    Ints none(rank, 0), missing(rank, 0);
    missing[static_cast<std::size_t>(axis)] = whole - size.size();
    data = c.add(Pad{}, {data, c.ints_constant(none), c.ints_constant(missing)});
  }
  if (!zeros.valid() && t.in_bytes)
    zeros = c.filled(c.number_like(1 << (t.bits - 1), data), c.shape_of(scales));
  const auto y = c.add(op, zeros.valid() ? Values{data, scales, zeros} : Values{data, scales});
  return whole == size.size() ? y : c.slice(y, axis, 0, size.size());
}

/// Data, indices, scales, zero points.
Values convert_gather_block_quantized(Call& c) {
  const auto t = read_table(c);
  const auto index_rank = static_cast<std::int64_t>(c.known_rank(c.in(1)));
  const auto taken = [&](ValueId v) {
    return c.add(Gather{0, OutOfRange::error}, {v, c.in(1), c.int_constant(t.gather_axis)});
  };
  const auto blocks = c.type(t.scales).shape[static_cast<std::size_t>(t.last())];
  // Zero points may share a byte with others only where the blocks lie along the last axis.
  const auto zeros_size = t.quantize_axis == t.last() ? blocks : Dim();
  if (t.gather_axis == t.last()) {
    const auto zeros = t.zeros.valid() ? unpacked(c, t, t.zeros, zeros_size) : ValueId{};
    return {taken(dequantized(c, t, unpacked(c, t, t.data, Dim()), t.scales, zeros, t.quantize_axis))};
  }
  const auto axis = t.quantize_axis < t.gather_axis ? t.quantize_axis : t.quantize_axis + index_rank - 1;
  const auto zeros = t.zeros.valid() ? unpacked(c, t, taken(t.zeros), zeros_size) : ValueId{};
  return {dequantized(c, t, unpacked(c, t, taken(t.data), Dim()), taken(t.scales), zeros, axis)};
}

}  // namespace

void register_microsoft_gather(ConverterTable& t) {
  t.add(kMicrosoft, "GatherBlockQuantized", convert_gather_block_quantized);
}

}  // namespace lamina::onnx
