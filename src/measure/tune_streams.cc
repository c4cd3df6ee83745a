#include "measure/tune_streams.h"

#include <algorithm>
#include <chrono>

#include "api/inside.h"
#include "base/error.h"
#include "measure/measurement.h"

namespace lamina {
namespace {

constexpr double kStreamSeconds = 0.5;  // of a measurement
constexpr double kNearForecast = 0.7;   // of the best forecast
constexpr std::size_t kTried = 6;       // at most: each is compiled
constexpr double kAsGood = 0.97;        // of the best measurement

using Clock = std::chrono::steady_clock;

/// Numbers of streams, ascending.
std::vector<int> worth_trying(std::vector<StreamForecast> forecast) {
  std::stable_sort(forecast.begin(), forecast.end(),
                   [](const auto& a, const auto& b) { return a.per_second > b.per_second; });
  std::vector<int> out;
  for (const auto& f : forecast)
    if (out.size() < kTried && f.per_second >= kNearForecast * forecast.front().per_second)
      out.push_back(f.streams);
  std::sort(out.begin(), out.end());
  return out;
}

/// Measures with as many requests as streams, each of which is started again when it is done.
double inferences_per_second(const Model& model, Options options, int streams,
                             const std::vector<Tensor>& inputs) {
  options.streams = streams;
  const CompiledModel compiled(model, options);
  std::vector<Request> requests;
  for (std::size_t r = 0; r < compiled.optimal_requests(); ++r) {
    requests.push_back(compiled.create_request());
    for (std::size_t i = 0; i < inputs.size(); ++i) requests.back().set_input(i, inputs[i]);
  }
  const StopWatch watch(options.stop, [&] {
    for (auto& r : requests) r.cancel();
  });
  for (auto& r : requests) r.start();
  for (auto& r : requests) r.wait();
  for (auto& r : requests) r.start();
  const auto begin = Clock::now();
  double seconds = 0;
  std::size_t done = 0;
  while (seconds < kStreamSeconds || done < 2 * requests.size()) {
    if (options.stop.stop_requested()) fail(ErrorCode::canceled, "choosing streams was canceled");
    auto& r = requests[done++ % requests.size()];
    r.wait();
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    r.start();
  }
  return static_cast<double>(done) / seconds;
}

}  // namespace

std::optional<int> measured_streams(const Model& model, const Options& options,
                                    const std::vector<Tensor>& inputs) {
  if (!by_throughput(options)) return std::nullopt;
  const auto forecast = [&] {
    const CompiledModel compiled(model, options);
    return Inside::of(compiled).settings().placement.forecast;
  }();
  std::vector<std::pair<int, double>> measured;
  double best = 0;
  for (const int streams : worth_trying(forecast)) {
    measured.emplace_back(streams, inferences_per_second(model, options, streams, inputs));
    best = std::max(best, measured.back().second);
  }
  const auto chosen = std::find_if(measured.begin(), measured.end(),
                                   [&](const auto& m) { return m.second >= kAsGood * best; });
  return chosen == measured.end() ? std::nullopt : std::optional(chosen->first);
}

}  // namespace lamina
