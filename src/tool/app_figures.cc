/// The closing block of benchmark_app, and its table of layers.
#include "base/terminal.h"
#include "tool/counter_report.h"
#include "tool/outcome.h"

namespace lamina::tool {
namespace {

/// Always in milliseconds: scripts take the number.
void say_latencies(const Steps& steps, const std::vector<double>& ms, int percent) {
  const auto label =
      percent == 50 ? fmt::format("{:<15}", "Median:") : fmt::format("{} percentile:     ", percent);
  steps.info(fmt::format("   {}{:.2f} ms", label, at_percent(ms, percent)));
  steps.info(fmt::format("   {:<15}{:.2f} ms", "Average:", mean_of(ms)));
  steps.info(fmt::format("   {:<15}{:.2f} ms", "Min:", ms.empty() ? 0 : ms.front()));
  steps.info(fmt::format("   {:<15}{:.2f} ms", "Max:", ms.empty() ? 0 : ms.back()));
}

}  // namespace

void say_closing_block(const Outcome& r, const Steps& steps) {
  const auto& ms = r.latencies.ms;
  steps.info("Execution Devices:['CPU']");
  steps.info(fmt::format("Count:            {} iterations", ms.size()));
  steps.info(fmt::format("Duration:         {:.2f} ms", 1e3 * r.latencies.seconds));
  steps.info("Latency:");
  say_latencies(steps, ms, r.o.percentile);
  if (r.o.pcseq || r.l.groups.size() > 1) {
    steps.info("Latency for each data shape group:");
    for (std::size_t g = 0; g < r.l.groups.size(); ++g) {
      steps.info(fmt::format("{}. {}", g + 1, r.l.groups[g].name));
      say_latencies(steps, r.latencies.groups[g], r.o.percentile);
    }
  }
  steps.info(fmt::format("Throughput:   {:.2f} FPS", r.fps()));
}

void say_counters(const Outcome& r) {
  if (!r.o.pc && r.o.pcsort.empty()) return;
  for (std::size_t i = 0; i < r.counters.size(); ++i) {
    r.o.common.say("Performance counts for {}-th infer request:", i);
    // Whole names in a pipe or file: programs read them.
    const auto lines = counter_lines(sorted_as(r.counters[i], r.o.pcsort), is_terminal(1));
    for (const auto& line : lines) r.o.common.say("{}", line);
  }
}

}  // namespace lamina::tool
