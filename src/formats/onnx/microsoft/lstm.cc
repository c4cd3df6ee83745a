/// com.microsoft DynamicQuantizeLSTM: the input is quantised once, the state before every step.
#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "formats/onnx/microsoft/microsoft.h"
#include "formats/onnx/quantized.h"
#include "formats/onnx/recurrent.h"
#include "ops/control.h"
#include "ops/quantization.h"
#include "ops/recurrent.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

/// Quantised by its own range and back.
ValueId rounded(Graph& g, ValueId v) {
  const auto q = g.node(g.add_node(DynamicQuantize{}, {v})).outputs;
  return g.add(Dequantize{}, {q[0], q[1], q[2]});
}

/// [D, inputs, 4h] with scale and zero point of [D] or [D, 4h] as f32 [D, 4h, inputs] in our order of gates.
ValueId weights(Call& c, std::size_t weight, std::size_t scale, std::int64_t hidden) {
  const auto by_direction = [&](ValueId v) {
    const auto rank = c.known_rank(v);
    if (rank == 0 || rank > 2) c.fail("a scale or zero point has rank {}, wanted 1 or 2", rank);
    return c.unsqueeze(v, rank == 1 ? Ints{1, 2} : Ints{1});
  };
  auto wide = c.convert(c.in(weight), ElementType::f32);
  if (c.has(scale + 1)) wide = subtract(c, wide, c.convert(by_direction(c.in(scale + 1)), ElementType::f32));
  const auto w = c.transpose(multiply(c, wide, by_direction(c.in(scale))), {0, 2, 1});
  return reorder_gates(c, w, {2, 0, 3, 1}, hidden);
}

ValueId bias(Call& c, std::int64_t hidden) {
  const auto half = [&](std::int64_t from) {
    return reorder_gates(c, c.slice(c.in(3), 1, from * hidden, (from + 4) * hidden), {2, 0, 3, 1}, hidden);
  };
  return add(c, half(0), half(4));
}

/// What one direction reads.
struct OneDirection {
  ValueId h, c;        // [N, h]
  ValueId w, r, b, p;  // without the axis of directions; the last two may be absent
  bool reverse = false;
};

/// One step: the state is rounded, then an ordinary cell follows.
Graph step(const Call& call, const OneDirection& d, const Values& captured, const LSTMCell& op,
           const TensorType& x) {
  Graph body;
  add_counters(body);
  const auto h = body.add_input("h", call.type(d.h)), c = body.add_input("c", call.type(d.c));
  auto type = x;
  if (type.shape.ranked()) type.shape[0] = Dim(1);
  const auto part = body.add_input("x", type);
  Values own;
  for (auto v : captured) own.push_back(body.add_input("", call.type(v)));
  const auto axis = [&](std::int64_t a) {
    return body.add_constant(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{a}));
  };
  Values inputs{body.add(Squeeze{}, {part, axis(0)}), rounded(body, h), c, own[0], own[1]};
  std::size_t next = 2;
  inputs.push_back(d.b.valid() ? own[next++] : ValueId{});
  if (d.p.valid()) inputs.push_back(own[next++]);
  while (!inputs.back().valid()) inputs.pop_back();
  const auto out = body.node(body.add_node(op, std::move(inputs))).outputs;
  body.add_result("condition", body.add_constant(Tensor::scalar<bool>(true)));
  body.add_result("h", out[0]);
  body.add_result("c", out[1]);
  body.add_result("y", body.add(Unsqueeze{}, {out[0], axis(0)}));
  return body;
}

/// Outputs: last h, last c [N, h], all h [T, N, h].
Values run_direction(Call& c, const OneDirection& d, const LSTMCell& op, ValueId x) {
  Values captured{d.w, d.r};
  for (auto v : {d.b, d.p})
    if (v.valid()) captured.push_back(v);
  Loop loop;
  loop.carried = 2;
  loop.slice_axes = {0};
  loop.slice_part_sizes = {1};
  loop.slice_strides = {d.reverse ? -1 : 1};
  loop.slice_starts = {d.reverse ? -1 : 0};
  loop.slice_ends = {d.reverse ? 0 : -1};
  loop.concat_axes = {0};
  loop.concat_strides = {d.reverse ? -1 : 1};
  std::vector<Graph> bodies;
  bodies.push_back(step(c, d, captured, op, c.type(x)));
  Values inputs{ValueId{}, ValueId{}, d.h, d.c, x};
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  return c.add_all(loop, std::move(inputs), 3, std::move(bodies));
}

Values run_directions(Call& c, const LstmParts& parts, std::int64_t hidden) {
  if (c.has(4)) c.unsupported("sequences of several lengths");
  const auto direction = c.s("direction", "forward");
  const std::size_t count = direction == "bidirectional" ? 2 : 1;
  const auto zeros = c.filled(c.number(0, ElementType::f32),
                              c.concat({c.to_vector(size_of(c, c.in(0), 1)), c.ints_constant({hidden})}, 0));
  Values y, h, s;
  for (std::size_t i = 0; i < count; ++i) {
    const auto of = [&](ValueId v) { return v.valid() ? c.pick(v, 0, static_cast<std::int64_t>(i)) : v; };
    OneDirection d;
    d.h = c.has(5) ? of(c.in(5)) : zeros;
    d.c = c.has(6) ? of(c.in(6)) : zeros;
    d.w = of(parts.w), d.r = of(parts.r), d.b = of(parts.b), d.p = of(c.maybe(7));
    d.reverse = direction == "reverse" || i == 1;
    const auto out = run_direction(c, d, lstm_cell(c, hidden, i, count), parts.x);
    y.push_back(c.unsqueeze(out[2], {1}));
    h.push_back(c.unsqueeze(out[0], {0}));
    s.push_back(c.unsqueeze(out[1], {0}));
  }
  return {c.concat(std::move(y), 1), c.concat(std::move(h), 0), c.concat(std::move(s), 0)};
}

Values convert_dynamic_quantize_lstm(Call& c) {
  const auto hidden = c.i("hidden_size", 0);
  if (hidden <= 0 || hidden > (std::int64_t{1} << 30)) c.fail("hidden_size is {}, wanted 1 or more", hidden);
  LstmParts parts;
  parts.w = weights(c, 1, 8, hidden);
  parts.r = weights(c, 2, 10, hidden);
  if (c.has(3)) parts.b = bias(c, hidden);
  parts.x = rounded(c.graph(), c.in(0));
  const auto& shape = c.type(c.in(0)).shape;
  const bool one_step = shape.ranked() && shape.rank() == 3 && shape[0].is(1);
  // Each direction has a range of its own.
  if (!one_step || c.s("direction", "forward") == "bidirectional") return run_directions(c, parts, hidden);
  // One step: rounding the initial state is all there is to it.
  if (c.has(5)) parts.h = rounded(c.graph(), c.in(5));
  return build_lstm(c, parts, hidden);
}

}  // namespace

void register_dynamic_quantize_lstm(ConverterTable& t) {
  t.add(kMicrosoft, "DynamicQuantizeLSTM", convert_dynamic_quantize_lstm);
}

}  // namespace lamina::onnx
