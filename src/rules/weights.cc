#include "rules/weights.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/parallel.h"
#include "base/work_partition.h"
#include "ops/convolution.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "rules/linear.h"
#include "rules/stored_weights.h"

namespace lamina {
namespace {

std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Rows [begin, end) of weights, counted through all matrices.
template <class T>
void scale_rows(const WeightsMatrix& m, bool by_row, const std::vector<double>& factors, std::size_t begin,
                std::size_t end, T* values) {
  const auto multiply = [](T* v, std::size_t n, double f) {
    for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<T>(v[i] * f);
  };
  for (auto r = begin; r < end; ++r) {
    const auto row = r % m.rows;
    T* v = values + r * m.columns * m.inner;
    if (by_row) {
      multiply(v, m.columns * m.inner, factors[row]);
      continue;
    }
    const double* f = factors.data() + m.column_channel(row, 0);
    if (m.inner == 1)
      for (std::size_t c = 0; c < m.columns; ++c) v[c] = static_cast<T>(v[c] * f[c]);
    else
      for (std::size_t c = 0; c < m.columns; ++c) multiply(v + c * m.inner, m.inner, f[c]);
  }
}

}  // namespace

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}
namespace {

/// What is among numbers of f32, zeros among the small ones.
struct Kinds {
  bool infinite = false, small = false;
};

Kinds kinds_of(const Tensor& tensor) {
  constexpr std::int64_t kPiece = 1 << 16;
  const auto size = static_cast<std::int64_t>(tensor.size());
  std::atomic<bool> infinite = false, small = false;
  parallel_for(ceil_div(size, kPiece), 1, [&](std::int64_t begin, std::int64_t end) {
    std::uint32_t largest = 0, smallest = 0x7fffffffu;  // exponents of all ones are infinities and NaN
    for (auto i = begin * kPiece; i < std::min(end * kPiece, size); ++i) {
      std::uint32_t bits;
      std::memcpy(&bits, tensor.raw() + count(i) * sizeof(bits), sizeof(bits));
      largest = std::max(largest, bits & 0x7fffffffu);
      smallest = std::min(smallest, bits & 0x7fffffffu);
    }
    if (largest >= 0x7f800000u) infinite = true;
    if (smallest < 0x00800000u) small = true;
  });
  return {infinite, small};
}

}  // namespace

bool all_finite(const Tensor& tensor) {
  if (tensor.element_type() != ElementType::f32) return all_finite(to_doubles(tensor));
  return !kinds_of(tensor).infinite;
}

namespace {

/// A factor of their own stands in front of the host, where it joins their scale.
Verdict can_be_scaled(const Match& m, const Node& n, Side side) {
  const Graph& g = m.graph();
  const auto label = m.label(n.outputs[0]);
  if (g.constant(n.inputs[1])) return Verdict::yes();
  if (!m.stored || !stored_weights(g, n.inputs[1]))
    return Verdict::no("the weights of {} are not a constant", label);
  if (side == Side::inputs)
    return Verdict::no("the weights of {} are stored in few bits, with a scale for each output", label);
  const auto* back = n.op.as<ConvolutionBackpropData>();
  if (back && back->groups > 1)
    return Verdict::no("the weights of {} are stored in few bits by group", label);
  return read_only_by(g, n.inputs[1], g.producer(n.outputs[0]));
}

}  // namespace

Verdict foldable(const Match& m, NodeId host, Side side) {
  const Graph& g = m.graph();
  const Node& n = g.node(host);
  const auto label = m.label(n.outputs[0]);
  if (epilogue(n)) return Verdict::no("{} has an epilogue already", label);
  if (auto v = can_be_scaled(m, n, side); !v) return v;
  const auto& w = g.type(n.inputs[1]);
  if (!is_float(w.element) || !is_float(g.type(n.outputs[0]).element))
    return Verdict::no("{} computes with integers", label);
  if (!w.shape.ranked() || w.shape.rank() < 2) return Verdict::no("{} has no matrix of weights", label);
  if (has_input(n, zero_point_input(n.op, 0)) || has_input(n, zero_point_input(n.op, 1)))
    return Verdict::no("{} has zero points", label);
  return Verdict::yes();
}

std::size_t input_channels(const Graph& graph, const Node& host) {
  return WeightsMatrix(host, graph.constant(host.inputs[1])->shape()).inputs();
}

std::size_t output_channels(const Graph& graph, const Node& host) {
  return WeightsMatrix(host, graph.constant(host.inputs[1])->shape()).outputs();
}

std::vector<double> weighted_sums(const Graph& graph, const Node& host, const std::vector<double>& numbers) {
  const Tensor& w = *graph.constant(host.inputs[1]);
  const WeightsMatrix m(host, w.shape());
  std::vector<double> sums(m.outputs(), 0);
  const auto add_up = [&](const auto* v) {
    for (std::size_t row = 0; row < m.rows; ++row)
      for (std::size_t column = 0; column < m.columns; ++column) {
        const auto in = m.rows_are_outputs ? m.column_channel(row, column) : row;
        double sum = 0;
        for (std::size_t i = 0; i < m.inner; ++i) sum += *v++;
        sums[m.rows_are_outputs ? row : column] += sum * numbers[in];
      }
  };
  if (w.element_type() == ElementType::f32)
    add_up(w.to_aligned().data<float>().data());
  else
    add_up(to_doubles(w).data());
  return sums;
}

namespace {

Tensor product_by_channel(const Tensor& w, const WeightsMatrix& matrix, Side side,
                          const std::vector<double>& factors) {
  const bool by_row = matrix.rows_are_outputs == (side == Side::outputs);
  const auto row_size = matrix.columns * matrix.inner;
  const auto rows = row_size == 0 ? 0 : static_cast<std::int64_t>(w.size() / row_size);
  const auto grain = std::max<std::int64_t>(1, (1 << 16) / static_cast<std::int64_t>(row_size + 1));
  const auto scale = [&](auto* values) {
    parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      scale_rows(matrix, by_row, factors, count(begin), count(end), values);
    });
  };
  if (w.element_type() == ElementType::f32) {  // without a detour by wider numbers: weights can be large
    Tensor scaled = w.clone();
    scale(scaled.data<float>().data());
    return scaled;
  }
  auto values = to_doubles(w);
  scale(values.data());
  return from_doubles(w.element_type(), w.shape(), values);
}

/// A number that is small now was none before.
bool may_lose(const Tensor& w, const Tensor& scaled) {
  if (w.element_type() != ElementType::f32) return true;
  constexpr float kLeast = std::numeric_limits<float>::min();
  const auto* raw = w.raw();  // of a file it may lie anywhere: a copy would take longer than the question
  const float* after = scaled.data<float>().data();
  std::atomic<bool> some = false;
  parallel_for(static_cast<std::int64_t>(w.size()), 1 << 18, [&](std::int64_t begin, std::int64_t end) {
    int here = 0;
    for (auto i = begin; i < end; ++i) {
      float before;
      std::memcpy(&before, raw + count(i) * sizeof(before), sizeof(before));
      here |= static_cast<int>(std::fabs(after[i]) < kLeast) & static_cast<int>(std::fabs(before) >= kLeast);
    }
    if (here != 0) some = true;
  });
  return some;
}

/// Largest numbers of one input channel of one matrix.
struct Share {
  double kept = 0, lost = 0;
};

constexpr double kGranted = 1.0 / (1 << 20);                      // of results
constexpr double kLargestInput = double(std::uint64_t{1} << 63);  // beside a bias

Verdict loses_nothing(const Tensor& w, const Tensor& scaled, const WeightsMatrix& m, Side side,
                      const std::vector<double>& factors, const std::vector<double>& bias) {
  if (!may_lose(w, scaled)) return Verdict::yes();
  const auto before = to_doubles(w), after = to_doubles(scaled);
  std::vector<Share> shares(m.inputs() * (w.size() / (m.rows * m.columns * m.inner)));
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto line = i / m.inner, column = line % m.columns, row = line / m.columns % m.rows;
    const auto other = m.column_channel(row, column);
    const auto in = m.rows_are_outputs ? other : row, out = m.rows_are_outputs ? row : other;
    auto& share = shares[line / m.columns / m.rows * m.inputs() + in];
    const double right = before[i] * factors[side == Side::outputs ? out : in];
    const bool counts = !is_lost(before[i], before[i], w.element_type());
    if (!counts || !is_lost(right, after[i], w.element_type()))
      share.kept = std::max(share.kept, std::fabs(after[i]));
    else if (bias.empty() || std::fabs(right) > kGranted / kLargestInput * std::fabs(bias[out]))
      share.lost = std::max(share.lost, std::fabs(right));
  }
  for (const auto& [kept, lost] : shares)
    if (lost > kGranted * kept)
      return Verdict::no("a scaled weight of {} is too small for {}", lost, name_of(w.element_type()));
  return Verdict::yes();
}

}  // namespace

Found<Tensor> scaled_weights(const Graph& graph, const Node& host, Side side,
                             const std::vector<double>& factors, const std::vector<double>& bias) {
  const Tensor& w = *graph.constant(host.inputs[1]);
  const WeightsMatrix matrix(host, w.shape());
  auto scaled = product_by_channel(w, matrix, side, factors);
  const bool is_f32 = w.element_type() == ElementType::f32;
  const auto kinds = is_f32 ? kinds_of(scaled) : Kinds{!all_finite(to_doubles(scaled)), true};
  if (kinds.infinite) return Verdict::no("the scaled weights are not finite");
  if (w.size() == 0 || !kinds.small) return scaled;
  if (auto v = loses_nothing(w, scaled, matrix, side, factors, bias); !v) return v;
  return scaled;
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

Tensor output_factors(const Graph& graph, const Node& host, const std::vector<double>& factors) {
  const auto& w = graph.type(host.inputs[1]);
  const auto dims = along_axis(w.shape.rank(), output_axis(graph, host), factors.size());
  return from_doubles(w.element, dims, factors);
}

ValueId rebuilt(Rewrite& r, NodeId host, const Replaced& parts) {
  const auto& graph = r.graph();
  const Node n = graph.node(host);
  auto inputs = n.inputs;
  const auto label = [&](std::size_t i, const char* suffix) {
    return has_input(n, i) ? graph.value(n.inputs[i]).name : n.name.empty() ? std::string() : n.name + suffix;
  };
  if (parts.input.valid()) inputs[0] = parts.input;
  if (parts.weights.valid()) inputs[1] = r.constant(parts.weights, label(1, ".weights"));
  if (parts.factors.valid()) inputs[1] = r.add(Multiply{}, {inputs[1], r.constant(parts.factors)});
  if (!parts.bias.empty()) {
    if (inputs.size() < 3) inputs.resize(3);
    inputs[2] = r.constant(from_doubles(graph.type(n.outputs[0]).element,
                                        {static_cast<std::int64_t>(parts.bias.size())}, parts.bias),
                           label(2, ".bias"));
  }
  r.named_after(host);
  return r.add(Op(n.op), std::move(inputs));
}

std::size_t output_axis(const Graph& g, const Node& host) {
  const auto rank = g.type(host.inputs[1]).shape.rank();
  if (const auto* op = host.op.as<MatMul>()) return rank < 2 ? rank : rank - (op->transpose_b ? 2 : 1);
  return host.op.is<Convolution>() ? 0 : 1;
}

WeightsMatrix::WeightsMatrix(const Node& host, const Dims& w) {
  const auto* product = host.op.as<MatMul>();
  const std::size_t first = product && w.size() > 2 ? w.size() - 2 : 0;
  rows = count(w[first]);
  if (first + 1 < w.size()) columns = count(w[first + 1]);
  for (std::size_t i = first + 2; i < w.size(); ++i) inner *= count(w[i]);
  const auto* conv = host.op.as<Convolution>();
  const auto* back = host.op.as<ConvolutionBackpropData>();
  if (conv) groups = count(conv->groups);
  if (back) groups = count(back->groups);
  rows_are_outputs = product ? product->transpose_b && w.size() > 1 : conv != nullptr;
}

}  // namespace lamina
