/// The public function that compares a quantised model with its f32 model.
#include "api/at_work.h"
#include "api/inside.h"
#include "api/preparing.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/users_calls.h"
#include "quantise/layer_noise.h"
#include "quantise/users_samples.h"

namespace lamina {
namespace {

void require_layers(const LoadedModel& model) {
  if (model.compiled())
    fail(ErrorCode::unsupported,
         "{}: a compiled model has no layers to compare, wanted the file that it was made of", model.path());
}

NoiseReport compared(const Model& quantised, const Model& f32, const Samples& given, const NoiseOptions& o) {
  const auto &inside = Inside::of(quantised), &exact = Inside::of(f32);
  require_layers(inside);
  require_layers(exact);
  const auto samples = checked_samples(given, inside.inputs());
  if (samples.count == 0) fail(ErrorCode::bad_input, "no samples, wanted at least one");
  Running running{o.running, of_user(o.progress)};
  if (o.stop.stop_possible()) running.options.stop = o.stop;
  auto report = layer_noise(quantised, f32, samples, running);
  report.model = inside.path();
  report.against = exact.path();
  return report;
}

}  // namespace

NoiseReport compare_quantized(const Model& quantised, const Model& f32, const Samples& samples,
                              const NoiseOptions& options) {
  return guarded("compare_quantized", [&] {
    const AtWork here;
    const TokenSignal stop(options.stop);
    const auto what = Inside::of(quantised).path() + ": comparing";
    const Within within(&Inside::of(quantised).bounds());
    return run_stoppable({.signal = &stop, .what = what}, [&] {
      stop_point();
      return compared(quantised, f32, samples, options);
    });
  });
}

NoiseReport compare_quantized(const Model& quantised, const Model& f32, const std::vector<Tensor>& inputs,
                              const NoiseOptions& options) {
  return guarded("compare_quantized", [&] {
    return compare_quantized(quantised, f32, Samples{1, [&](std::size_t) { return inputs; }}, options);
  });
}

}  // namespace lamina
