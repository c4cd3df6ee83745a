#include "tool/counter_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace lamina::tool {
namespace {

const char* status_name(LayerStatus status) {
  switch (status) {
    case LayerStatus::executed:
      return "EXECUTED";
    case LayerStatus::optimized_out:
      return "OPTIMIZED_OUT";
    case LayerStatus::not_run:
      return "NOT_RUN";
  }
  return "NOT_RUN";
}

struct CounterTotals {
  double real_ms = 0, cpu_ms = 0;
};

double real_ms(const LayerCounter& row) { return 1e-3 * row.average_us; }
double cpu_ms(const LayerCounter& row) { return 1e-3 * row.cpu_us; }

CounterTotals totals_of(const Counters& rows) {
  CounterTotals t;
  for (const auto& row : rows) t.real_ms += real_ms(row), t.cpu_ms += cpu_ms(row);
  return t;
}

/// Names come from files: what separates columns and lines in the report is not to stand in them.
std::string cell(const std::string& text, char separator) {
  auto out = printable(text);
  std::replace(out.begin(), out.end(), separator, separator == ';' ? ',' : ';');
  std::replace(out.begin(), out.end(), '"', '\'');  // readers of such files take it for a bracket
  return out;
}

/// Padded to so many characters; `cut`: what is longer is cut, as benchmark_app does.
std::string in_column(const std::string& text, std::size_t width, bool cut) {
  auto shown = printable(text);
  auto length = text_length(shown);
  if (length >= width && !cut) return shown + " ";
  if (length >= width) {
    std::size_t bytes = 0;
    for (length = 0; length < width - 5; ++length)
      bytes += character_bytes(std::string_view(shown).substr(bytes));
    shown = shown.substr(0, bytes) + "...";
    length += 3;
  }
  return shown + std::string(width - length, ' ');
}

std::string sorted_csv(const Counters& rows) {
  const auto total = totals_of(rows);
  std::string out = "layerName,execStatus,layerType,execType,realTime (ms),cpuTime (ms),proportion (%)\n";
  for (const auto& row : rows)
    out += fmt::format("{},{},{},{},{:.3f},{:.3f},{:.2f}\n", cell(row.name, ','), status_name(row.status),
                       cell(row.type, ','), cell(row.kernel, ','), real_ms(row), cpu_ms(row),
                       total.real_ms > 0 ? 100 * real_ms(row) / total.real_ms : 0.0);
  return out + fmt::format("Total,,,,{:.3f},{:.3f},\n\n", total.real_ms, total.cpu_ms);
}

nlohmann::ordered_json json_of(const Counters& rows) {
  auto nodes = nlohmann::ordered_json::array();
  for (const auto& row : rows)
    nodes.push_back({{"name", row.name},
                     {"node_type", row.type},
                     {"status", status_name(row.status)},
                     {"real_time", real_ms(row)},
                     {"cpu_time", cpu_ms(row)},
                     {"exec_type", row.kernel}});
  const auto total = totals_of(rows);
  return {{"nodes", nodes}, {"total_real_time", total.real_ms}, {"total_cpu_time", total.cpu_ms}};
}

}  // namespace

Counters sorted_as(Counters rows, const std::string& order) {
  if (order == "simple_sort")
    std::erase_if(rows, [](const LayerCounter& row) { return row.status != LayerStatus::executed; });
  if (order == "sort" || order == "simple_sort")
    std::stable_sort(rows.begin(), rows.end(), [](const LayerCounter& a, const LayerCounter& b) {
      return a.average_us > b.average_us;
    });
  return rows;
}

Counters mean_counters(const std::vector<Counters>& requests) {
  Counters out;
  std::map<std::pair<std::string, std::size_t>, std::size_t> places;  // by name and how often it was there
  for (const auto& rows : requests) {
    std::map<std::string, std::size_t> times;
    for (const auto& row : rows) {
      const auto [place, added] = places.emplace(std::pair(row.name, times[row.name]++), out.size());
      if (added) {
        out.push_back(row);
        out.back().average_us = out.back().cpu_us = 0;
      }
      auto& mean = out[place->second];
      if (row.status == LayerStatus::executed && mean.status != LayerStatus::executed) {
        mean.status = row.status;
        mean.kernel = row.kernel;
      }
      mean.average_us += row.average_us;
      mean.cpu_us += row.cpu_us;
    }
  }
  // A layer that a request has not, as a reorder for other shapes, took no time there.
  for (auto& row : out) {
    row.average_us /= static_cast<double>(requests.size());
    row.cpu_us /= static_cast<double>(requests.size());
  }
  return out;
}

std::vector<std::string> counter_lines(const Counters& rows, bool cut) {
  std::vector<std::string> out;
  for (const auto& row : rows)
    out.push_back(
        fmt::format("{}{:<21}layerType: {}execType: {}realTime (ms): {:<10.3f}cpuTime (ms): {:<10.3f}",
                    in_column(row.name, 20, cut), status_name(row.status), in_column(row.type, 20, cut),
                    in_column(row.kernel, 30, cut), real_ms(row), cpu_ms(row)));
  const auto total = totals_of(rows);
  out.push_back(fmt::format("Total time:     {:.3f} milliseconds", total.real_ms));
  out.push_back(fmt::format("Total CPU time: {:.3f} milliseconds", total.cpu_ms));
  return out;
}

std::string counter_csv(const std::string& type, const std::vector<Counters>& tables) {
  std::string out;
  for (const auto& rows : tables) {
    if (type == "sorted") {
      out += sorted_csv(rows);
      continue;
    }
    out += "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)\n";
    for (const auto& row : rows)
      out += fmt::format("{};{};{};{};{:.3f};{:.3f}\n", cell(row.name, ';'), status_name(row.status),
                         cell(row.type, ';'), cell(row.kernel, ';'), real_ms(row), cpu_ms(row));
    const auto total = totals_of(rows);
    out += fmt::format("Total;;;;{:.3f};{:.3f}\n\n", total.real_ms, total.cpu_ms);
  }
  return out;
}

std::string counter_json(const std::string& type, const std::vector<Counters>& tables) {
  nlohmann::ordered_json document{{"report_type", type}};
  if (type != "detailed") {
    document["avg_performance"] = json_of(tables.at(0));
  } else {
    auto& list = document["detailed_performance"] = nlohmann::ordered_json::array();
    for (const auto& rows : tables) list.push_back(json_of(rows));
  }
  return document.dump(4, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace lamina::tool
