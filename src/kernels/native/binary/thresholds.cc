#include "kernels/native/binary/thresholds.h"

#include <algorithm>
#include <cmath>

#include "interpreter/interpreter.h"
#include "kernels/epilogue.h"
#include "kernels/native/binary/packing.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/eval.h"

namespace lamina::binary {
namespace {

/// So large constants and so many stages make no infinities, whose product by 0 had no order.
constexpr double kLargest = 1000;
constexpr std::size_t kMostStages = 10;

/// One number, or one per output.
bool by_output(const Dims& dims, std::size_t rank) {
  if (dims.size() > rank) return false;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1 && rank - dims.size() + i != 1) return false;
  return true;
}

/// Results follow the running value or run against it: the reference rounds, which keeps the order.
bool rises_or_falls(const Stage& s, std::size_t rank) {
  const auto& op = s.node->op;
  if (op.is<Relu>() || op.is<Clamp>()) return true;
  if (!s.constant || !by_output(s.constant->shape(), rank)) return false;
  const auto values = to_doubles(*s.constant);
  if (!std::all_of(values.begin(), values.end(), [](double v) { return std::fabs(v) <= kLargest; }))
    return false;
  if (op.is<PRelu>())
    return s.running == 0 && std::all_of(values.begin(), values.end(), [](double v) { return v >= 0; });
  return op.is<Add>() || op.is<Subtract>() || op.is<Multiply>() || op.is<Maximum>() || op.is<Minimum>() ||
         op.is<Greater>();
}

/// The epilogue's results for a sum of each output.
class Asked {
 public:
  Asked(const Graph& body, std::int64_t outputs, std::size_t rank) : body_(body), dims_(rank, 1) {
    dims_[1] = outputs;
    body_.set_type(body_.inputs()[0], {ElementType::f32, Shape::of(dims_)});
    body_.infer_types();
  }
  std::vector<bool> operator()(const std::vector<float>& sums) const {
    const auto values = to_floats(interpret(body_, {Tensor::of(dims_, sums)})[0]);
    return {values.begin(), values.end()};
  }

 private:
  Graph body_;
  Dims dims_;
};

}  // namespace

std::optional<Thresholds> thresholds_of(const NodeView& v, std::int64_t counted) {
  const auto rank = v.out_dims().size();
  const auto stages = chain_of(v.node());
  if (v.out_element() != ElementType::boolean || v.inputs() != 2 || !stages || stages->size() > kMostStages)
    return std::nullopt;
  for (const auto& s : *stages)
    if (!rises_or_falls(s, rank)) return std::nullopt;
  const auto outputs = static_cast<std::size_t>(v.out_dims()[1]);
  const Asked asked(*epilogue(v.node()), v.out_dims()[1], rank);
  const auto most = static_cast<float>(counted);
  std::vector<float> low(outputs, -most - 1), high(outputs, most + 1);
  const auto first = asked(low), last = asked(high);
  const auto far = [&] {
    for (std::size_t o = 0; o < outputs; ++o)
      if (high[o] - low[o] > 1) return true;
    return false;
  };
  while (far()) {
    std::vector<float> middle;
    for (std::size_t o = 0; o < outputs; ++o) middle.push_back(std::floor((low[o] + high[o]) / 2));
    const auto found = asked(middle);
    for (std::size_t o = 0; o < outputs; ++o) (found[o] == first[o] ? low : high)[o] = middle[o];
  }
  Thresholds t;
  for (std::size_t o = 0; o < outputs; ++o) {
    t.opposite.push_back(first[o] && !last[o]);
    if (first[o] == last[o])
      t.above.push_back(first[o] ? -most - 1 : most + 1);
    else
      t.above.push_back(first[o] ? -(low[o] + 0.5F) : low[o] + 0.5F);
  }
  return t;
}

Tensor Thresholds::turned(const Tensor& weights) const {
  const auto signs = signs_of(weights);
  const auto row = signs.size() / above.size();
  Ints bits;
  bits.reserve(signs.size());
  for (std::size_t i = 0; i < signs.size(); ++i) bits.push_back((signs[i] != 0) != opposite[i / row]);
  return from_ints(ElementType::u1, weights.shape(), bits);
}

std::string Thresholds::turned_key() const {
  std::string key = " turned ";
  for (std::size_t o = 0; o < opposite.size(); o += 4) {
    unsigned digit = 0;
    for (std::size_t k = o; k < std::min(o + 4, opposite.size()); ++k) digit = 2 * digit + opposite[k];
    key += "0123456789abcdef"[digit];
  }
  return key;
}

std::string Thresholds::above_key() const {
  return {reinterpret_cast<const char*>(above.data()), above.size() * sizeof(above[0])};
}

void Thresholds::take_from(Tensor& starts, std::int64_t outputs, std::int64_t group,
                           std::int64_t stride) const {
  auto values = starts.data<float>();
  const auto row = outputs / group * stride;
  for (std::int64_t kind = 0; kind < static_cast<std::int64_t>(values.size()) / row; ++kind)
    for (std::int64_t o = 0; o < outputs; ++o)
      values[static_cast<std::size_t>(kind * row + o / group * stride + o % group)] -=
          above[static_cast<std::size_t>(o)];
}

}  // namespace lamina::binary
