#include "check/recurrent_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "ops/recurrent.h"

namespace lamina::checking {
namespace {

constexpr auto kNowhere = std::numeric_limits<std::size_t>::max();

/// Where operands stand among the inputs of a cell or a sequence; those that it does not have stand nowhere.
struct Places {
  std::size_t hidden = 1, cell = kNowhere, weights = 0, peepholes = kNowhere;
};

std::optional<Places> places_of(const Op& op) {
  if (op.is<LSTMCell>()) return Places{1, 2, 3, 6};
  if (op.is<LSTMSequence>()) return Places{1, 2, 4, 7};
  if (op.is<GRUCell>() || op.is<RNNCell>()) return Places{.weights = 2};
  if (op.is<GRUSequence>() || op.is<RNNSequence>()) return Places{.weights = 3};
  return std::nullopt;
}

/// The finite magnitudes of an input; empty where it is absent.
std::vector<double> sizes_of(const std::vector<Tensor>& in, std::size_t place) {
  if (place >= in.size() || !in[place].valid()) return {};
  auto out = to_doubles(in[place].to_aligned());
  for (auto& v : out) v = std::isfinite(v) ? std::fabs(v) : 0;
  return out;
}

/// The largest of a sequence's numbers, of which every sequence of the batch has as many.
double largest_in(const std::vector<double>& numbers, std::size_t batch, std::size_t sequence) {
  const auto each = static_cast<std::ptrdiff_t>(numbers.size() / batch);
  const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(sequence) * each;
  return each == 0 ? 0 : *std::max_element(begin, begin + each);
}

/// The largest sum of a gate's weights.
double largest_row(const std::vector<double>& weights, std::int64_t width) {
  double most = 0, sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum = i % static_cast<std::size_t>(width) == 0 ? weights[i] : sum + weights[i];
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

std::vector<bool> recurrent_sums_beyond(double most, const Node& node, const std::vector<Tensor>& in) {
  const auto places = places_of(node.op);
  if (!places || in.at(0).size() == 0) return {};
  const auto x = sizes_of(in, 0), h = sizes_of(in, places->hidden), c = sizes_of(in, places->cell);
  const auto of_weights = [&](std::size_t place) {
    const auto& weights = in.at(place);
    return weights.size() == 0 ? 0 : largest_row(sizes_of(in, place), weights.shape().back());
  };
  const double of_x = of_weights(places->weights), of_h = of_weights(places->weights + 1),
               bias = largest_in(sizes_of(in, places->weights + 2), 1, 0),
               peephole = largest_in(sizes_of(in, places->peepholes), 1, 0);
  std::vector<bool> out(static_cast<std::size_t>(in[0].shape()[0]));
  for (std::size_t n = 0; n < out.size(); ++n)
    out[n] = largest_in(x, out.size(), n) * of_x + std::max(1.0, largest_in(h, out.size(), n)) * of_h +
                 largest_in(c, out.size(), n) * peephole + bias >
             most;
  return out;
}

}  // namespace lamina::checking
