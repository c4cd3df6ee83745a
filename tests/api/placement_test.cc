/// Streams, threads and processors on machines of all kinds: what is decided, and why.
#include "base/placement.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <sstream>

#include "base/error.h"
#include "tests/api/placement_rows.h"
#include "tests/api/small_models.h"

namespace lamina {
namespace {

using testing::model_of;
using testing::sums;

struct Made {
  Topology topology;
  std::set<int> taken = {};
};

/// `cores` cores per node, then second processors in the same order.
Topology regular(int packages, int nodes_each, int cores, int threads) {
  Topology t;
  for (int second = 0; second < threads; ++second)
    for (int p = 0; p < packages; ++p)
      for (int n = 0; n < nodes_each; ++n)
        for (int c = 0; c < cores; ++c)
          t.cpus.push_back({static_cast<int>(t.cpus.size()), p, n * cores + c, p * nodes_each + n, false});
  return t;
}

/// Performance cores with their processors side by side, then efficiency cores.
Topology hybrid(int large, int small, int threads = 2) {
  Topology t;
  for (int i = 0; i < threads * large; ++i) t.cpus.push_back({i, 0, i / threads, 0, false});
  for (int i = 0; i < small; ++i) t.cpus.push_back({threads * large + i, 0, large + i, 0, true});
  return t;
}

Topology with_quota(Topology t, double quota) {
  t.quota = quota;
  return t;
}

/// Two nodes of which a mask leaves 4 processors of the first and 2 of the second.
Topology masked() {
  auto t = regular(2, 1, 4, 1);
  std::erase_if(t.cpus, [](const Cpu& c) { return c.number > 5; });
  return t;
}

Made machine(const std::string& name) {
  if (name == "one1") return {regular(1, 1, 1, 1)};
  if (name == "one4") return {regular(1, 1, 4, 1)};
  if (name == "smt4") return {regular(1, 1, 4, 2)};
  if (name == "two8") return {regular(2, 1, 8, 2)};
  if (name == "nodes4") return {regular(1, 4, 4, 1)};
  if (name == "hybrid6") return {hybrid(6, 8)};
  if (name == "hybrid2") return {hybrid(2, 8)};
  if (name == "single6") return {hybrid(6, 8, 1)};
  if (name == "half1") return {with_quota(regular(1, 1, 1, 1), 0.5)};
  if (name == "tight8") return {with_quota(regular(2, 1, 8, 2), 2.5)};
  if (name == "mask") return {masked()};
  if (name == "taken") return {regular(1, 1, 4, 1), {0, 2}};
  return {with_quota(regular(1, 1, 8, 1), std::stod(name.substr(5)))};
}

Options options_of(const std::string& keys) {
  Options o;
  std::istringstream words(keys);
  for (std::string word; words >> word;)
    o.set(word.substr(0, word.find("=")), word.substr(word.find("=") + 1));
  return o;
}

/// "2x4 YES [0: 0 1 2 3; 1: 8 9 10 11] reasons; ! warnings"
std::string in_words(const Placement& p) {
  static const std::map<Binding, std::string> kBinding{
      {Binding::processors, "YES"}, {Binding::numa_nodes, "NUMA"}, {Binding::none, "NO"}};
  std::string out = fmt::format("{}x{} {} [", p.streams.size(), p.threads_each, kBinding.at(p.binding));
  for (std::size_t s = 0; s < p.streams.size(); ++s)
    out += fmt::format("{}{}: {}", s ? "; " : "", p.streams[s].node, fmt::join(p.streams[s].cpus, " "));
  out += "]";
  const auto say = [&](const char* what, const std::string& why) {
    if (!why.empty()) out += fmt::format(" {}: {}.", what, why);
  };
  say("threads", p.why.threads);
  say("streams", p.why.streams);
  say("binding", p.why.binding);
  say("cores", p.why.cores);
  say("hyper-threading", p.why.hyper_threading);
  for (const auto& w : p.warnings) out += " ! " + w;
  return out;
}

TEST(Placement, table) {
  for (const auto& row : kPlacementRows) {
    const auto m = machine(row.machine);
    EXPECT_EQ(in_words(place_streams(m.topology, options_of(row.keys), 0, {}, m.taken)), row.wanted)
        << row.machine << " " << row.keys;
  }
}

/// What one inference gains of threads decides.
TEST(Placement, automatic_by_predicted_throughput) {
  const auto machine = regular(1, 1, 8, 1);
  Options o;
  o.streams = Streams::automatic();
  const auto streams = [&](const InferenceTime& time) {
    return place_streams(machine, o, 0, time).streams.size();
  };
  EXPECT_EQ(streams([](int threads, int) { return 100.0 / threads; }), 1u);  // scales: nothing to gain
  EXPECT_EQ(streams([](int, int) { return 100.0; }), 8u);                    // does not scale at all
  EXPECT_EQ(streams([](int, int n) { return 100.0 * n; }), 1u);              // all wait for memory
  EXPECT_EQ(streams([](int threads, int) { return 100.0 / std::min(threads, 4); }), 2u);
  o.hint_requests = 3;
  EXPECT_EQ(streams([](int, int) { return 100.0; }), 3u);
}

TEST(Placement, nodes_of_a_stream_are_those_of_the_usable_processors) {
  const auto p =
      place_streams(regular(2, 1, 4, 2), options_of("CPU_THROUGHPUT_STREAMS=NUMA CPU_BIND_THREAD=NUMA"));
  ASSERT_EQ(p.streams.size(), 2u);
  EXPECT_EQ(*p.streams[1].node_cpus, (std::vector<int>{4, 5, 6, 7, 12, 13, 14, 15}));
}

/// As many threads as the keys know, and one list of a node's processors for all of its streams.
TEST(Placement, more_processors_than_threads) {
  const auto largest = regular(1, 1, 8192, 1);
  const auto all = place_streams(largest, {});
  EXPECT_EQ(all.threads, 1024);
  EXPECT_EQ(all.why.threads, "1024 threads are the most");
  const auto p = place_streams(largest, options_of("CPU_THROUGHPUT_STREAMS=AUTO"));
  EXPECT_LE(p.streams.size(), 1024u);
  EXPECT_EQ(p.streams.front().node_cpus, p.streams.back().node_cpus);
  EXPECT_EQ(p.streams.front().node_cpus->size(), 8192u);
}

/// To be run with a narrow mask: what oneTBB saw at its first use is not what the process may use later.
TEST(Placement, DISABLED_widened_mask) {
  const auto model = model_of(sums());
  EXPECT_EQ(CompiledModel(model).threads(), 1);
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof all);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(CompiledModel(model).threads(), place_streams(read_topology(), {}).threads);
}

TEST(Placement, the_mask_is_read_anew) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(affinity_here().front()), &one);
    if (sched_setaffinity(0, sizeof one, &one) == 0)
      execl("/proc/self/exe", "api_tests", "--gtest_brief=1", "--gtest_also_run_disabled_tests",
            "--gtest_filter=Placement.DISABLED_widened_mask", nullptr);
    _exit(1);
  }
  close(ends[1]);
  char warned = 0;
  EXPECT_EQ(::read(ends[0], &warned, 1), 0) << "oneTBB says that it has fewer threads";
  close(ends[0]);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// What properties() says is what a model gets there.
TEST(Placement, properties_of_the_callers_arena) {
  tbb::task_arena one(1);
  one.execute([] {
    const CompiledModel compiled(model_of(sums()));
    for (const auto& p : properties())
      if (p.key == "CPU_THREADS_NUM") {
        EXPECT_EQ(p.value, compiled.property("CPU_THREADS_NUM"));
        EXPECT_EQ(p.value, "1");
      }
  });
}

TEST(Placement, an_arena_limits_what_nobody_asked_for) {
  EXPECT_EQ(place_streams(regular(1, 1, 8, 1), {}, 3).threads, 3);
  EXPECT_EQ(place_streams(regular(1, 1, 8, 1), {.threads = 5}, 3).threads, 5);
}

}  // namespace
}  // namespace lamina
