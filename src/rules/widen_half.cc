#include "rules/widen_half.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/element_types.h"
#include "extension/custom_op.h"
#include "ops/control.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/movement.h"
#include "ops/quantization.h"
#include "ops/shaping.h"
#include "rules/support.h"

namespace lamina {
namespace {

/// The operator with f32 wherever an attribute names a half type.
Op widened(const Op& op) {
  std::unique_ptr<AnyOp> copy;
  for (const auto& attribute : op->attributes()) {
    const auto* type = std::get_if<ElementType>(&attribute.value);
    if (!type || !is_half(*type)) continue;
    if (!copy) copy = op->copy();
    copy->set(attribute.name, ElementType::f32);
  }
  return copy ? Op(std::shared_ptr<const AnyOp>(std::move(copy))) : op;
}

/// Whether the operator gives elements of its float inputs as they are, with all of their bits, and zeros.
bool moves_bits(const Node& n) {
  if (!n.bodies.empty() || n.op.is<GatherTree>()) return false;
  if (const auto* op = n.op.as<ScatterElementsUpdate>()) return op->reduction == ElementsReduction::none;
  if (const auto* op = n.op.as<ScatterNDUpdate>()) return op->reduction == SlicesReduction::none;
  return n.op.has(Trait::moves | Trait::reads_part) || n.op.is<Concat>() || n.op.is<Split>() ||
         n.op.is<VariadicSplit>() || n.op.is<Pad>() || n.op.is<Roll>() || n.op.is<ReverseSequence>() ||
         n.op.is<Tile>() || n.op.is<Broadcast>() || n.op.is<Select>() || n.op.is<Trilu>() ||
         n.op.is<ScatterUpdate>() || n.op.is<SliceScatter>() || n.op.is<BatchToSpace>() ||
         n.op.is<SpaceToBatch>();
}

/// The values of half types that the f32 values of a graph were made of. BitCast reads their bits: f32 and
/// back makes quiet NaNs of others, and loses what else a NaN holds.
class Halves {
 public:
  /// Nodes from the next one on widen, and constants that stand for others are told by widened().
  explicit Halves(const Graph& graph) : first_own_(graph.node_slots()) {}

  void widened(ValueId wide, const Tensor& half) { constants_.emplace(wide.index, half); }

  /// The value of that half type which v is in f32, with all of its bits if these are in the graph: what only
  /// moves elements on the way is done in the half type. Else v rounded.
  ValueId of(Graph& graph, ValueId v, ElementType half) {
    const auto bits = bits_of(graph, v, half, 0);
    return bits.valid() ? bits : graph.add(Convert{half}, {v});
  }

 private:
  ValueId bits_of(Graph& graph, ValueId v, ElementType half, int depth) {
    constexpr int kDeepest = 256;  // operators that move elements, one behind the other
    if (const auto known = known_.find({v.index, half}); known != known_.end()) return known->second;
    const auto found = depth < kDeepest ? found_bits(graph, v, half, depth) : ValueId{};
    known_.emplace(std::pair(v.index, half), found);
    return found;
  }

  ValueId found_bits(Graph& graph, ValueId v, ElementType half, int depth) {
    if (const auto it = constants_.find(v.index); it != constants_.end())
      return it->second.element_type() == half ? graph.add_constant(it->second) : ValueId{};
    const auto id = graph.producer(v);
    if (!id.valid()) return {};
    if (const auto* convert = graph.node(id).op.as<Convert>()) {
      const auto from = graph.node(id).inputs[0];
      const bool widens = id.index >= first_own_ && convert->destination_type == ElementType::f32;
      return widens && graph.type(from).element == half ? from : ValueId{};
    }
    return moves_bits(graph.node(id)) ? moved(graph, id, v, half, depth) : ValueId{};
  }

  /// A copy of the node on halves, if at least one of them is in the graph.
  ValueId moved(Graph& graph, NodeId id, ValueId v, ElementType half, int depth) {
    const Node node = graph.node(id);  // a copy: the graph changes
    auto inputs = node.inputs;
    std::vector<std::size_t> rounded;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].valid() || !is_float(graph.type(inputs[i]).element)) continue;
      const auto bits = bits_of(graph, inputs[i], half, depth + 1);
      if (bits.valid())
        inputs[i] = bits;
      else
        rounded.push_back(i);
    }
    if (inputs == node.inputs) return {};
    for (const auto i : rounded) inputs[i] = graph.add(Convert{half}, {inputs[i]});
    const auto copy =
        graph.add_node(node.op, std::move(inputs), node.name, static_cast<int>(node.outputs.size()));
    graph.set_sources(copy, node.sources);
    const auto outputs = graph.node(copy).outputs;
    ValueId out;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (node.outputs[i] == v) out = outputs[i];
      known_[{node.outputs[i].index, half}] = outputs[i];
    }
    return out;
  }

  std::size_t first_own_;
  std::unordered_map<std::uint32_t, Tensor> constants_;             // by the f32 constant
  std::map<std::pair<std::uint32_t, ElementType>, ValueId> known_;  // invalid: bits are those of f32
};

class Widener {
 public:
  std::size_t constants = 0, values = 0;

  void run(Graph& graph, bool outermost) {
    fold_bit_casts(graph);
    const auto roundings = roundings_of(graph);
    const auto bits = bit_casts_of(graph);
    const auto nodes = graph.order();
    Halves halves(graph);
    for (const auto v : graph.inputs()) widen_input(graph, v, outermost);
    for (std::uint32_t v = 0; v < graph.value_slots(); ++v) widen_constant(graph, {v}, halves);
    for (const auto id : nodes) {
      if (roundings.contains(id.index)) {
        keep_rounding(graph, id, outermost);
        continue;
      }
      for (const auto v : graph.node(id).outputs) values += is_half(graph.type(v).element);
      if (const auto* custom = custom_op(graph.node(id).op); custom && wants_half(graph.node(id), *custom))
        keep_ports(graph, id, *custom, outermost);
      else if (keeps_variable(graph.node(id)))
        keep_half(graph, id, outermost);
      else if (const auto cast = bits.find(id.index); cast != bits.end())
        keep_bits(graph, id, cast->second, halves, outermost);
      else
        graph.set_op(id, widened(graph.node(id).op));
      for (auto& body : graph.bodies(id)) run(body, false);
    }
    std::vector<ElementType> wanted;
    for (const auto& r : graph.results()) wanted.push_back(graph.type(r.value).element);
    graph.infer_types();
    for (std::size_t r = 0; outermost && r < wanted.size(); ++r) narrow_result(graph, r, wanted[r]);
  }

 private:
  void widen_input(Graph& graph, ValueId v, bool outermost) {
    const auto type = graph.type(v);
    if (!is_half(type.element)) return;
    ++values;
    if (!outermost) return graph.set_type(v, {ElementType::f32, type.shape});
    const auto uses = graph.value(v).uses;
    const auto wide = graph.add(Convert{ElementType::f32}, {v}, graph.value(v).name + "/f32");
    for (const auto& use : uses) graph.set_input(use.node, use.input, wide);
  }

  /// All numbers of the type are numbers of that half type.
  static bool holds_all_of(ElementType half, ElementType type) {
    if (type == half || type == ElementType::boolean) return true;
    if (is_small_float(type)) return type != ElementType::f8e8m0 && type != ElementType::nf4;
    const int digits = half == ElementType::f16 ? 11 : 8;
    return is_integer(type) && bits_of(type) - (is_signed(type) ? 1 : 0) <= digits;
  }

  static bool is_dequantised(const Graph& graph, ValueId v) {
    for (auto id = graph.producer(v); id.valid(); id = graph.producer(graph.node(id).inputs[0])) {
      const auto& node = graph.node(id);
      if (node.op.is<Dequantize>()) return bits_of(graph.type(node.inputs[0]).element) <= 8;
      if (!moves_elements(node)) return false;
    }
    return false;
  }

  /// A product, and element-wise operators behind it as far as `steps`, which become its stages.
  static bool is_behind_product(const Graph& graph, ValueId v, int steps = 6) {
    const auto id = graph.producer(v);
    if (!id.valid()) return false;
    const auto& node = graph.node(id);
    if (has_weights(node)) return true;
    if (steps == 0 || !node.op.has(Trait::elementwise)) return false;
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId in) { return in.valid() && is_behind_product(graph, in, steps - 1); });
  }

  /// Products read it, as integers times a scale (rules/int8_products.cc), and stages behind them: oneDNN
  /// Graph means a conversion to a half type between Dequantize and these so.
  static bool goes_into_products(const Graph& graph, ValueId v) {
    if (graph.is_result(v) || graph.value(v).uses.empty()) return false;
    return std::all_of(graph.value(v).uses.begin(), graph.value(v).uses.end(), [&](const Use& use) {
      const auto& node = graph.node(use.node);
      if (has_weights(node)) return true;
      if (moves_elements(node)) return goes_into_products(graph, node.outputs[0]);
      if (!node.op.has(Trait::elementwise) || node.inputs.size() != 2) return false;
      return is_behind_product(graph, node.inputs[1 - use.input]);
    });
  }

  /// Where the model itself rounds: Converts to a half type of numbers that it does not hold. They stay, as
  /// indices of nodes, whoever reads them; ConvertLike is a Convert here.
  static std::unordered_set<std::uint32_t> roundings_of(Graph& graph) {
    std::unordered_set<std::uint32_t> all;
    for (auto id : graph.order()) {
      if (graph.node(id).op.is<ConvertLike>()) id = as_convert(graph, id);
      const Node& n = graph.node(id);
      const auto* convert = n.op.as<Convert>();
      if (convert && is_half(convert->destination_type) &&
          !holds_all_of(convert->destination_type, graph.type(n.inputs[0]).element) &&
          !(is_dequantised(graph, n.inputs[0]) && goes_into_products(graph, n.outputs[0])))
        all.insert(id.index);
    }
    return all;
  }

  static NodeId as_convert(Graph& graph, NodeId id) {
    const Node like = graph.node(id);  // a copy: the graph changes
    const auto type = graph.type(like.outputs[0]).element;
    if (!is_half(type)) return id;
    const auto fresh = graph.add_node(Convert{type}, {like.inputs[0]}, like.name);
    graph.set_sources(fresh, like.sources);
    const auto name = graph.value(like.outputs[0]).name;
    graph.replace(like.outputs[0], graph.node(fresh).outputs[0]);
    graph.erase(id);
    graph.set_value_name(graph.node(fresh).outputs[0], name);
    return fresh;
  }

  /// What computes with the rounded number reads it as f32; Converts to other types, and results of the
  /// model, take it as it is.
  void keep_rounding(Graph& graph, NodeId id, bool outermost) {
    const auto half = graph.node(id).outputs[0];
    ValueId wide;
    const auto widened = [&] {
      if (!wide.valid())
        wide = graph.add(Convert{ElementType::f32}, {half}, graph.value(half).name + "/f32"), ++values;
      return wide;
    };
    const auto uses = graph.value(half).uses;
    for (const auto& use : uses)
      if (const auto* back = graph.node(use.node).op.as<Convert>(); !back || is_half(back->destination_type))
        graph.set_input(use.node, use.input, widened());
    for (std::size_t r = 0; !outermost && r < graph.results().size(); ++r)
      if (graph.results()[r].value == half) graph.set_result(r, widened());
  }

  /// The uses of a value that stays a half, and the results of a body, whose carried values and branches are
  /// f32, read it as f32.
  static void read_widened(Graph& graph, ValueId half, const std::vector<Use>& uses, bool outermost) {
    const auto wide = graph.add(Convert{ElementType::f32}, {half}, graph.value(half).name + "/f32");
    for (const auto& use : uses) graph.set_input(use.node, use.input, wide);
    for (std::size_t r = 0; !outermost && r < graph.results().size(); ++r)
      if (graph.results()[r].value == half) graph.set_result(r, wide);
  }

  /// The bits of constants, which f32 does not keep where they are NaNs.
  static void fold_bit_casts(Graph& graph) {
    for (const auto id : graph.order()) {
      const Node& node = graph.node(id);
      const auto* cast = node.op.as<BitCast>();
      const auto* constant = cast ? graph.constant(node.inputs[0]) : nullptr;
      if (!constant || !is_half(constant->element_type()) || is_half(cast->destination_type)) continue;
      const auto out = node.outputs[0];
      const auto name = graph.value(out).name;
      const auto folded = graph.add_constant(std::move(evaluate_node(node, {*constant}, {})[0]));
      graph.replace(out, folded);
      graph.erase(id);
      graph.set_value_name(folded, name);
    }
  }

  /// BitCasts of and to half types by node, with the type that they read.
  static std::unordered_map<std::uint32_t, ElementType> bit_casts_of(const Graph& graph) {
    std::unordered_map<std::uint32_t, ElementType> all;
    for (const auto id : graph.order()) {
      const auto* cast = graph.node(id).op.as<BitCast>();
      const auto from = cast ? graph.type(graph.node(id).inputs[0]).element : ElementType::undefined;
      if (cast && (is_half(from) || is_half(cast->destination_type))) all.emplace(id.index, from);
    }
    return all;
  }

  /// The bits are those of the half type, whatever computes around them.
  static void keep_bits(Graph& graph, NodeId id, ElementType from, Halves& halves, bool outermost) {
    const auto out = graph.node(id).outputs[0];
    const auto uses = graph.value(out).uses;
    if (is_half(from)) graph.set_input(id, 0, halves.of(graph, graph.node(id).inputs[0], from));
    if (!is_half(graph.type(out).element)) return;
    read_widened(graph, out, uses, outermost);
  }

  static bool keeps_variable(const Node& node) { return node.op.is<ReadValue>() || node.op.is<Assign>(); }

  /// A variable is a border of the model: it keeps its type from run to run.
  static void keep_half(Graph& graph, NodeId id, bool outermost) {
    const auto out = graph.node(id).outputs[0];
    const auto type = graph.type(out).element;
    if (!is_half(type)) return;
    const auto uses = graph.value(out).uses;
    for (std::size_t i = 0; i < graph.node(id).inputs.size(); ++i)
      graph.set_input(id, i, graph.add(Convert{type}, {graph.node(id).inputs[i]}));
    read_widened(graph, out, uses, outermost);
  }

  /// The element type of a port that takes halves and no f32; undefined for others.
  static ElementType half_of(const DeclaredPort* port) {
    if (!port || port->takes(ElementType::f32)) return ElementType::undefined;
    for (const auto type : port->types)
      if (is_half(type)) return type;
    return ElementType::undefined;
  }

  static bool wants_half(const Node& n, const CustomOp& op) {
    const auto& d = op.declared();
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      if (n.inputs[i].valid() && half_of(d.port(d.in, i)) != ElementType::undefined) return true;
    return false;
  }

  /// A library's kernel that knows halves only gets them.
  static void keep_ports(Graph& graph, NodeId id, const CustomOp& op, bool outermost) {
    const auto& d = op.declared();
    for (std::size_t i = 0; i < graph.node(id).inputs.size(); ++i) {
      const auto v = graph.node(id).inputs[i];
      const auto type = half_of(d.port(d.in, i));
      if (v.valid() && type != ElementType::undefined) graph.set_input(id, i, graph.add(Convert{type}, {v}));
    }
    const auto outputs = graph.node(id).outputs;
    for (const auto out : outputs) {
      if (!is_half(graph.type(out).element)) continue;
      const auto uses = graph.value(out).uses;
      read_widened(graph, out, uses, outermost);
    }
  }

  void widen_constant(Graph& graph, ValueId v, Halves& halves) {
    const auto* constant = graph.constant(v);
    if (!constant || !is_half(constant->element_type())) return;
    ++constants;
    const Tensor half = *constant;
    const auto wide = graph.add_constant(convert(half, ElementType::f32), graph.value(v).name);
    graph.replace(v, wide);
    halves.widened(wide, half);
  }

  static void narrow_result(Graph& graph, std::size_t index, ElementType wanted) {
    const auto value = graph.results()[index].value;
    if (!is_half(wanted) || graph.type(value).element != ElementType::f32) return;
    graph.set_result(index, graph.add(Convert{wanted}, {value}, graph.value(value).name + "/half"));
  }
};

bool has_half(const Graph& graph) {
  for (std::uint32_t v = 0; v < graph.value_slots(); ++v)
    if (graph.value({v}).kind != ValueKind::none && is_half(graph.type({v}).element)) return true;
  for (std::uint32_t n = 0; n < graph.node_slots(); ++n)
    if (!graph.node({n}).erased())
      for (const auto& body : graph.node({n}).bodies)
        if (has_half(body)) return true;
  return false;
}

}  // namespace

std::vector<std::string> widen_half(Graph& graph) {
  if (!has_half(graph)) return {};
  Widener widener;
  widener.run(graph, true);
  graph.erase_unused();
  if (widener.values + widener.constants == 0) return {};
  return {fmt::format("half-precision tensors are computed in f32: {} values, {} constants", widener.values,
                      widener.constants)};
}

}  // namespace lamina
