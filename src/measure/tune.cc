#include "measure/tune.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "api/inside.h"
#include "base/atomic_file.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/machine.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "base/users_calls.h"
#include "kernels/onednn_isa.h"
#include "measure/measurement.h"
#include "measure/tune_streams.h"
#include "saved/compiled.h"

namespace lamina {
namespace {

constexpr double kNear = 2;          // rivals are estimated at that many times the best, at most
constexpr std::size_t kRivals = 3;   // of a layer
constexpr double kSeconds = 0.15;    // of a measurement
constexpr double kLeastGain = 0.03;  // of a layer
constexpr double kModelGain = 0.01;  // of the whole
constexpr int kRounds = 15;          // in which two models take turns

/// A layer by the name by which it can be overridden.
struct TunedLayer {
  std::string label;
  double us = 0;
  std::vector<std::string> rivals;  ///< labels, the nearest first
};

/// The names by which --force can select a node: its own, and those of its layers of the file.
std::set<std::string> names_of(const Graph& g, NodeId id) {
  std::set<std::string> out{g.label(id)};
  for (const auto s : g.node(id).sources) out.insert(g.sources.at(s.index).name);
  return out;
}

/// A name of each layer by which one node of the plans alone can be overridden. Names of layers need not be
/// unique; those that JSON does not hold cannot be remembered.
std::map<const PlanStep*, std::string> names_of(const std::vector<std::shared_ptr<const Plan>>& plans) {
  std::map<std::string, int> nodes;
  for (const auto& plan : plans)
    for (const auto id : plan->graph.order())
      for (const auto& name : names_of(plan->graph, id)) ++nodes[name];
  std::map<const PlanStep*, std::string> out;
  for (const auto& plan : plans)
    for (const auto& step : plan->steps) {
      if (step.kind != PlanStep::Kind::kernel) continue;
      for (const auto s : plan->graph.node(step.node).sources)
        if (const auto& name = plan->graph.sources.at(s.index).name;
            nodes[name] == 1 && !name.empty() && printable(name, true) == name)
          out.try_emplace(&step, name);
    }
  return out;
}

std::vector<std::string> rivals_of(const Choice& choice) {
  auto lost = choice.lost;
  std::stable_sort(lost.begin(), lost.end(), [](const auto& a, const auto& b) { return a.cost < b.cost; });
  std::vector<std::string> out;
  for (const auto& l : lost) {
    if (l.decomposed) continue;  // its parts are other layers
    if (l.cost.us() <= kNear * choice.cost.us() && l.label != choice.label &&
        std::ranges::find(out, l.label) == out.end())
      out.push_back(l.label);
  }
  out.resize(std::min(out.size(), kRivals));
  return out;
}

class Tuner {
 public:
  Tuner(const Model& model, const Options& options, const std::vector<Tensor>& inputs)
      : model_(model), options_(options), inputs_(inputs) {
    options_.log = {};
  }

  std::vector<std::string> run() {
    const auto base = measure({});
    auto best = base;
    for (std::size_t k = 0; k < kRivals; ++k) {
      Overrides trial;
      for (const auto& [name, layer] : base)
        if (k < layer.rivals.size()) trial[name] = layer.rivals[k];
      if (trial.empty()) break;
      std::map<std::string, TunedLayer> tried;
      taken([&] { tried = measure(trial); });
      for (const auto& [name, layer] : tried)
        if (trial.contains(name) && layer.us < best[name].us) best[name] = layer;
    }
    std::vector<std::pair<double, std::string>> gains;
    for (const auto& [name, layer] : base)
      if (best[name].us < (1 - kLeastGain) * layer.us) gains.emplace_back(layer.us - best[name].us, name);
    std::sort(gains.rbegin(), gains.rend());
    // The largest ones with which the whole gains: layouts may cost more than kernels save.
    for (; !gains.empty(); gains.resize(gains.size() / 2)) {
      Overrides overrides;
      for (const auto& [gain, name] : gains) overrides[name] = best[name].label;
      double faster = 0;
      taken([&] { faster = times_faster(overrides); });
      if (faster > 1 + kModelGain) return as_text(overrides);
    }
    return {};
  }

  /// True if every override has its kernel. The model runs once, since some plans are made in a run only.
  bool takes(const std::vector<std::string>& overrides) const {
    return taken([&] { request(overrides, false); });
  }

 private:
  using Overrides = std::map<std::string, std::string>;  // label by layer
  using Clock = std::chrono::steady_clock;

  static std::vector<std::string> as_text(const Overrides& overrides) {
    std::vector<std::string> out;
    for (const auto& [name, label] : overrides) out.push_back(name + "=" + label);
    return out;
  }

  /// False where an override is refused.
  template <class F>
  static bool taken(F&& f) {
    try {
      f();
      return true;
    } catch (const Error& e) {
      if (e.code() == ErrorCode::bad_option) return false;
      throw;
    }
  }

  CompiledModel compiled(const std::vector<std::string>& overrides, bool profile) const {
    auto options = options_;
    options.profile = profile;
    options.force.insert(options.force.begin(), overrides.begin(), overrides.end());
    return CompiledModel(model_, options);
  }

  Request request(const std::vector<std::string>& overrides, bool profile) const {
    auto request = compiled(overrides, profile).create_request();
    for (std::size_t i = 0; i < inputs_.size(); ++i) request.set_input(i, inputs_[i]);
    {
      const StopWatch watch(options_.stop, [&] { request.cancel(); });
      run(request);
    }
    return request;
  }

  void run(Request& request) const {
    if (options_.stop.stop_requested()) fail(ErrorCode::canceled, "choosing kernels was canceled");
    request.run();
  }

  /// The shortest time of each layer.
  std::map<std::string, TunedLayer> measure(const Overrides& overrides) const {
    auto r = request(as_text(overrides), true);
    const StopWatch watch(options_.stop, [&] { r.cancel(); });
    const auto& runner = Inside::runner_of(r);
    std::unordered_map<const PlanStep*, double> shortest;
    const auto begin = Clock::now();
    for (int runs = 0; runs < 3 || std::chrono::duration<double>(Clock::now() - begin).count() < kSeconds;
         ++runs) {
      run(r);
      for (const auto& t : runner.times()) {
        auto& us = shortest.try_emplace(t.step, t.microseconds).first->second;
        us = std::min(us, t.microseconds);
      }
    }
    std::map<std::string, TunedLayer> out;
    const auto plans = runner.plans();
    const auto names = names_of(plans);
    for (const auto& plan : plans) {
      std::map<NodeId, const PlanStep*> steps;
      for (const auto& step : plan->steps)
        if (names.contains(&step)) steps[step.node] = &step;
      for (const auto& choice : plan->choices)
        if (const auto at = steps.find(choice.node); at != steps.end())
          out[names.at(at->second)] = {choice.label, shortest[at->second], rivals_of(choice)};
    }
    return out;
  }

  /// The median of rounds in which the model as estimated and the one with overrides take turns.
  double times_faster(const Overrides& overrides) const {
    auto before = request({}, false), now = request(as_text(overrides), false);
    const StopWatch watch(options_.stop, [&] {
      before.cancel();
      now.cancel();
    });
    const auto once = [this](Request& r) {
      const auto begin = Clock::now();
      run(r);
      return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    const int runs = std::clamp(static_cast<int>(2e-3 / std::max(once(before), 1e-9)), 1, 100);
    const auto shortest = [&](Request& r) {
      double least = once(r);
      for (int i = 0; i < runs; ++i) least = std::min(least, once(r));
      return least;
    };
    std::vector<double> ratios;
    for (int round = 0; round < kRounds; ++round) {
      const double a = shortest(before), b = shortest(now);
      ratios.push_back(a / b);
    }
    std::nth_element(ratios.begin(), ratios.begin() + kRounds / 2, ratios.end());
    return ratios[kRounds / 2];
  }

  const Model& model_;
  Options options_;
  const std::vector<Tensor>& inputs_;
};

/// The result of a measurement.
struct Measured {
  std::vector<std::string> overrides;
  std::optional<int> streams;  ///< where their number was left to throughput

  std::string text() const {
    return streams ? fmt::format(", {} stream{}", *streams, *streams == 1 ? "" : "s") : "";
  }
};

/// What the measurements depend on, in words.
std::string key_of(const Model& model, const Options& o, const std::vector<Tensor>& inputs) {
  const auto& g = Inside::of(model).loaded().graph;
  const auto& m = this_machine();
  const auto settings = settings_for(o, read_topology());
  auto deciding = o;
  deciding.precision = settings.precision;
  Hasher made_with;
  add_deciding(made_with, deciding);
  auto key = fmt::format("{} {} {} {} {}", version(), m.name, name_of(m.isa()),
                         settings.placement.threads_each, to_string(made_with.result()));
  if (by_throughput(o)) key += fmt::format(" throughput {} {}", o.hint_requests, o.threads);
  for (const auto& t : inputs) key += " " + lamina::to_string(t.shape());
  for (const auto id : g.order()) {
    key += fmt::format("\n{} {}", g.label(id), g.node(id).op.name());
    for (const auto v : g.node(id).outputs) key += " " + to_string(g.type(v));
  }
  return printable(key);
}

std::filesystem::path file_of(const std::string& key) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache && *cache == '/')
    folder = cache;
  else if (home && *home == '/')
    folder = std::filesystem::path(home) / ".cache";
  else
    return {};
  return folder / "lamina" / "tuned" / fmt::format("{:016x}.json", std::hash<std::string>()(key));
}

/// The remembered measurements for the key, if any. Throws Error(bad_file) for a file of another kind.
std::optional<Measured> remembered(const std::filesystem::path& path, const std::string& key) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;  // or cannot be found out
  const auto file = MappedFile::open(path.string());
  try {
    const auto j = nlohmann::json::parse(file->text());
    if (j.at("key").get<std::string>() != key) return std::nullopt;
    Measured out{j.at("force").get<std::vector<std::string>>(), {}};
    if (j.contains("streams")) out.streams = std::clamp(j.at("streams").get<int>(), 1, Streams::kMost);
    return out;
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::bad_file, "{}: is not a file of remembered measurements", path.string());
  }
}

void remember(const std::filesystem::path& file, const std::string& key, const Measured& measured) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (std::filesystem::is_fifo(file, error)) fail(ErrorCode::bad_file, "{}: is a pipe", file.string());
  nlohmann::json j{{"key", key}, {"force", measured.overrides}};
  if (measured.streams) j["streams"] = *measured.streams;
  write_file(file.string(), j.dump(1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace

std::vector<std::string> measured_overrides(const Model& model, const Options& options,
                                            const std::vector<Tensor>& inputs) {
  return Tuner(model, options, inputs).run();
}

namespace {

Options tuned_options(const Model& model, Options options, const std::vector<Tensor>& inputs,
                      const NoteCallback& note) {
  if (options.max_isa != kNativeIsa)
    limit_isa(options.max_isa, limit_onednn);  // before the machine is looked at
  const auto key = key_of(model, options, inputs);
  const auto file = file_of(key);
  std::optional<Measured> measured;
  try {
    if (!file.empty()) measured = remembered(file, key);
    // Another build of this version may offer other kernels.
    if (measured && !Tuner(model, options, inputs).takes(measured->overrides)) {
      measured.reset();
      fail(ErrorCode::bad_file, "{}: its kernels are not available any more", file.string());
    }
  } catch (const Error& e) {
    if (e.code() != ErrorCode::bad_file) throw;
    note(e.what());
  }
  const auto apply = [&](const Measured& m) {
    options.force.insert(options.force.begin(), m.overrides.begin(), m.overrides.end());
    if (m.streams) options.streams = *m.streams;
  };
  if (measured) {
    note(fmt::format("{} kernels{} as measured before ({})", measured->overrides.size(), measured->text(),
                     file.string()));
    apply(*measured);
    return options;
  }
  measured = Measured{measured_overrides(model, options, inputs), {}};
  auto with_overrides = options;
  with_overrides.log = {};
  with_overrides.force.insert(with_overrides.force.begin(), measured->overrides.begin(),
                              measured->overrides.end());
  measured->streams = measured_streams(model, with_overrides, inputs);
  note(fmt::format("{} kernels other than estimated{}", measured->overrides.size(), measured->text()));
  try {
    if (!file.empty()) remember(file, key, *measured);
  } catch (const Error& e) {
    note(fmt::format("not remembered: {}", e.what()));
  }
  apply(*measured);
  return options;
}

}  // namespace

Options tuned(const Model& model, const Options& options, const std::vector<Tensor>& inputs,
              const NoteCallback& note) {
  return guarded("tuned", [&] {
    return tuned_options(
        model, options, inputs, note ? of_user(note) : [](const std::string&) {});
  });
}

}  // namespace lamina
