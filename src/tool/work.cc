#include "tool/work.h"

#include <algorithm>

#include "ops/attention.h"
#include "ops/convolution_depthwise.h"
#include "ops/matmul.h"
#include "ops/pooling.h"
#include "ops/recurrent.h"

namespace lamina::tool {
namespace {

/// Shapes of one node as numbers.
class Shapes {
 public:
  Shapes(const Graph& g, const Node& n) : g_(g), n_(n) {}

  bool has(std::size_t i) const { return i < n_.inputs.size() && n_.inputs[i].valid(); }
  bool known() const {
    const auto fits = [&](ValueId v) { return !v.valid() || g_.type(v).shape.known(); };
    return std::all_of(n_.inputs.begin(), n_.inputs.end(), fits) &&
           std::all_of(n_.outputs.begin(), n_.outputs.end(), fits);
  }
  double in(std::size_t i) const { return has(i) ? count(n_.inputs[i]) : 0; }
  double out(std::size_t i = 0) const { return count(n_.outputs[i]); }
  /// Size of an axis, counted from the end when negative; 1 when there is no such axis.
  double axis(std::size_t input, int axis) const {
    const auto dims = g_.type(n_.inputs[input]).shape.sizes();
    const auto at = axis < 0 ? axis + static_cast<int>(dims.size()) : axis;
    return at < 0 || at >= static_cast<int>(dims.size())
               ? 1
               : static_cast<double>(std::max<std::int64_t>(1, dims[static_cast<std::size_t>(at)]));
  }
  std::size_t rank(std::size_t input) const { return g_.type(n_.inputs[input]).shape.rank(); }
  double bytes(ValueId v) const {
    return v.valid() && g_.type(v).shape.known() ? count(v) * bits_of(g_.type(v).element) / 8 : 0;
  }

 private:
  double count(ValueId v) const {
    const auto& shape = g_.type(v).shape;
    return shape.known() ? static_cast<double>(element_count(shape.sizes())) : 0;
  }
  const Graph& g_;
  const Node& n_;
};

double product(const Ints& values) {
  double p = 1;
  for (const auto v : values) p *= static_cast<double>(v);
  return p;
}

double recurrent(const Shapes& s, std::size_t w, bool sequence) {
  const double steps = s.axis(0, 0) * (sequence ? s.axis(0, 1) : 1);  // batch and time
  return steps * (s.in(w) + s.in(w + 1));
}

/// Of a convolution before a depthwise one: it is the node's second body.
double multiply_adds_before(const Node& n) {
  double sum = 0;
  const auto& body = n.bodies.at(1);
  for (const auto id : body.order()) sum += work_of(body, body.node(id)).multiply_adds;
  return sum;
}

double multiply_adds(const Node& n, const Shapes& s) {
  const auto& op = n.op;
  if (op.is<ConvolutionDepthwise>()) return s.out() * s.in(1) / s.axis(1, 0) + multiply_adds_before(n);
  if (op.is<Convolution>() || op.is<BinaryConvolution>()) return s.out() * s.in(1) / s.axis(1, 0);
  if (op.is<ConvolutionBackpropData>()) return s.in(0) * s.in(1) / s.axis(1, 0);
  if (op.name() == "DeformableConvolution") return s.out() * s.in(2) / s.axis(2, 0);
  if (const auto* m = op.as<MatMul>()) return s.out() * s.axis(0, m->transpose_a && s.rank(0) > 1 ? -2 : -1);
  if (op.is<ScaledDotProductAttention>())  // q * k and the probabilities * v
    return s.in(0) * s.axis(1, -2) + s.out() * s.axis(1, -2);
  if (op.is<LSTMSequence>()) return recurrent(s, 4, true);
  if (op.is<GRUSequence>() || op.is<RNNSequence>()) return recurrent(s, 3, true);
  if (op.is<LSTMCell>()) return recurrent(s, 3, false);
  if (op.is<GRUCell>() || op.is<RNNCell>()) return recurrent(s, 2, false);
  return 0;
}

/// Operations of other kinds, roughly.
double others(const Node& n, const Shapes& s) {
  const auto& op = n.op;
  if (op.has(Trait::elementwise)) return s.out();
  if (const auto* pool = op.as<MaxPool>()) return s.out() * product(pool->kernel);
  if (const auto* pool = op.as<AvgPool>()) return s.out() * product(pool->kernel);
  const auto name = op.name();
  if (name.starts_with("Reduce")) return s.in(0);
  if (name == "Softmax" || name == "LogSoftmax") return 4 * s.out();
  if (name.ends_with("Normalization") || name == "MVN" || name == "LRN" || name == "NormalizeL2" ||
      name == "GRN")
    return 5 * s.out();
  if (name == "BatchNormInference") return 2 * s.out();
  if (name == "Interpolate" || name == "GridSample") return 4 * s.out();
  return 0;
}

/// Picks a part of its first input: the rest is not read.
bool reads_a_part(const Op& op) {
  const auto name = op.name();
  return name.starts_with("Gather") || name == "Slice" || name == "StridedSlice";
}

}  // namespace

Work work_of(const Graph& g, const Node& n) {
  const Shapes s(g, n);
  Work w;
  w.known = s.known();
  if (n.outputs.empty()) return w;
  double out = 0;
  for (const auto v : n.outputs) out += s.bytes(v);
  w.bytes = out;
  if (!n.op.has(Trait::keeps_values))
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      w.bytes += i == 0 && reads_a_part(n.op) ? std::min(out, s.bytes(n.inputs[i])) : s.bytes(n.inputs[i]);
  if (!w.known) return w;
  w.multiply_adds = multiply_adds(n, s);
  w.others = others(n, s);
  if (const Graph* stages = epilogue(n)) w.others += s.out() * static_cast<double>(stages->node_count());
  return w;
}

}  // namespace lamina::tool
