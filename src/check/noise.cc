#include "check/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/element_types.h"
#include "base/error.h"
#include "base/random.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/quantization.h"
#include "ops/reduction.h"
#include "ops/shaping.h"

namespace lamina::checking {
namespace {

constexpr auto kAnyNumber = std::numeric_limits<std::size_t>::max();

/// A value of the graph, whether it depends on the numbers in the inputs (not only on shapes), and how far
/// one level of the quantiser before it moves an element.
struct Value {
  Tensor tensor;
  bool varies = false;
  double step = 0;
};

double largest_in(const Tensor& t) {
  double out = 0;
  for (const double v : to_doubles(t.to_aligned()))
    if (std::isfinite(v)) out = std::max(out, std::fabs(v));
  return out;
}

/// True for operators that do not round: they choose or move elements, or give levels or booleans.
bool is_exact(const Op& op) {
  return op.has(Trait::selects | Trait::moves | Trait::reads_part | Trait::levels | Trait::control_flow) ||
         op.is<ShapeOf>();
}

/// The distance of the levels that a FakeQuantize gives.
double quantised_step(const FakeQuantize& op, const Tensor& low, const Tensor& high) {
  const auto a = to_doubles(low.to_aligned()), b = to_doubles(high.to_aligned());
  double most = 0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()) && !a.empty() && !b.empty(); ++i)
    most = std::max(most, std::fabs(b[std::min(i, b.size() - 1)] - a[std::min(i, a.size() - 1)]));
  return most / static_cast<double>(std::max<std::int64_t>(op.levels - 1, 1));
}

class NoisyRun {
 public:
  /// `most_bodies`: how often bodies of loops and branches may run.
  NoisyRun(double rounding, std::uint64_t seed, std::size_t most_bodies = kAnyNumber)
      : rounding_(rounding), random_(seed), most_bodies_(most_bodies) {}
  /// How often bodies ran.
  std::size_t bodies() const { return bodies_; }

  std::vector<Value> run(const Graph& graph, const std::vector<Tensor>& inputs) {
    std::vector<Value> values(graph.value_slots());
    std::vector<std::size_t> readers(graph.value_slots(), 0);
    for (std::uint32_t v = 0; v < values.size(); ++v) {
      readers[v] = graph.value({v}).uses.size();
      if (const auto* constant = graph.constant({v})) values[v].tensor = *constant;
    }
    for (const auto& r : graph.results()) ++readers[r.value.index];
    for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = {inputs[i], true, 0};
    for (const auto id : graph.order()) {
      const Node& node = graph.node(id);
      std::vector<Value> in;
      for (const auto v : node.inputs) in.push_back(v.valid() ? values[v.index] : Value{});
      auto out = evaluate(node, in);
      for (std::size_t i = 0; i < node.outputs.size(); ++i)
        if (readers[node.outputs[i].index] != 0) values[node.outputs[i].index] = std::move(out[i]);
      for (const auto v : node.inputs)
        if (v.valid() && --readers[v.index] == 0) values[v.index] = {};
    }
    std::vector<Value> results;
    for (const auto& r : graph.results()) results.push_back(values[r.value.index]);
    return results;
  }

 private:
  std::vector<Value> evaluate(const Node& node, const std::vector<Value>& in) {
    std::vector<Tensor> tensors;
    bool varies = node.op.has(Trait::impure);
    for (const auto& x : in) {
      tensors.push_back(x.tensor);
      varies |= x.varies;
    }
    varies &= !node.op.is<ShapeOf>();
    auto made = evaluate_node(node, tensors, [&](const Graph& body, const std::vector<Tensor>& parameters) {
      if (++bodies_ > most_bodies_) fail(ErrorCode::bad_input, "loops do not end with noise");
      std::vector<Tensor> out;
      for (auto& value : run(body, parameters)) out.push_back(std::move(value.tensor));
      return out;
    });
    const double step = varies ? levels_of(node, in) : 0;
    std::vector<Value> out;
    for (auto& t : made) {
      if (varies && !is_exact(node.op)) t = moved(std::move(t), node.op);
      out.push_back({std::move(t), varies, step});
    }
    return out;
  }

  static double levels_of(const Node& node, const std::vector<Value>& in) {
    const Op& op = node.op;
    if (const auto* q = op.as<FakeQuantize>()) return quantised_step(*q, in.at(3).tensor, in.at(4).tensor);
    if (op.has(Trait::levels)) return 1;
    double most = 0;
    for (const auto& x : in) most = std::max(most, x.step);
    if (is_exact(op) || op.is<Convert>()) return most;
    const bool one_varies = std::count_if(in.begin(), in.end(), [](auto& x) { return x.varies; }) == 1;
    if (most == 0 || !one_varies) return 0;
    if (op.is<Dequantize>()) return most * largest_in(in.at(1).tensor);
    if (op.is<Multiply>()) return most * largest_in(in.at(in[0].varies ? 1 : 0).tensor);
    if (op.is<Softmax>() || op.is<Sigmoid>()) return most / 4;  // their steepest slope is 1/4
    if (op.is<Relu>() || op.is<Clamp>() || op.is<Tanh>()) return most;
    return op.is<Add>() || op.is<Subtract>() ? most : 0;
  }

  Tensor moved(Tensor t, const Op& op) {
    if (!t.valid() || !is_float(t.element_type()) || t.size() == 0) return t;
    auto values = to_doubles(t.to_aligned());
    double base = 0;
    if (!op.has(Trait::elementwise) && !op.is<Softmax>()) {
      std::size_t count = 0;
      for (const double v : values)
        if (std::isfinite(v)) base += v * v, ++count;
      base = count ? std::sqrt(base / static_cast<double>(count)) : 0;
    }
    for (auto& v : values) {
      if (!std::isfinite(v) || v == std::nearbyint(v)) continue;
      v += random_.uniform() * rounding_ * std::max(std::fabs(v), base);
    }
    return from_doubles(t.element_type(), t.shape(), values);
  }

  double rounding_;
  SplitMix random_;
  std::size_t bodies_ = 0, most_bodies_;
};

/// How often bodies may run in a run with noise. A loop that ends when its numbers no longer change does not
/// end while noise changes them.
std::size_t most_bodies(const Graph& graph, const std::vector<Tensor>& inputs) {
  constexpr std::size_t kTimes = 4, kMore = 16;
  const auto order = graph.order();
  const auto runs_bodies = [&](NodeId id) { return graph.node(id).op.has(Trait::control_flow); };
  if (std::none_of(order.begin(), order.end(), runs_bodies)) return kAnyNumber;
  NoisyRun exact(0, 0);
  exact.run(graph, inputs);
  return kTimes * exact.bodies() + kMore;
}

}  // namespace

NoisyRuns run_with_noise(const Graph& graph, const std::vector<Tensor>& inputs, const NoiseOptions& options) {
  NoisyRuns out;
  out.steps.resize(graph.results().size(), 0);
  const auto most = most_bodies(graph, inputs);
  for (int k = 0; k < options.runs; ++k) {
    std::vector<Tensor> results(graph.results().size());
    try {
      auto values = NoisyRun(options.rounding, static_cast<std::uint64_t>(k) + 1, most).run(graph, inputs);
      for (std::size_t r = 0; r < values.size(); ++r) {
        results[r] = std::move(values[r].tensor);
        out.steps[r] = std::max(out.steps[r], values[r].step);
      }
    } catch (const Error&) {  // a choice led to an index or a size that does not fit, or a loop did not end
    }
    out.results.push_back(std::move(results));
  }
  return out;
}

}  // namespace lamina::checking
