#include "tests/property/stability.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random.h"
#include "interpreter/interpreter.h"
#include "ops/elementwise.h"
#include "ops/pooling.h"
#include "ops/quantization.h"
#include "ops/sorting.h"
#include "tests/support/mismatch.h"

namespace lamina::testing {
namespace {

constexpr double kMargin = 1e-4;
constexpr double kNoise = 1e-5;

double largest(const std::vector<double>& values) {
  double m = 0;
  for (double v : values)
    if (std::isfinite(v)) m = std::max(m, std::fabs(v));
  return m;
}

/// The value comes from the graph's inputs and constants by moving elements only.
bool exact(const Graph& graph, ValueId v) {
  const auto p = graph.producer(v);
  if (!p.valid()) return true;
  const auto& node = graph.node(p);
  const auto& name = node.op.info().name;
  static constexpr std::string_view kMoves[] = {"Transpose", "Concat", "Split",   "Slice", "StridedSlice",
                                                "Gather",    "Pad",    "Tile",    "Relu",  "VariadicSplit",
                                                "Broadcast", "Abs",    "Negative"};
  if (!node.op.has(Trait::keeps_values) &&
      std::find(std::begin(kMoves), std::end(kMoves), name) == std::end(kMoves))
    return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId i) { return !i.valid() || exact(graph, i); });
}

/// Distance to the nearest number of the form n + offset.
double to_grid(double x, double offset) {
  const double t = x - offset;
  return std::fabs(t - std::nearbyint(t));
}

/// An element closer than `margin` to such a number.
bool near_grid(const std::vector<double>& values, double offset, double margin) {
  return std::any_of(values.begin(), values.end(), [&](double x) { return to_grid(x, offset) < margin; });
}

bool near_zero(const std::vector<double>& values, double margin) {
  return std::any_of(values.begin(), values.end(), [&](double x) { return std::fabs(x) < margin; });
}

/// A binary operator in double.
Tensor apply(Op op, const Tensor& a, const Tensor& b) {
  Node node;
  node.op = std::move(op);
  node.inputs = {ValueId{0}, ValueId{1}};
  node.outputs.resize(1);
  return interpret_node(node, {convert(a, ElementType::f64), convert(b, ElementType::f64)})[0];
}

bool compares(std::string_view name) {
  return name == "Less" || name == "LessEqual" || name == "Greater" || name == "GreaterEqual" ||
         name == "Equal" || name == "NotEqual";
}

/// Any two elements along the axis (all elements: -1) closer than the margin.
bool has_near_ties(const Tensor& x, std::int64_t axis, double margin) {
  const auto values = to_doubles(x);
  std::int64_t inner = 1, length = static_cast<std::int64_t>(values.size());
  if (axis >= 0) {
    length = x.shape()[static_cast<std::size_t>(axis)];
    for (auto i = static_cast<std::size_t>(axis) + 1; i < x.rank(); ++i) inner *= x.shape()[i];
  }
  if (length == 0) return false;
  for (std::int64_t line = 0; line < static_cast<std::int64_t>(values.size()) / length; ++line) {
    std::vector<double> sorted;
    const auto start = line / inner * inner * length + line % inner;
    for (std::int64_t i = 0; i < length; ++i)
      sorted.push_back(values[static_cast<std::size_t>(start + i * inner)]);
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i] - sorted[i - 1] < margin) return true;
  }
  return false;
}

bool fake_quantize_is_near(const FakeQuantize& op, const std::vector<Tensor>& in) {
  const auto width = apply(Subtract{}, in[2], in[1]);
  if (near_zero(to_doubles(width), 1e-3)) return true;
  const auto position = apply(Divide{}, apply(Subtract{}, in[0], in[1]), width);
  const auto steps = static_cast<double>(op.levels - 1);
  for (const double p : to_doubles(position)) {
    const double t = p * steps;
    if (t > 0 && t < steps && to_grid(t, 0.5) < 2e-5 * steps + 1e-4) return true;
  }
  return false;
}

bool quantize_is_near(const Quantize& op, const std::vector<Tensor>& in) {
  if (op.block_size > 0) return true;  // only on exact values
  Dims shape(in[1].size() == 1 ? 0 : in[0].rank(), 1);
  if (!shape.empty()) shape[normalize_axis(op.axis, in[0].rank(), "axis")] = in[1].shape()[0];
  const auto scale = from_doubles(ElementType::f64, shape, to_doubles(in[1]));
  const auto scales = to_doubles(scale);
  const double margin = 2e-5 * largest(to_doubles(in[0])) / *std::min_element(scales.begin(), scales.end());
  return near_grid(to_doubles(apply(Divide{}, in[0], scale)), 0.5, margin);
}

}  // namespace

std::string near_discontinuity(const Graph& graph, NodeId id, const std::vector<Tensor>& in,
                               const std::vector<Tensor>& out) {
  const auto& node = graph.node(id);
  if (in.empty() || !in[0].valid()) return {};
  bool all_exact = true;
  for (auto v : node.inputs) all_exact &= !v.valid() || exact(graph, v);
  const auto name = node.op.info().name;
  const bool floats = is_float(in[0].element_type());
  if (all_exact || !floats || in[0].size() == 0) return {};
  const auto say = [&](bool near) { return near ? std::string(name) + " next to a jump" : std::string(); };
  const auto x = to_doubles(in[0]);
  const double margin = kMargin * std::max(1.0, largest(x));
  if (const auto* fq = node.op.as<FakeQuantize>()) return say(fake_quantize_is_near(*fq, in));
  if (name == "Round") return say(near_grid(x, 0.5, margin));
  if (name == "Floor" || name == "Ceiling") return say(near_grid(x, 0, margin));
  if (name == "Sign" || name == "NonZero" || name == "BinaryConvolution") return say(near_zero(x, margin));
  if (compares(name)) return say(near_zero(to_doubles(apply(Subtract{}, in[0], in[1])), margin));
  if (name == "Mod" || name == "FloorMod")
    return say(near_grid(to_doubles(apply(Divide{}, in[0], in[1])), 0, margin));
  if (name == "Convert" && !is_float(out[0].element_type()))
    return say(out[0].element_type() == ElementType::boolean ? near_zero(x, margin)
                                                             : near_grid(x, 0, margin));
  if (const auto* topk = node.op.as<TopK>()) {
    const auto axis = normalize_axis(topk->axis, in[0].rank(), "axis");
    return say(has_near_ties(in[0], static_cast<std::int64_t>(axis), margin));
  }
  if (node.op.is<MaxPool>() || node.op.is<AdaptiveMaxPool>())
    return say(node.outputs.size() > 1 && has_near_ties(in[0], -1, margin));
  if (const auto* quantize = node.op.as<Quantize>()) return say(quantize_is_near(*quantize, in));
  if (node.op.is<DynamicQuantize>()) return say(true);
  return {};
}

namespace {

/// Kernels may square it in f32, which the interpreter does in double.
bool is_moderate(const Tensor& t) {
  if (!is_float(t.element_type())) return true;
  const auto values = to_doubles(t);
  return std::all_of(values.begin(), values.end(), [](double v) { return std::fabs(v) < 1e16; });
}

/// Whether rounding errors arise in this node.
bool computes(const Node& node) {
  static constexpr std::string_view kExact[] = {"Relu",   "Clamp",    "Maximum",   "Minimum",  "Abs",
                                                "Sign",   "Negative", "Round",     "Floor",    "Ceiling",
                                                "Select", "MaxPool",  "ReduceMax", "ReduceMin"};
  const auto name = node.op.info().name;
  if (node.op.has(Trait::keeps_values)) return false;
  return std::find(std::begin(kExact), std::end(kExact), name) == std::end(kExact);
}

void disturb(Tensor& t, SplitMix& random) {
  if (!is_float(t.element_type()) || t.size() == 0) return;
  auto values = to_doubles(t);
  const double size = kNoise * largest(values);
  for (auto& v : values) v += size * random.uniform();
  t = from_doubles(t.element_type(), t.shape(), values);
}

std::vector<Tensor> disturbed(const Graph& graph, const std::vector<Tensor>& inputs, std::uint64_t seed) {
  SplitMix random(seed);
  std::vector<Tensor> values(graph.value_slots());
  for (std::uint32_t v = 0; v < values.size(); ++v)
    if (const auto* c = graph.constant({v})) values[v] = *c;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
  for (const auto id : graph.order()) {
    const auto& node = graph.node(id);
    std::vector<Tensor> in;
    for (auto v : node.inputs) in.push_back(v.valid() ? values[v.index] : Tensor());
    auto out = interpret_node(node, in);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (computes(node) && !exact(graph, node.outputs[i])) disturb(out[i], random);
      values[node.outputs[i].index] = std::move(out[i]);
    }
  }
  std::vector<Tensor> results;
  for (const auto& r : graph.results()) results.push_back(values[r.value.index]);
  return results;
}

}  // namespace

Reference reference(const Graph& graph, const std::vector<Tensor>& inputs) {
  Reference found;
  InterpreterOptions options;
  options.observe = [&](const Graph& g, NodeId id, const std::vector<Tensor>& in,
                        const std::vector<Tensor>& out) {
    if (found.unstable.empty()) found.unstable = near_discontinuity(g, id, in, out);
    // Wide integers as floats: what reads them is made so that it does not matter.
    const bool converts = g.node(id).op.is<Convert>() && !is_float(in[0].element_type());
    if (!converts && !std::all_of(out.begin(), out.end(), is_moderate))
      found.unstable = "a value is huge or not finite";
  };
  found.results = interpret(graph, inputs, options);
  for (std::uint64_t seed = 1; seed <= 2 && found.unstable.empty(); ++seed) {
    std::vector<Tensor> other;
    try {
      other = disturbed(graph, inputs, seed);
    } catch (const Error&) {
      found.unstable = "an error of 1e-5 makes it fail";
      return found;
    }
    for (std::size_t r = 0; r < other.size() && found.unstable.empty(); ++r)
      if (!mismatch(other[r], found.results[r], 0.3).empty())
        found.unstable = "an error of 1e-5 grows too large";
  }
  return found;
}

}  // namespace lamina::testing
