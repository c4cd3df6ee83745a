/// The closing block of benchmark_app, and its table of layers.
#include <algorithm>

#include "base/terminal.h"
#include "tool/counter_report.h"
#include "tool/outcome.h"

namespace lamina::tool {
namespace {

/// Always in milliseconds: scripts take the number.
void say_latencies(const Steps& steps, const Latencies& l, int percent) {
  const auto label =
      percent == 50 ? fmt::format("{:<15}", "Median:") : fmt::format("{} percentile:     ", percent);
  steps.info(fmt::format("   {}{:.2f} ms", label, at_percent(l.ms, percent)));
  steps.info(fmt::format("   {:<15}{:.2f} ms", "Average:", l.mean()));
  steps.info(fmt::format("   {:<15}{:.2f} ms", "Min:", l.min()));
  steps.info(fmt::format("   {:<15}{:.2f} ms", "Max:", l.max()));
}

}  // namespace

double at_percent(const std::vector<double>& sorted, int percent) {
  if (sorted.empty()) return 0;
  const auto n = sorted.size(), at = (n * static_cast<std::size_t>(percent) + 99) / 100;
  return sorted[std::clamp<std::size_t>(at, 1, n) - 1];
}

void say_closing_block(const Outcome& r, const Steps& steps) {
  const auto& l = r.report.latencies;
  steps.info("Execution Devices:['CPU']");
  steps.info(fmt::format("Count:            {} iterations", l.ms.size()));
  steps.info(fmt::format("Duration:         {:.2f} ms", 1e3 * r.report.seconds));
  steps.info("Latency:");
  say_latencies(steps, l, r.o.percentile);
  if (r.o.pcseq || r.report.groups.size() > 1) {
    steps.info("Latency for each data shape group:");
    for (std::size_t g = 0; g < r.report.groups.size(); ++g) {
      steps.info(fmt::format("{}. {}", g + 1, r.report.groups[g].name));
      say_latencies(steps, r.report.groups[g].latencies, r.o.percentile);
    }
  }
  steps.info(fmt::format("Throughput:   {:.2f} FPS", r.report.throughput()));
}

void say_counters(const Outcome& r) {
  if (!r.o.pc && r.o.pcsort.empty()) return;
  for (std::size_t i = 0; i < r.report.counters.size(); ++i) {
    r.o.common.say("Performance counts for {}-th infer request:", i);
    // Whole names in a pipe or file: programs read them.
    const auto lines = counter_lines(sorted_as(r.report.counters[i], r.o.pcsort), is_terminal(1));
    for (const auto& line : lines) r.o.common.say("{}", line);
  }
}

}  // namespace lamina::tool
