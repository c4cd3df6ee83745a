/// Measurements: lamina.benchmark.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "compiled.h"
#include "counters.h"
#include "errors.h"
#include "interrupts.h"
#include "lamina/benchmark.h"
#include "long_work.h"

namespace lamina::python {
namespace {

BenchmarkApi api_named(const std::string& name) {
  if (name.empty()) return BenchmarkApi::automatic;
  if (name == "sync") return BenchmarkApi::sync;
  if (name == "async") return BenchmarkApi::async;
  fail(ErrorCode::bad_option, "api \"" + name + "\": wanted sync or async");
}

/// (document, counters of each request, trace, runtime graph)
nb::tuple results_of(const BenchmarkReport& report, const std::string& document) {
  nb::list counters;
  for (const auto& table : report.counters) counters.append(rows_of(table));
  return nb::make_tuple(text(document), counters, text(report.trace), text(report.runtime_graph));
}

/// `load`: milliseconds of reading and of compiling, and MiB before, as far as they are known.
nb::object benchmark_compiled(const Compiled& self, const std::vector<nb::tuple>& groups,
                              const std::vector<std::int64_t>& batches, std::optional<double> seconds,
                              std::size_t iterations, std::size_t requests, const std::string& api,
                              bool copy_inputs, bool warm_up, double frames_per_second, int percentile,
                              const std::vector<std::string>& records, nb::object progress,
                              const std::vector<double>& load) {
  const auto core = self.core;
  const auto wants = [&](const char* record) {
    return std::find(records.begin(), records.end(), record) != records.end();
  };
  BenchmarkOptions options{.seconds = seconds,
                           .iterations = iterations,
                           .api = api_named(api),
                           .requests = requests,
                           .copy_inputs = copy_inputs,
                           .warm_up = warm_up,
                           .frames_per_second = frames_per_second,
                           .percentile = percentile,
                           .layers = wants("layers"),
                           .counters = wants("counters"),
                           .trace = wants("trace"),
                           .runtime_graph = wants("runtime_graph"),
                           .progress = progress_of(progress)};
  std::vector<std::unique_ptr<Lent>> slots;  // they keep the arrays
  std::vector<InputGroup> inputs;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    slots.push_back(std::make_unique<Lent>(*core));
    InputGroup group{.batch = batches.at(g)};
    // None: the library makes them up.
    if (nb::len(groups[g]) > 0) group.inputs = core->tensors_of(**slots.back(), groups[g]);
    inputs.push_back(std::move(group));
  }
  const LoadTimes times{load.at(0), load.at(1), load.at(2)};
  BenchmarkReport report;
  std::string document;
  stoppable(options.stop, [&] {
    Benchmark work(core->model(), inputs, times);
    report = work.measure(options);
    // It ends early with what it has, which nobody asked for here.
    if (report.interrupted) fail(ErrorCode::canceled, "the measurement was canceled");
    document = report.json();
  });
  return results_of(report, document);
}

}  // namespace

void bind_benchmark(nb::module_& m) {
  m.def(
      "benchmark", &benchmark_compiled, nb::arg("model"), nb::arg("groups"), nb::arg("batches"),
      nb::arg("seconds").none(), nb::arg("iterations"), nb::arg("requests"), nb::arg("api"),
      nb::arg("copy_inputs"), nb::arg("warm_up"), nb::arg("frames_per_second"), nb::arg("percentile"),
      nb::arg("records"), nb::arg("progress").none(), nb::arg("load"),
      nb::sig("def benchmark(model: CompiledBase, groups: list[tuple[typing.Any, ...]], batches: list[int], "
              "seconds: float | None, iterations: int, requests: int, api: str, copy_inputs: bool, "
              "warm_up: bool, frames_per_second: float, percentile: int, records: list[str], "
              "progress: collections.abc.Callable[[str, float], object] | None, load: list[float]) -> "
              "tuple[str, list[list[tuple[typing.Any, ...]]], str, str]"),
      "What lamina.benchmark measures: (document, counters, trace, runtime graph).");
}

}  // namespace lamina::python
