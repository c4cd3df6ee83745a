#include "check/stored_outputs.h"

#include "check/choices.h"
#include "check/rounding.h"

namespace lamina::check {
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
      detections_(detection_results(graph)) {}

Agreement StoredOutputs::judge(std::size_t i, const Tensor& got, const Tensor& stored, bool is_right) {
  const auto d = difference(got, stored, tolerance_);
  auto a = agreement(got, stored, detections_.at(i) && got.rank() == 4);
  const bool decides = quantised_ || chosen_.at(i);
  if (!a.ok() || (d.within && a.snr >= (decides ? kOnlyRounded : kPlausible))) return a;
  if (decides || d.within) return judge_stored(case_of(i, got, stored, is_right));
  a.fault = to_string(d);
  return a;
}

StoredCase StoredOutputs::case_of(std::size_t i, const Tensor& got, const Tensor& stored, bool is_right) {
  if (noise_.results.empty()) noise_ = run_with_noise(graph_, inputs_, {.rounding = rounding_});
  StoredCase c{.got = got, .stored = stored, .exact = exact_.at(i)};
  for (const auto& results : noise_.results) c.samples.push_back(results.at(i));
  if (is_right) c.samples.push_back(got);
  c.step = noise_.steps.at(i);
  c.tolerance = tolerance_.relative;
  c.detections = detections_.at(i) && got.rank() == 4;
  return c;
}

}  // namespace lamina::check
