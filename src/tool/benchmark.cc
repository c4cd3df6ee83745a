/// lamina benchmark: latency, throughput, load time, memory, layer by layer.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "base/cpu.h"
#include "base/error.h"
#include "tool/benchmark.h"
#include "tool/verb_list.h"

namespace lamina::tool {

Subject load(const BenchmarkOptions& o, Options options) {
  using Clock = std::chrono::steady_clock;
  const auto milliseconds = [](Clock::time_point a, Clock::time_point b) {
    return std::chrono::duration<double, std::milli>(b - a).count();
  };
  Subject l;
  // Inputs are read before the model, so that their memory counts to what was there before; ports come from a
  // first look at the file, which maps it only.
  {
    const Model look(o.common.model);
    l.inputs = gather_inputs(look.inputs(), o.inputs, o.common, l.notes);
  }
  if (o.batch > 0)
    for (auto& t : l.inputs) t = with_batch(t, o.batch);
  l.before_mb = resident_mb();
  const auto begin = Clock::now();
  Progress progress("loading " + o.common.model, o.common.quiet);
  const Model model(o.common.model);
  l.compiled = std::make_unique<CompiledModel>(model, options);
  l.request = std::make_unique<Request>(l.compiled->create_request());
  l.outputs = model.outputs();
  for (std::size_t i = 0; i < l.inputs.size(); ++i) l.request->set_input(i, l.inputs[i]);
  const auto ready = Clock::now();
  l.request->run();
  l.load_ms = milliseconds(begin, ready);
  l.first_ms = milliseconds(ready, Clock::now());
  return l;
}

Tensor with_batch(const Tensor& t, int batch) {
  if (t.rank() == 0 || t.shape()[0] == batch || t.shape()[0] == 0) return t;
  Dims shape = t.shape();
  const auto old = shape[0];
  shape[0] = batch;
  Tensor out(t.element_type(), shape);
  const std::size_t row = t.bytes() / static_cast<std::size_t>(old);
  for (int b = 0; b < batch; ++b)
    std::copy_n(t.raw() + static_cast<std::size_t>(b % old) * row, row,
                out.raw() + static_cast<std::size_t>(b) * row);
  return out;
}

Latencies measure(Request& request, double seconds, long at_most) {
  using Clock = std::chrono::steady_clock;
  Latencies l;
  request.run();
  const auto begin = Clock::now();
  auto before = begin;
  do {
    request.run();
    const auto now = Clock::now();
    l.ms.push_back(std::chrono::duration<double, std::milli>(now - before).count());
    before = now;
  } while ((at_most == 0 || static_cast<long>(l.ms.size()) < at_most) &&
           (at_most != 0 || std::chrono::duration<double>(before - begin).count() < seconds));
  l.seconds = std::chrono::duration<double>(before - begin).count();
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

double throughput(const CompiledModel& compiled, const std::vector<Tensor>& inputs, int requests,
                  double seconds) {
  using Clock = std::chrono::steady_clock;
  std::vector<Request> pool;
  for (int i = 0; i < requests; ++i) {
    pool.push_back(compiled.create_request());
    for (std::size_t k = 0; k < inputs.size(); ++k) pool.back().set_input(k, inputs[k]);
    pool.back().run();
  }
  std::vector<long> counts(pool.size(), 0);
  std::vector<std::thread> threads;
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < pool.size(); ++i)
    threads.emplace_back([&, i] {
      while (std::chrono::duration<double>(Clock::now() - begin).count() < seconds) {
        pool[i].run();
        ++counts[i];
      }
    });
  for (auto& t : threads) t.join();
  return static_cast<double>(std::accumulate(counts.begin(), counts.end(), 0l)) /
         std::chrono::duration<double>(Clock::now() - begin).count();
}

namespace {

struct LayerRow {
  std::string name, kernel;
  double total = 0;
};

/// Mean times per layer, and a row for what is between them.
void print_layers(const BenchmarkOptions& o, Subject& l, nlohmann::json& document) {
  constexpr int kRuns = 20;
  std::vector<LayerRow> rows;
  double whole = 0;
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    l.request->run();
    whole += std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    const auto times = l.request->layer_times();
    if (rows.empty())
      for (const auto& t : times) rows.push_back({t.name, t.kernel, 0});
    for (std::size_t i = 0; i < std::min(rows.size(), times.size()); ++i)
      rows[i].total += times[i].microseconds;
  }
  double layers = 0;
  for (const auto& r : rows) layers += r.total;
  rows.push_back({"(overhead)", "", whole - layers});
  o.common.say("{:<48} {:<32} {:>10} {:>7}", "layer", "kernel", "us", "share");
  for (const auto& r : rows) {
    o.common.say("{:<48.48} {:<32.32} {:>10.1f} {:>6.1f}%", r.name, r.kernel, r.total / kRuns,
                 100 * r.total / whole);
    document["layers"].push_back({{"name", r.name}, {"kernel", r.kernel}, {"us", r.total / kRuns}});
  }
  o.common.say("{:<48} {:<32} {:>10.1f}", "total", "", whole / kRuns);
}

void check_unsupported_words(const BenchmarkOptions& o) {
  if (!o.device.empty() && o.device != "CPU") throw UsageError(fmt::format("-d {}: wanted CPU", o.device));
  if (!o.runtime_graph.empty()) throw UsageError("--runtime-graph: is not there yet");
}

}  // namespace

int run_benchmark(BenchmarkOptions& o) {
  check_unsupported_words(o);
  auto options = o.common.options();
  const bool throughput_hint = o.hint == "throughput" || o.hint == "tput";
  const int threads = options.threads > 0 ? options.threads : available_threads();
  int streams = 1;
  if (throughput_hint) {
    streams = o.streams > 0 ? std::min(o.streams, threads) : threads;
    options.threads = std::max(1, threads / streams);
  } else if (o.streams > 1) {
    streams = std::min(o.streams, threads);
    options.threads = std::max(1, threads / streams);
  }
  options.profile = o.pc;
  if (o.interactive) return interactive(o, options, streams);
  auto l = load(o, options);
  for (const auto& note : l.notes)
    if (!o.common.quiet) fmt::print(stderr, "lamina: {}\n", note);
  Latencies latencies;
  {
    Progress progress("measuring " + o.common.model, o.common.quiet);
    latencies = measure(*l.request, o.seconds, o.iterations);
  }
  const int requests = o.requests > 0 ? o.requests : streams;
  const double fps = requests > 1 ? throughput(*l.compiled, l.inputs, requests, o.seconds)
                                  : static_cast<double>(latencies.ms.size()) / latencies.seconds;
  const double batch = o.batch > 0 ? o.batch : 1;
  nlohmann::json j{{"model", o.common.model},
                   {"precision", o.common.precision == "int8" ? "model" : o.common.precision},
                   {"threads", threads},
                   {"streams", streams},
                   {"isa", name_of(effective_isa())},
                   {"processor", processor_name()},
                   {"latency_ms",
                    {{"min", latencies.ms.front()},
                     {"median", latencies.percentile(0.5)},
                     {"mean", latencies.mean()},
                     {"p90", latencies.percentile(0.9)},
                     {"p99", latencies.percentile(0.99)},
                     {"max", latencies.ms.back()}}},
                   {"throughput_fps", fps * batch},
                   {"load_ms", l.load_ms},
                   {"first_inference_ms", l.first_ms},
                   {"before_mb", l.before_mb},
                   {"peak_rss_mb", peak_resident_mb()},
                   {"arena_mb", static_cast<double>(l.request->memory()) / 1048576},
                   {"weights_mb", static_cast<double>(l.compiled->weight_memory()) / 1048576},
                   {"count", latencies.ms.size()}};
  o.common.say(
      "latency     median {:.3f} ms  (min {:.3f}, mean {:.3f}, p90 {:.3f}, p99 {:.3f}, max {:.3f}; {} runs)",
      latencies.percentile(0.5), latencies.ms.front(), latencies.mean(), latencies.percentile(0.9),
      latencies.percentile(0.99), latencies.ms.back(), latencies.ms.size());
  o.common.say("throughput  {:.1f} inferences/s with {} request{}", fps * batch, requests,
               requests == 1 ? "" : "s");
  o.common.say("load        {:.1f} ms, first inference {:.1f} ms", l.load_ms, l.first_ms);
  o.common.say("memory      peak {:.1f} MB (before the model {:.1f}), tensors {:.1f}, packed weights {:.1f}",
               peak_resident_mb(), l.before_mb, j["arena_mb"].get<double>(), j["weights_mb"].get<double>());
  o.common.say("on          {}, {}, {} thread{}", processor_name(), name_of(effective_isa()), threads,
               threads == 1 ? "" : "s");
  if (o.pc) print_layers(o, l, j);
  write_json(o.common, j);
  return 0;
}

Verb setup_benchmark(CLI::App& app) {
  auto o = std::make_shared<BenchmarkOptions>();
  add_model(app, o->common);
  add_input_options(app, o->inputs);
  app.add_option("--hint", o->hint, "latency or throughput")
      ->check(CLI::IsMember({"latency", "throughput", "tput", "cumulative_throughput", "none"}))
      ->type_name("HINT");
  app.add_option("--seconds", o->seconds, "How long to measure")
      ->check(CLI::Range(0.0, 86400.0))
      ->type_name("S");
  app.add_option("--iterations", o->iterations, "Measure that many inferences instead")
      ->check(CLI::Range(1, 100000000))
      ->type_name("N");
  app.add_option("--requests", o->requests, "Requests in flight")->check(CLI::Range(1, 1024))->type_name("N");
  app.add_option("--streams", o->streams, "Requests that run at once, each on its share of the threads")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.add_option("--batch", o->batch, "Batch size of all inputs")
      ->check(CLI::Range(1, 65536))
      ->type_name("N");
  app.add_flag("--pc", o->pc, "Layer by layer (also -pc)");
  app.add_flag("--interactive", o->interactive, "Obey lines on standard input");
  app.add_option("--runtime-graph", o->runtime_graph, "")->group("");
  app.add_option("--device", o->device, "")->group("");
  for (const char* accepted : {"--api", "--infer-precision", "--report-type", "--report-folder",
                               "--json-stats", "--benchmark-app-shape"})
    app.add_option(accepted, o->ignored[accepted], "")->group("");
  add_compile_options(app, o->common);
  add_json(app, o->common);
  return [o] { return run_benchmark(*o); };
}

}  // namespace lamina::tool
