/// lamina's own lines about a measurement.
#include "tool/outcome.h"

namespace lamina::tool {
namespace {

void print_memory(const Common& c, const BenchmarkMemory& m) {
  c.say(
      "memory      peak {:.1f} MiB (before the model {:.1f}); now {:.1f}: packed weights {:.1f}, tensors "
      "{:.1f}, model file "
      "{:.1f}, generated code {:.1f}, libraries {:.1f}, rest {:.1f}",
      m.peak, m.before, m.now, m.packed_weights, m.tensors, m.model_file, m.code, m.libraries, m.rest);
  c.say(
      "tensors     {:.2f} MiB in the arena; {:.2f} if none shared memory, {:.2f} alive at once at most; "
      "weights that "
      "kernels read {:.2f}",
      m.tensors, m.tensors_sum, m.tensors_live, m.read_weights);
}

/// Prints latencies by shape, if there are several shapes or -pcseq was given.
void print_groups(const Outcome& r) {
  const auto& groups = r.report.groups;
  for (std::size_t g = 0; g < groups.size() && (r.o.pcseq || groups.size() > 1); ++g) {
    const auto& l = groups[g].latencies;
    if (l.ms.empty()) continue;
    r.o.common.say("  {}. {}: median {:.3f} ms  (min {:.3f}, mean {:.3f}, max {:.3f}; {} runs)", g + 1,
                   groups[g].name, l.percentile(50), l.min(), l.mean(), l.max(), l.ms.size());
  }
}

}  // namespace

void print_figures(const Outcome& outcome) {
  const auto& r = outcome.report;
  const auto& c = outcome.o.common;
  const auto& l = r.latencies;
  c.say(
      "latency     median {:.3f} ms  (min {:.3f}, mean {:.3f}, p90 {:.3f}, p99 {:.3f}, max {:.3f}; {} runs)",
      l.percentile(50), l.min(), l.mean(), l.percentile(90), l.percentile(99), l.max(), l.ms.size());
  if (r.percentile != 50)
    c.say("            {} percentile {:.3f} ms", r.percentile, l.percentile(r.percentile));
  print_groups(outcome);
  const auto batch = r.groups[0].batch;
  c.say("throughput  {:.1f} {} with {} request{} in flight on {} stream{}", r.throughput(),
        r.groups.size() > 1 ? "frames/s"
        : batch == 1        ? "inferences/s"
                            : fmt::format("frames/s ({} in each inference)", batch),
        r.requests, r.requests == 1 ? "" : "s", r.streams, r.streams == 1 ? "" : "s");
  const auto& p = r.load_phases;
  c.say(
      "load        {:.1f} ms, first inference {:.1f} ms: read {:.1f}, optimise {:.1f}, plan {:.1f}, pack "
      "{:.1f}, run {:.1f}",
      r.load_ms, r.first_inference_ms, p.read, p.optimize, p.plan, p.pack, p.first_inference);
  print_memory(c, r.memory);
  c.say("on          {}, {}, {} thread{}", r.processor, r.isa, r.threads(), r.threads() == 1 ? "" : "s");
  c.say("precision   {}", r.precision_text);
}

}  // namespace lamina::tool
