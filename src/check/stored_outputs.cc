#include "check/stored_outputs.h"

#include <algorithm>

#include "base/element_types.h"
#include "check/choices.h"
#include "check/index_judge.h"
#include "check/rounding.h"
#include "interpreter/interpreter.h"

namespace lamina::checking {
namespace {

/// Rounding of f32, f16 and bf16 arithmetic in noisy runs: what 16 orders of sums may change.
constexpr double kNoise = 0x1p-16, kNoiseOfHalf = 0x1p-10, kNoiseOfBf16 = 0x1p-8;
/// Signal to noise in dB. Above kOnlyRounded no comparison or selection in the model had another outcome.
/// Below kPlausible a result within the tolerance proves nothing, because the numbers are as small as its
/// absolute part.
constexpr double kOnlyRounded = 90, kPlausible = 20;

}  // namespace

StoredOutputs::StoredOutputs(const Graph& graph, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& exact, bool half, bool bf16)
    : graph_(graph),
      inputs_(inputs),
      exact_(exact),
      tolerance_(half || bf16 ? kOfHalf : kOfKernels),
      rounding_(bf16   ? kNoiseOfBf16
                : half ? kNoiseOfHalf
                       : kNoise),
      quantised_(bf16 || quantises(graph)),
      chosen_(chosen_results(graph)),
      detections_(detection_results(graph)),
      trails_(index_trails(graph)) {
  for (const auto& trail : trails_) {
    watched_.push_back(watching_ ? watching_->results().size() : graph.results().size());
    if (!trail) continue;
    if (!watching_) watching_ = graph;
    for (const auto v : trail->watched)
      watching_->add_result("watched " + std::to_string(watching_->results().size()), v);
  }
}

Agreement StoredOutputs::judge(std::size_t i, const Tensor& got, const Tensor& stored, bool is_right) {
  const auto d = difference(got, stored, tolerance_);
  auto a = agreement(got, stored, detections_.at(i) && got.rank() == 4);
  if (a.ok() && trails_.at(i) && count_mismatches(got, stored) != 0)
    if (auto judged = by_scores(i, got, stored, is_right)) return *std::move(judged);
  const bool decides = quantised_ || chosen_.at(i);
  if (!a.ok() || (d.within && a.snr >= (decides ? kOnlyRounded : kPlausible))) return a;
  if (decides || d.within) return judge_stored(case_of(i, got, stored, is_right));
  a.fault = to_string(d);
  return a;
}

const NoisyRuns& StoredOutputs::noise() {
  if (noise_.results.empty())
    noise_ = run_with_noise(watching_ ? *watching_ : graph_, inputs_, {.rounding = rounding_});
  return noise_;
}

std::optional<Agreement> StoredOutputs::by_scores(std::size_t i, const Tensor& got, const Tensor& stored,
                                                  bool is_right) {
  const auto& trail = *trails_[i];
  if (watched_results_.empty()) watched_results_ = interpret(*watching_, inputs_);
  const auto first = watched_results_.begin() + static_cast<std::ptrdiff_t>(watched_[i]);
  const IndexReader reader(graph_, trail, {first, first + static_cast<std::ptrdiff_t>(trail.watched.size())});
  if (!reader.possible() || reader.sources().size() != got.size()) return std::nullopt;
  IndexCase c{.reader = reader,
              .chooser = graph_.node(trail.chooser),
              .got = got,
              .stored = stored,
              .got_is_right = is_right};
  for (const auto& results : noise().results) {
    c.scores.push_back(results.at(watched_[i]));
    c.indices.push_back(results.at(watched_[i] + 1));
  }
  c.step = noise().steps.at(watched_[i]);
  // Whole numbers that were never rounded are exact.
  if (quantised_ || is_float(reader.scores().element_type())) c.tolerance = tolerance_.relative;
  return judge_indices(c);
}

StoredCase StoredOutputs::case_of(std::size_t i, const Tensor& got, const Tensor& stored, bool is_right) {
  StoredCase c{.got = got, .stored = stored, .exact = exact_.at(i)};
  for (const auto& results : noise().results) c.samples.push_back(results.at(i));
  if (is_right) c.samples.push_back(got);
  c.step = noise().steps.at(i);
  c.tolerance = tolerance_.relative;
  c.detections = detections_.at(i) && got.rank() == 4;
  return c;
}

}  // namespace lamina::checking
