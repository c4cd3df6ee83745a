#include "quantise/search.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/progress.h"
#include "base/work_partition.h"
#include "quantise/comparing.h"

namespace lamina {
namespace {

constexpr std::size_t kDecidingSamples = 32;  // that candidates are compared by
constexpr std::size_t kRankingSamples = 4;    // that show the harm of one layer
constexpr std::size_t kMostRankings = 128;    // runs on them

Samples first(Samples samples, std::size_t most) {
  samples.count = std::min(samples.count, most);
  return samples;
}

double worst(const std::vector<Drift>& drifts) {
  double out = 0;
  for (const auto& drift : drifts) out = std::max(out, drift.relative());
  return out;
}

/// The geometric mean: every output counts, however small its errors are.
double typical(const std::vector<Drift>& drifts) {
  double sum = 0;
  for (const auto& drift : drifts) sum += std::log(std::clamp(drift.relative(), 1e-9, 1e9));
  return drifts.empty() ? 0 : sum / static_cast<double>(drifts.size());
}

class Search {
 public:
  Search(const Model& model, const Graph& graph, const std::vector<Layer>& layers, const QuantiseRequest& r,
         const Quantising& quantised)
      : model_(model), read_(graph), layers_(layers), r_(r), quantised_(quantised), options_(r.scheme) {}

  FoundScheme run() {
    choose();
    if (r_.max_drop) stay_within(*r_.max_drop);
    found_.evaluations = evaluations_;
    return std::move(found_);
  }

 private:
  /// The best of all combinations of what the request leaves open.
  void choose() {
    std::vector<Calibration> methods{Calibration::min_max, Calibration::mse};
    if (r_.calibration) methods = {*r_.calibration};
    Graph equal = read_;
    const auto pairs = r_.equalise.value_or(true) ? equalise(equal, layers_, r_.scheme.fixed) : 0;
    if (pairs == 0 || !r_.equalise.value_or(false)) add_candidates(read_, 0, methods);
    if (pairs != 0) add_candidates(equal, pairs, methods);
    take(candidates_.size() == 1 ? 0 : best_candidate());
    candidates_.clear();
    options_.ranges.method = found_.calibration;
  }

  void take(std::size_t candidate) {
    found_ = std::move(candidates_[candidate].found);
    statistics_ = candidates_[candidate].statistics;
  }

  std::size_t best_candidate() {
    const auto samples = first(r_.samples, kDecidingSamples);
    const Comparing comparing(model_, read_, samples, r_.running);
    std::vector<double> errors;
    for (const auto& c : candidates_) {
      ++evaluations_;
      errors.push_back(
          typical(comparing.with(quantised_(c.found.graph, c.found.scheme), samples.count, r_.running)));
    }
    return static_cast<std::size_t>(std::min_element(errors.begin(), errors.end()) - errors.begin());
  }

  void add_candidates(const Graph& g, std::size_t pairs, const std::vector<Calibration>& methods) {
    const auto statistics = std::make_shared<const Statistics>(
        collect_statistics(model_, g, layers_, r_.scheme, r_.samples, r_.running));
    for (const auto method : methods) {
      options_.ranges.method = method;
      auto scheme = make_scheme(g, layers_, *statistics, options_);
      require_layers(scheme.layers);
      candidates_.push_back(
          {{.graph = g, .scheme = std::move(scheme), .calibration = method, .equalised = pairs}, statistics});
    }
  }

  double error_of(const Comparing& comparing, const Scheme& scheme, std::size_t samples,
                  const Running& running) {
    ++evaluations_;
    return worst(comparing.with(quantised_(found_.graph, scheme), samples, running));
  }

  Scheme with(const std::vector<bool>& f32, const std::string& reason) const {
    auto layers = found_.scheme.layers;
    for (std::size_t i = 0; i < layers.size(); ++i)
      if (layers[i].reason.empty() && f32[i]) layers[i].reason = reason;
    return make_scheme(found_.graph, std::move(layers), *statistics_, options_);
  }

  /// Indices of the layers that are quantised, those first that harm the outputs most by themselves; of very
  /// many layers, neighbours are tried together.
  std::vector<std::size_t> worst_first(const Comparing& comparing) {
    const auto& layers = found_.scheme.layers;
    std::vector<std::size_t> quantised;
    for (std::size_t i = 0; i < layers.size(); ++i)
      if (layers[i].reason.empty()) quantised.push_back(i);
    const auto together = ceil_div(quantised.size(), kMostRankings);
    std::vector<std::pair<double, std::vector<std::size_t>>> harm;
    StageProgress progress(r_.running.progress, "ranking layers", ceil_div(quantised.size(), together));
    const Running silent{r_.running.options, {}};
    for (std::size_t i = 0; i < quantised.size(); i += together) {
      std::vector<std::size_t> tried;
      std::vector<bool> others(layers.size(), true);
      for (std::size_t k = i; k < std::min(i + together, quantised.size()); ++k) {
        tried.push_back(quantised[k]);
        others[quantised[k]] = false;
      }
      harm.emplace_back(error_of(comparing, with(others, "not asked"), kRankingSamples, silent), tried);
      progress.one_done();
    }
    std::stable_sort(harm.begin(), harm.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::size_t> out;
    for (const auto& [error, tried] : harm) out.insert(out.end(), tried.begin(), tried.end());
    return out;
  }

  /// The fewest layers in f32 with which it holds, of those that harm most; more layers are taken to harm no
  /// less.
  void stay_within(double most) {
    const Comparing comparing(model_, read_, r_.held_out, r_.running);
    const auto holds = [&](const Scheme& scheme) {
      return error_of(comparing, scheme, r_.held_out.count, r_.running) <= most;
    };
    if (holds(found_.scheme)) return;
    const auto order = worst_first(comparing);
    const auto leaving = [&](std::size_t count) {
      std::vector<bool> f32(found_.scheme.layers.size());
      for (std::size_t i = 0; i < count; ++i) f32[order[i]] = true;
      return with(f32, fmt::format("it harms the outputs more than --max-drop {} allows", most));
    };
    std::size_t too_few = 0, enough = order.size();
    while (enough - too_few > 1) {
      const auto middle = too_few + (enough - too_few) / 2;
      (holds(leaving(middle)) ? enough : too_few) = middle;
    }
    if (enough == order.size())
      fail(ErrorCode::unsupported, "--max-drop {}: holds only where every layer stays f32", most);
    found_.scheme = leaving(enough);
  }

  const Model& model_;
  const Graph& read_;
  const std::vector<Layer>& layers_;
  const QuantiseRequest& r_;
  const Quantising& quantised_;
  SchemeOptions options_;
  std::shared_ptr<const Statistics> statistics_;
  struct Candidate {
    FoundScheme found;
    std::shared_ptr<const Statistics> statistics;
  };
  std::vector<Candidate> candidates_;
  FoundScheme found_;
  std::size_t evaluations_ = 0;
};

}  // namespace

FoundScheme find_scheme(const Model& model, const Graph& graph, const std::vector<Layer>& layers,
                        const QuantiseRequest& request, const Quantising& quantised) {
  return Search(model, graph, layers, request, quantised).run();
}

void require_layers(const std::vector<Layer>& layers) {
  if (layers.empty())
    fail(ErrorCode::unsupported, "nothing to quantise: the model has no convolution and no matrix product");
  if (std::any_of(layers.begin(), layers.end(), [](const Layer& l) { return l.reason.empty(); })) return;
  fail(ErrorCode::unsupported, "nothing to quantise: all {} layers stay f32, {} because {}", layers.size(),
       layers[0].name, layers[0].reason);
}

}  // namespace lamina
