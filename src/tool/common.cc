#include "tool/common.h"

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <iostream>
#include <thread>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/log.h"
#include "base/numbers.h"
#include "base/terminal.h"

namespace lamina::tool {

Options Common::options() const {
  Options o;
  o.threads = threads;
  o.disable = disable;
  o.exempt = exempt;
  o.max_isa = max_isa;
  o.precision = precision == "f32"    ? Precision::f32
                : precision == "bf16" ? Precision::bf16
                                      : Precision::model;
  for (const auto& pair : set) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos) throw UsageError(fmt::format("--set {}: wanted KEY=VALUE", pair));
    try {
      o.set(pair.substr(0, equals), pair.substr(equals + 1));
    } catch (const Error& e) {
      throw UsageError(fmt::format("--set: {}", e.what()));
    }
  }
  const auto level = quiet ? LogLevel::error : level_named(log_level).value_or(LogLevel::warning);
  o.log = [level](LogLevel l, std::string_view line) {
    if (l <= level) fmt::print(stderr, "lamina: {}: {}\n", name_of(l), line);
  };
  return o;
}

std::vector<std::pair<std::string, Dims>> Common::shapes() const {
  std::vector<std::pair<std::string, Dims>> out;
  for (const auto& text : shape) {
    const auto equals = text.rfind('=');
    if (equals == std::string::npos)
      throw UsageError(fmt::format("--shape {}: wanted NAME=1,3,224,224", text));
    Dims dims;
    std::string rest = text.substr(equals + 1);
    while (!rest.empty()) {
      const auto comma = rest.find(',');
      const auto d = parse_integer<std::int64_t>(rest.substr(0, comma));
      if (!d || *d < 0)
        throw UsageError(fmt::format("--shape {}: \"{}\" is not a size", text, rest.substr(0, comma)));
      dims.push_back(*d);
      rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    }
    out.emplace_back(text.substr(0, equals), dims);
  }
  return out;
}

void add_model(CLI::App& app, Common& c) {
  app.add_option("model", c.model, "ONNX model or OpenVINO IR (.xml)")->required()->type_name("MODEL");
}

void add_compile_options(CLI::App& app, Common& c) {
  app.add_option("--set", c.set, "Configuration KEY=VALUE")->type_name("KEY=VALUE")->allow_extra_args(false);
  app.add_option("--threads", c.threads, "Threads of one request; 0: what the machine allows")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  app.add_option("--precision", c.precision, "model, f32 or bf16 (int8: as model)")
      ->check(CLI::IsMember({"model", "f32", "bf16", "int8"}))
      ->type_name("P");
  app.add_option("--disable", c.disable, "Optimisations to leave out, or all")
      ->delimiter(',')
      ->type_name("RULE[,RULE]")
      ->allow_extra_args(false);
  app.add_option("--exempt", c.exempt, "Nodes that no optimisation touches")
      ->delimiter(',')
      ->type_name("NAME_OR_REGEX[,...]")
      ->allow_extra_args(false);
  app.add_option("--shape", c.shape, "Shape of an input")
      ->type_name("NAME=1,3,224,224")
      ->allow_extra_args(false);
  app.add_option("--max-isa", c.max_isa, "sse41, avx2, avx512 or native")
      ->check(CLI::IsMember({"sse41", "avx2", "avx512", "native"}))
      ->type_name("ISA");
  app.add_option("--log-level", c.log_level, "error, warning, info or debug")
      ->check(CLI::IsMember({"error", "warning", "info", "debug"}))
      ->type_name("LEVEL");
  app.add_flag("--quiet", c.quiet, "Print results only where they were asked for");
}

void add_json(CLI::App& app, Common& c) {
  app.add_option("--json", c.json, "Write one JSON document (-: standard output)")->type_name("FILE");
}

void write_json(const Common& c, const nlohmann::json& document) {
  if (c.json.empty()) return;
  // Names come from files and may be no UTF-8.
  const auto text =
      document.dump(c.json == "-" ? -1 : 1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (c.json == "-") {
    std::cout << text << std::flush;
  } else {
    write_file(c.json, text);
  }
}

struct Progress::State {
  std::mutex mutex;
  std::condition_variable done;
  bool ended = false;
};

Progress::Progress(std::string text, bool quiet) {
  if (quiet || !is_terminal(2)) return;
  state_ = std::make_shared<State>();
  std::thread([state = state_, text = std::move(text)] {
    std::unique_lock lock(state->mutex);
    if (state->done.wait_for(lock, std::chrono::seconds(1), [&] { return state->ended; })) return;
    for (int seconds = 1; !state->ended; ++seconds) {
      fmt::print(stderr, "\r{} ... {} s", text, seconds);
      state->done.wait_for(lock, std::chrono::seconds(1), [&] { return state->ended; });
    }
    fmt::print(stderr, "\r\033[K");
  }).detach();
}

Progress::~Progress() {
  if (!state_) return;
  std::lock_guard lock(state_->mutex);
  state_->ended = true;
  state_->done.notify_all();
}

namespace {

double status_mb(const std::string& key) {
  std::ifstream in("/proc/self/status");
  std::string line;
  while (std::getline(in, line))
    if (line.rfind(key, 0) == 0) return std::atof(line.c_str() + key.size()) / 1024;
  return 0;
}

}  // namespace

double resident_mb() { return status_mb("VmRSS:"); }
double peak_resident_mb() { return status_mb("VmHWM:"); }

std::string human_bytes(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit < 4) bytes /= 1000, ++unit;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

}  // namespace lamina::tool
