#include "formats/ir/write/legaliser.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/no_destructor.h"
#include "formats/ir/write/net_writer.h"
#include "ops/control.h"
#include "ops/convolution_depthwise.h"
#include "ops/elementwise.h"

namespace lamina::ir {
namespace {

/// Inputs that OpenVINO wants without axes, where lamina takes any one element: a bit for each.
struct Scalars {
  std::string_view name;
  unsigned inputs;
};
constexpr std::array kScalars = {
    Scalars{"HardSigmoid", 0b110}, Scalars{"Swish", 0b10},    Scalars{"Range", 0b111},
    Scalars{"TopK", 0b10},         Scalars{"OneHot", 0b1110}, Scalars{"CumSum", 0b10},
    Scalars{"Pad", 0b1000},        Scalars{"Split", 0b10},    Scalars{"VariadicSplit", 0b10},
    Scalars{"GatherTree", 0b1000}, Scalars{"STFT", 0b1100},   Scalars{"If", 0b1}};

/// How many slices of the value there are: (factor * size + offset) / stride.
ValueId slice_count(Legalisation& c, const Loop& op, std::size_t k, ValueId value) {
  const auto at = [k](const Ints& list, std::int64_t fallback) {
    return k < list.size() ? list[k] : fallback;
  };
  const std::int64_t stride = at(op.slice_strides, 1);
  std::int64_t from = at(op.slice_starts, stride < 0 ? -1 : 0), to = at(op.slice_ends, stride < 0 ? 0 : -1);
  if (stride < 0) std::swap(from, to);
  const std::int64_t factor = (to < 0) - (from < 0);
  const std::int64_t offset = (to < 0 ? to + 1 : to) - (from < 0 ? from + 1 : from);
  const std::string name = fmt::format("slices{}", k);
  const ValueId size = c.add(
      Multiply{}, {c.size_of(value, op.slice_axes[k], name + "_size"), c.integer(factor, name + "_factor")},
      name + "_part");
  const ValueId length = c.add(Add{}, {size, c.integer(offset, name + "_offset")}, name + "_length");
  return c.add(Divide{}, {length, c.integer(std::abs(stride), name + "_stride")}, name);
}

}  // namespace

const LegalisationTable& legalisations() {
  static const ProcessLifetime all([] {
    LegalisationTable t;
    for (const auto add : {register_products, register_norms, register_quantisers, register_movement,
                           register_recurrent, register_linear_attention, register_pooling, register_resizing,
                           register_regions, register_detection})
      add(t);
    return t;
  });
  return *all;
}

Legaliser::Legaliser(const Graph& from, int version)
    : from_(from), version_(version), map_(from.value_slots()) {
  to_.name = from.name;
  to_.sources = from.sources;
  for (const auto v : from.inputs()) map_[v.index] = to_.add_input(from.value(v).name, from.type(v));
}

void Legaliser::preset(std::size_t input, Tensor value) {
  const ValueId v = from_.inputs()[input];
  map_[v.index] = to_.add_constant(std::move(value), fresh(from_.value(v).name + "/known"));
}

LegalGraph Legaliser::run() {
  for (const auto id : from_.order()) node(from_.node(id));
  for (const auto& result : from_.results()) to_.add_result(result.name, read(result.value));
  return {std::move(to_), std::move(aliases_)};
}

ValueId Legaliser::read(ValueId value) {
  if (!value.valid()) return {};
  ValueId& known = map_[value.index];
  if (!known.valid())
    if (const Tensor* constant = from_.constant(value))
      known = to_.add_constant(*constant, from_.value(value).name);
  LAMINA_CHECK(known.valid(), "nothing was made of value '{}'", from_.value(value).name);
  return known;
}

std::string Legaliser::fresh(const std::string& wanted) {
  std::string name = wanted;
  while (from_.find_value(name).valid() || to_.find_value(name).valid())
    name = fmt::format("{}_{}", wanted, made_up_++);
  return name;
}

void Legaliser::node(const Node& node) {
  std::vector<ValueId> inputs;
  for (const auto v : node.inputs) inputs.push_back(read(v));
  const std::size_t first_value = to_.value_slots(), first_node = to_.node_slots();
  const auto made = values_of(node, inputs);
  LAMINA_CHECK(made.size() >= node.outputs.size(), "'{}' lost outputs", node.name);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) map_[node.outputs[i].index] = made[i];
  for (std::size_t i = first_node; i < to_.node_slots(); ++i)
    to_.set_sources({static_cast<std::uint32_t>(i)}, node.sources);
  name_outputs(node, made, first_value, first_node);
}

// What was made keeps the node's and values' names; what was there before has got further names.
void Legaliser::name_outputs(const Node& node, const std::vector<ValueId>& made, std::size_t first_value,
                             std::size_t first_node) {
  std::vector<ValueId> named;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string& name = from_.value(node.outputs[i]).name;
    const ValueId v = made[i];
    const bool old = v.index < first_value || std::find(named.begin(), named.end(), v) != named.end();
    if (old) {
      aliases_[v.index].push_back(name);
      continue;
    }
    named.push_back(v);
    to_.set_value_name(v, name);
    const TensorType& type = from_.type(node.outputs[i]);
    if (to_.type(v).element == ElementType::undefined && type.element != ElementType::undefined)
      to_.set_type(v, type);  // what a file says of an unknown operator
  }
  if (made.empty()) return;
  if (const NodeId last = to_.producer(made[0]); last.valid() && last.index >= first_node)
    to_.set_node_name(last, node.name);
}

std::vector<ValueId> Legaliser::values_of(const Node& node, const std::vector<ValueId>& inputs) {
  const std::string name =
      node.name.empty() && !node.outputs.empty() ? from_.value(node.outputs[0]).name : node.name;
  const int outputs = static_cast<int>(node.outputs.size());
  if (!epilogue(node)) {
    auto bodies = legal_bodies(node);
    const bool loop = node.op.is<Loop>();
    auto all = loop ? loop_inputs(node, inputs, bodies.at(0), name) : inputs;
    return emit(node.op, std::move(all), outputs, name, std::move(bodies));
  }
  const auto base = static_cast<std::ptrdiff_t>(std::min(base_inputs(node), inputs.size()));
  std::vector<ValueId> own(inputs.begin(), inputs.begin() + base);
  std::vector<ValueId> made;
  if (node.op.is<Elementwise>()) {
    made = {own[0]};
  } else if (const auto* depthwise = node.op.as<ConvolutionDepthwise>()) {
    own[0] = inlined(node.bodies.at(1), {own[0]}).at(0);
    Convolution convolution;
    static_cast<Window&>(convolution) = *depthwise;
    convolution.groups = to_.type(own.at(1)).shape[0].size();
    made = emit(convolution, own, 1, name);
  } else {
    made = emit(node.op, own, outputs, name);
  }
  std::vector<ValueId> parameters = {made.at(0)};
  parameters.insert(parameters.end(), inputs.begin() + base, inputs.end());
  made[0] = inlined(node.bodies[0], std::move(parameters)).at(0);
  return made;
}

std::vector<ValueId> Legaliser::inlined(const Graph& body, std::vector<ValueId> parameters) {
  std::vector<ValueId> map(body.value_slots());
  for (std::size_t i = 0; i < body.inputs().size(); ++i) map[body.inputs()[i].index] = parameters.at(i);
  const auto value = [&](ValueId v) {
    if (!v.valid()) return ValueId();
    if (const Tensor* constant = body.constant(v); constant && !map[v.index].valid())
      map[v.index] = to_.add_constant(*constant, fresh(body.value(v).name));
    return map[v.index];
  };
  for (const auto id : body.order()) {
    const Node& stage = body.node(id);
    std::vector<ValueId> inputs;
    for (const auto v : stage.inputs) inputs.push_back(value(v));
    const auto made = emit(stage.op, std::move(inputs), static_cast<int>(stage.outputs.size()), stage.name);
    for (std::size_t i = 0; i < stage.outputs.size(); ++i) map[stage.outputs[i].index] = made[i];
  }
  std::vector<ValueId> out;
  for (const auto& result : body.results()) out.push_back(value(result.value));
  return out;
}

// What IR's Loop cannot do without: a number of iterations, that of its slices where it has some, and a
// condition.
std::vector<ValueId> Legaliser::loop_inputs(const Node& node, std::vector<ValueId> inputs, const Graph& body,
                                            const std::string& name) {
  const auto& op = *node.op.as<Loop>();
  if (is_tensor_iterator(to_, op, inputs, body)) return inputs;
  Legalisation c(*this, node.op, inputs, static_cast<int>(node.outputs.size()), name);
  ValueId count = inputs[0];
  if (count.valid()) count = c.converted(c.scalar(count, "most"), ElementType::i64, "most_i64");
  for (std::size_t k = 0; k < op.slice_axes.size(); ++k) {
    const ValueId slices = slice_count(c, op, k, inputs[2 + static_cast<std::size_t>(op.carried) + k]);
    if (!count.valid()) {
      count = slices;
      break;  // all are equally many
    }
    const ValueId unlimited = c.add(Less{}, {count, c.integer(0, "zero")}, "unlimited");
    count = c.add(Minimum{}, {c.add(Select{}, {unlimited, slices, count}, "limited"), slices}, "count");
  }
  std::vector<ValueId> out = inputs;
  out[0] = count.valid() ? count : c.integer(-1, "unlimited");
  out[1] = inputs[1].valid() ? c.scalar(inputs[1], "condition")
                             : c.add_constant(Tensor::scalar(true), "condition");
  return out;
}

std::vector<Graph> Legaliser::legal_bodies(const Node& node) {
  std::vector<Graph> out;
  for (const Graph& body : node.bodies) {
    Legaliser inner(body, version_);
    // a loop's condition is true whenever its body runs
    if (const auto loop = node.op.is<Loop>(); loop && body.inputs().size() > 1) {
      const TensorType& type = body.type(body.inputs()[1]);
      Tensor yes(ElementType::boolean, Dims(type.shape.ranked() ? type.shape.rank() : 0, 1));
      yes.data<bool>()[0] = true;
      inner.preset(1, std::move(yes));
    }
    out.push_back(inner.run().graph);
  }
  return out;
}

std::vector<ValueId> Legaliser::emit(const Op& op, std::vector<ValueId> inputs, int outputs,
                                     const std::string& name, std::vector<Graph> bodies) {
  const std::string_view kind = op.info().name;
  const std::string label = name.empty() ? std::string(kind) : name;
  for (const auto& [with_scalars, which] : kScalars)
    for (std::size_t i = 0; with_scalars == kind && i < inputs.size(); ++i)
      if (((which >> i) & 1U) != 0 && inputs[i].valid())
        inputs[i] =
            Legalisation(*this, op, inputs, outputs, label).scalar(inputs[i], fmt::format("scalar{}", i));
  if (const Legalise run = bodies.empty() ? legalisations().find(kind) : nullptr) {
    Legalisation node(*this, op, inputs, outputs, label);
    if (auto made = run(node); !made.empty()) return made;
  }
  Strings names;
  for (int i = 0; i < std::max(outputs, 1); ++i)
    names.push_back(fresh(i == 0 ? label : fmt::format("{}.{}", label, i)));
  const NodeId node = to_.add_node(op, std::move(inputs), label, outputs, std::move(bodies), names);
  return to_.node(node).outputs;
}

LegalGraph legalise(const Graph& graph, int version) { return Legaliser(graph, version).run(); }

}  // namespace lamina::ir
