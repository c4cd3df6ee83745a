/// Element-wise operators of any type and broadcast.
#include "ops/elementwise.h"

#include <algorithm>
#include <cmath>

#include "kernels/cost.h"
#include "kernels/native/float_functions.h"
#include "kernels/native/lines.h"
#include "kernels/native/strided.h"
#include "ops/activation.h"
#include "ops/quantization.h"

namespace lamina {
namespace {

/// What a node does to a chunk; built once, called from several threads.
using ChunkBody = std::function<void(const RunArgs&, std::int64_t first, const std::int64_t* offsets,
                                     const Dims* strides, std::int64_t count)>;

struct Types {
  std::vector<ElementType> in;
  ElementType out;
};

bool real(ElementType t) { return t == ElementType::f32 || t == ElementType::f16 || t == ElementType::bf16; }

/// Floats in, anything out, computed in f32.
ChunkBody float_body(const Types& types, FloatFunction f) {
  return [types, f](const RunArgs& args, std::int64_t first, const std::int64_t* offsets, const Dims* strides,
                    std::int64_t count) {
    float buffers[5][kChunk];
    float result[kChunk];
    const float* in[5];
    for (std::size_t k = 0; k < types.in.size(); ++k)
      in[k] = load_floats(types.in[k], args.in[k], offsets[k], strides[k].back(), count, buffers[k]);
    if (types.out == ElementType::f32) return f(in, static_cast<float*>(args.out[0]) + first, count);
    f(in, result, count);
    store_floats(types.out, args.out[0], first, count, result);
  };
}

/// Integers (and booleans) in and out, computed in i64.
ChunkBody int_body(const Types& types, IntFunction f) {
  return [types, f](const RunArgs& args, std::int64_t first, const std::int64_t* offsets, const Dims* strides,
                    std::int64_t count) {
    std::int64_t buffers[3][kChunk], result[kChunk];
    const std::int64_t* in[3];
    for (std::size_t k = 0; k < types.in.size(); ++k)
      in[k] = load_ints(types.in[k], args.in[k], offsets[k], strides[k].back(), count, buffers[k]);
    f(in, result, count);
    store_ints(types.out, args.out[0], first, count, result);
  };
}

ChunkBody select_body(const Types& types) {
  return [types](const RunArgs& args, std::int64_t first, const std::int64_t* offsets, const Dims* strides,
                 std::int64_t count) {
    const auto bytes = whole_bytes(types.out);
    const auto* condition = static_cast<const std::uint8_t*>(args.in[0]) + offsets[0];
    const auto* yes = static_cast<const std::byte*>(args.in[1]);
    const auto* no = static_cast<const std::byte*>(args.in[2]);
    auto* out = static_cast<std::byte*>(args.out[0]) + static_cast<std::size_t>(first) * bytes;
    for (std::int64_t i = 0; i < count; ++i) {
      const bool c = condition[i * strides[0].back()] != 0;
      const auto at = c ? offsets[1] + i * strides[1].back() : offsets[2] + i * strides[2].back();
      const auto* from = (c ? yes : no) + static_cast<std::size_t>(at) * bytes;
      std::copy_n(from, bytes, out + static_cast<std::size_t>(i) * bytes);
    }
  };
}

ChunkBody convert_body(const Types& types) {
  if (real(types.in[0]))
    return float_body(types,
                      [](const float* const* in, float* out, std::int64_t n) { std::copy_n(in[0], n, out); });
  return int_body(types, [](const std::int64_t* const* in, std::int64_t* out, std::int64_t n) {
    std::copy_n(in[0], n, out);
  });
}

/// Inputs that broadcast with the output; the others are parameters.
std::vector<Dims> operands_of(const NodeView& v) {
  std::vector<Dims> dims;
  const auto& op = v.node().op;
  const std::size_t count =
      op.has(Trait::unary_elementwise) && !op.is<Quantize>() && !op.is<Dequantize>() ? 1 : v.inputs();
  for (std::size_t i = 0; i < count; ++i) dims.push_back(v.has(i) ? v.dims(i) : Dims{});
  if (op.is<PRelu>()) dims[1] = prelu_slope_shape(Shape::of(dims[0]), Shape::of(dims[1])).sizes();
  if (op.is<Quantize>() || op.is<Dequantize>()) {
    const auto axis_given = op.is<Quantize>() ? v.op<Quantize>()->axis : v.op<Dequantize>()->axis;
    for (std::size_t i = 1; i < count; ++i) {
      if (element_count(dims[i]) == 1)
        dims[i] = {};
      else if (dims[i].size() == 1) {
        const auto axis = normalize_axis(axis_given, dims[0].size(), "axis");
        Dims wide(dims[0].size(), 1);
        wide[axis] = dims[i][0];
        dims[i] = wide;
      }
    }
  }
  return dims;
}

/// Scale and zero point, given or not; computed as the operators define it, in f32.
ChunkBody quantize_body(const Types& types, bool zero_point) {
  return [types, zero_point](const RunArgs& args, std::int64_t first, const std::int64_t* offsets,
                             const Dims* strides, std::int64_t count) {
    float xs[kChunk], scales[kChunk];
    std::int64_t zeros[kChunk], result[kChunk];
    const auto* x = load_floats(types.in[0], args.in[0], offsets[0], strides[0].back(), count, xs);
    const auto* s = load_floats(types.in[1], args.in[1], offsets[1], strides[1].back(), count, scales);
    const std::int64_t* z = zeros;
    if (zero_point)
      z = load_ints(types.in[2], args.in[2], offsets[2], strides[2].back(), count, zeros);
    else
      std::fill_n(zeros, count, 0);
    const auto [low, high] = quantized_range(types.out);
    for (std::int64_t i = 0; i < count; ++i) {
      const float q = std::nearbyintf(x[i] / s[i]) + static_cast<float>(z[i]);
      result[i] = std::isnan(q)                   ? z[i]
                  : q <= static_cast<float>(low)  ? low
                  : q >= static_cast<float>(high) ? high
                                                  : static_cast<std::int64_t>(q);
    }
    store_ints(types.out, args.out[0], first, count, result);
  };
}

ChunkBody dequantize_body(const Types& types, bool zero_point) {
  return [types, zero_point](const RunArgs& args, std::int64_t first, const std::int64_t* offsets,
                             const Dims* strides, std::int64_t count) {
    float scales[kChunk], result[kChunk];
    std::int64_t xs[kChunk], zeros[kChunk];
    const auto* x = load_ints(types.in[0], args.in[0], offsets[0], strides[0].back(), count, xs);
    const auto* s = load_floats(types.in[1], args.in[1], offsets[1], strides[1].back(), count, scales);
    const std::int64_t* z = zeros;
    if (zero_point)
      z = load_ints(types.in[2], args.in[2], offsets[2], strides[2].back(), count, zeros);
    else
      std::fill_n(zeros, count, 0);
    for (std::int64_t i = 0; i < count; ++i) result[i] = static_cast<float>(x[i] - z[i]) * s[i];
    store_floats(types.out, args.out[0], first, count, result);
  };
}

/// The node's body, or the reason why there is none.
ChunkBody body_of(const NodeView& v, const Types& types, std::string& why) {
  const auto& op = v.node().op;
  const bool floats = std::all_of(types.in.begin(), types.in.end(), real);
  const bool wide = std::any_of(types.in.begin(), types.in.end(),
                                [](auto t) { return t == ElementType::f64 || t == ElementType::u64; });
  if (op.is<Select>()) return select_body(types);
  if (wide || types.out == ElementType::f64 || types.out == ElementType::u64) {
    why = "f64 and u64 are left to the reference";
    return {};
  }
  if (op.is<Convert>()) return convert_body(types);
  if (op.is<Quantize>() || op.is<Dequantize>()) {
    const auto block = op.is<Quantize>() ? v.op<Quantize>()->block_size : v.op<Dequantize>()->block_size;
    if (block > 0) {
      why = "blocked scales";
      return {};
    }
    return op.is<Quantize>() ? quantize_body(types, v.has(2)) : dequantize_body(types, v.has(2));
  }
  if (floats) {
    if (auto f = float_function(op, [&](std::size_t i) { return v.constant(i); }))
      return float_body(types, std::move(f));
    why = fmt::format("no loop for {}", op.name());
    return {};
  }
  if (auto f = int_function(op)) return int_body(types, std::move(f));
  why = fmt::format("no loop for {} of {}", op.name(), name_of(types.in[0]));
  return {};
}

}  // namespace

void offer_native_elementwise(const NodeView& v, Answers& answers) {
  const auto dims = operands_of(v);
  Types types;
  for (std::size_t i = 0; i < dims.size(); ++i)
    types.in.push_back(v.has(i) ? v.element(i) : ElementType::f32);
  types.out = v.out_element();
  if (types.in.size() > 5) return answers.refuse("native", "{} operands", types.in.size());
  if (!std::all_of(types.in.begin(), types.in.end(), has_lines) || !has_lines(types.out))
    return answers.refuse("native", "packed elements");
  std::string why;
  const auto body = body_of(v, types, why);
  if (!body) return answers.refuse("native", "{}", why);
  const auto y = v.out_dims();
  if (element_count(y) == 0) return answers.refuse("native", "empty tensors");
  for (const auto layout : {Layout::plain, Layout::channels_last}) {
    if (layout == Layout::channels_last && y.size() < 3) continue;
    Offer o;
    o.label = fmt::format("native_elementwise_{}", name_of(types.in[0]));
    for (std::size_t i = 0; i < v.inputs(); ++i) {
      const bool operand = i < dims.size() && v.has(i);
      o.inputs.push_back(operand && v.rank(i) == y.size() && dims[i].size() == y.size() ? layout
                                                                                        : Layout::plain);
      if (!operand) o.consumed.push_back(i);
    }
    o.outputs = {layout};
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (v.has(i) && dims[i] == y && whole_bytes(types.in[i]) == whole_bytes(types.out))
        o.in_place.push_back({i, 0});
    o.cost = 2 * move_cost(static_cast<double>(element_count(y)) * 8.0);
    o.make = [body, lines = lines_of(y, layout, dims)](MakeContext&) {
      return executable([body, lines](const RunArgs& args) {
        for_each_chunk(lines, [&](std::int64_t first, const std::int64_t* offsets, std::int64_t count) {
          body(args, first, offsets, lines.strides.data(), count);
        });
      });
    };
    answers.offers.push_back(std::move(o));
  }
}

}  // namespace lamina
