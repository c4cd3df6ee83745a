/// lamina benchmark --interactive: obeys lines, answers in JSON.
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "base/npz.h"
#include "tool/benchmark.h"

namespace lamina::tool {
namespace {

void answer(const nlohmann::json& j) { std::cout << j.dump() << "\n" << std::flush; }

void measure_line(const Subject& l, double seconds) {
  LoadPattern pattern{.until = {seconds}};
  if (l.compiled->streams() > 1) {
    pattern.sync = false;
    pattern.requests = l.compiled->optimal_requests();
    const auto m = measure(l, pattern);
    answer({{"n", m.ms.size()}, {"throughput_fps", m.per_second()}});
    return;
  }
  const auto m = measure(l, pattern);
  answer({{"n", m.ms.size()},
          {"latency_ms",
           {{"median", percentile_of(m.ms, 0.5)}, {"min", m.ms.front()}, {"p90", percentile_of(m.ms, 0.9)}}},
          {"throughput_fps", m.per_second()}});
}

void save(const Subject& l, const std::string& path) {
  l.request->run();
  NpzFile arrays;
  for (std::size_t i = 0; i < l.outputs.size(); ++i)
    arrays.emplace_back(l.outputs[i].name, l.request->output(i));
  write_npz(path, arrays);
  answer({{"ok", true}});
}

}  // namespace

int interactive(const BenchmarkOptions& o, const Options& options) {
  auto l = load(o, options, Steps(false, o.common));
  warm_up(l);
  o.common.note(l.notes);
  answer({{"ready", true},
          {"name", version()},
          {"load_ms", l.load_ms},
          {"first_inference_ms", l.first_ms},
          {"before_mb", l.before_mb}});
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string verb, argument;
    words >> verb;
    std::getline(words >> std::ws, argument);
    try {
      char* end = nullptr;
      const double number = std::strtod(argument.c_str(), &end);
      const bool is_number = !argument.empty() && *end == '\0' && number >= 0 && number < 1e6;
      if (verb == "quit") break;
      if (verb == "measure" && is_number) {
        measure_line(l, number);
      } else if (verb == "run" && is_number) {
        for (int i = 0; i < static_cast<int>(number); ++i) l.request->run();
        answer({{"ok", true}});
      } else if (verb == "save" && !argument.empty()) {
        save(l, argument);
      } else {
        answer({{"error", "unknown command"}});
      }
    } catch (const std::exception& e) {
      answer({{"error", e.what()}});
    }
  }
  return 0;
}

}  // namespace lamina::tool
