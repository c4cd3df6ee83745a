#include "tool/layer_table.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "draw/text.h"

namespace lamina::tool {
namespace {

constexpr std::string_view kOverhead = "(overhead)", kOthers = "(others)";

/// How near a layer is to what the machine can do.
struct Reach {
  double share = 0;
  bool compute = false;  ///< bound by arithmetic, else by memory
};

Reach reach_of(const LayerRow& r, const MachineLimits& limits) {
  const double bytes = r.work.bytes, seconds = r.microseconds * 1e-6, rate = limits.bandwidth_at(bytes);
  if (seconds <= 0 || rate <= 0 || limits.flops <= 0) return {};
  return {limits.least_seconds(r.flops(), bytes) / seconds, r.flops() / limits.flops > bytes / rate};
}

std::string reach_text(const Reach& r) {
  return r.share <= 0 ? "" : fmt::format("{:.0f}% {}", 100 * r.share, r.compute ? "compute" : "memory");
}

/// Rates in figures that people compare: three digits, nothing where nothing is done.
std::string rate(double per_microsecond) {
  return per_microsecond <= 0 ? ""
                              : fmt::format("{:.{}f}", per_microsecond / 1e3, per_microsecond < 1e5 ? 1 : 0);
}

class Table {
 public:
  Table(const Common& common, const Profile& profile, const MachineLimits& limits)
      : common_(common), limits_(limits), whole_(profile.whole()) {}

  void head() const {
    common_.say("{} {} {} {} {:>10} {:>6} {:>8} {:>7}  {}", padded("layer", 30), padded("operator", 24),
                padded("kernel", 30), padded("layout", 24), "us", "share", "GFLOP/s", "GB/s", "of the limit");
  }
  void row(const LayerRow& r) const {
    line(r.name, r.op, r.kernel, r.layout, r.microseconds, r.work, reach_text(reach_of(r, limits_)));
  }
  void line(std::string_view name, std::string_view op, std::string_view kernel, std::string_view layout,
            double us, const NodeWork& w, const std::string& reach) const {
    auto text = fmt::format("{} {} {} {} {:>10.1f} {:>5.1f}% {:>8} {:>7}  {}", padded(printable(name), 30),
                            padded(op, 24), padded(kernel, 30), padded(layout, 24), us,
                            whole_ > 0 ? 100 * us / whole_ : 0, us > 0 ? rate(w.flops() / us) : "",
                            us > 0 ? rate(w.bytes / us) : "", reach);
    text.erase(text.find_last_not_of(' ') + 1);
    common_.say("{}", text);
  }

 private:
  const Common& common_;
  const MachineLimits& limits_;
  double whole_;
};

nlohmann::json row_json(const LayerRow& r, double whole, const MachineLimits& limits) {
  nlohmann::json j{{"name", r.name},
                   {"operator", r.op},
                   {"kernel", r.kernel},
                   {"layout", r.layout},
                   {"precision", r.precision},
                   {"us", r.microseconds},
                   {"share", whole > 0 ? r.microseconds / whole : 0},
                   {"flops", r.work.flops()},
                   {"bytes", r.work.bytes}};
  if (r.microseconds > 0) {
    const auto reach = reach_of(r, limits);
    j["gflops"] = r.work.flops() / r.microseconds / 1e3;
    j["gbs"] = r.work.bytes / r.microseconds / 1e3;
    j["limit"] = {{"share", reach.share}, {"by", reach.compute ? "compute" : "memory"}};
  }
  return j;
}

struct KernelTotal {
  std::string kernel;
  std::size_t count = 0;
  double microseconds = 0, least = 0;
  NodeWork work;
};

std::vector<KernelTotal> totals_of(const std::vector<LayerRow>& rows, const MachineLimits& limits) {
  std::map<std::string, KernelTotal> by_kernel;
  for (const auto& r : rows) {
    auto& t = by_kernel[r.kernel];
    t.kernel = r.kernel;
    ++t.count;
    t.microseconds += r.microseconds;
    t.least += 1e6 * limits.least_seconds(r.flops(), r.work.bytes);
    t.work.multiply_adds += r.work.multiply_adds;
    t.work.others += r.work.others;
    t.work.bytes += r.work.bytes;
  }
  std::vector<KernelTotal> out;
  for (auto& [kernel, total] : by_kernel) out.push_back(std::move(total));
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.microseconds > b.microseconds; });
  return out;
}

void report_machine(const Common& c, const MachineLimits& limits, nlohmann::json& document) {
  std::string text;
  auto list = nlohmann::json::array();
  for (const auto& [bytes, rate] : limits.bandwidth) {
    text += fmt::format("{}{:.0f} GB/s in {}", text.empty() ? "" : ", ", rate * 1e-9, human_bytes(bytes));
    list.push_back({{"bytes", bytes}, {"gbs", rate * 1e-9}});
  }
  c.say("limits of {} thread{}: {:.0f} GFLOP/s in f32; {}", limits.threads, limits.threads == 1 ? "" : "s",
        limits.flops * 1e-9, text);
  document["machine"] = {{"threads", limits.threads}, {"gflops", limits.flops * 1e-9}, {"bandwidth", list}};
}

}  // namespace

void report_layers(const Common& c, const Profile& profile, const MachineLimits& limits, std::size_t top,
                   const std::string& order, nlohmann::json& document) {
  const auto rows = rows_of(profile);
  double layers = 0;
  NodeWork all;
  document["layers"] = nlohmann::json::array();
  for (const auto& r : rows) {
    layers += r.microseconds;
    all.multiply_adds += r.work.multiply_adds;
    all.others += r.work.others;
    all.bytes += r.work.bytes;
    document["layers"].push_back(row_json(r, profile.whole(), limits));
  }
  const double overhead = profile.whole() - layers;
  document["layers"].push_back({{"name", kOverhead}, {"kernel", ""}, {"us", overhead}});
  document["profile"] = {
      {"us", profile.whole()}, {"runs", profile.runs()}, {"flops", all.flops()}, {"bytes", all.bytes}};

  const Table table(c, profile, limits);
  c.say("");
  table.head();
  std::vector<const LayerRow*> shown;
  for (const auto& r : rows) shown.push_back(&r);
  double others = 0;
  std::size_t hidden = 0;
  if (order == "simple_sort") std::erase_if(shown, [](const auto* r) { return r->microseconds <= 0; });
  if (order == "sort" || order == "simple_sort" || (top > 0 && top < shown.size()))
    std::stable_sort(shown.begin(), shown.end(),
                     [](const auto* a, const auto* b) { return a->microseconds > b->microseconds; });
  if (top > 0 && top < shown.size()) {
    for (auto i = top; i < shown.size(); ++i) others += shown[i]->microseconds;
    hidden = shown.size() - top;
    shown.resize(top);
  }
  for (const auto* r : shown) table.row(*r);
  if (hidden > 0) table.line(kOthers, fmt::format("{} more", hidden), "", "", others, {}, "");
  table.line(kOverhead, "", "", "", overhead, {}, "");
  table.line(fmt::format("total, mean of {} run{}", profile.runs(), profile.runs() == 1 ? "" : "s"), "", "",
             "", profile.whole(), all, "");
  c.say("");
  document["kernels"] = nlohmann::json::array();
  for (const auto& t : totals_of(rows, limits)) {
    const double share = t.microseconds > 0 ? t.least / t.microseconds : 0;
    table.line(fmt::format("{} step{}", t.count, t.count == 1 ? "" : "s"), "", t.kernel, "", t.microseconds,
               t.work, share > 0 ? fmt::format("{:.0f}%", 100 * share) : "");
    document["kernels"].push_back(
        {{"kernel", t.kernel}, {"count", t.count}, {"us", t.microseconds}, {"limit", share}});
  }
  report_machine(c, limits, document);
}

}  // namespace lamina::tool
