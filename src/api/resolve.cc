#include "api/resolve.h"

#include <algorithm>

#include "api/option_values.h"
#include "api/properties.h"
#include "base/cpu.h"
#include "base/cpu_features.h"
#include "base/parallel.h"
#include "base/threads.h"

namespace lamina {
namespace {

/// This processor as options let it be used; reading it fixes nothing for the process.
Machine machine_for(const Options& o) {
  return limited(read_machine(), isa_named(o.max_isa).value_or(Isa::avx512));
}

/// Reduces the threads of a stream to the number that oneTBB allows an arena in this process.
void obey_library(Placement& p, int asked) {
  const int most = allowed_threads(p.threads_each);
  if (most >= p.threads_each) return;
  const auto why = "this process limits oneTBB (tbb::global_control)";
  const int streams = std::max(1, static_cast<int>(p.streams.size()));
  p.threads_each = most;
  p.threads = most * streams;
  p.why.threads = why;
  const auto shorten = [most](StreamPlace& place) {
    place.cpus.resize(std::min(place.cpus.size(), static_cast<std::size_t>(most)));
  };
  shorten(p.callers);
  std::for_each(p.streams.begin(), p.streams.end(), shorten);
  if (asked <= p.threads) return;
  const std::string key = "CPU_THREADS_NUM: ";
  std::erase_if(p.warnings, [&](const std::string& said) { return said.starts_with(key); });
  p.warnings.push_back(fmt::format("{}{} threads, of {} wanted: {}", key, p.threads, asked, why));
}

void tell(const Settings& s, const Logger& log) {
  for (const auto& warning : s.placement.warnings) log.warning("{}", warning);
  if (helpers_are_lost() && s.placement.threads_each > 1)
    log.warning(
        "in a child of fork() each stream has one thread, since the parent did not call shutdown() before");
  for (const auto& row : option_rows()) {
    if (row.info.setting != row.info.key) continue;
    const auto p = property_of(row, s);
    const bool differs = !p.asked.empty() && p.value != p.asked && !p.reason.empty();
    const auto& said = s.placement.warnings;
    const bool warned = std::any_of(said.begin(), said.end(),
                                    [&](const std::string& w) { return w.starts_with(p.key + ": "); });
    if (differs && !warned) log.info("{}: {} instead of {}: {}", p.key, p.value, p.asked, p.reason);
  }
  if (asked_precision(s.options).second.empty() && s.precision != Precision::bf16 &&
      multiplies_bf16(this_machine()))
    log.info("this processor computes in bf16, faster and less exact, when asked to (ENFORCE_BF16)");
}

}  // namespace

/// Emulated bf16 would be slower than f32.
void decide_precision(Settings& s, const Machine& machine) {
  const auto [asked, key] = asked_precision(s.options);
  const auto verdict = asked == Precision::f16    ? Verdict::no("f16 is computed in f32")
                       : asked == Precision::bf16 ? multiplies_bf16(machine)
                                                  : Verdict::yes();
  s.precision = verdict ? asked : Precision::model;  // f32 would leave integers out
  s.precision_reason = verdict.reason();
  if (verdict && !key.empty() && key != "INFERENCE_PRECISION_HINT")
    s.precision_reason = fmt::format("{} decides", key);
}

std::vector<std::string> precision_sentences(const Settings& s) {
  std::vector<std::string> out;
  const auto asked = asked_precision(s.options).first;
  if (s.precision == Precision::bf16)
    out.emplace_back("bf16 for convolutions, matrix products and tensors between them");
  else if (asked == Precision::bf16)
    out.push_back(fmt::format("the model's precision instead of bf16: {}", s.precision_reason));
  if (asked == Precision::f32)
    out.emplace_back("f32 was asked for: quantise steps are computed literally, no layer runs in integers");
  return out;
}

Settings settings_for(const Options& options, const Topology& topology, const std::set<int>& taken,
                      int arena) {
  check_options(options);
  Settings s{.options = options, .placement = place_streams(topology, options, arena, {}, taken)};
  decide_precision(s, machine_for(options));
  return s;
}

int threads_to_compile(const Options& options) {
  return settings_for(options, read_topology(), {}, threads_of_own_arena()).placement.threads;
}

void resolve(ResolvedSettings& to, const InferenceTime& time, const Logger& log) {
  auto& s = to.settings;
  const auto& options = s.options;
  check_options(options);
  const auto topology = read_topology();
  const int arena = threads_of_own_arena();
  // Another process may bind itself between the look and the taking.
  for (int tries = 0; tries < 3; ++tries) {
    const auto taken = ProcessorLocks::here().taken(topology.cpus.back().number + 1);
    s.placement = place_streams(topology, options, arena, time, taken);
    if (s.placement.binding != Binding::processors) break;
    std::vector<int> cpus;
    for (const auto& place : s.placement.streams)
      cpus.insert(cpus.end(), place.cpus.begin(), place.cpus.end());
    to.held = HeldProcessors(std::move(cpus));
    if (to.held.alone() || options.binding) break;
    to.held = HeldProcessors();
  }
  obey_library(s.placement, options.threads);
  tell(s, log);
}

}  // namespace lamina
