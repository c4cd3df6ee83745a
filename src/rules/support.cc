#include "rules/support.h"

#include <algorithm>
#include <cstring>

#include "ops/activation.h"
#include "ops/convolution.h"
#include "ops/matmul.h"
#include "ops/pooling.h"
#include "ops/shaping.h"

namespace lamina {

namespace {

/// Every element has the bytes of the first one.
bool repeats_bytes(const Tensor& t, std::size_t bytes) {
  return std::memcmp(t.raw(), t.raw() + bytes, t.bytes() - bytes) == 0;
}

Tensor first_of(const Tensor& t) { return Tensor::share(t.element_type(), {1}, nullptr, t.raw()); }

}  // namespace

bool is_host(const Node& n) {
  return n.op.has(Trait::host) && n.outputs.size() == 1;  // not a pooling that gives indices, too
}

bool has_weights(const Node& n) {
  return n.op.is<Convolution>() || n.op.is<ConvolutionBackpropData>() || n.op.is<MatMul>();
}

bool moves_elements(const Node& n) { return n.op.has(Trait::moves); }

std::optional<double> uniform_value(const Graph& graph, ValueId value) {
  const auto* t = graph.constant(value);
  if (!t || t->size() == 0) return std::nullopt;
  const auto bits = bits_of(t->element_type());
  if (t->size() > 1 && (bits < 8 || !repeats_bytes(*t, static_cast<std::size_t>(bits) / 8)))
    return std::nullopt;
  return to_doubles(t->size() == 1 ? *t : first_of(*t))[0];
}

std::optional<double> single_value(const Graph& graph, ValueId value) {
  const auto* t = graph.constant(value);
  return t && t->size() == 1 ? uniform_value(graph, value) : std::nullopt;
}

bool has_input(const Node& node, std::size_t input) {
  return input < node.inputs.size() && node.inputs[input].valid();
}

bool all_are(const Ints& list, std::int64_t number) {
  return std::all_of(list.begin(), list.end(), [&](auto v) { return v == number; });
}

std::optional<Ints> constant_ints(const Graph& graph, const Node& node, std::size_t input) {
  if (!has_input(node, input)) return std::nullopt;
  const auto* t = graph.constant(node.inputs[input]);
  if (!t || !is_integer(t->element_type())) return std::nullopt;
  return to_ints(*t);
}

std::optional<Ints> transpose_order(const Graph& graph, const Node& n) {
  const auto& shape = graph.type(n.inputs[0]).shape;
  const auto given = has_input(n, 1) ? constant_ints(graph, n, 1) : Ints();
  if (!given || !shape.ranked()) return std::nullopt;
  return transpose_order(*given, shape.rank());
}

Verdict does_not_grow(const std::string& label, const Shape& operand, const Shape& target) {
  if (operand.ranked() && operand.rank() == 0) return Verdict::yes();
  if (!operand.ranked() || !target.ranked() || operand.rank() > target.rank())
    return Verdict::no("{} of shape {} may enlarge {}", label, to_string(operand), to_string(target));
  for (std::size_t i = 0; i < operand.rank(); ++i) {
    const Dim& to = target[i + target.rank() - operand.rank()];
    if (!operand[i].is(1) && !operand[i].same(to))
      return Verdict::no("{} of shape {} may enlarge {}", label, to_string(operand), to_string(target));
  }
  return Verdict::yes();
}

Verdict one_per_channel(const std::string& label, const Shape& operand, const Shape& target,
                        std::size_t axis) {
  if (auto v = does_not_grow(label, operand, target); !v) return v;
  for (std::size_t i = 0; i < operand.rank(); ++i) {
    const auto at = i + target.rank() - operand.rank();
    if (operand[i].is(1) || at == axis) continue;
    std::vector<Dim> wanted(target.rank() - axis, Dim(1));
    wanted[0] = target[axis];
    return Verdict::no("{} has shape {}, wanted one value or {}", label, to_string(operand),
                       to_string(Shape(std::move(wanted))));
  }
  return Verdict::yes();
}

std::vector<double> per_channel(const Tensor& operand, std::size_t channels) {
  auto values = to_doubles(operand);
  if (values.size() == 1) values.assign(channels, values[0]);
  LAMINA_CHECK(values.size() == channels, "{} values for {} channels", values.size(), channels);
  return values;
}

Dims along_axis(std::size_t rank, std::size_t axis, std::size_t size) {
  Dims dims(rank, 1);
  dims.at(axis) = static_cast<std::int64_t>(size);
  return dims;
}

bool same_shape_of_same_count(const Shape& a, const Shape& b) {
  if (!a.ranked() || !b.ranked() || a.rank() != b.rank()) return false;
  std::size_t open = 0;
  bool empty = false;
  for (std::size_t i = 0; i < a.rank(); ++i) {
    if (!a[i].same(b[i])) ++open;
    empty = empty || a[i].low() == 0;
  }
  if (open == 0) return true;
  if (open > 1) return false;
  for (std::size_t i = 0; i < a.rank(); ++i)
    if (a[i].same(b[i]) && a[i].low() == 0) return false;
  return true;
}

std::optional<Ints> reshape_pattern(const Shape& shape) {
  if (!shape.ranked()) return std::nullopt;
  Ints out;
  bool open = false, zero = false;
  for (const auto& d : shape.dims()) {
    if (!d.known() && open) return std::nullopt;
    open = open || !d.known();
    zero = zero || d.is(0);
    out.push_back(d.known() ? d.size() : -1);
  }
  if (open && zero) return std::nullopt;
  return out;
}

Tensor ints_tensor(const Ints& values) {
  return Tensor::of({static_cast<std::int64_t>(values.size())}, values);
}

std::size_t channel_axis(const Graph& graph, const Node& host) {
  if (!host.op.is<MatMul>()) return 1;
  const auto& shape = graph.type(host.outputs.at(0)).shape;
  return shape.ranked() && shape.rank() > 0 ? shape.rank() - 1 : 0;
}

std::optional<std::size_t> channel_count(const Graph& graph, const Node& host) {
  const auto& shape = graph.type(host.outputs.at(0)).shape;
  const auto axis = channel_axis(graph, host);
  if (!shape.ranked() || axis >= shape.rank() || !shape[axis].known()) return std::nullopt;
  return static_cast<std::size_t>(shape[axis].size());
}

namespace {

/// PRelu's own rule for slopes ends here: the body holds a slope that broadcasts as in numpy.
Tensor stage_constant(const Graph& graph, const Node& stage, const Tensor& t) {
  if (!stage.op.is<PRelu>()) return t;
  const auto shape = prelu_slope_shape(graph.type(stage.inputs[0]).shape, Shape::of(t.shape()));
  return shape.known() && !(shape == Shape::of(t.shape())) ? t.reshaped(shape.sizes()) : t;
}

/// Adds a stage to `body`, behind its result; operands that are no constants go to `inputs` of the host.
void add_stage(Graph& body, const Graph& graph, const Node& host, const Node& stage, std::size_t running,
               std::vector<ValueId>& inputs) {
  const auto base = body.results()[0].value;
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
    const auto v = stage.inputs[i];
    if (i == running) {
      operands.push_back(base);
    } else if (!v.valid()) {
      operands.emplace_back();
    } else if (const auto* t = graph.constant(v)) {
      operands.push_back(body.add_constant(stage_constant(graph, stage, *t), graph.value(v).name));
    } else {
      operands.push_back(body.add_input(graph.value(v).name, graph.type(v)));
      const auto most = static_cast<std::size_t>(host.op.info().max_inputs);
      if (inputs.size() < most) inputs.resize(most);
      inputs.push_back(v);
    }
  }
  const auto id = body.add_node(stage.op, operands, stage.name);
  body.set_sources(id, stage.sources);
  body.set_result(0, body.node(id).outputs.at(0));
}

}  // namespace

NodeId append_stages(Rewrite& r, NodeId host_id, const std::vector<NextStage>& stages) {
  const Graph& graph = r.graph();
  const Node& host = graph.node(host_id);
  Graph body;
  if (const auto* old = epilogue(host)) {
    body = *old;
  } else {
    const auto x = body.add_input("result", graph.type(host.outputs[0]));
    body.add_result("y", x);
  }
  std::vector<ValueId> inputs = host.inputs;
  for (const auto& s : stages) add_stage(body, graph, host, graph.node(s.node), s.running, inputs);
  std::vector<Graph> bodies;
  bodies.push_back(std::move(body));
  r.named_after(host_id);
  const int outputs = static_cast<int>(host.outputs.size());
  return r.add_node(Op(host.op), std::move(inputs), outputs, std::move(bodies));
}

NodeId append_stage(Rewrite& r, NodeId host, NodeId stage, std::size_t running) {
  return append_stages(r, host, {{stage, running}});
}

std::size_t slot_of(const Node& node, ValueId value) {
  const auto it = std::find(node.inputs.begin(), node.inputs.end(), value);
  LAMINA_CHECK(it != node.inputs.end(), "the value is no input of '{}'", node.name);
  return static_cast<std::size_t>(it - node.inputs.begin());
}

Verdict output_stays_apart(const Match& match, ValueId from, ValueId to) {
  const Graph& g = match.graph();
  if (g.value(to).kind != ValueKind::input) return Verdict::yes();
  if (!g.is_result(from)) return Verdict::yes();
  return Verdict::no("the output '{}' would be the input '{}' itself: a copy must stay",
                     g.results()[g.value(from).results.front()].name, g.value(to).name);
}

}  // namespace lamina
