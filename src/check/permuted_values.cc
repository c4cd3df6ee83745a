#include "check/permuted_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "check/difference.h"
#include "interpreter/interpreter.h"
#include "ops/eval.h"
#include "ops/shaping.h"

namespace lamina::checking {
namespace {

constexpr std::size_t kSamples = 512;
constexpr double kShare = 0.9;
constexpr std::size_t kMostAxes = 5;

using Order = std::vector<std::int64_t>;

/// Orders of `from`'s axes that give the dimensions `to`.
std::vector<Order> orders(const Dims& from, const Dims& to) {
  std::vector<Order> out;
  if (from.size() != to.size() || from.size() > kMostAxes) return out;
  Order order(from.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    bool fits = true;
    for (std::size_t i = 0; i < order.size(); ++i) fits &= from[static_cast<std::size_t>(order[i])] == to[i];
    if (fits) out.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  return out;
}

/// Position, in a tensor of dimensions `from`, of an element of the reordered tensor.
std::size_t place(const Dims& from, const Order& order, const Dims& to, std::size_t index) {
  std::vector<std::size_t> at(from.size());
  for (std::size_t i = to.size(); i-- > 0;) {
    const auto size = static_cast<std::size_t>(to[i]);
    at[static_cast<std::size_t>(order[i])] = index % size;
    index /= size;
  }
  std::size_t out = 0;
  for (std::size_t i = 0; i < from.size(); ++i) out = out * static_cast<std::size_t>(from[i]) + at[i];
  return out;
}

Tensor reordered_axes(const Tensor& t, const Order& order) {
  Graph g;
  const auto x = g.add_input("x", {t.element_type(), Shape::of(t.shape())});
  g.add_result("y", g.add(Transpose{},
                          {x, g.add_constant(Tensor::of({static_cast<std::int64_t>(order.size())}, order))}));
  return interpret(g, {t}).at(0);
}

}  // namespace

PermutedValues::PermutedValues(const Graph& graph, const std::vector<Tensor>& inputs) {
  InterpreterOptions options;
  options.observe = [&](const Graph& g, NodeId id, const std::vector<Tensor>&,
                        const std::vector<Tensor>& out) {
    for (const auto& t : out) known_.push_back({g.node(id).sources, t});
  };
  interpret(graph, inputs, options);
}

Tensor PermutedValues::find_permuted(const Tensor& value, const std::vector<SourceId>& sources) const {
  if (value.size() == 0) return {};
  const auto wanted = to_doubles(value.to_aligned());
  double largest = 0;
  for (const double v : wanted)
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  const double limit = kOfRewriting.limit(largest);
  double best = kShare;
  const Known* found = nullptr;
  Order best_order;
  for (const auto& k : known_) {
    if (k.tensor.element_type() != value.element_type() ||
        std::none_of(sources.begin(), sources.end(), [&](SourceId s) {
          return std::find(k.sources.begin(), k.sources.end(), s) != k.sources.end();
        }))
      continue;
    const auto possible = orders(k.tensor.shape(), value.shape());
    if (possible.empty()) continue;
    const auto values = to_doubles(k.tensor.to_aligned());
    for (const auto& order : possible) {
      SplitMix random(1);
      std::size_t same = 0;
      for (std::size_t s = 0; s < kSamples; ++s) {
        const auto i = static_cast<std::size_t>(random.below(wanted.size()));
        same += std::fabs(wanted[i] - values[place(k.tensor.shape(), order, value.shape(), i)]) <= limit;
      }
      const auto share = static_cast<double>(same) / kSamples;
      if (share > best) best = share, found = &k, best_order = order;
    }
  }
  return found ? reordered_axes(found->tensor, best_order) : Tensor();
}

}  // namespace lamina::checking
