/// lamina/benchmark.h as functions of the library.
#include "lamina/benchmark.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <thread>

#include "lamina/error.h"
#include "tests/api/small_models.h"

namespace lamina {
namespace {

using namespace testing;
using Clock = std::chrono::steady_clock;

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

TEST(Benchmark, figures_of_one_request) {
  const CompiledModel model(model_of(sums()), {.threads = 1});
  const auto r = benchmark(model, {rows(2, 1), rows(2, 1)}, {.iterations = 20});
  EXPECT_EQ(r.model, "test.xml");
  EXPECT_EQ(r.latencies.ms.size(), 20u);
  EXPECT_TRUE(std::is_sorted(r.latencies.ms.begin(), r.latencies.ms.end()));
  EXPECT_GT(r.latencies.min(), 0);
  EXPECT_LE(r.latencies.min(), r.latencies.percentile(50));
  EXPECT_LE(r.latencies.percentile(50), r.latencies.max());
  EXPECT_TRUE(r.sync);
  EXPECT_EQ(r.requests, 1u);
  EXPECT_EQ(r.threads(), 1);
  EXPECT_FALSE(r.interrupted);
  EXPECT_GE(r.seconds, 1e-3 * std::accumulate(r.latencies.ms.begin(), r.latencies.ms.end(), 0.0));
  EXPECT_NEAR(r.throughput(), 20 / r.seconds, 1e-6);
  EXPECT_GT(r.first_inference_ms, 0);
  const auto& p = r.load_phases;
  EXPECT_NEAR(r.load_ms + r.first_inference_ms, p.read + p.optimize + p.plan + p.pack + p.first_inference,
              1e-6 + r.first_inference_ms);
  EXPECT_GT(r.memory.now, 0);
  EXPECT_GE(r.memory.peak, r.memory.now * 0.5);
  EXPECT_EQ(r.precision_used, "f32");
  EXPECT_FALSE(r.layers || !r.counters.empty() || !r.trace.empty() || !r.runtime_graph.empty());
}

TEST(Benchmark, inputs_are_made_up) {
  const CompiledModel model(model_of(sums()), {.threads = 1});
  const auto r = benchmark(model, {}, {.iterations = 1});
  EXPECT_EQ(r.groups.at(0).name, "a: [1,4] b: [1,4]");
  const CompiledModel counted(model_of(non_zeros()), {.threads = 1});
  EXPECT_EQ(benchmark(counted, {}, {.iterations = 3}).latencies.ms.size(), 3u);
}

TEST(Benchmark, the_document_has_the_keys_of_the_command) {
  const CompiledModel model(model_of(sums()), {.threads = 1});
  const auto r = benchmark(model, {}, {.iterations = 5, .percentile = 75, .layers = true});
  const auto j = nlohmann::json::parse(r.json());
  for (const auto* key : {"model",
                          "precision",
                          "precision_used",
                          "threads",
                          "streams",
                          "requests",
                          "isa",
                          "latency_ms",
                          "throughput_fps",
                          "load_ms",
                          "first_inference_ms",
                          "before_mb",
                          "peak_rss_mb",
                          "arena_mb",
                          "weights_mb",
                          "count",
                          "threads_per_stream",
                          "stream_cpus",
                          "binding",
                          "memory",
                          "properties",
                          "interrupted",
                          "loaded_from_cache",
                          "layers",
                          "load_phases_ms",
                          "kernels",
                          "profile",
                          "machine",
                          "batch",
                          "processor"})
    EXPECT_TRUE(j.contains(key)) << key;
  EXPECT_EQ(j["latency_ms"]["percentile_75"], r.latencies.percentile(75));
  EXPECT_EQ(j["layers"].size(), r.layers->layers.size() + 1);  // one is what is between them
  EXPECT_EQ(j["count"], 5);
}

TEST(Benchmark, layers_add_up) {
  const CompiledModel model(model_of(products(3, 64)), {.threads = 1});
  const auto r = benchmark(model, {}, {.iterations = 10, .layers = true});
  ASSERT_TRUE(r.layers);
  EXPECT_EQ(r.layers->runs, 10u);
  double sum = r.layers->overhead, kernels = 0;
  for (const auto& l : r.layers->layers) sum += l.microseconds;
  for (const auto& k : r.layers->kernels) kernels += k.microseconds;
  EXPECT_NEAR(sum, r.layers->whole.microseconds, 1e-6 * sum);
  EXPECT_NEAR(kernels + r.layers->overhead, sum, 1e-6 * sum);
  EXPECT_GT(r.layers->machine.flops, 0);
}

TEST(Benchmark, records_of_a_model_that_was_compiled_without_timing) {
  const CompiledModel model(model_of(sums()), {.threads = 1});
  const auto r =
      benchmark(model, {}, {.iterations = 4, .counters = true, .trace = true, .runtime_graph = true});
  ASSERT_EQ(r.counters.size(), 1u);
  EXPECT_FALSE(r.counters[0].empty());
  EXPECT_EQ(nlohmann::json::parse(r.trace)["otherData"]["inferences_left_out"], 0);
  EXPECT_NE(r.trace.find("inference 3"), std::string::npos);
  EXPECT_NE(r.runtime_graph.find("execTimeMcs"), std::string::npos);
}

TEST(Benchmark, requests_in_flight) {
  const CompiledModel model(model_of(sums()), {.threads = 2, .streams = 2});
  const auto r = benchmark(model, {}, {.iterations = 50, .requests = 4, .counters = true});
  EXPECT_FALSE(r.sync);
  EXPECT_EQ(r.requests, 4u);
  EXPECT_EQ(r.latencies.ms.size(), 50u);
  EXPECT_EQ(r.counters.size(), 4u);
  EXPECT_EQ(benchmark(model, {}, {.iterations = 2, .api = BenchmarkApi::sync}).requests, 1u);
  EXPECT_EQ(benchmark(model, {}, {.iterations = 2}).requests, model.optimal_requests());
}

TEST(Benchmark, groups_take_turns_and_frames_count) {
  const CompiledModel model(model_of(sums()), {.threads = 1});
  Benchmark work(model, {{{rows(2, 1), rows(2, 1)}, 2}, {{rows(6, 1), rows(6, 1)}, 6, "large"}});
  EXPECT_GT(work.warm_up(), 0);
  for (const bool copies : {false, true}) {
    const auto r = work.measure({.iterations = 10, .copy_inputs = copies});
    ASSERT_EQ(r.groups.size(), 2u);
    EXPECT_EQ(r.groups[0].name, "a: [2,4] b: [2,4]");
    EXPECT_EQ(r.groups[1].name, "large");
    EXPECT_EQ(r.groups[0].latencies.ms.size(), 5u);
    EXPECT_EQ(r.groups[1].latencies.ms.size(), 5u);
    EXPECT_EQ(r.frames(), 5 * 2 + 5 * 6);
    EXPECT_EQ(nlohmann::json::parse(r.json())["groups"].size(), 2u);
  }
}

TEST(Benchmark, a_rate_is_kept) {
  const CompiledModel model(model_of(sums()), {.threads = 1});
  for (const auto api : {BenchmarkApi::sync, BenchmarkApi::async}) {
    const auto r = benchmark(model, {}, {.iterations = 10, .api = api, .frames_per_second = 100});
    EXPECT_LE(r.throughput(), 100.01);
    EXPECT_GE(r.seconds, 0.0999);
  }
}

TEST(Benchmark, wrong_options_and_inputs) {
  const CompiledModel model(model_of(sums()), {.threads = 1});
  const auto with = [&](const BenchmarkOptions& o) { return code_of([&] { benchmark(model, {}, o); }); };
  EXPECT_EQ(with({.seconds = -1}), ErrorCode::bad_option);
  EXPECT_EQ(with({.seconds = 1e9}), ErrorCode::bad_option);
  EXPECT_EQ(with({.api = BenchmarkApi::sync, .requests = 2}), ErrorCode::bad_option);
  EXPECT_EQ(with({.frames_per_second = -2}), ErrorCode::bad_option);
  EXPECT_EQ(with({.percentile = 0}), ErrorCode::bad_option);
  EXPECT_EQ(code_of([&] { benchmark(model, {rows(1, 1)}); }), ErrorCode::bad_input);
  EXPECT_EQ(code_of([&] {
              benchmark(model, {rows(1, 1), Tensor(ElementType::i64, {1, 4})});
            }),
            ErrorCode::bad_input);
  EXPECT_EQ(code_of([&] { Benchmark(model, {{{rows(1, 1), rows(1, 1)}, 0}}); }), ErrorCode::bad_input);
  EXPECT_EQ(code_of([&] { benchmark("no/such.onnx"); }), ErrorCode::bad_file);
  Benchmark gone(model);
  const Benchmark taken(std::move(gone));
  EXPECT_EQ(code_of([&] { gone.measure(); }), ErrorCode::bad_call);  // NOLINT(bugprone-use-after-move)
}

TEST(Benchmark, progress_is_told_and_ends_the_work) {
  const CompiledModel model(model_of(sums()), {.threads = 2, .streams = 2});
  for (const auto api : {BenchmarkApi::sync, BenchmarkApi::async}) {
    double last = 0;
    std::set<std::string> stages;
    int told = 0;
    benchmark(model, {}, {.seconds = 0.4, .api = api, .progress = [&](std::string_view stage, double done) {
                            stages.insert(std::string(stage));
                            EXPECT_GE(done, last);
                            last = done;
                            ++told;
                          }});
    EXPECT_EQ(stages, (std::set<std::string>{"measuring", "reporting"}));
    EXPECT_GE(told, 2);
    EXPECT_EQ(last, 1);
    const auto begin = Clock::now();
    EXPECT_THROW(
        benchmark(model, {},
                  {.seconds = 60,
                   .api = api,
                   .progress = [](std::string_view, double) { throw std::runtime_error("enough"); }}),
        std::runtime_error);
    EXPECT_LT(seconds_since(begin), 50);
  }
}

TEST(Benchmark, a_stop_ends_it_with_a_report) {
  const CompiledModel model(model_of(sums()), {.threads = 2, .streams = 2});
  for (const auto api : {BenchmarkApi::sync, BenchmarkApi::async})
    for (const double rate : {0.0, 20.0}) {
      std::stop_source stop;
      std::jthread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        stop.request_stop();
      });
      const auto begin = Clock::now();
      const auto r = benchmark(
          model, {}, {.seconds = 60, .api = api, .frames_per_second = rate, .stop = stop.get_token()});
      EXPECT_TRUE(r.interrupted);
      EXPECT_FALSE(r.latencies.ms.empty());
      EXPECT_LT(seconds_since(begin), 50);
    }
}

TEST(Benchmark, a_stop_cancels_what_is_too_slow) {
  const CompiledModel model(model_of(products(200, 512)), {.threads = 1});  // most of a second, or more
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  const auto begin = Clock::now();
  try {
    EXPECT_TRUE(benchmark(model, {}, {.seconds = 600, .stop = stop.get_token()}).interrupted);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::canceled);
  }
  EXPECT_LT(seconds_since(begin), 300);
  EXPECT_EQ(code_of([&] { benchmark(model, {}, {.stop = stop.get_token()}); }), ErrorCode::canceled);
  EXPECT_EQ(benchmark(model, {}, {.iterations = 1, .warm_up = false}).latencies.ms.size(), 1u);
}

TEST(Benchmark, a_path_is_read_compiled_and_measured) {
  const TemporaryFolder folder;
  const auto path = sums().write(folder);
  const auto r = benchmark(path, {}, {.threads = 1}, {.iterations = 2, .runtime_graph = true});
  EXPECT_EQ(r.model, path);
  EXPECT_GT(r.load_ms, 0);
  EXPECT_GT(r.load_phases.read, 0);
  EXPECT_GT(r.memory.before, 0);
  EXPECT_NE(r.runtime_graph.find("<net "), std::string::npos);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(code_of([&] { benchmark(path, {}, {}, {.stop = stop.get_token()}); }), ErrorCode::canceled);
}

TEST(Tuned, can_be_stopped) {
  const auto model = model_of(products(4, 64));
  std::stop_source stop;
  stop.request_stop();
  Options options{.threads = 1};
  options.stop = stop.get_token();
  EXPECT_EQ(code_of([&] {
              (void)tuned(model, options, {Tensor(ElementType::f32, {64, 64})});
            }),
            ErrorCode::canceled);
}

}  // namespace
}  // namespace lamina
