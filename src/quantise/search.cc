#include "quantise/search.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/progress.h"
#include "quantise/drift.h"

namespace lamina {
namespace {

constexpr std::size_t kDecidingSamples = 32;  // that candidates are compared by
constexpr std::size_t kRankingSamples = 4;    // that show the harm of one layer

using Outputs = std::vector<std::vector<Tensor>>;  // of each sample

Samples first(Samples samples, std::size_t most) {
  samples.count = std::min(samples.count, most);
  return samples;
}

/// Of each output, over all samples.
std::vector<double> relative_errors(const Outputs& exact, const Outputs& other) {
  std::vector<double> out;
  for (std::size_t i = 0; !other.empty() && i < other[0].size(); ++i) {
    Drift drift;
    for (std::size_t s = 0; s < other.size(); ++s) drift.add(exact[s][i], other[s][i]);
    out.push_back(drift.relative());
  }
  return out;
}

double worst(const std::vector<double>& errors) {
  return errors.empty() ? 0 : *std::max_element(errors.begin(), errors.end());
}

/// The geometric mean: every output counts, however small its errors are.
double typical(const std::vector<double>& errors) {
  double sum = 0;
  for (const double e : errors) sum += std::log(std::clamp(e, 1e-9, 1e9));
  return errors.empty() ? 0 : sum / static_cast<double>(errors.size());
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
    const auto pairs = r_.equalise.value_or(true) ? equalise(equal, layers_) : 0;
    if (pairs == 0 || !r_.equalise.value_or(false)) add_candidates(read_, 0, methods);
    if (pairs != 0) add_candidates(equal, pairs, methods);
    double least = 0;
    for (auto& c : candidates_) {
      const double error = candidates_.size() == 1 ? 0 : typical(errors_of(c.found.graph, c.found.scheme));
      if (&c != candidates_.data() && error >= least) continue;
      least = error;
      found_ = c.found;
      statistics_ = c.statistics;
    }
    candidates_.clear();
    options_.ranges.method = found_.calibration;
  }

  void add_candidates(const Graph& g, std::size_t pairs, const std::vector<Calibration>& methods) {
    const auto statistics = collect_statistics(model_, g, layers_, r_.scheme, r_.samples, r_.running);
    for (const auto method : methods) {
      options_.ranges.method = method;
      auto scheme = make_scheme(g, layers_, statistics, options_);
      require_layers(scheme.layers);
      candidates_.push_back(
          {{.graph = g, .scheme = std::move(scheme), .calibration = method, .equalised = pairs}, statistics});
    }
  }

  std::vector<double> errors_of(const Graph& g, const Scheme& scheme) {
    const auto samples = first(r_.samples, kDecidingSamples);
    if (exact_.empty()) exact_ = outputs_of(model_, read_, samples, r_.running, "running in f32");
    ++evaluations_;
    return relative_errors(exact_,
                           outputs_of(model_, quantised_(g, scheme), samples, r_.running, "comparing"));
  }

  double error_on(const Samples& samples, const Scheme& scheme, const Running& running) {
    ++evaluations_;
    return worst(relative_errors(
        held_out_, outputs_of(model_, quantised_(found_.graph, scheme), samples, running, "comparing")));
  }

  Scheme with(const std::vector<bool>& f32, const std::string& reason) const {
    auto layers = found_.scheme.layers;
    for (std::size_t i = 0; i < layers.size(); ++i)
      if (layers[i].reason.empty() && f32[i]) layers[i].reason = reason;
    return make_scheme(found_.graph, std::move(layers), statistics_, options_);
  }

  /// Indices of the layers that are quantised, those first that harm the outputs most by themselves.
  std::vector<std::size_t> worst_first() {
    const auto& layers = found_.scheme.layers;
    std::vector<std::pair<double, std::size_t>> harm;
    StageProgress progress(r_.running.progress, "ranking layers", layers.size());
    const Running silent{r_.running.options, {}};
    for (std::size_t i = 0; i < layers.size(); ++i) {
      std::vector<bool> others(layers.size(), true);
      others[i] = false;
      if (layers[i].reason.empty())
        harm.emplace_back(error_on(first(r_.held_out, kRankingSamples), with(others, "not asked"), silent),
                          i);
      progress.one_done();
    }
    std::stable_sort(harm.begin(), harm.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<std::size_t> out;
    for (const auto& [error, i] : harm) out.push_back(i);
    return out;
  }

  /// The fewest layers in f32 with which it holds, of those that harm most; more layers are taken to harm no
  /// less.
  void stay_within(double most) {
    held_out_ = outputs_of(model_, read_, r_.held_out, r_.running, "running in f32");
    if (error_on(r_.held_out, found_.scheme, r_.running) <= most) return;
    const auto order = worst_first();
    const auto leaving = [&](std::size_t count) {
      std::vector<bool> f32(found_.scheme.layers.size());
      for (std::size_t i = 0; i < count; ++i) f32[order[i]] = true;
      return with(f32, fmt::format("it harms the outputs more than --max-drop {} allows", most));
    };
    std::size_t too_few = 0, enough = order.size();
    while (enough - too_few > 1) {
      const auto middle = too_few + (enough - too_few) / 2;
      (error_on(r_.held_out, leaving(middle), r_.running) <= most ? enough : too_few) = middle;
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
  Statistics statistics_;
  Outputs exact_, held_out_;
  struct Candidate {
    FoundScheme found;
    Statistics statistics;
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
