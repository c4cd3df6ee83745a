#include "tool/layer_table.h"

#include <algorithm>

#include "base/table_text.h"

namespace lamina::tool {
namespace {

constexpr std::string_view kOverhead = "(overhead)", kOthers = "(others)";

std::string reach_text(const MeasuredLayer& l) {
  return l.limit <= 0 ? "" : fmt::format("{:.0f}% {}", 100 * l.limit, l.compute ? "compute" : "memory");
}

/// Rates in figures that people compare: three digits, nothing where nothing is done.
std::string rate(double per_microsecond) {
  return per_microsecond <= 0 ? ""
                              : fmt::format("{:.{}f}", per_microsecond / 1e3, per_microsecond < 1e5 ? 1 : 0);
}

class Table {
 public:
  Table(const Common& common, double whole) : common_(common), whole_(whole) {}

  void head() const {
    common_.say("{} {} {} {} {:>10} {:>6} {:>8} {:>7}  {}", padded("layer", 30), padded("operator", 24),
                padded("kernel", 30), padded("layout", 24), "us", "share", "GFLOP/s", "GB/s", "of the limit");
  }
  void row(const MeasuredLayer& l) const { line(l.name, l.op, l.kernel, l.layout, l, reach_text(l)); }
  void line(std::string_view name, std::string_view op, std::string_view kernel, std::string_view layout,
            const MeasuredWork& w, const std::string& reach) const {
    const auto us = w.microseconds;
    auto text = fmt::format("{} {} {} {} {:>10.1f} {:>5.1f}% {:>8} {:>7}  {}", padded(printable(name), 30),
                            padded(op, 24), padded(kernel, 30), padded(layout, 24), us,
                            whole_ > 0 ? 100 * us / whole_ : 0, us > 0 ? rate(w.flops / us) : "",
                            us > 0 ? rate(w.bytes / us) : "", reach);
    text.erase(text.find_last_not_of(' ') + 1);
    common_.say("{}", text);
  }

 private:
  const Common& common_;
  double whole_;
};

void print_machine(const Common& c, const MachineRates& machine) {
  std::string text;
  for (const auto& [bytes, rate] : machine.bandwidth)
    text += fmt::format("{}{:.0f} GB/s in {}", text.empty() ? "" : ", ", rate * 1e-9, human_bytes(bytes));
  c.say("limits of {} thread{}: {:.0f} GFLOP/s in f32; {}", machine.threads, machine.threads == 1 ? "" : "s",
        machine.flops * 1e-9, text);
}

/// In the order that is asked for.
std::vector<const MeasuredLayer*> sorted(const MeasuredLayers& measured, std::size_t top,
                                         const std::string& order) {
  std::vector<const MeasuredLayer*> out;
  for (const auto& l : measured.layers)
    if (order != "simple_sort" || l.microseconds > 0) out.push_back(&l);
  if (order == "sort" || order == "simple_sort" || (top > 0 && top < out.size()))
    std::stable_sort(out.begin(), out.end(),
                     [](const auto* a, const auto* b) { return a->microseconds > b->microseconds; });
  return out;
}

}  // namespace

void print_layers(const Common& c, const MeasuredLayers& measured, std::size_t top,
                  const std::string& order) {
  const Table table(c, measured.whole.microseconds);
  c.say("");
  table.head();
  const auto layers = sorted(measured, top, order);
  const auto shown = top > 0 ? std::min(top, layers.size()) : layers.size();
  for (std::size_t i = 0; i < shown; ++i) table.row(*layers[i]);
  MeasuredWork others;
  for (auto i = shown; i < layers.size(); ++i) others.microseconds += layers[i]->microseconds;
  if (shown < layers.size())
    table.line(kOthers, fmt::format("{} more", layers.size() - shown), "", "", others, "");
  table.line(kOverhead, "", "", "", {.microseconds = measured.overhead}, "");
  table.line(fmt::format("total, mean of {} run{}", measured.runs, measured.runs == 1 ? "" : "s"), "", "", "",
             measured.whole, "");
  c.say("");
  for (const auto& k : measured.kernels)
    table.line(fmt::format("{} step{}", k.count, k.count == 1 ? "" : "s"), "", k.kernel, "", k,
               k.limit > 0 ? fmt::format("{:.0f}%", 100 * k.limit) : "");
  print_machine(c, measured.machine);
}

}  // namespace lamina::tool
