#include "quantise/noisy_outputs.h"

#include <algorithm>
#include <cmath>

#include "api/inside.h"

namespace lamina {

NoisyOutputs::NoisyOutputs(const NoisyModels& m) : models(m), runs_(m.quantised, m.switched, m.running) {
  const CompiledModel compiled(Inside::changed(m.f32, m.f32_graph), m.running.options);
  auto request = compiled.create_request();
  for (std::size_t s = 0; s < m.samples.count; ++s) {
    if (!compiled.variables().empty()) request.reset_state();
    const auto inputs = m.samples.get(s);
    for (std::size_t i = 0; i < inputs.size(); ++i) request.set_input(i, inputs[i]);
    request.run();
    auto& results = exact_.emplace_back();
    for (std::size_t i = 0; i < compiled.outputs().size(); ++i) results.push_back(request.output(i).clone());
  }
}

std::vector<Drift> NoisyOutputs::drifts(const Switched& on) {
  std::vector<Drift> out(exact_.empty() ? 0 : exact_[0].size());
  for (std::size_t s = 0; s < exact_.size(); ++s) {
    const auto results = runs_.run(models.samples.get(s), on);
    for (std::size_t i = 0; i < out.size(); ++i) out[i].add(exact_[s][i], results[i]);
  }
  return out;
}

OutputNoise output_noise(const std::string& name, const Drift& drift) {
  return {.name = name,
          .sqnr_db = drift.sqnr(),
          .relative = drift.relative(),
          .max = drift.max(),
          .mean = drift.mean(),
          .not_comparable = drift.not_comparable(),
          .not_finite = drift.not_finite()};
}

void NoisyOutputs::measure(NoiseReport& report) {
  const auto now = drifts(all(true));
  bool noisy = false;
  for (std::size_t i = 0; i < now.size(); ++i) {
    report.outputs.push_back(output_noise(models.f32_graph.results()[i].name, now[i]));
    if (!is_float(exact_[0][i].element_type()) || !std::isfinite(now[i].relative())) continue;
    counted_.push_back(i);
    noisy |= now[i].relative() > 0;
    for (const auto& results : exact_) report.compared += results[i].size();
  }
  report.has_shares = noisy;
  report.sqnr_db = report.left_out.sqnr_db = noise(all(true)).worst;
  report.rest_sqnr_db = noise(all(false)).worst;
}

NoisyOutputs::Noise NoisyOutputs::noise(const Switched& on) {
  const auto all = drifts(on);
  Noise out;
  for (const auto i : counted_) {
    out.energy += all[i].relative() * all[i].relative();
    out.worst = std::min(out.worst, all[i].sqnr());
  }
  return out;
}

}  // namespace lamina
