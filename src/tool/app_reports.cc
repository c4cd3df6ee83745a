/// The report files of benchmark_app.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/atomic_file.h"
#include "base/error.h"
#include "tool/counter_report.h"
#include "tool/outcome.h"

namespace lamina::tool {
namespace {

/// A line of the report, and a member of the JSON.
struct Entry {
  std::string name, text;
  nlohmann::ordered_json value;
};

Entry text_entry(std::string name, const std::string& value) { return {std::move(name), value, value}; }
Entry whole_entry(std::string name, std::size_t value) {
  return {std::move(name), std::to_string(value), value};
}
Entry number_entry(std::string name, double value) {
  return {std::move(name), fmt::format("{:.2f}", value), value};
}

/// "--iterations -niter=10" is the option -niter with the value 10; without '=' it has none.
std::vector<Entry> command_line(const BenchmarkCommand& o) {
  std::vector<Entry> out;
  for (const auto& text : o.written) {
    const auto word = text.substr(text.find(' ') + 1);
    const auto equals = std::min(word.find('='), word.size());
    const auto name = word.substr(0, equals);
    out.push_back(text_entry(name, equals < word.size() ? word.substr(equals + 1) : ""));
  }
  return out;
}

/// The precision that computes, in one word.
std::string precision_of(const CompiledModel& compiled) {
  return compiled.property("INFERENCE_PRECISION_HINT") == "bf16" ? "bf16" : "f32";
}

std::vector<Entry> setup(const Outcome& r) {
  const auto& o = r.o;
  return {text_entry("topology", std::filesystem::path(o.common.model).stem().string()),
          text_entry("target device", "CPU"),
          text_entry("API", r.report.sync ? "sync" : "async"),
          Entry{"inference_only", o.inference_only, o.inference_only == "true"},
          text_entry("precision", precision_of(*r.l.compiled)),
          whole_entry("batch size", static_cast<std::size_t>(r.report.groups[0].batch)),
          whole_entry("number of iterations", o.counted ? static_cast<std::size_t>(o.iterations) : 0),
          whole_entry("number of parallel infer requests", r.report.requests),
          number_entry("duration (ms)", o.timed ? 1e3 * o.seconds : 0),
          whole_entry("number of CPU streams", static_cast<std::size_t>(r.report.streams))};
}

void add_latencies(std::vector<Entry>& out, const Latencies& l, int percent) {
  if (percent == 50)
    out.push_back(number_entry("latency (ms)", at_percent(l.ms, 50)));
  else
    out.push_back(
        number_entry(fmt::format("latency ({} percentile) (ms)", percent), at_percent(l.ms, percent)));
  out.push_back(number_entry("avg latency", l.mean()));
  out.push_back(number_entry("min latency", l.min()));
  out.push_back(number_entry("max latency", l.max()));
}

std::vector<Entry> results(const Outcome& r) {
  std::vector<Entry> out;
  if (!r.o.from_file) out.push_back(number_entry("read model time (ms)", r.l.read_ms));
  out.push_back(number_entry("compile model time (ms)", r.l.compile_ms));
  if (!r.o.no_warmup) out.push_back(number_entry("first inference time (ms)", r.l.first_ms));
  out.push_back(number_entry("total execution time (ms)", 1e3 * r.report.seconds));
  out.push_back(whole_entry("total number of iterations", r.report.latencies.ms.size()));
  add_latencies(out, r.report.latencies, r.o.percentile);
  for (std::size_t g = 0; g < r.report.groups.size() && r.o.pcseq; ++g) {
    out.push_back(text_entry("group", r.report.groups[g].name));
    const auto& l = r.report.groups[g].latencies;
    out.push_back(number_entry("avg latency", l.mean()));
    out.push_back(number_entry("min latency", l.min()));
    out.push_back(number_entry("max latency", l.max()));
  }
  out.push_back(number_entry("throughput", r.report.throughput()));
  return out;
}

struct Section {
  const char *name, *key;
  std::vector<Entry> entries;
};

std::string csv_of(const std::vector<Section>& sections) {
  std::string out;
  for (const auto& s : sections) {
    out += std::string(s.name) + "\n";
    for (const auto& e : s.entries) {
      auto text = printable(e.text);
      std::replace(text.begin(), text.end(), ';', ',');
      out += printable(e.name) + ";" + text + "\n";
    }
    out += "\n";
  }
  return out;
}

/// A key that is there again belongs to a group: "groups" has one object for each.
std::string json_of(const std::vector<Section>& sections) {
  nlohmann::ordered_json document;
  for (const auto& s : sections) {
    auto& object = document[s.key] = nlohmann::ordered_json::object();
    auto groups = nlohmann::ordered_json::array();
    for (const auto& e : s.entries) {
      if (e.name == "group") groups.push_back(nlohmann::ordered_json::object());
      const bool of_group = !groups.empty() && e.name != "throughput";
      (of_group ? groups.back() : object)[e.name] = e.value;
    }
    if (!groups.empty()) object["groups"] = std::move(groups);
  }
  return document.dump(4, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

class Reports {
 public:
  Reports(const Outcome& r, const Steps& steps) : r_(r), steps_(steps) {}

  void general() const {
    const std::vector<Section> sections{{"Command line parameters", "cmd_options", command_line(r_.o)},
                                        {"Configuration setup", "configuration_setup", setup(r_)},
                                        {"Execution results", "execution_results", results(r_)}};
    write("benchmark_report", r_.o.json_stats ? json_of(sections) : csv_of(sections));
  }

  void counters(const std::string& type) const {
    auto tables = r_.report.counters;
    if (type == "average") tables = {mean_counters(r_.report.counters)};
    if (type == "sorted") tables = {mean_counters(r_.report.counters)};
    if (type == "sorted")
      for (auto& rows : tables) rows = sorted_as(std::move(rows), r_.o.pcsort.empty() ? "sort" : r_.o.pcsort);
    const auto name = type == "sorted" ? std::string("benchmark_sorted_report")
                                       : fmt::format("benchmark_{}_counters_report", type);
    write(name, r_.o.json_stats ? counter_json(type, tables) : counter_csv(type, tables));
  }

 private:
  void write(const std::string& name, const std::string& text) const {
    const auto path =
        std::filesystem::path(r_.o.report_folder) / (name + (r_.o.json_stats ? ".json" : ".csv"));
    write_file(path.string(), text);
    steps_.info(fmt::format("Statistics report is stored to {}", path.string()));
  }

  const Outcome& r_;
  const Steps& steps_;
};

}  // namespace

void Writings::attempt(const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& e) {
    failed_.emplace_back(e.what());
  }
}

void Writings::check() const {
  if (!failed_.empty()) fail(ErrorCode::bad_file, "{}", fmt::join(failed_, "; "));
}

void make_report_folder(const BenchmarkCommand& o) {
  std::error_code error;
  std::filesystem::create_directories(o.report_folder, error);
  if (error || !std::filesystem::is_directory(o.report_folder, error))
    fail(ErrorCode::bad_file, "{}: the folder for reports cannot be made{}{}", o.report_folder,
         error ? ": " : "", error ? error.message() : "");
}

void write_reports(const Outcome& r, const Steps& steps, Writings& writings) {
  const auto& type = r.o.report_type;
  if (!r.o.wants_reports()) return;
  writings.attempt([&] { make_report_folder(r.o); });
  const Reports reports(r, steps);
  if (!type.empty()) writings.attempt([&] { reports.general(); });
  for (const auto* kind : {"average", "detailed"})
    if (type == fmt::format("{}_counters", kind)) writings.attempt([&] { reports.counters(kind); });
  if (!r.o.pcsort.empty() || type == "sort_detailed_counters")
    writings.attempt([&] { reports.counters("sorted"); });
}

}  // namespace lamina::tool
