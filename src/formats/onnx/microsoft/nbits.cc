/// com.microsoft MatMulNBits: a plain product with dequantised weights. What Dequantize cannot say (2 bits,
/// zero points that are floats, groups in another order, a last block that is cut off) is made floats when
/// the model is read.
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/cancellation.h"
#include "base/work_partition.h"
#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/microsoft/attention.h"
#include "formats/onnx/microsoft/microsoft.h"
#include "ops/eval.h"
#include "ops/matmul.h"
#include "ops/quantization.h"

namespace lamina::onnx {
namespace {

/// [n, blocks] blocks of `block` weights along k, the last of which may be longer than what is left of k.
struct Packed {
  std::int64_t n = 0, k = 0, block = 0, bits = 0, blocks = 0;
  const std::uint8_t* weights = nullptr;
  std::vector<double> scales, zeros;  // [n, blocks] each
  Ints group_of;                      // which block's scale each of k has; empty: its own

  std::int64_t bytes_of_block() const { return block * bits / 8; }
  /// Element i of packed ones, low bits first.
  static int unpacked(const std::uint8_t* from, std::int64_t i, std::int64_t bits) {
    return (from[i * bits / 8] >> (i * bits % 8)) & ((1 << bits) - 1);
  }
};

Tensor constant_input(const Call& c, std::size_t i, std::string_view what) {
  const auto* t = c.graph().constant(c.in(i));
  if (!t) c.unsupported("{} that are no constants", what);
  return t->to_aligned();
}

void check_count(const Call& c, std::string_view what, std::size_t found, std::int64_t rows,
                 std::int64_t columns) {
  // Neither factor is beyond what the weights, which are there, may have.
  if (static_cast<std::int64_t>(found) != rows * columns)
    c.fail("{} have {} elements, wanted {} * {}", what, found, rows, columns);
}

/// [n, blocks, ...], or all in one row, as they once were.
void check_rows(const Call& c, std::string_view what, const Tensor& t, const Packed& p) {
  const auto& d = t.shape();
  if (d.size() > 1 && (d[0] != p.n || d[1] != p.blocks || d.size() > 3))
    c.fail("{} are {}, wanted [{}, {}, ...]", what, to_string(d), p.n, p.blocks);
}

Packed read_sizes(const Call& c) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  Packed p;
  p.n = c.i("N", 0), p.k = c.i("K", 0), p.block = c.i("block_size", 0), p.bits = c.i("bits", 4);
  if (p.n <= 0 || p.n > kMost || p.k <= 0 || p.k > kMost)
    c.fail("K is {} and N is {}, wanted 1 or more", p.k, p.n);
  if (p.block < 16 || p.block > (1 << 20) || (p.block & (p.block - 1)) != 0)
    c.fail("block_size is {}, wanted a power of 2, 16 or more", p.block);
  if (p.bits != 2 && p.bits != 4 && p.bits != 8) c.unsupported("weights of {} bits", p.bits);
  p.blocks = ceil_div(p.k, p.block);
  return p;
}

/// Packed like the weights, or as numbers; the middle of the range where there are none.
std::vector<double> read_zeros(const Call& c, const Packed& p) {
  const auto count = static_cast<std::size_t>(p.n * p.blocks);
  if (!c.has(3)) return std::vector<double>(count, 1 << (p.bits - 1));
  const auto t = constant_input(c, 3, "zero points");
  if (t.shape().size() > 1 && t.shape()[0] != p.n)
    c.fail("zero points are {}, wanted [{}, ...]", to_string(t.shape()), p.n);
  if (t.element_type() != ElementType::u8) {
    if (!is_float(t.element_type()))
      c.fail("zero points are {}, wanted u8 or floats", name_of(t.element_type()));
    check_count(c, "zero points", t.size(), p.n, p.blocks);
    return to_doubles(t);
  }
  const auto row = (p.blocks * p.bits + 7) / 8;
  check_count(c, "zero points", t.size(), p.n, row);
  std::vector<double> zeros(count);
  for (std::int64_t i = 0; i < p.n; ++i)
    for (std::int64_t b = 0; b < p.blocks; ++b)
      zeros[static_cast<std::size_t>(i * p.blocks + b)] =
          Packed::unpacked(t.data<std::uint8_t>().data() + i * row, b, p.bits);
  return zeros;
}

/// For each k the block with its scale and zero point, if that is not its own block.
Ints read_groups(const Call& c, const Packed& p) {
  if (!c.has(4)) return {};
  const auto t = constant_input(c, 4, "g_idx");
  if (t.element_type() != ElementType::i32) c.fail("g_idx is {}, wanted i32", name_of(t.element_type()));
  if (static_cast<std::int64_t>(t.size()) != p.k && static_cast<std::int64_t>(t.size()) != p.blocks * p.block)
    c.fail("g_idx has {} elements, wanted {}", t.size(), p.k);
  auto groups = to_ints(t);
  groups.resize(static_cast<std::size_t>(p.k));
  bool own = true;
  for (std::int64_t i = 0; i < p.k; ++i) {
    const auto group = groups[static_cast<std::size_t>(i)];
    if (group < 0 || group >= p.blocks) c.fail("g_idx has {}, there are {} blocks", group, p.blocks);
    own = own && group == i / p.block;
  }
  return own ? Ints() : groups;
}

/// f32 [n, k].
Tensor dequantized(const Packed& p) {
  Tensor y(ElementType::f32, {p.n, p.k});
  auto* to = y.data<float>().data();
  StopPoints points;
  for (std::int64_t row = 0; row < p.n; ++row)
    for (std::int64_t b = 0; b < p.blocks; ++b) {
      points(4 * p.block);
      const auto* from = p.weights + (row * p.blocks + b) * p.bytes_of_block();
      const auto count = std::min(p.block, p.k - b * p.block);
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = b * p.block + i;
        const auto group = p.group_of.empty() ? b : p.group_of[static_cast<std::size_t>(at)];
        const auto scale = static_cast<float>(p.scales[static_cast<std::size_t>(row * p.blocks + group)]),
                   zero = static_cast<float>(p.zeros[static_cast<std::size_t>(row * p.blocks + group)]);
        to[row * p.k + at] = (static_cast<float>(Packed::unpacked(from, i, p.bits)) - zero) * scale;
      }
    }
  return y;
}

/// A tensor in the same memory if two numbers to a byte are in the order of tensors: the low one first.
Tensor of_few_bits(ElementType type, const Dims& dims, const Tensor& bytes) {
  return Tensor::share(type, dims, std::make_shared<Tensor>(bytes), bytes.raw());
}

/// Weights and zero points as they are, where that can be said.
std::optional<ValueId> stored_weights(Call& c, const Packed& p, const Tensor& weights, const Tensor& scales,
                                      ElementType type) {
  const bool whole =
      std::all_of(p.zeros.begin(), p.zeros.end(), [](double z) { return z == std::floor(z) && z >= 0; });
  const double most = std::ldexp(1.0, static_cast<int>(p.bits)) - 1;
  if (!p.group_of.empty() || p.bits == 2 || p.k % p.block != 0 || !whole ||
      *std::max_element(p.zeros.begin(), p.zeros.end()) > most)
    return std::nullopt;
  const auto few = p.bits == 4 ? ElementType::u4 : ElementType::u8;
  Dequantize op;
  op.axis = 1;
  op.block_size = p.block;
  const Dims blocks{p.n, p.blocks};
  return c.add(op, {c.constant(of_few_bits(few, {p.n, p.k}, weights)),
                    c.constant(convert(scales.reshaped(blocks), type)),
                    c.constant(from_doubles(few, blocks, p.zeros))});
}

/// A, weights, scales, zero points, an index of groups, bias.
Values convert_matmul_n_bits(Call& c) {
  if (c.i("weight_prepacked", 0) != 0) c.unsupported("weight_prepacked is not supported");
  auto p = read_sizes(c);
  const auto weights = constant_input(c, 1, "weights"), scales = constant_input(c, 2, "scales");
  if (weights.element_type() != ElementType::u8)
    c.fail("weights are {}, wanted u8", name_of(weights.element_type()));
  check_count(c, "weights", weights.size(), p.n, p.blocks * p.bytes_of_block());
  if (!is_float(scales.element_type()))
    c.fail("scales are {}, wanted floats", name_of(scales.element_type()));
  check_count(c, "scales", scales.size(), p.n, p.blocks);
  check_rows(c, "weights", weights, p);
  check_rows(c, "scales", scales, p);
  p.weights = weights.data<std::uint8_t>().data();
  p.scales = to_doubles(scales);
  p.zeros = read_zeros(c, p);
  p.group_of = read_groups(c, p);
  const auto type = c.known_element(c.in(0));
  auto w = stored_weights(c, p, weights, scales, type);
  if (!w) {
    auto floats = dequantized(p);
    w = c.constant(type == ElementType::f32 ? std::move(floats) : convert(floats, type));
  }
  const auto y = c.add(MatMul{false, true}, {c.in(0), *w});
  return {c.has(5) ? add(c, y, c.in(5)) : y};
}

}  // namespace

void register_matmul_n_bits(ConverterTable& t) { t.add(kMicrosoft, "MatMulNBits", convert_matmul_n_bits); }

}  // namespace lamina::onnx
