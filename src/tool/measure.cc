/// What `lamina benchmark` measures: loading, latency, several requests at once.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <numeric>
#include <set>

#include "api/inside.h"
#include "tool/benchmark.h"
#include "tool/interrupt.h"
#include "tool/session.h"
#include "tool/tune.h"

namespace lamina::tool {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double milliseconds(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double, std::milli>(b - a).count();
}

/// Milliseconds of making plans so far.
LoadPhases plan_phases(const CompiledModel& compiled) {
  const auto& program = *Inside::of(compiled).program();
  LoadPhases p;
  p.optimize = 1e3 * program.rewriting_seconds();
  p.plan = 1e3 * program.planning_seconds();
  p.pack = 1e3 * program.packing_seconds();
  return p;
}

/// As benchmark_app takes it: 4 dimensions with few channels before or behind the others.
bool looks_like_pictures(const Dims& d) {
  constexpr std::int64_t kMostChannels = 4;
  return d.size() == 4 && (d[1] <= kMostChannels) != (d[3] <= kMostChannels);
}

/// Height and width are open, too: one picture without a batch.
bool looks_like_one_picture(const Port& port) {
  return port.shape.size() == 3 && port.shape[1] < 0 && (port.shape[2] == 3 || port.shape[2] == 1);
}

/// Frames of one inference: the first dimension of the inputs that leave it open, else of those that look
/// like pictures. 0 when they differ, 1 when there is none.
std::int64_t batch_of(const std::vector<Port>& ports, const std::vector<Tensor>& inputs) {
  std::set<std::int64_t> open, guessed;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (leaves_batch_open(ports[i]) && !looks_like_one_picture(ports[i]))
      open.insert(inputs[i].shape()[0]);
    else if (looks_like_pictures(inputs[i].shape()))
      guessed.insert(inputs[i].shape()[0]);
  }
  const auto& sizes = open.empty() ? guessed : open;
  return sizes.empty() ? 1 : sizes.size() > 1 ? 0 : *sizes.begin();
}

}  // namespace

Subject load(const BenchmarkOptions& o, Options options) {
  Subject l;
  // Inputs are read before the model, so that their memory counts to what was there before; ports come from a
  // first look at the file, which maps it only.
  {
    const Model look = open_model(o.common);
    l.inputs = gather_inputs(look.inputs(), o.inputs, o.common, l.notes);
    if (o.common.tune) options = tuned(o.common, look, std::move(options), l.inputs);
    l.batch = batch_of(look.inputs(), l.inputs);
  }
  if (l.batch < 1) {
    l.notes.emplace_back("the batch is not clear, inputs have different ones: throughput counts inferences");
    l.batch = 1;
  }
  l.before_mb = resident_mb();
  const auto begin = Clock::now();
  Progress progress("loading " + o.common.model, o.common.quiet);
  const Model model(o.common.model, {.settable = o.common.settable, .extensions = o.common.extensions});
  const auto read = Clock::now();
  options.progress = progress.callback();
  l.compiled = std::make_unique<CompiledModel>(model, options);
  l.request = std::make_unique<Request>(l.compiled->create_request());
  l.outputs = model.outputs();
  for (std::size_t i = 0; i < l.inputs.size(); ++i) l.request->set_input(i, l.inputs[i]);
  const auto ready = Clock::now();
  const auto before = plan_phases(*l.compiled);
  l.request->run();
  l.load_ms = milliseconds(begin, ready);
  l.first_ms = milliseconds(ready, Clock::now());
  const auto after = plan_phases(*l.compiled);
  l.phases = after;
  l.phases.read = milliseconds(begin, read);
  l.phases.optimize = milliseconds(read, ready) - before.plan - before.pack;
  // What was planned in the first run is not the run's.
  l.phases.optimize += after.optimize - before.optimize;
  l.phases.first_inference = l.first_ms - (after.optimize - before.optimize) - (after.plan - before.plan) -
                             (after.pack - before.pack);
  return l;
}

Latencies measure(Request& request, const Until& until, Profile* profile) {
  Latencies l;
  const auto warm = Clock::now();
  request.run();
  const auto begin = Clock::now();
  // Interrupted in the run before the first: that one is better than nothing.
  if (interrupted()) l.ms.push_back(milliseconds(warm, begin)), l.seconds = 1e-3 * l.ms[0];
  if (interrupted() && profile) profile->add(request, 1e3 * l.ms[0]);
  if (interrupted()) return l;
  auto after = begin;
  do {
    const auto before = profile ? Clock::now() : after;
    request.run();
    after = Clock::now();
    l.ms.push_back(milliseconds(before, after));
    if (profile) profile->add(request, 1e3 * l.ms.back());
  } while (!interrupted() && (l.ms.size() < until.runs ||
                              std::chrono::duration<double>(after - begin).count() < until.seconds));
  l.seconds = 1e-3 * (profile ? std::accumulate(l.ms.begin(), l.ms.end(), 0.0) : milliseconds(begin, after));
  std::sort(l.ms.begin(), l.ms.end());
  return l;
}

double Latencies::percentile(double p) const {
  if (ms.empty()) return 0;
  const auto at = p * static_cast<double>(ms.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const auto high = std::min(low + 1, ms.size() - 1);
  return ms[low] + (ms[high] - ms[low]) * (at - static_cast<double>(low));
}

double Latencies::mean() const {
  return ms.empty() ? 0 : std::accumulate(ms.begin(), ms.end(), 0.0) / static_cast<double>(ms.size());
}

namespace {

/// One of several requests in flight: it starts itself again when it has ended.
struct Flight {
  Request request;
  std::vector<double> ms = {};
  Profile profile = {};
  std::exception_ptr error = {};
  Clock::time_point began = {};
};

/// Runs until all flights together have what is wanted.
class Traffic {
 public:
  Traffic(const Until& until, bool profiled) : until_(until), profiled_(profiled) {}

  /// Each start() has a callback, in which the next one follows. Returns when all have landed.
  void fly(std::vector<std::unique_ptr<Flight>>& flights) {
    began_ = Clock::now();
    for (auto& f : flights) {
      f->request.set_callback([this, &f = *f](std::exception_ptr error) { land(f, error); });
      if (!more()) break;
      f->began = Clock::now();
      f->request.start();
    }
    for (auto& f : flights) f->request.wait_for(std::chrono::nanoseconds::max());
  }

 private:
  bool more() {
    return !interrupted() && !failed_ &&
           (started_.fetch_add(1) < until_.runs || seconds_since(began_) < until_.seconds);
  }

  void land(Flight& f, std::exception_ptr error) {
    const auto now = Clock::now();
    if (error) {
      f.error = error;
      failed_ = true;
      return;
    }
    f.ms.push_back(milliseconds(f.began, now));
    if (profiled_) f.profile.add(f.request, 1e3 * f.ms.back());
    if (!more()) return;
    f.began = profiled_ ? Clock::now() : now;
    f.request.start();
  }

  const Until& until_;
  const bool profiled_;
  Clock::time_point began_;
  std::atomic<std::size_t> started_{0};
  std::atomic<bool> failed_{false};
};

}  // namespace

Latencies measure_at_once(const CompiledModel& compiled, const std::vector<Tensor>& inputs,
                          std::size_t requests, const Until& until, Profile* profile) {
  std::vector<std::unique_ptr<Flight>> flights;
  for (std::size_t i = 0; i < requests; ++i) {
    flights.push_back(std::make_unique<Flight>(Flight{compiled.create_request()}));
    for (std::size_t k = 0; k < inputs.size(); ++k) flights.back()->request.set_input(k, inputs[k]);
    flights.back()->request.run();
  }
  Traffic traffic(until, profile != nullptr);
  const auto begin = Clock::now();
  traffic.fly(flights);
  Latencies l;
  l.seconds = seconds_since(begin);
  for (auto& f : flights) {
    if (f->error) std::rethrow_exception(f->error);
    l.ms.insert(l.ms.end(), f->ms.begin(), f->ms.end());
    if (profile) profile->add(f->profile);
  }
  if (l.ms.empty()) return measure(flights[0]->request, until, profile);  // interrupted before the first
  std::sort(l.ms.begin(), l.ms.end());
  return l;
}

}  // namespace lamina::tool
