/// The public functions of lamina/benchmark.h that measure a model.
#include "lamina/benchmark.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "api/at_work.h"
#include "api/inside.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/resident_memory.h"
#include "base/seeded_input.h"
#include "base/users_calls.h"
#include "explain/runtime_graph.h"
#include "measure/layer_rates.h"
#include "measure/measurement.h"
#include "measure/process_memory.h"

namespace lamina {
namespace {

using Clock = std::chrono::steady_clock;

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

/// The shape of a made-up input: the port's, else what the model was compiled for; a batch that is open is 1.
Dims shape_to_make(const LoadedModel& model, std::size_t input) {
  const auto& port = model.inputs()[input];
  const auto& compiled = model.compiled_for();
  auto shape = port.shape;
  const auto is_open = [&] {
    return !port.ranked || std::ranges::any_of(shape, [](auto d) { return d < 0; });
  };
  if (is_open() && compiled.size() == 1 && input < compiled[0].size()) return compiled[0][input];
  if (port.ranked && !shape.empty() && shape[0] < 0) shape[0] = 1;
  if (is_open())
    fail(ErrorCode::bad_input, "input \"{}\" is {}: its sizes are open, wanted inputs that say them",
         port.name, to_string(port));
  return shape;
}

std::vector<Tensor> made_up_inputs(const LoadedModel& model) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < model.inputs().size(); ++i) {
    const auto& port = model.inputs()[i];
    out.push_back(port.value.valid() ? port.value
                                     : seeded_input(port.type, shape_to_make(model, i), 1000 * (i + 1)));
  }
  return out;
}

/// "x: [1,3,64,64] y: [1]"
std::string name_of(const InputGroup& group, const std::vector<Port>& ports) {
  std::string out;
  for (std::size_t i = 0; i < group.inputs.size(); ++i)
    out +=
        fmt::format("{}{}: [{}]", i == 0 ? "" : " ", ports[i].name, fmt::join(group.inputs[i].shape(), ","));
  return out;
}

std::size_t requests_of(const BenchmarkOptions& o, const CompiledModel& model) {
  if (o.requests > 0) return o.requests;
  return o.api == BenchmarkApi::sync ? 1 : model.optimal_requests();
}

void require_right(const BenchmarkOptions& o) {
  const auto require = [](bool right, const char* what, double value, const char* wanted) {
    if (!right) fail(ErrorCode::bad_option, "{} {}: wanted {}", what, value, wanted);
  };
  const auto seconds = o.seconds.value_or(0);
  require(seconds >= 0 && seconds <= 86400, "seconds", seconds, "0 to 86400");
  require(o.percentile >= 1 && o.percentile <= 100, "percentile", o.percentile, "1 to 100");
  require(o.frames_per_second >= 0 && o.frames_per_second <= 1e9, "frames_per_second", o.frames_per_second,
          "0 to 1e9");
  if (o.api == BenchmarkApi::sync && o.requests > 1)
    fail(ErrorCode::bad_option, "requests {}: one after another there is one request", o.requests);
}

LoadPattern pattern_of(const BenchmarkOptions& o, const CompiledModel& model) {
  constexpr double kSeconds = 3;
  LoadPattern p;
  p.seconds = o.seconds.value_or(o.iterations > 0 ? 0 : kSeconds);
  p.runs = std::max<std::size_t>(o.iterations, 1);
  p.requests = requests_of(o, model);
  p.sync = o.api == BenchmarkApi::sync || (o.api == BenchmarkApi::automatic && p.requests == 1);
  p.copies = o.copy_inputs;
  p.warm = o.warm_up;
  p.most_frames = o.frames_per_second;
  return p;
}

}  // namespace

class Benchmark::State {
 public:
  State(const CompiledModel& model, std::vector<InputGroup> groups, const LoadTimes& load)
      : model_(model),
        groups_(std::move(groups)),
        request_(model_.create_request()),
        before_(load.before_mb) {
    take_groups();
    phases_ = plan_phases(model_);
    phases_.read = load.read_ms;
    if (load.compile_ms > 0) phases_.optimize = load.compile_ms - phases_.plan - phases_.pack;
    load_ms_ = phases_.read + phases_.optimize + phases_.plan + phases_.pack;
  }

  double warm_up(const std::stop_token& stop) {
    const StopWatch watch(stop, [this] { request_.cancel(); });
    const auto before = plan_phases(model_);
    const auto begin = Clock::now();
    run(stop);
    first_ms_ = milliseconds(begin, Clock::now());
    const auto after = plan_phases(model_);
    // Planning for the shapes of the first run does not count as the run.
    const auto optimize = after.optimize - before.optimize, plan = after.plan - before.plan,
               pack = after.pack - before.pack;
    phases_.optimize += optimize;
    phases_.plan += plan;
    phases_.pack += pack;
    phases_.first_inference = first_ms_ - optimize - plan - pack;
    for (std::size_t g = 1; g < groups_.size(); ++g) {
      set(groups_[g]);
      run(stop);
    }
    warm_ = true;
    return first_ms_;
  }

  BenchmarkReport measure(const BenchmarkOptions& o) {
    require_right(o);
    const auto pattern = pattern_of(o, model_);
    const Records records{.profile = o.layers || o.runtime_graph, .counters = o.counters, .traces = o.trace};
    if (o.warm_up && !warm_) warm_up(o.stop);
    const auto progress = of_user(o.progress);
    auto measured = lamina::measure(model_, groups_, pattern, records, progress, o.stop);
    if (progress) progress("reporting", 1);
    BenchmarkReport report;
    report.interrupted = o.stop.stop_requested();
    report.requests = pattern.requests;
    report.sync = pattern.sync;
    report.percentile = o.percentile;
    describe(report);
    add_memory(report.memory);
    add_records(report, o, measured);
    take_latencies(report, std::move(measured));
    return report;
  }

 private:
  void take_groups() {
    const auto& loaded = Inside::of(model_).model();
    if (groups_.empty()) groups_.emplace_back();
    // The last ones are tried first: the request keeps those of the first group.
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
      if (group->inputs.empty()) group->inputs = made_up_inputs(loaded);
      if (group->batch < 1) fail(ErrorCode::bad_input, "a batch of {}: wanted 1 or more", group->batch);
      if (group->inputs.size() != model_.inputs().size())
        fail(ErrorCode::bad_input, "{} inputs given, the model has {}", group->inputs.size(),
             model_.inputs().size());
      set(*group);
      if (group->name.empty()) group->name = name_of(*group, model_.inputs());
    }
  }

  void set(const InputGroup& group) {
    for (std::size_t i = 0; i < group.inputs.size(); ++i) request_.set_input(i, group.inputs[i]);
  }

  void run(const std::stop_token& stop) {
    if (stop.stop_requested()) fail(ErrorCode::canceled, "the measurement was canceled");
    request_.run();
  }

  void describe(BenchmarkReport& r) const {
    const auto& compiled = Inside::of(model_);
    const auto precisions = precisions_of(compiled, request_);
    r.model = compiled.model().path();
    r.properties = model_.properties();
    for (const auto& p : r.properties)
      if (p.key == "INFERENCE_PRECISION_HINT") r.precision = p.asked;
    r.precision_used = precisions.bf16() ? "bf16" : "f32";
    r.precision_layers = precisions.layers;
    r.precision_reason = precisions.reason;
    r.precision_text = to_string(precisions);
    r.streams = model_.streams();
    r.threads_per_stream = model_.threads();
    for (const auto& stream : compiled.settings().placement.streams) r.stream_cpus.push_back(stream.cpus);
    r.isa = lamina::name_of(effective_isa());
    r.processor = processor_name();
    r.load_ms = load_ms_;
    r.first_inference_ms = first_ms_;
    r.load_phases = phases_;
    r.loaded_from_cache = compiled.loaded_from_cache();
  }

  void add_memory(BenchmarkMemory& m) const {
    constexpr double kMiB = 1048576;
    const auto process = process_memory(Inside::of(model_).model().path());
    std::set<const void*> seen;
    for (const auto& plan : Inside::runner_of(request_).plans()) {
      m.tensors_sum += static_cast<double>(plan->memory.sum) / kMiB;
      m.tensors_live = std::max(m.tensors_live, static_cast<double>(plan->memory.live) / kMiB);
      for (const auto& t : plan->tensors)
        if (t.place == Place::constant && seen.insert(t.constant.raw()).second)
          m.read_weights += static_cast<double>(t.constant.bytes()) / kMiB;
    }
    m.now = process.whole() / kMiB;
    m.before = before_;
    m.peak = peak_resident_mb();
    m.packed_weights = static_cast<double>(model_.weight_memory()) / kMiB;
    m.tensors = static_cast<double>(request_.memory()) / kMiB;
    m.model_file = process.model / kMiB;
    m.code = process.code / kMiB;
    m.libraries = process.libraries / kMiB;
    m.rest = std::max(0.0, process.rest / kMiB - m.packed_weights - m.tensors);
  }

  void add_records(BenchmarkReport& r, const BenchmarkOptions& o, Measured& measured) const {
    if (o.layers) {
      const AtWork here;
      r.layers = layers_with_rates(measured.profile, measure_limits(model_.threads()));
    }
    r.counters = std::move(measured.counters);
    if (o.trace) r.trace = trace_text(r.model, measured.traces, measured.began);
    if (o.runtime_graph)
      r.runtime_graph = lamina::runtime_graph(std::filesystem::path(r.model).stem().string(),
                                              Inside::of(model_), measured.profile);
  }

  void take_latencies(BenchmarkReport& r, Measured measured) const {
    r.latencies.ms = std::move(measured.ms);
    r.seconds = measured.seconds;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      r.groups.push_back({groups_[g].name, groups_[g].batch, {std::move(measured.groups[g])}});
  }

  CompiledModel model_;
  std::vector<InputGroup> groups_;
  Request request_;  // of the first inferences
  double before_ = 0, load_ms_ = 0, first_ms_ = 0;
  bool warm_ = false;
  LoadPhases phases_;
};

Benchmark::Benchmark(const CompiledModel& model, std::vector<InputGroup> groups, const LoadTimes& load)
    : state_(guarded("Benchmark::Benchmark",
                     [&] { return std::make_unique<State>(model, std::move(groups), load); })) {}
Benchmark::Benchmark(Benchmark&&) noexcept = default;
Benchmark& Benchmark::operator=(Benchmark&&) noexcept = default;
Benchmark::~Benchmark() = default;

double Benchmark::warm_up(const std::stop_token& stop) {
  return guarded("Benchmark::warm_up", [&] {
    if (!state_) fail(ErrorCode::bad_call, "the benchmark was moved from");
    return state_->warm_up(stop);
  });
}

BenchmarkReport Benchmark::measure(const BenchmarkOptions& options) {
  return guarded("Benchmark::measure", [&] {
    if (!state_) fail(ErrorCode::bad_call, "the benchmark was moved from");
    return state_->measure(options);
  });
}

namespace {

std::vector<InputGroup> group_of(const std::vector<Tensor>& inputs) {
  if (inputs.empty()) return {};
  return {{.inputs = inputs}};
}

}  // namespace

BenchmarkReport benchmark(const CompiledModel& model, const std::vector<Tensor>& inputs,
                          const BenchmarkOptions& options) {
  return guarded("benchmark", [&] {
    require_right(options);
    return Benchmark(model, group_of(inputs)).measure(options);
  });
}

BenchmarkReport benchmark(const std::string& model_path, const std::vector<Tensor>& inputs,
                          const Options& compiling, const BenchmarkOptions& options,
                          const ReadOptions& reading) {
  return guarded("benchmark", [&] {
    require_right(options);
    auto how = compiling;
    auto reads = reading;
    if (!how.progress) how.progress = options.progress;
    if (!how.stop.stop_possible()) how.stop = options.stop;
    if (!reads.stop.stop_possible()) reads.stop = options.stop;
    LoadTimes load{.before_mb = resident_mb()};
    const auto begin = Clock::now();
    const Model model(model_path, reads);
    const auto read = Clock::now();
    const CompiledModel compiled(model, how);
    load.read_ms = milliseconds(begin, read);
    load.compile_ms = milliseconds(read, Clock::now());
    return Benchmark(compiled, group_of(inputs), load).measure(options);
  });
}

}  // namespace lamina
