#include "quantise/comparing.h"

#include <algorithm>

namespace lamina {
namespace {

constexpr std::size_t kMostKept = std::size_t{256} << 20;  // bytes of outputs

std::vector<ValueId> values_of(const Graph& g, const std::vector<std::size_t>& outputs) {
  std::vector<ValueId> out;
  for (const auto i : outputs) out.push_back(g.results().at(i).value);
  return out;
}

}  // namespace

Comparing::Comparing(const Model& model, const Graph& exact, const Samples& samples, const Running& running)
    : model_(model), exact_(exact), samples_(samples) {
  for (std::size_t i = 0; i < exact.results().size(); ++i)
    if (!exact.constant(exact.results()[i].value)) outputs_.push_back(i);
  std::size_t bytes = 0;
  kept_.assign(samples.count, std::vector<Tensor>(outputs_.size()));
  observe({model, exact, values_of(exact, outputs_)}, samples, running, "running in f32",
          [&](std::size_t sample, std::size_t i, const Tensor& t) {
            bytes += t.bytes();
            if (bytes > kMostKept) all_kept_ = false;
            if (all_kept_) kept_[sample][i] = t.clone();
          });
  if (!all_kept_) kept_.clear();
}

std::vector<Drift> Comparing::with(const Graph& other, std::size_t most_samples,
                                   const Running& running) const {
  std::vector<Drift> out(exact_.results().size());
  auto samples = samples_;
  samples.count = std::min(samples.count, most_samples);
  const Observed observed{model_, other, values_of(other, outputs_)};
  if (all_kept_)
    observe(observed, samples, running, "comparing", [&](std::size_t sample, std::size_t i, const Tensor& t) {
      out[outputs_[i]].add(kept_[sample][i], t);
    });
  else
    observe_both({model_, exact_, values_of(exact_, outputs_)}, observed, samples, running, "comparing",
                 [&](std::size_t i, const Tensor& a, const Tensor& b) { out[outputs_[i]].add(a, b); });
  return out;
}

}  // namespace lamina
