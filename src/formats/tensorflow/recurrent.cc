/// LSTM and GRU cells of one node, and the LSTM that is a loop by itself.
#include "formats/tensorflow/call.h"
#include "ops/activation.h"
#include "ops/control.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/matmul.h"
#include "ops/movement.h"
#include "ops/shaping.h"

namespace lamina::tensorflow {
namespace {

/// Words to build cells with, in whichever graph.
class Cell {
 public:
  explicit Cell(Graph& graph) : graph_(graph) {}
  ValueId add(ValueId a, ValueId b) { return graph_.add(Add{}, {a, b}); }
  ValueId times(ValueId a, ValueId b) { return graph_.add(Multiply{}, {a, b}); }
  ValueId sigmoid(ValueId v) { return graph_.add(Sigmoid{}, {v}); }
  ValueId tanh(ValueId v) { return graph_.add(Tanh{}, {v}); }
  ValueId number(double v) { return graph_.add_constant(Tensor::scalar(static_cast<float>(v))); }
  /// [a, b] w + bias
  ValueId product(ValueId a, ValueId b, ValueId w, ValueId bias) {
    return add(graph_.add(MatMul{}, {graph_.add(Concat{1}, {a, b}), w}), bias);
  }
  Values split(ValueId v, std::int64_t parts) {
    const auto axis = graph_.add_constant(Tensor::scalar<std::int64_t>(1));
    return graph_.node(graph_.add_node(Split{parts}, {v, axis}, {}, static_cast<int>(parts))).outputs;
  }
  Graph& graph() { return graph_; }

 private:
  Graph& graph_;
};

/// How LSTMBlockCell and BlockLSTM differ from version to version.
struct LstmSettings {
  double forget_bias = 1, clip = 3;
  bool peephole = false;
  std::size_t place_of_forget = 2;  ///< among the gates i, c, f, o; 1: i, f, c, o
};

struct LstmWeights {
  ValueId w, wci, wcf, wco, b;
};

LstmSettings settings_of(const Call& c) {
  const bool second = c.op() == "BlockLSTMV2";
  LstmSettings s;
  s.forget_bias = second ? 0 : c.f("forget_bias", 1);
  s.clip = c.f("cell_clip", second ? 0 : 3);
  s.peephole = c.flag("use_peephole");
  s.place_of_forget = second ? 1 : 2;
  return s;
}

/// i, cs, f, o, ci, co, h.
Values lstm_step(Cell cell, ValueId x, ValueId cs_before, ValueId h_before, const LstmWeights& w,
                 const LstmSettings& s) {
  const auto gates = cell.split(cell.product(x, h_before, w.w, w.b), 4);
  auto in = gates[0], forget = gates[s.place_of_forget], out = gates[3];
  const auto ci = cell.tanh(gates[3 - s.place_of_forget]);
  if (s.forget_bias != 0) forget = cell.add(forget, cell.number(s.forget_bias));
  if (s.peephole) {
    in = cell.add(in, cell.times(cs_before, w.wci));
    forget = cell.add(forget, cell.times(cs_before, w.wcf));
  }
  const auto i = cell.sigmoid(in), f = cell.sigmoid(forget);
  auto cs = cell.add(cell.times(ci, i), cell.times(cs_before, f));
  if (s.clip > 0) cs = cell.graph().add(Clamp{-s.clip, s.clip}, {cs});
  if (s.peephole) out = cell.add(out, cell.times(cs, w.wco));
  const auto o = cell.sigmoid(out), co = cell.tanh(cs);
  return {i, cs, f, o, ci, co, cell.times(co, o)};
}

/// x, cs, h, w, peepholes of i, f and o, b.
Values convert_lstm_cell(Call& c) {
  return lstm_step(Cell(c.graph()), c.in(0), c.in(1), c.in(2), {c.in(3), c.in(4), c.in(5), c.in(6), c.in(7)},
                   settings_of(c));
}

/// x, h, w of r and u, w of c, biases: r, u, c, h.
Values convert_gru_cell(Call& c) {
  Cell cell(c.graph());
  const auto x = c.in(0), h = c.in(1);
  const auto gates = cell.split(cell.sigmoid(cell.product(x, h, c.in(2), c.in(4))), 2);
  const auto r = gates[0], u = gates[1];
  const auto made = cell.tanh(cell.product(x, cell.times(h, r), c.in(3), c.in(5)));
  const auto kept = c.add(Subtract{}, {cell.number(1), u});
  return {r, u, made, cell.add(cell.times(u, h), cell.times(kept, made))};
}

/// A copy of the constant, or a parameter that captures the value.
ValueId captured(Graph& body, const Graph& around, ValueId v, Values& captures) {
  if (const auto* t = around.constant(v)) return body.add_constant(*t);
  captures.push_back(v);
  return body.add_input(around.value(v).name, around.type(v));
}

/// One step: parameters and results of a Loop that carries cs and h.
Graph lstm_body(const Call& c, Values& captures) {
  const auto& around = c.graph();
  Graph body;
  add_counters(body);
  const auto cs = body.add_input("cs", c.type(c.in(2))), h = body.add_input("h", c.type(c.in(3)));
  auto slice = c.type(c.in(1));
  if (slice.shape.ranked() && slice.shape.rank() > 0) slice.shape[0] = Dim(1);
  const auto part = body.add_input("x", slice);
  const auto axis = body.add_constant(Tensor::of<std::int64_t>({1}, Ints{0}));
  Values w;
  for (std::size_t i = 4; i <= 8; ++i) w.push_back(captured(body, around, c.in(i), captures));
  const auto step = lstm_step(Cell(body), body.add(Squeeze{}, {part, axis}), cs, h,
                              {w[0], w[1], w[2], w[3], w[4]}, settings_of(c));
  body.add_result("condition", body.add_constant(Tensor::scalar<bool>(true)));
  body.add_result("cs", step[1]);
  body.add_result("h", step[6]);
  for (auto v : step) body.add_result(body.value(v).name, body.add(Unsqueeze{}, {v, axis}));
  return body;
}

/// The largest length, x [T, N, I], cs, h, w, peepholes of i, f and o, b: each step's values, and zeros
/// behind the largest length.
Values convert_block_lstm(Call& c) {
  if (c.known_rank(c.in(1)) != 3) c.fail("x is {}, wanted a rank of 3", to_string(c.shape(c.in(1))));
  constexpr std::size_t kOutputs = 7;
  const auto length = c.known_ints(c.in(0));
  const auto& steps = c.shape(c.in(1))[0];
  const bool whole = length && length->size() == 1 && steps.known() && length->front() >= steps.size();
  Values captures;
  std::vector<Graph> bodies;
  bodies.push_back(lstm_body(c, captures));
  Loop op;
  op.carried = 2;
  op.slice_axes = {0};
  op.concat_axes.assign(kOutputs, 0);
  Values inputs{whole ? ValueId{} : c.convert(c.to_scalar(c.in(0)), ElementType::i64), ValueId{}, c.in(2),
                c.in(3), c.in(1)};
  inputs.insert(inputs.end(), captures.begin(), captures.end());
  const auto made = c.add_all(op, std::move(inputs), 2 + kOutputs, std::move(bodies));
  Values out(made.begin() + 2, made.end());
  if (whole) return out;
  const auto all = c.part(c.shape_of(c.in(1)), 0, 1);
  for (auto& v : out) {
    const auto missing = c.add(Subtract{}, {all, c.part(c.shape_of(v), 0, 1)});
    const auto none = c.ints_constant({0, 0});
    v = c.add(Pad{}, {v, c.ints_constant({0, 0, 0}), c.concat({missing, none}, 0)});
  }
  return out;
}

}  // namespace

void register_recurrent(ConverterTable& t) {
  t.add("BlockLSTM", convert_block_lstm);
  t.add("BlockLSTMV2", convert_block_lstm);
  t.add("GRUBlockCell", convert_gru_cell);
  t.add("LSTMBlockCell", convert_lstm_cell);
}

}  // namespace lamina::tensorflow
