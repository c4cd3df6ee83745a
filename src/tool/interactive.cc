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

void measure_line(Subject& l, double seconds) {
  const bool streams = l.compiled->streams() > 1;
  const auto r =
      l.benchmark->measure({.seconds = seconds, .api = streams ? BenchmarkApi::async : BenchmarkApi::sync});
  const auto n = r.latencies.ms.size();
  nlohmann::json line{{"n", n}, {"throughput_fps", static_cast<double>(n) / r.seconds}};
  if (!streams)
    line["latency_ms"] = {{"median", r.latencies.percentile(50)},
                          {"min", r.latencies.min()},
                          {"p90", r.latencies.percentile(90)}};
  answer(line);
}

/// With the inputs of the first group.
Request request_of(const Subject& l) {
  auto request = l.compiled->create_request();
  const auto& inputs = l.groups[0].inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) request.set_input(i, inputs[i]);
  return request;
}

void save(const Subject& l, Request& request, const std::string& path) {
  request.run();
  NpzFile arrays;
  for (std::size_t i = 0; i < l.outputs.size(); ++i)
    arrays.emplace_back(l.outputs[i].name, request.output(i));
  write_npz(path, arrays);
  answer({{"ok", true}});
}

}  // namespace

int interactive(const BenchmarkCommand& o, const Options& options) {
  auto l = load(o, options, Steps(false, o.common));
  l.warm_up();
  o.common.note(l.notes);
  answer({{"ready", true},
          {"name", version()},
          {"load_ms", l.load_ms},
          {"first_inference_ms", l.first_ms},
          {"before_mb", l.before_mb}});
  auto request = request_of(l);
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
        for (int i = 0; i < static_cast<int>(number); ++i) request.run();
        answer({{"ok", true}});
      } else if (verb == "save" && !argument.empty()) {
        save(l, request, argument);
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
