#include "rules/bf16.h"

#include <algorithm>
#include <unordered_set>

#include "base/no_destructor.h"
#include "extension/custom_op.h"
#include "extension/known_node.h"
#include "graph/work.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/pooling.h"
#include "ops/resize.h"
#include "rules/chosen_elements.h"
#include "rules/support.h"

namespace lamina::bf16 {
namespace {

constexpr double kProducts = 87e3;  // multiply-adds per microsecond at rate 1
constexpr double kCall = 0.28;      // microseconds in which a product is done before another kernel is called
constexpr std::size_t kMostJoinedValues = 2048;  // that are looked at together

const Machine& any_machine() {
  static const ProcessLifetime machine([] { return Machine(); });
  return *machine;
}

bool is_depthwise(const Graph& g, const Node& n) {
  const auto* op = n.op.as<Convolution>();
  return op && op->groups > 1 && g.type(n.inputs[1]).shape[1].is(1);
}

bool has_levels(const Node& n) {
  if (n.op.has(Trait::levels)) return true;
  const Graph* body = epilogue(n);
  if (!body) return false;
  const auto order = body->order();
  return std::any_of(order.begin(), order.end(),
                     [&](NodeId id) { return body->node(id).op.has(Trait::levels); });
}

bool is_f32_only(const Op& op) {
  const auto* custom = custom_op(op);
  return custom && !custom->declared().has(LAMINA_ALLOWS_BF16);
}

/// True if the node has an operator of a library that does not allow bf16: its inputs and outputs stay f32.
bool keeps_f32(const Node& n) {
  if (is_f32_only(n.op)) return true;
  const Graph* body = epilogue(n);
  for (std::uint32_t i = 0; body && i < body->node_slots(); ++i)
    if (const auto& inner = body->node({i}); !inner.erased() && is_f32_only(inner.op)) return true;
  return false;
}

/// A library's kernel that takes bf16 as input 0, beside the others as they are, and gives it.
bool takes_bf16(const Graph& g, const Node& n) {
  const auto& d = custom_op(n.op)->declared();
  const auto takes = [](const DeclaredPort& port) { return port.takes(ElementType::bf16) && !port.variadic; };
  if (!d.has(LAMINA_ALLOWS_BF16) || d.calls.elementwise || d.in.empty() || d.out.size() != 1) return false;
  if (!takes(d.in[0]) || !takes(d.out[0]) || d.in[0].constant) return false;
  auto node = known_node(g, n);
  if (!node || node->in.empty() || !node->in[0].present) return false;
  node->in[0].type.element = node->out[0].type.element = ElementType::bf16;
  for (std::size_t c = 0; c < d.configurations.size(); ++c)
    if (!forms_of(*node, c).forms.empty() && accepted(*node, c)) return true;
  return false;
}

/// Integers that somebody reads come out of it, or are made on the way.
bool makes_integers(const Graph& g, const Node& n) {
  const auto of = [](const Graph& graph, const Node& node) {
    return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) {
      return is_integer(graph.type(v).element) && (graph.readers(v) > 0 || graph.is_result(v));
    });
  };
  if (of(g, n)) return true;
  const Graph* body = epilogue(n);
  if (!body) return false;
  const auto order = body->order();
  return std::any_of(order.begin(), order.end(), [&](NodeId id) { return of(*body, body->node(id)); });
}

bool is_elementwise(const Node& n) {
  return (n.op.has(Trait::elementwise) || (n.op.is<Elementwise>() && epilogue(n))) && n.outputs.size() == 1;
}

bool is_f32(const Graph& g, ValueId v) {
  return v.valid() && g.type(v).element == ElementType::f32 && g.type(v).shape.known();
}

/// Values of f32, and nothing rounded to levels: those are quantised, or decide something.
bool computes_floats(const Graph& g, const Node& n) {
  return is_f32(g, n.outputs[0]) && !has_levels(n) && !keeps_f32(n);
}

/// What the value is before it was moved.
NodeId maker_of(const Graph& g, ValueId v) {
  auto p = g.producer(v);
  while (p.valid() && passes_on(g, g.node(p))) p = g.producer(g.node(p).inputs[0]);
  return p;
}

bool quantised_operand(const Graph& g, ValueId v) {
  const auto p = maker_of(g, v);
  return p.valid() && has_levels(g.node(p));
}

/// Integers are made of the value, wherever it is moved before.
bool feeds_integers(const Graph& g, ValueId from) {
  std::unordered_set<std::uint32_t> seen{from.index};
  std::vector<ValueId> work{from};
  while (!work.empty() && seen.size() <= kMostJoinedValues) {
    const auto v = work.back();
    work.pop_back();
    for (const auto& use : g.value(v).uses) {
      const Node& n = g.node(use.node);
      if (makes_integers(g, n)) return true;
      if (!passes_on(g, n) || use.input >= data_inputs(n)) continue;
      for (const auto out : n.outputs)
        if (seen.insert(out.index).second) work.push_back(out);
    }
  }
  return false;
}

/// The walk over all values that are the same elements.
class Between {
 public:
  explicit Between(const Context& c) : c_(c), g_(c.graph) {}

  Verdict of(ValueId v) {
    push(v);
    while (!work_.empty()) {
      const auto next = work_.back();
      work_.pop_back();
      if (auto verdict = value(next); !verdict) return verdict;
    }
    return wanted_ ? Verdict::yes() : Verdict::no("no product makes or reads '{}'", g_.value(v).name);
  }

 private:
  void push(ValueId v) {
    if (seen_.insert(v.index).second) work_.push_back(v);
  }

  Verdict value(ValueId v) {
    const auto& name = g_.value(v).name;
    if (seen_.size() > kMostJoinedValues) return Verdict::no("'{}' is one of too many values", name);
    if (!is_f32(g_, v)) return Verdict::no("'{}' is {}", name, to_string(g_.type(v)));
    if (g_.is_result(v)) return Verdict::no("'{}' is an output of the model", name);
    if (const auto* why = c_.why_kept(v)) return Verdict::no("'{}' decides: {}", name, *why);
    const auto p = g_.producer(v);
    if (!p.valid()) return Verdict::no("'{}' is an input of the model or a constant", name);
    if (auto verdict = maker(p); !verdict) return verdict;
    for (const auto& use : g_.value(v).uses)
      if (auto verdict = reader(use); !verdict) return verdict;
    return Verdict::yes();
  }

  void moved(NodeId id) {
    const Node& n = g_.node(id);
    for (std::size_t i = 0; i < data_inputs(n); ++i) push(n.inputs[i]);
    for (const auto v : n.outputs) push(v);
  }

  Verdict maker(NodeId p) {
    const Node& n = g_.node(p);
    if (widens(g_, n)) return wanted_ = true, Verdict::yes();
    if (c_.exempt(p)) return Verdict::no("'{}' is exempt", g_.label(p));
    if (passes_on(g_, n)) return moved(p), Verdict::yes();
    if (!may_store(g_, n)) return Verdict::no("'{}' ({}) gives f32", g_.label(p), n.op.name());
    wanted_ = wanted_ || (is_product(n) && g_.type(n.inputs[0]).element == ElementType::bf16);
    return Verdict::yes();
  }

  Verdict reader(const Use& use) {
    const Node& n = g_.node(use.node);
    if (narrows(g_, n)) return wanted_ = true, Verdict::yes();
    if (c_.exempt(use.node)) return Verdict::no("'{}' is exempt", g_.label(use.node));
    if (passes_on(g_, n) && use.input < data_inputs(n)) return moved(use.node), Verdict::yes();
    if (makes_integers(g_, n))
      return Verdict::no("'{}' ({}) converts it to integers", g_.label(use.node), n.op.name());
    if (keeps_f32(n) && !(is_product(n) && use.input == 0))
      return Verdict::no("'{}' does not allow bf16", g_.label(use.node));
    const bool stored = g_.type(n.outputs[0]).element == ElementType::bf16;
    if (is_elementwise(n) && !has_levels(n) && (stored || is_f32(g_, n.outputs[0]))) return Verdict::yes();
    if (epilogue(n) && use.input >= base_inputs(n) && !has_levels(n)) return Verdict::yes();
    if (is_product(n) && use.input == 0) {
      const auto verdict = may_multiply(c_, use.node);
      if (verdict) wanted_ = true;
      return verdict;
    }
    return Verdict::no("'{}' ({}) reads f32", g_.label(use.node), n.op.name());
  }

  const Context& c_;
  const Graph& g_;
  std::unordered_set<std::uint32_t> seen_;
  std::vector<ValueId> work_;
  bool wanted_ = false;
};

}  // namespace

Context::Context(const Match& match)
    : graph(match.graph()),
      machine(match.machine ? *match.machine : any_machine()),
      exempt([&match](NodeId n) { return match.is_exempt(n); }),
      why_kept([&match](ValueId v) { return match.why_kept(v); }) {}

bool narrows(const Graph& g, const Node& n) {
  const auto* op = n.op.as<Convert>();
  return op && op->destination_type == ElementType::bf16 && g.type(n.inputs[0]).element == ElementType::f32;
}

bool widens(const Graph& g, const Node& n) {
  const auto* op = n.op.as<Convert>();
  return op && op->destination_type == ElementType::f32 && g.type(n.inputs[0]).element == ElementType::bf16;
}

ValueId narrow_value(const Graph& g, ValueId v) {
  const auto p = v.valid() ? g.producer(v) : NodeId{};
  return p.valid() && widens(g, g.node(p)) ? g.node(p).inputs[0] : ValueId{};
}

bool narrows_widened(const Graph& g, const Node& n) {
  return narrows(g, n) && narrow_value(g, n.inputs[0]).valid();
}

bool is_product(const Node& n) { return n.op.is<Convolution>() || n.op.is<MatMul>(); }

bool passes_on(const Graph& g, const Node& n) {
  if (custom_op(n.op)) return n.bodies.empty() && n.outputs.size() == 1 && takes_bf16(g, n);
  if (n.op.is<MaxPool>() || n.op.is<AvgPool>()) return n.bodies.empty() && n.outputs.size() == 1;
  return chooses_elements(n) && !n.op.is<Interpolate>();  // most of its kernels take f32 only
}

bool may_store(const Graph& g, const Node& n) {
  if (n.outputs.size() != 1 || !computes_floats(g, n)) return false;
  return is_product(n) || n.op.is<ConvolutionBackpropData>() || (is_elementwise(n) && !n.op.is<Convert>());
}

Verdict may_multiply(const Context& c, NodeId id) {
  const Graph& g = c.graph;
  const Node& n = g.node(id);
  if (c.exempt(id)) return Verdict::no("'{}' is exempt", g.label(id));
  const auto* w = g.constant(n.inputs[1]);
  if (!w) return Verdict::no("'{}' is no constant", g.value(n.inputs[1]).name);
  if (w->element_type() != ElementType::f32) return Verdict::no("weights are {}", name_of(w->element_type()));
  if (!is_f32(g, n.inputs[0])) return Verdict::no("the input is {}", to_string(g.type(n.inputs[0])));
  if (!g.type(n.outputs[0]).shape.known()) return Verdict::no("the size of its result is not known");
  if (n.bodies.size() > 1) return Verdict::no("it is one node with the convolution before it");
  if (n.op.is<MatMul>() && (g.type(n.inputs[0]).shape.rank() < 2 || w->rank() != 2))
    return Verdict::no("weights of rank {}", w->rank());
  if (has_levels(n) || quantised_operand(g, n.inputs[0])) return Verdict::no("it is quantised");
  if (makes_integers(g, n) || feeds_integers(g, n.outputs[0]))
    return Verdict::no("its result is converted to integers");
  const auto work = work_of(g, n).multiply_adds;
  if (work < kCall * kProducts * c.machine.rates.products && !is_depthwise(g, n))
    return Verdict::no("it takes {:.0f} multiply-adds only", work);
  if (const auto* why = c.why_kept(n.outputs[0]))
    return Verdict::no("control flow or shapes depend on its result: {}", *why);
  return Verdict::yes();
}

double gain(const Machine& machine, const Graph& g, const Node& n) {
  constexpr double kBytes = 14e3, kNear = 256 << 10;
  // Bound by memory, and gains what others bring; or half of each pair of factors is nothing.
  if (is_depthwise(g, n) || (n.op.is<Convolution>() && g.type(n.inputs[1]).shape[1].is(1))) return 0;
  const auto work = work_of(g, n);
  const double weights = 4.0 * static_cast<double>(g.constant(n.inputs[1])->size());
  const double computing = work.multiply_adds / (kProducts * machine.rates.products),
               reading = weights > kNear ? weights / (kBytes * machine.rates.memory) : 0;
  return std::max(computing, reading) / 2;
}

double conversion(const Machine& machine, const Graph& g, ValueId v) {
  constexpr double kBytes = 20e3, kStart = 0.5;
  const auto elements = static_cast<double>(element_count(g.type(v).shape.sizes()));
  return kStart / machine.rates.calls + 6 * elements / (kBytes * machine.rates.memory);
}

Verdict lies_between(const Context& context, ValueId v) { return Between(context).of(v); }

}  // namespace lamina::bf16
