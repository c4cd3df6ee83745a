#include "explain/product_costs.h"

#include <algorithm>
#include <cstring>

#include "base/arena.h"
#include "base/random.h"
#include "kernels/epilogue.h"
#include "ops/convolution.h"
#include "ops/convolution_depthwise.h"
#include "ops/decompose.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/quantization.h"

namespace lamina {
namespace {

bool is_product(const Graph& g, const Node& n) {
  const bool kind = n.op.is<Convolution>() || n.op.is<ConvolutionBackpropData>() || n.op.is<MatMul>();
  if (!kind || !g.type(n.inputs[1]).shape.known()) return false;
  const auto type = g.type(n.inputs[0]).element;
  if (!g.constant(n.inputs[1])) return bits_of(type) == 8;  // as the model says: nobody would make it so
  return type == ElementType::f32 || type == ElementType::bf16 || type == ElementType::u8 ||
         type == ElementType::i8;
}

/// bf16 numbers have f32 sums.
Op with_sums(const Op& op, ElementType sums) {
  const auto changed = [&](auto copy) {
    copy.sums = sums;
    return Op(copy);
  };
  if (const auto* c = op.as<Convolution>()) return changed(*c);
  if (const auto* b = op.as<ConvolutionBackpropData>()) return changed(*b);
  return changed(*op.as<MatMul>());
}

/// Kernels for integers look at weights: these fill the whole range, as those of real models do.
Tensor weights_of(ElementType type, const Dims& dims) {
  Tensor t(type, dims);
  if (bits_of(type) == 8) {
    SplitMix random(1);
    auto* bytes = t.raw();
    for (std::size_t i = 0; i < t.bytes(); i += 8) {
      const auto word = random.next();
      std::memcpy(bytes + i, &word, std::min<std::size_t>(8, t.bytes() - i));
    }
  }
  return t;
}

/// Sums of integers become numbers, and these 8 bits again.
Graph to_8_bits(const TensorType& sums) {
  Graph body;
  auto y = body.add(Convert{ElementType::f32}, {body.add_input("result", sums)});
  y = body.add(Multiply{}, {y, body.add_constant(Tensor::of<float>({}, std::vector<float>{0.01f}))});
  y = body.add(Quantize{}, {y, body.add_constant(Tensor::of<float>({}, std::vector<float>{1}))});
  body.add_result("y", y);
  return body;
}

struct Alone {
  Graph graph;
  NodeId node;
};

/// The product without what was fused into it, in that type.
Alone alone(const Graph& g, const Node& n, ElementType type) {
  const bool integers = bits_of(type) == 8;
  Alone out;
  Graph& one = out.graph;
  const auto weights_type = integers ? ElementType::i8 : type;
  std::vector<ValueId> inputs{one.add_input("x", {type, g.type(n.inputs[0]).shape})};
  if (const auto* own = g.constant(n.inputs[1]); !own)
    inputs.push_back(one.add_input("w", {weights_type, g.type(n.inputs[1]).shape}));
  else if (own->element_type() == weights_type && own->raw())  // what is packed may be gone
    inputs.push_back(one.add_constant(*own));
  else
    inputs.push_back(one.add_constant(weights_of(weights_type, own->shape())));
  if (n.op.is<ConvolutionBackpropData>() && n.inputs.size() > 3 && n.inputs[3].valid())
    if (const auto* sizes = g.constant(n.inputs[3])) inputs.resize(4), inputs[3] = one.add_constant(*sizes);
  const auto op = with_sums(n.op, type == ElementType::bf16 ? ElementType::f32 : ElementType::undefined);
  out.node = one.add_node(op, inputs);
  if (integers) {
    std::vector<Graph> bodies;
    bodies.push_back(to_8_bits(one.type(one.node(out.node).outputs[0])));
    one.erase(out.node);
    out.node = one.add_node(op, std::move(inputs), "", -1, std::move(bodies));
  }
  one.add_result("y", one.node(out.node).outputs[0]);
  return out;
}

/// The best offer; what it leaves of the epilogue is a step behind it. 0: there is none.
double estimate(const Graph& g, const Node& n, ElementType type, const Machine& machine) {
  try {
    const auto one = alone(g, n, type);
    const Node& node = one.graph.node(one.node);
    const auto elements = element_count(one.graph.type(node.outputs[0]).shape.sizes());
    double best = 0;
    for (const auto& offer : ask_kernels(NodeView(one.graph, one.node, machine)).offers) {
      if (offer.last_resort) continue;
      auto cost = offer.cost;
      if (const auto* body = epilogue(node)) {
        const auto order = body->order();
        for (auto i = std::min(offer.stages, order.size()); i < order.size(); ++i)
          cost += later_stage_cost(machine, body->node(order[i]).op, elements);
      }
      if (best == 0 || cost.us() < best) best = cost.us();
    }
    return best;
  } catch (const Error& e) {
    if (e.code() == ErrorCode::canceled) throw;
    return 0;  // too large within the model's limits, too: explain says less then
  }
}

class Asker {
 public:
  explicit Asker(const Machine& machine) : machine_(machine), bf16_(multiplies_bf16(machine)) {}

  void add(const Graph& g, const Node& n, const std::string& layer) {
    if (!is_product(g, n)) return;
    const bool constant = g.constant(n.inputs[1]) != nullptr;
    Known key{with_sums(n.op, ElementType::undefined),
              g.type(n.inputs[0]).shape.sizes(),
              g.type(n.inputs[1]).shape.sizes(),
              constant,
              {}};
    auto it = std::find_if(known_.begin(), known_.end(), [&](const Known& k) {
      return k.x == key.x && k.weights == key.weights && k.constant == key.constant && k.op == key.op;
    });
    if (it == known_.end()) {
      key.cost.f32 = estimate(g, n, ElementType::f32, machine_);
      key.cost.i8 = estimate(g, n, ElementType::u8, machine_);
      if (bf16_ && constant && !n.op.is<ConvolutionBackpropData>())
        key.cost.bf16 = estimate(g, n, ElementType::bf16, machine_);
      it = known_.insert(known_.end(), std::move(key));
    }
    out_.push_back(it->cost);
    out_.back().layer = layer;
    out_.back().runs = g.type(n.inputs[0]).element;
  }
  std::vector<ProductCost> take() { return std::move(out_); }

 private:
  /// Layers that repeat are asked about once.
  struct Known {
    Op op;
    Dims x, weights;
    bool constant;
    ProductCost cost;
  };
  const Machine& machine_;
  bool bf16_;
  std::vector<Known> known_;
  std::vector<ProductCost> out_;
};

}  // namespace

std::vector<ProductCost> product_costs(const std::vector<std::shared_ptr<const Plan>>& plans,
                                       const Machine& machine, int threads) {
  Asker asker(machine);
  on_threads(threads, [&] {
    for (const auto& plan : plans)
      for (const auto& step : plan->steps) {
        if (step.kind != PlanStep::Kind::kernel) continue;
        const Node& n = plan->graph.node(step.node);
        asker.add(plan->graph, n, step.name);
        if (!n.op.is<ConvolutionDepthwise>()) continue;
        const auto parts = decomposition_of(plan->graph, step.node);  // two convolutions in one step
        for (const auto id : parts.nodes) asker.add(parts.graph, parts.graph.node(id), step.name);
      }
  });
  return asker.take();
}

}  // namespace lamina
