/// LSTM, GRU and plain recurrent networks, f32: cells and sequences.
#include "base/mapped_file.h"
#include "kernels/family.h"
#include "kernels/native/recurrent/run.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/cpu.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "kernels/cost.h"
#include "ops/recurrent.h"

namespace lamina {
namespace {

/// An operator in the words of this file. Inputs by index; -1: has none.
struct Form {
  RecurrentCell cell = RecurrentCell::rnn;
  bool sequence = false;
  int lengths = -1, w = 0, r = 0, b = 0, p = -1;
  Direction direction = Direction::forward;
  bool coupled = false;
  const Recurrent* attributes = nullptr;

  bool lstm() const { return cell == RecurrentCell::lstm; }
  bool rnn() const { return cell == RecurrentCell::rnn; }
  std::int64_t gates() const { return lstm() ? 4 : rnn() ? 1 : 3; }
  std::size_t functions() const { return lstm() ? 3 : rnn() ? 1 : 2; }
  std::string_view name() const { return lstm() ? "lstm" : rnn() ? "rnn" : "gru"; }
};

Form form_of(const NodeView& v) {
  const auto gru = [](bool linear) { return linear ? RecurrentCell::gru_linear : RecurrentCell::gru; };
  const auto forward = Direction::forward;
  if (const auto* op = v.op<LSTMSequence>())
    return {RecurrentCell::lstm, true, 3, 4, 5, 6, 7, op->direction, op->input_forget, op};
  if (const auto* op = v.op<LSTMCell>())
    return {RecurrentCell::lstm, false, -1, 3, 4, 5, 6, forward, op->input_forget, op};
  if (const auto* op = v.op<GRUSequence>())
    return {gru(op->linear_before_reset), true, 2, 3, 4, 5, -1, op->direction, false, op};
  if (const auto* op = v.op<GRUCell>())
    return {gru(op->linear_before_reset), false, -1, 2, 3, 4, -1, forward, false, op};
  if (const auto* op = v.op<RNNSequence>())
    return {RecurrentCell::rnn, true, 2, 3, 4, 5, -1, op->direction, false, op};
  return {RecurrentCell::rnn, false, -1, 2, 3, 4, -1, forward, false, v.op<RNNCell>()};
}

GateActivation activation_of(const Recurrent& op, std::size_t i) {
  using Kind = GateActivation::Kind;
  struct Named {
    std::string_view name;
    Kind kind;
    float alpha, beta;  // defaults, as in ONNX
  };
  static constexpr Named kAll[] = {{"affine", Kind::affine, 1, 0},
                                   {"elu", Kind::elu, 1, 0},
                                   {"hardsigmoid", Kind::hardsigmoid, 0.2f, 0.5f},
                                   {"leakyrelu", Kind::leakyrelu, 0.01f, 0},
                                   {"relu", Kind::relu, 0, 0},
                                   {"scaledtanh", Kind::scaledtanh, 1, 1},
                                   {"sigmoid", Kind::sigmoid, 0, 0},
                                   {"softplus", Kind::softplus, 0, 0},
                                   {"softsign", Kind::softsign, 0, 0},
                                   {"tanh", Kind::tanh, 0, 0},
                                   {"thresholdedrelu", Kind::thresholdedrelu, 1, 0}};
  std::string lower = op.activations.at(i);
  for (auto& ch : lower)
    if (ch >= 'A' && ch <= 'Z') ch = static_cast<char>(ch - 'A' + 'a');
  for (const auto& named : kAll)
    if (named.name == lower)
      return {named.kind,
              i < op.activations_alpha.size() ? static_cast<float>(op.activations_alpha[i]) : named.alpha,
              i < op.activations_beta.size() ? static_cast<float>(op.activations_beta[i]) : named.beta};
  throw Error(ErrorCode::internal, fmt::format("activation \"{}\" is not known here", lower));
}

/// Three per direction; a direction without functions of its own uses the first ones.
std::vector<GateActivation> activations_of(const Form& form, std::int64_t directions) {
  std::vector<GateActivation> out;
  const auto n = form.functions();
  for (std::size_t dir = 0; dir < static_cast<std::size_t>(directions); ++dir) {
    const auto first = form.attributes->activations.size() == 2 * n ? dir * n : 0;
    for (std::size_t i = 0; i < 3; ++i)
      out.push_back(i < n ? activation_of(*form.attributes, first + i) : GateActivation{});
  }
  return out;
}

RecurrentSizes sizes_of(const NodeView& v, const Form& form) {
  const auto& table = recurrent_table(v.machine().isa());

  const auto x = v.dims(0);
  RecurrentSizes s{};
  s.table = &table;
  s.batch = x[0];
  s.time = form.sequence ? x[1] : 1;
  s.input = x.back();
  s.hidden = v.dims(static_cast<std::size_t>(form.r)).back();
  s.gates = form.gates();
  s.directions = form.direction == Direction::bidirectional ? 2 : 1;
  s.lanes = table.lanes;
  s.blocks = ceil_div(s.hidden, s.lanes);
  s.padded = s.blocks * s.lanes;
  s.width = s.padded * s.gates;
  s.product_us = unit_costs(v.machine(), Family::native_gemm).work;
  const double total = s.product_us * static_cast<double>(s.batch * s.time * s.directions) *
                       static_cast<double>((s.input + s.hidden) * s.width);
  // Tasks are whole tiles of rows: few, which read the weights less often, but where these are always near
  // rather so many that what a task has of gates stays in the first-level cache.
  const auto tiles = ceil_div(s.batch, table.rows);
  const auto wanted = ceil_div(units_wanted(total, threads_here()), s.directions);
  const auto near_floats = static_cast<std::int64_t>(v.machine().l1 / sizeof(float) / 2);
  const auto most = s.hidden * s.width > near_floats
                        ? tiles
                        : std::max<std::int64_t>(1, near_floats / (s.time * s.width * table.rows));
  s.task_rows = std::min(s.batch, std::min(ceil_div(tiles, wanted), most) * table.rows);
  s.tasks = partitioned_here(s.directions * ceil_div(s.batch, s.task_rows), total);
  // The input part of a chunk of time stays in the second-level cache.
  const auto chunk_floats = static_cast<std::int64_t>(v.machine().l2 / sizeof(float) / 4);
  s.chunk = std::clamp<std::int64_t>(chunk_floats / (s.task_rows * s.width), 1, s.time);
  s.gates_floats = static_cast<std::size_t>(s.chunk * s.task_rows * s.width);
  s.state_floats = static_cast<std::size_t>(s.task_rows * s.padded);
  const auto bytes = sizeof(float) * (s.gates_floats + 4 * s.state_floats) +
                     sizeof(float*) * static_cast<std::size_t>(s.chunk * s.task_rows);
  s.slot_bytes = round_up(bytes, 64u);
  return s;
}

/// [directions][from_gates * hidden][depth] as panels [directions][blocks][depth][count][lanes] of the gates
/// first .. first + count - 1; depth 1 packs biases and peepholes.
Tensor packed_panels(const Tensor& source, const RecurrentSizes& s, std::int64_t from_gates,
                     std::int64_t depth, std::int64_t first, std::int64_t count) {
  Tensor out(ElementType::f32, {s.directions, s.blocks, depth, count, s.lanes});  // zeroed
  auto* to = out.data<float>().data();
  const Tensor aligned = aligned_once(source);
  const auto* from = aligned.data<float>().data();
  for (std::int64_t dir = 0; dir < s.directions; ++dir)
    for (std::int64_t g = 0; g < count; ++g)
      for (std::int64_t j = 0; j < s.hidden; ++j) {
        const auto* row = from + ((dir * from_gates + first + g) * s.hidden + j) * depth;
        auto* block = to + ((dir * s.blocks + j / s.lanes) * depth * count + g) * s.lanes + j % s.lanes;
        for (std::int64_t k = 0; k < depth; ++k) block[k * count * s.lanes] = row[k];
      }
  return out;
}

/// [directions][3 * hidden] as [directions][3][padded].
Tensor packed_peepholes(const Tensor& source, const RecurrentSizes& s) {
  Tensor out(ElementType::f32, {s.directions, 3, s.padded});
  const Tensor aligned = aligned_once(source);
  for (std::int64_t i = 0; i < 3 * s.directions; ++i)
    std::memcpy(out.data<float>().data() + i * s.padded, aligned.data<float>().data() + i * s.hidden,
                static_cast<std::size_t>(s.hidden) * sizeof(float));
  return out;
}

/// The constants of a node; absent ones are invalid.
struct Constants {
  Tensor w, r, b, p;
};

RecurrentWeights pack(const Constants& c, RecurrentCell cell, const RecurrentSizes& s, WeightStore& store) {
  const auto panels = [&](const Tensor& source, std::int64_t depth, std::int64_t first, std::int64_t count) {
    const auto key = fmt::format("recurrent {} from {} of {} gates, {} lanes, {}x{}x{}", count, first,
                                 s.gates, s.lanes, s.directions, s.hidden, depth);
    const PackedSize size(ElementType::f32, s.directions * s.blocks * depth * count * s.lanes);
    return store.packed(source, key, size, [&](const Tensor& clean) {
      return packed_panels(clean, s, s.gates, depth, first, count);
    });
  };
  RecurrentWeights out;
  out.w = panels(c.w, s.input, 0, s.gates);
  out.r = panels(c.r, s.hidden, 0, cell == RecurrentCell::gru ? 2 : s.gates);
  if (cell == RecurrentCell::gru) out.r_candidate = panels(c.r, s.hidden, 2, 1);
  const bool linear = cell == RecurrentCell::gru_linear;
  const auto biases = s.gates + (linear ? 1 : 0);
  const Tensor b = c.b.valid() ? c.b : Tensor(ElementType::f32, {s.directions, biases * s.hidden});
  out.bias = packed_panels(b, s, biases, 1, 0, s.gates);
  if (linear) out.r_bias = packed_panels(b, s, biases, 1, 3, 1);
  if (c.p.valid()) out.peepholes = packed_peepholes(c.p, s);
  return out;
}

Verdict takes(const NodeView& v, const Form& form) {
  for (std::size_t i = 0; i < v.inputs(); ++i)
    if (v.has(i) && static_cast<int>(i) != form.lengths && v.element(i) != ElementType::f32)
      return Verdict::no("input {} is {}, wanted f32", i, name_of(v.element(i)));
  for (const auto i : {form.w, form.r, form.b, form.p})
    if (i >= 0 && v.has(static_cast<std::size_t>(i)) && !v.constant(static_cast<std::size_t>(i)))
      return Verdict::no("the weights of input {} are not constant", i);
  if (form.lengths >= 0 && v.has(static_cast<std::size_t>(form.lengths))) {
    const auto type = v.element(static_cast<std::size_t>(form.lengths));
    if (type != ElementType::i32 && type != ElementType::i64)
      return Verdict::no("sequence lengths are {}, wanted i32 or i64", name_of(type));
  }
  if (element_count(v.dims(0)) == 0 || v.dims(static_cast<std::size_t>(form.r)).back() == 0)
    return Verdict::no("empty tensors");
  return Verdict::yes();
}

}  // namespace

bool is_recurrent(const Op& op) {
  return op.is<LSTMSequence>() || op.is<LSTMCell>() || op.is<GRUSequence>() || op.is<GRUCell>() ||
         op.is<RNNSequence>() || op.is<RNNCell>();
}

void offer_recurrent(const NodeView& v, Answers& answers) {
  const Form form = form_of(v);
  if (const auto ok = takes(v, form); !ok) return answers.refuse("native", "{}", ok.reason());
  RecurrentLayer code{};
  code.cell = form.cell;
  code.sequence = form.sequence;
  code.reverse = form.direction == Direction::reverse;
  code.lengths = form.lengths;
  if (form.lengths >= 0 && v.has(static_cast<std::size_t>(form.lengths)))
    code.wide_lengths = v.element(static_cast<std::size_t>(form.lengths)) == ElementType::i64;
  else
    code.lengths = -1;
  code.coupled = form.coupled;
  // 0 means none, so that a bound too small for f32 must not become 0.
  const double clip = form.attributes->clip;
  code.clip = clip > 0 ? std::max(static_cast<float>(clip), std::numeric_limits<float>::min()) : 0.0f;
  code.outputs = v.outputs();
  code.sizes = sizes_of(v, form);
  code.activations = activations_of(form, code.sizes.directions);

  Offer o(v, fmt::format("native_{}_{}_f32", form.name(), name_of(v.machine().isa())), Layout::plain);
  Constants constants;
  const auto take = [&](int input, Tensor& to) {
    if (input < 0 || !v.has(static_cast<std::size_t>(input))) return;
    to = *v.constant(static_cast<std::size_t>(input));
    o.consumed.push_back(static_cast<std::size_t>(input));
  };
  take(form.w, constants.w);
  take(form.r, constants.r);
  take(form.b, constants.b);
  take(form.p, constants.p);
  o.packed = {static_cast<std::size_t>(form.w), static_cast<std::size_t>(form.r)};
  const auto& s = code.sizes;
  o.scratch = s.slot_bytes * static_cast<std::size_t>(s.tasks.slots);
  const auto steps = static_cast<double>(s.batch * s.time * s.directions);
  o.cost =
      cost_of(v.machine(), Family::recurrent, steps * static_cast<double>((s.input + s.hidden) * s.width)) +
      cost_of(v.machine(), Family::vector_math, steps * static_cast<double>(s.width));
  o.make = [code, constants](MakeContext& context) {
    auto made = std::make_shared<RecurrentLayer>(code);
    made->weights = pack(constants, code.cell, code.sizes, context.weights);
    return executable([made](const RunArgs& args) { run_recurrent(*made, args); });
  };
  answers.offers.push_back(std::move(o));
}

}  // namespace lamina
