#include "kernels/native/stages/sign_changes.h"

#include <algorithm>
#include <cmath>

#include "interpreter/interpreter.h"
#include "kernels/epilogue.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/eval.h"
#include "ops/quantization.h"

namespace lamina {
namespace {

/// Bounds of constants and of the number of stages: beyond them infinities may arise, whose product by 0 has
/// no order.
constexpr double kLargest = 1000;
constexpr std::size_t kMostStages = 9;

/// One number, or one per channel.
bool by_channel(const Dims& dims, std::size_t rank) {
  if (dims.size() > rank) return false;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1 && rank - dims.size() + i != 1) return false;
  return true;
}

/// All but the running value are constants, none so large.
bool by_small_constants(const Graph& body, const Node& n, std::size_t rank) {
  for (std::size_t i = 1; i < n.inputs.size(); ++i) {
    const auto* t = n.inputs[i].valid() ? body.constant(n.inputs[i]) : nullptr;
    if (n.inputs[i].valid() && (!t || !by_channel(t->shape(), rank))) return false;
    for (const double v : t ? to_doubles(*t) : std::vector<double>())
      if (!(std::fabs(v) <= kLargest)) return false;
  }
  return true;
}

/// Steps that round; their scales and input ranges rise.
bool rounds_in_order(const Graph& body, const Node& n, std::size_t rank) {
  if (!by_small_constants(body, n, rank)) return false;
  const auto numbers = [&](std::size_t input) { return to_doubles(*body.constant(n.inputs[input])); };
  if (n.op.is<FakeQuantize>()) {
    const auto low = numbers(1), high = numbers(2);
    return low.size() == 1 && high.size() == 1 && low[0] < high[0];
  }
  const auto* q = n.op.as<Quantize>();
  const auto* d = n.op.as<Dequantize>();
  return ((q && q->block_size == 0) || (d && d->block_size == 0)) && numbers(1).size() == 1 &&
         numbers(1)[0] > 0;
}

/// Results follow the running value or run against it: the reference rounds, which keeps the order.
bool rises_or_falls(const Graph& body, const Stage& s, std::size_t rank) {
  const auto& op = s.node->op;
  if (op.is<FakeQuantize>() || op.is<Quantize>() || op.is<Dequantize>())
    return s.running == 0 && rounds_in_order(body, *s.node, rank);
  if (op.is<Relu>() || op.is<Clamp>()) return true;
  if (const auto* convert = op.as<Convert>()) return convert->destination_type == ElementType::f32;
  if (!s.constant || !by_channel(s.constant->shape(), rank)) return false;
  const auto values = to_doubles(*s.constant);
  if (!std::all_of(values.begin(), values.end(), [](double v) { return std::fabs(v) <= kLargest; }))
    return false;
  if (op.is<PRelu>())
    return s.running == 0 && std::all_of(values.begin(), values.end(), [](double v) { return v >= 0; });
  return op.is<Add>() || op.is<Subtract>() || op.is<Multiply>() || op.is<Maximum>() || op.is<Minimum>() ||
         op.is<Greater>();
}

/// The epilogue's results for a sum of each channel.
class Asked {
 public:
  Asked(const Graph& body, ElementType sums, std::int64_t channels, std::size_t rank)
      : body_(body), sums_(sums), dims_(rank, 1) {
    dims_[1] = channels;
    body_.set_type(body_.inputs()[0], {sums, Shape::of(dims_)});
    body_.infer_types();
  }
  std::vector<bool> operator()(const std::vector<double>& sums) const {
    const auto values = to_floats(interpret(body_, {from_doubles(sums_, dims_, sums)})[0]);
    return {values.begin(), values.end()};
  }

 private:
  Graph body_;
  ElementType sums_;
  Dims dims_;
};

}  // namespace

std::optional<SignChanges> sign_changes(const NodeView& v, ElementType sums, double least, double most) {
  const auto rank = v.out_dims().size();
  if (v.out_element() != ElementType::boolean || rank < 2) return std::nullopt;
  const auto stages = chain_of(v.node());
  if (!stages || stages->size() > kMostStages) return std::nullopt;
  for (const auto& s : *stages)
    if (!rises_or_falls(*epilogue(v.node()), s, rank)) return std::nullopt;
  const auto channels = static_cast<std::size_t>(v.out_dims()[1]);
  const Asked asked(*epilogue(v.node()), sums, v.out_dims()[1], rank);
  std::vector<double> low(channels, least), high(channels, most);
  SignChanges found{asked(low), asked(high), {}};
  const auto far = [&] {
    for (std::size_t c = 0; c < channels; ++c)
      if (high[c] - low[c] > 1) return true;
    return false;
  };
  while (far()) {
    std::vector<double> middle;
    for (std::size_t c = 0; c < channels; ++c) middle.push_back(std::floor((low[c] + high[c]) / 2));
    const auto signs = asked(middle);
    for (std::size_t c = 0; c < channels; ++c) (signs[c] == found.first[c] ? low : high)[c] = middle[c];
  }
  found.at = std::move(low);
  return found;
}

}  // namespace lamina
