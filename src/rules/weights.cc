#include "rules/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/convolution.h"
#include "ops/matmul.h"

namespace lamina {
namespace {

std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Output and input channel of an element of the weights.
struct Channels {
  std::size_t out, in;
};

/// For an index into the first two axes of convolution weights, or into the last two of a matrix.
std::function<Channels(std::size_t, std::size_t)> channels_of(const Node& host, const Dims& w) {
  if (const auto* conv = host.op.as<Convolution>()) {
    const auto rows = count(w[0] / conv->groups), inputs = count(w[1]);
    return [=](std::size_t a, std::size_t b) { return Channels{a, a / rows * inputs + b}; };
  }
  if (const auto* back = host.op.as<ConvolutionBackpropData>()) {
    const auto inputs = count(w[0] / back->groups), rows = count(w[1]);
    return [=](std::size_t a, std::size_t b) { return Channels{a / inputs * rows + b, a}; };
  }
  const bool transposed = host.op.as<MatMul>()->transpose_b;
  return [=](std::size_t a, std::size_t b) { return transposed ? Channels{a, b} : Channels{b, a}; };
}

}  // namespace

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}
bool all_finite(const Tensor& tensor) {
  if (tensor.element_type() != ElementType::f32) return all_finite(to_doubles(tensor));
  const auto* bytes = tensor.raw();
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    float v;
    std::memcpy(&v, bytes + i * sizeof(v), sizeof(v));
    if (!std::isfinite(v)) return false;
  }
  return true;
}

Verdict foldable(const Match& m, const Pattern& host) {
  const Graph& g = m.graph();
  const Node& n = m.node(host);
  if (epilogue(n)) return Verdict::no("{} has an epilogue already", m.label(host));
  const auto* w = g.constant(n.inputs[1]);
  if (!w) return Verdict::no("the weights of {} are not a constant", m.label(host));
  if (!is_float(w->element_type()) || !is_float(g.type(n.outputs[0]).element))
    return Verdict::no("{} computes with integers", m.label(host));
  if (w->rank() < 2 || (n.op.is<MatMul>() && (has_input(n, 3) || has_input(n, 4))))
    return Verdict::no("{} has no matrix of weights", m.label(host));
  return Verdict::yes();
}

Tensor scaled_weights(const Graph& graph, const Node& host,
                      const std::function<double(std::size_t, std::size_t)>& factor) {
  const Tensor& w = *graph.constant(host.inputs[1]);
  const auto& dims = w.shape();
  const auto channels = channels_of(host, dims);
  const bool matrix = host.op.is<MatMul>();
  const std::size_t first = matrix ? dims.size() - 2 : 0;
  const auto rows = count(dims[first]), columns = count(dims[first + 1]);
  std::size_t inner = 1;
  for (std::size_t i = first + 2; i < dims.size(); ++i) inner *= count(dims[i]);
  const auto scale = [&](auto* values) {  // of the innermost axes at once: they share a factor
    for (std::size_t i = 0; i < w.size(); i += inner) {
      const auto c = channels(i / inner / columns % rows, i / inner % columns);
      const double f = factor(c.out, c.in);
      for (std::size_t k = i; k < i + inner; ++k)
        values[k] = static_cast<std::remove_reference_t<decltype(values[k])>>(values[k] * f);
    }
  };
  if (w.element_type() == ElementType::f32) {  // without a detour by wider numbers: weights can be large
    Tensor scaled = w.clone();
    scale(scaled.data<float>().data());
    return scaled;
  }
  auto values = to_doubles(w);
  scale(values.data());
  return from_doubles(w.element_type(), dims, values);
}

Verdict bias_is_constant(const Graph& graph, const Node& host) {
  if (!has_input(host, 2)) return Verdict::yes();
  if (!graph.constant(host.inputs[2])) return Verdict::no("its bias is not a constant");
  if (host.op.is<MatMul>())
    return one_per_channel("its bias", graph.type(host.inputs[2]).shape, graph.type(host.outputs[0]).shape,
                           channel_axis(graph, host));
  return Verdict::yes();
}

std::vector<double> bias_values(const Graph& graph, const Node& host, std::size_t channels) {
  if (!has_input(host, 2)) return std::vector<double>(channels, 0.0);
  return per_channel(*graph.constant(host.inputs[2]), channels);
}

ValueId rebuilt(Rewrite& r, const Pattern& host, const Tensor& weights, const std::vector<double>& bias) {
  const Node& n = r.match().node(host);
  auto inputs = n.inputs;
  const auto& graph = r.graph();
  const auto label = [&](std::size_t i, const char* suffix) {
    return has_input(n, i) ? graph.value(n.inputs[i]).name : n.name.empty() ? std::string() : n.name + suffix;
  };
  if (weights.valid()) inputs[1] = r.constant(weights, label(1, ".weights"));
  if (!bias.empty()) {
    if (inputs.size() < 3) inputs.resize(3);
    inputs[2] = r.constant(
        from_doubles(graph.type(n.outputs[0]).element, {static_cast<std::int64_t>(bias.size())}, bias),
        label(2, ".bias"));
  }
  r.named_after(host);
  return r.add(Op(n.op), std::move(inputs));
}

}  // namespace lamina
