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

struct Row {
  const char *machine, *keys, *wanted;
};

const Row kRows[] = {
    {"one4", "", "1x4 YES [0: 0 1 2 3]"},
    {"one4", "CPU_THROUGHPUT_STREAMS=2", "2x2 YES [0: 0 1; 0: 2 3]"},
    {"one4", "CPU_THROUGHPUT_STREAMS=3", "3x1 YES [0: 0; 0: 1; 0: 2] threads: 3 streams of 1 thread each."},
    {"one4", "CPU_THROUGHPUT_STREAMS=4", "4x1 YES [0: 0; 0: 1; 0: 2; 0: 3]"},
    {"one4", "CPU_THROUGHPUT_STREAMS=6",
     "6x1 NO [0: 0; 0: 1; 0: 2; 0: 3; 0: 0; 0: 1] threads: 6 streams of 1 thread each. binding: more threads "
     "than processors."},
    {"one4", "CPU_THROUGHPUT_STREAMS=0",
     "0x4 NO [] binding: without streams the work is done by the callers' threads."},
    {"one4", "CPU_THROUGHPUT_STREAMS=0 CPU_BIND_THREAD=YES", "0x4 YES []"},
    {"one4", "CPU_THROUGHPUT_STREAMS=0 CPU_THREADS_NUM=1 CPU_BIND_THREAD=NO", "0x1 NO []"},
    {"one4", "CPU_THROUGHPUT_STREAMS=NUMA", "1x4 YES [0: 0 1 2 3] streams: 1 node."},
    {"one4", "CPU_THROUGHPUT_STREAMS=AUTO",
     "4x1 YES [0: 0; 0: 1; 0: 2; 0: 3] streams: highest predicted throughput of all numbers of streams."},
    {"one4", "CPU_THREADS_NUM=1", "1x1 YES [0: 0]"},
    {"one4", "CPU_THREADS_NUM=3", "1x3 YES [0: 0 1 2]"},
    {"one4", "CPU_THREADS_NUM=8",
     "1x4 YES [0: 0 1 2 3] threads: the process may use 4 processors. ! CPU_THREADS_NUM: 8 wanted: the "
     "process may use 4 processors"},
    {"one4", "CPU_THREADS_NUM=2 CPU_THROUGHPUT_STREAMS=4",
     "2x1 YES [0: 0; 0: 1] streams: there are 2 threads for them. ! CPU_THROUGHPUT_STREAMS: 4 wanted: there "
     "are 2 threads for them"},
    {"one4", "CPU_THREADS_NUM=3 CPU_THROUGHPUT_STREAMS=2",
     "2x1 YES [0: 0; 0: 1] threads: 2 streams of 1 thread each. ! CPU_THREADS_NUM: 3 wanted: 2 streams of 1 "
     "thread each"},
    {"one4", "CPU_BIND_THREAD=NO", "1x4 NO [0: 0 1 2 3]"},
    {"one4", "CPU_BIND_THREAD=NUMA", "1x4 NUMA [0: 0 1 2 3]"},
    {"one4", "CPU_THROUGHPUT_STREAMS=6 CPU_BIND_THREAD=YES",
     "6x1 YES [0: 0; 0: 1; 0: 2; 0: 3; 0: 0; 0: 1] threads: 6 streams of 1 thread each."},
    {"one4", "EXCLUSIVE_ASYNC_REQUESTS=YES", "1x4 YES [0: 0 1 2 3]"},
    {"one4", "EXCLUSIVE_ASYNC_REQUESTS=YES CPU_THROUGHPUT_STREAMS=4",
     "1x4 YES [0: 0 1 2 3] streams: EXCLUSIVE_ASYNC_REQUESTS: one request after another. ! "
     "CPU_THROUGHPUT_STREAMS: 4 wanted: EXCLUSIVE_ASYNC_REQUESTS: one request after another"},
    {"one4", "EXCLUSIVE_ASYNC_REQUESTS=YES CPU_THROUGHPUT_STREAMS=0",
     "0x4 NO [] binding: without streams the work is done by the callers' threads."},
    {"one4", "EXCLUSIVE_ASYNC_REQUESTS=YES CPU_THROUGHPUT_STREAMS=AUTO",
     "1x4 YES [0: 0 1 2 3] streams: EXCLUSIVE_ASYNC_REQUESTS: one request after another."},
    {"one4", "PERFORMANCE_HINT=LATENCY",
     "1x4 YES [0: 0 1 2 3] streams: 1 node. hyper-threading: one inference is faster with a thread per core "
     "(PERFORMANCE_HINT)."},
    {"one4", "PERFORMANCE_HINT=THROUGHPUT",
     "4x1 YES [0: 0; 0: 1; 0: 2; 0: 3] streams: highest predicted throughput of all numbers of streams."},
    {"one4", "PERFORMANCE_HINT=THROUGHPUT PERFORMANCE_HINT_NUM_REQUESTS=2",
     "2x2 YES [0: 0 1; 0: 2 3] streams: highest predicted throughput of 2 streams at most."},
    {"one4", "PERFORMANCE_HINT=THROUGHPUT CPU_THROUGHPUT_STREAMS=1", "1x4 YES [0: 0 1 2 3]"},
    {"one4", "SCHEDULING_CORE_TYPE=ECORE_ONLY", "1x4 YES [0: 0 1 2 3] cores: there are no efficiency cores."},
    {"one4", "SCHEDULING_CORE_TYPE=PCORE_ONLY", "1x4 YES [0: 0 1 2 3]"},
    {"smt4", "", "1x8 YES [0: 0 4 1 5 2 6 3 7]"},
    {"smt4", "PERFORMANCE_HINT=LATENCY",
     "1x4 YES [0: 0 1 2 3] threads: a thread per core. streams: 1 node. hyper-threading: one inference is "
     "faster with a thread per core (PERFORMANCE_HINT)."},
    {"smt4", "PERFORMANCE_HINT=LATENCY ENABLE_HYPER_THREADING=YES",
     "1x8 YES [0: 0 4 1 5 2 6 3 7] streams: 1 node."},
    {"smt4", "ENABLE_HYPER_THREADING=NO", "1x4 YES [0: 0 1 2 3] threads: a thread per core."},
    {"smt4", "CPU_THROUGHPUT_STREAMS=2", "2x4 YES [0: 0 4 1 5; 0: 2 6 3 7]"},
    {"smt4", "CPU_THROUGHPUT_STREAMS=4", "4x2 YES [0: 0 4; 0: 1 5; 0: 2 6; 0: 3 7]"},
    {"smt4", "CPU_THROUGHPUT_STREAMS=2 ENABLE_HYPER_THREADING=NO",
     "2x2 YES [0: 0 1; 0: 2 3] threads: a thread per core."},
    {"smt4", "CPU_THREADS_NUM=4", "1x4 YES [0: 0 1 2 3]"},
    {"smt4", "CPU_THREADS_NUM=5", "1x5 YES [0: 0 4 1 2 3]"},
    {"smt4", "CPU_THREADS_NUM=6 ENABLE_HYPER_THREADING=NO",
     "1x6 YES [0: 0 4 1 5 2 3] hyper-threading: CPU_THREADS_NUM asks for more threads than that would give."},
    {"smt4", "CPU_THROUGHPUT_STREAMS=8", "8x1 YES [0: 0; 0: 4; 0: 1; 0: 5; 0: 2; 0: 6; 0: 3; 0: 7]"},
    {"smt4", "CPU_THROUGHPUT_STREAMS=AUTO",
     "8x1 YES [0: 0; 0: 4; 0: 1; 0: 5; 0: 2; 0: 6; 0: 3; 0: 7] streams: highest predicted throughput of all "
     "numbers of streams."},
    {"two8", "",
     "1x16 YES [-1: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15] threads: a thread per core. hyper-threading: one "
     "inference is faster with a thread per core on several sockets."},
    {"two8", "CPU_BIND_THREAD=NO",
     "1x32 NO [-1: 0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23 8 24 9 25 10 26 11 27 12 28 13 29 14 30 15 31]"},
    {"two8", "CPU_BIND_THREAD=NUMA",
     "1x16 NUMA [-1: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15] threads: a thread per core. hyper-threading: one "
     "inference is faster with a thread per core on several sockets."},
    {"two8", "CPU_THROUGHPUT_STREAMS=NUMA",
     "2x8 YES [0: 0 1 2 3 4 5 6 7; 1: 8 9 10 11 12 13 14 15] threads: a thread per core. streams: 2 nodes. "
     "hyper-threading: one inference is faster with a thread per core on several sockets."},
    {"two8", "CPU_THROUGHPUT_STREAMS=NUMA CPU_BIND_THREAD=NUMA",
     "2x8 NUMA [0: 0 1 2 3 4 5 6 7; 1: 8 9 10 11 12 13 14 15] threads: a thread per core. streams: 2 nodes. "
     "hyper-threading: one inference is faster with a thread per core on several sockets."},
    {"two8", "CPU_THROUGHPUT_STREAMS=4",
     "4x8 YES [0: 0 16 1 17 2 18 3 19; 1: 8 24 9 25 10 26 11 27; 0: 4 20 5 21 6 22 7 23; 1: 12 28 13 29 14 "
     "30 15 31]"},
    {"two8", "CPU_THROUGHPUT_STREAMS=3",
     "3x10 YES [0: 0 16 1 17 2 3 4 5 6 7; 1: 8 24 9 25 10 11 12 13 14 15; -1: 18 19 20 21 22 23 26 27 28 29] "
     "threads: 3 streams of 10 threads each."},
    {"two8", "CPU_THROUGHPUT_STREAMS=5",
     "5x6 YES [0: 0 16 1 17 2 18; 1: 8 24 9 25 10 26; 0: 3 19 4 5 6 7; 1: 11 27 12 13 14 15; -1: 20 21 22 23 "
     "28 29] threads: 5 streams of 6 threads each."},
    {"two8", "CPU_THREADS_NUM=4",
     "1x4 YES [0: 0 1 2 3] hyper-threading: one inference is faster with a thread per core on several "
     "sockets."},
    {"two8", "CPU_THREADS_NUM=4 CPU_THROUGHPUT_STREAMS=2",
     "2x2 YES [0: 0 1; 1: 8 9] hyper-threading: one inference is faster with a thread per core on several "
     "sockets."},
    {"two8", "CPU_THREADS_NUM=20",
     "1x20 YES [-1: 0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23 8 9 10 11] hyper-threading: CPU_THREADS_NUM asks "
     "for more threads than that would give."},
    {"two8", "CPU_THREADS_NUM=1 CPU_THROUGHPUT_STREAMS=NUMA",
     "1x1 YES [0: 0] streams: there is 1 thread for them. hyper-threading: one inference is faster with a "
     "thread per core on several sockets."},
    {"two8", "PERFORMANCE_HINT=LATENCY",
     "2x8 YES [0: 0 1 2 3 4 5 6 7; 1: 8 9 10 11 12 13 14 15] threads: a thread per core. streams: 2 nodes. "
     "hyper-threading: one inference is faster with a thread per core (PERFORMANCE_HINT)."},
    {"two8", "PERFORMANCE_HINT=LATENCY CPU_BIND_THREAD=NO",
     "2x8 NO [0: 0 1 2 3 4 5 6 7; 1: 8 9 10 11 12 13 14 15] threads: a thread per core. streams: 2 nodes. "
     "hyper-threading: one inference is faster with a thread per core (PERFORMANCE_HINT)."},
    {"two8", "ENABLE_HYPER_THREADING=YES",
     "1x32 YES [-1: 0 16 1 17 2 18 3 19 4 20 5 21 6 22 7 23 8 24 9 25 10 26 11 27 12 28 13 29 14 30 15 31]"},
    {"two8", "CPU_THROUGHPUT_STREAMS=2",
     "2x8 YES [0: 0 1 2 3 4 5 6 7; 1: 8 9 10 11 12 13 14 15] threads: a thread per core. hyper-threading: "
     "one inference is faster with a thread per core on several sockets."},
    {"two8", "CPU_THROUGHPUT_STREAMS=32",
     "32x1 YES [0: 0; 1: 8; 0: 16; 1: 24; 0: 1; 1: 9; 0: 17; 1: 25; 0: 2; 1: 10; 0: 18; 1: 26; 0: 3; 1: 11; "
     "0: 19; 1: 27; 0: 4; 1: 12; 0: 20; 1: 28; 0: 5; 1: 13; 0: 21; 1: 29; 0: 6; 1: 14; 0: 22; 1: 30; 0: 7; "
     "1: 15; 0: 23; 1: 31]"},
    {"two8", "CPU_THROUGHPUT_STREAMS=40",
     "40x1 NO [0: 0; 0: 16; 0: 1; 0: 17; 0: 2; 0: 18; 0: 3; 0: 19; 0: 4; 0: 20; 0: 5; 0: 21; 0: 6; 0: 22; 0: "
     "7; 0: 23; 1: 8; 1: 24; 1: 9; 1: 25; 1: 10; 1: 26; 1: 11; 1: 27; 1: 12; 1: 28; 1: 13; 1: 29; 1: 14; 1: "
     "30; 1: 15; 1: 31; 0: 0; 0: 16; 0: 1; 0: 17; 0: 2; 0: 18; 0: 3; 0: 19] threads: 40 streams of 1 thread "
     "each. binding: more threads than processors."},
    {"nodes4", "", "1x16 YES [-1: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]"},
    {"nodes4", "CPU_THROUGHPUT_STREAMS=NUMA",
     "4x4 YES [0: 0 1 2 3; 1: 4 5 6 7; 2: 8 9 10 11; 3: 12 13 14 15] streams: 4 nodes."},
    {"nodes4", "CPU_THROUGHPUT_STREAMS=2", "2x8 YES [-1: 0 1 2 3 4 5 6 7; -1: 8 9 10 11 12 13 14 15]"},
    {"nodes4", "CPU_THROUGHPUT_STREAMS=3",
     "3x5 YES [-1: 0 1 2 3 4; -1: 5 6 7 8 9; -1: 10 11 12 13 14] threads: 3 streams of 5 threads each."},
    {"nodes4", "CPU_THROUGHPUT_STREAMS=8",
     "8x2 YES [0: 0 1; 1: 4 5; 2: 8 9; 3: 12 13; 0: 2 3; 1: 6 7; 2: 10 11; 3: 14 15]"},
    {"nodes4", "CPU_THREADS_NUM=6", "1x6 YES [-1: 0 1 2 3 4 5]"},
    {"nodes4", "CPU_THREADS_NUM=6 CPU_THROUGHPUT_STREAMS=NUMA",
     "4x1 YES [0: 0; 1: 4; 2: 8; 3: 12] threads: 4 streams of 1 thread each. streams: 4 nodes. ! "
     "CPU_THREADS_NUM: 6 wanted: 4 streams of 1 thread each"},
    {"nodes4", "CPU_THREADS_NUM=2 CPU_THROUGHPUT_STREAMS=NUMA",
     "2x1 YES [0: 0; 1: 4] streams: there are 2 threads for them."},
    {"nodes4", "CPU_BIND_THREAD=NUMA CPU_THROUGHPUT_STREAMS=2",
     "2x8 NUMA [-1: 0 1 2 3 4 5 6 7; -1: 8 9 10 11 12 13 14 15]"},
    {"nodes4", "PERFORMANCE_HINT=LATENCY",
     "4x4 YES [0: 0 1 2 3; 1: 4 5 6 7; 2: 8 9 10 11; 3: 12 13 14 15] streams: 4 nodes. hyper-threading: one "
     "inference is faster with a thread per core (PERFORMANCE_HINT)."},
    {"hybrid6", "",
     "1x6 YES [0: 0 2 4 6 8 10] threads: performance cores alone are faster for one inference, a thread per "
     "core. hyper-threading: one inference is faster with a thread per core on hybrid processors."},
    {"hybrid6", "PERFORMANCE_HINT=LATENCY",
     "1x6 YES [0: 0 2 4 6 8 10] threads: performance cores alone are faster for one inference, a thread per "
     "core. streams: 1 node. hyper-threading: one inference is faster with a thread per core "
     "(PERFORMANCE_HINT)."},
    {"hybrid6", "ENABLE_HYPER_THREADING=YES",
     "1x12 YES [0: 0 1 2 3 4 5 6 7 8 9 10 11] threads: performance cores alone are faster for one "
     "inference."},
    {"hybrid6", "SCHEDULING_CORE_TYPE=PCORE_ONLY", "1x12 YES [0: 0 1 2 3 4 5 6 7 8 9 10 11]"},
    {"hybrid6", "SCHEDULING_CORE_TYPE=ECORE_ONLY", "1x8 YES [0: 12 13 14 15 16 17 18 19]"},
    {"hybrid6", "CPU_THROUGHPUT_STREAMS=2",
     "2x10 YES [0: 0 1 2 3 4 5 6 7 8 9; 0: 10 11 12 13 14 15 16 17 18 19]"},
    {"hybrid6", "CPU_THROUGHPUT_STREAMS=4",
     "4x5 YES [0: 0 1 2 3 4; 0: 5 6 7 8 9; 0: 10 11 12 13 14; 0: 15 16 17 18 19]"},
    {"hybrid6", "CPU_THROUGHPUT_STREAMS=AUTO",
     "20x1 YES [0: 0; 0: 1; 0: 2; 0: 3; 0: 4; 0: 5; 0: 6; 0: 7; 0: 8; 0: 9; 0: 10; 0: 11; 0: 12; 0: 13; 0: "
     "14; 0: 15; 0: 16; 0: 17; 0: 18; 0: 19] streams: highest predicted throughput of all numbers of "
     "streams."},
    {"hybrid6", "CPU_THREADS_NUM=6",
     "1x6 YES [0: 0 2 4 6 8 10] hyper-threading: one inference is faster with a thread per core on hybrid "
     "processors."},
    {"hybrid6", "CPU_THREADS_NUM=8",
     "1x8 YES [0: 0 2 4 6 8 10 12 13] hyper-threading: CPU_THREADS_NUM asks for more threads than that would "
     "give."},
    {"hybrid6", "CPU_THREADS_NUM=20",
     "1x20 YES [0: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19] hyper-threading: CPU_THREADS_NUM asks "
     "for more threads than that would give."},
    {"hybrid6", "CPU_THREADS_NUM=64",
     "1x20 YES [0: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19] threads: the process may use 20 "
     "processors. hyper-threading: CPU_THREADS_NUM asks for more threads than that would give. ! "
     "CPU_THREADS_NUM: 64 "
     "wanted: the process may use 20 processors"},
    {"hybrid2", "",
     "1x10 YES [0: 0 2 4 5 6 7 8 9 10 11] threads: a thread per core. hyper-threading: one inference is "
     "faster with a thread per core on hybrid processors."},
    {"hybrid2", "ENABLE_HYPER_THREADING=YES", "1x12 YES [0: 0 1 2 3 4 5 6 7 8 9 10 11]"},
    {"hybrid2", "SCHEDULING_CORE_TYPE=PCORE_ONLY", "1x4 YES [0: 0 1 2 3]"},
    {"hybrid2", "CPU_THROUGHPUT_STREAMS=2", "2x6 YES [0: 0 1 2 3 4 5; 0: 6 7 8 9 10 11]"},
    {"hybrid2", "CPU_THROUGHPUT_STREAMS=3", "3x4 YES [0: 0 1 2 3; 0: 4 5 6 7; 0: 8 9 10 11]"},
    {"hybrid2", "CPU_THREADS_NUM=4",
     "1x4 YES [0: 0 2 4 5] hyper-threading: one inference is faster with a thread per core on hybrid "
     "processors."},
    {"quota2.5", "",
     "1x2 NO [0: 0 1] threads: a quota of 2.5 processors. binding: a quota of 2.5 processors."},
    {"quota2.5", "CPU_BIND_THREAD=YES", "1x2 YES [0: 0 1] threads: a quota of 2.5 processors."},
    {"quota2.5", "CPU_THREADS_NUM=4",
     "1x4 NO [0: 0 1 2 3] binding: a quota of 2.5 processors. ! CPU_THREADS_NUM: 4 is more than a quota of "
     "2.5 processors: threads will wait for each other"},
    {"quota2.5", "CPU_THROUGHPUT_STREAMS=2",
     "2x1 NO [0: 0; 0: 1] threads: a quota of 2.5 processors. binding: a quota of 2.5 processors."},
    {"quota2.5", "CPU_THROUGHPUT_STREAMS=4",
     "4x1 NO [0: 0; 0: 1; 0: 2; 0: 3] threads: 4 streams of 1 thread each. binding: a quota of 2.5 "
     "processors. ! CPU_THROUGHPUT_STREAMS: 4 is more than a quota of 2.5 processors: threads will wait for "
     "each other"},
    {"quota2.5", "CPU_THROUGHPUT_STREAMS=AUTO",
     "2x1 NO [0: 0; 0: 1] threads: a quota of 2.5 processors. streams: highest predicted throughput of all "
     "numbers of streams. binding: a quota of 2.5 processors."},
    {"quota2.5", "PERFORMANCE_HINT=LATENCY",
     "1x2 NO [0: 0 1] threads: a quota of 2.5 processors. streams: 1 node. binding: a quota of 2.5 "
     "processors. hyper-threading: one inference is faster with a thread per core (PERFORMANCE_HINT)."},
    {"quota0.5", "", "1x1 NO [0: 0] threads: a quota of 0.5 processors. binding: a quota of 0.5 processors."},
    {"quota0.5", "CPU_THROUGHPUT_STREAMS=2",
     "2x1 NO [0: 0; 0: 1] threads: 2 streams of 1 thread each. binding: a quota of 0.5 processors. ! "
     "CPU_THROUGHPUT_STREAMS: 2 is more than a quota of 0.5 processors: threads will wait for each other"},
    {"quota0.5", "CPU_THREADS_NUM=2 CPU_THROUGHPUT_STREAMS=2",
     "2x1 NO [0: 0; 0: 1] binding: a quota of 0.5 processors. ! CPU_THREADS_NUM: 2 is more than a quota of "
     "0.5 processors: threads will wait for each other"},
    {"quota1.5", "", "1x1 NO [0: 0] threads: a quota of 1.5 processors. binding: a quota of 1.5 processors."},
    {"quota12", "", "1x8 YES [0: 0 1 2 3 4 5 6 7]"},
    {"mask", "",
     "1x6 YES [-1: 0 1 2 3 4 5] hyper-threading: one inference is faster with a thread per core on several "
     "sockets."},
    {"mask", "CPU_THROUGHPUT_STREAMS=2",
     "2x3 YES [0: 0 1 2; -1: 3 4 5] hyper-threading: one inference is faster with a thread per core on "
     "several sockets."},
    {"mask", "CPU_THREADS_NUM=8",
     "1x6 YES [-1: 0 1 2 3 4 5] threads: the process may use 6 processors. hyper-threading: one inference is "
     "faster with a thread per core on several sockets. ! CPU_THREADS_NUM: 8 wanted: the process may use 6 "
     "processors"},
    {"mask", "CPU_THROUGHPUT_STREAMS=NUMA",
     "2x3 YES [0: 0 1 2; -1: 3 4 5] streams: 2 nodes. hyper-threading: one inference is faster with a thread "
     "per core on several sockets."},
    {"taken", "",
     "1x4 NO [0: 0 1 2 3] binding: other processes of lamina have bound their threads to these processors."},
    {"taken", "CPU_THREADS_NUM=2", "1x2 YES [0: 1 3]"},
    {"taken", "CPU_BIND_THREAD=YES", "1x4 YES [0: 0 1 2 3]"},
    {"taken", "CPU_THREADS_NUM=2 CPU_BIND_THREAD=YES", "1x2 YES [0: 1 3]"},
    {"taken", "CPU_THREADS_NUM=2 CPU_THROUGHPUT_STREAMS=2", "2x1 YES [0: 1; 0: 3]"},
    {"two8", "CPU_THREADS_NUM=32 CPU_THROUGHPUT_STREAMS=3",
     "3x10 YES [0: 0 16 1 17 2 3 4 5 6 7; 1: 8 24 9 25 10 11 12 13 14 15; -1: 18 19 20 21 22 23 26 27 28 29] "
     "threads: 3 streams of 10 threads each. ! CPU_THREADS_NUM: 32 wanted: 3 streams of 10 threads each"},
    {"two8", "CPU_THREADS_NUM=40 CPU_THROUGHPUT_STREAMS=3",
     "3x10 YES [0: 0 16 1 17 2 3 4 5 6 7; 1: 8 24 9 25 10 11 12 13 14 15; -1: 18 19 20 21 22 23 26 27 28 29] "
     "threads: the process may use 32 processors, 3 streams of 10 threads each. ! CPU_THREADS_NUM: 40 "
     "wanted: the process may use 32 processors, 3 streams of 10 threads each"},
    {"tight8", "CPU_THROUGHPUT_STREAMS=8",
     "8x1 NO [0: 0; 1: 8; 0: 1; 1: 9; 0: 2; 1: 10; 0: 3; 1: 11] threads: 8 streams of 1 thread each. "
     "binding: a quota of 2.5 processors. ! CPU_THROUGHPUT_STREAMS: 8 is more than a quota of 2.5 "
     "processors: threads will wait for each other"},
    {"tight8", "CPU_THREADS_NUM=8 CPU_THROUGHPUT_STREAMS=8",
     "8x1 NO [0: 0; 1: 8; 0: 1; 1: 9; 0: 2; 1: 10; 0: 3; 1: 11] binding: a quota of 2.5 processors. ! "
     "CPU_THREADS_NUM: 8 is more than a quota of 2.5 processors: threads will wait for each other"},
    {"tight8", "CPU_THROUGHPUT_STREAMS=NUMA",
     "2x1 NO [0: 0; 1: 8] threads: a quota of 2.5 processors. streams: 2 nodes. binding: a quota of 2.5 "
     "processors. hyper-threading: one inference is faster with a thread per core on several sockets."},
    {"quota5.5", "CPU_THROUGHPUT_STREAMS=2",
     "2x2 NO [0: 0 1; 0: 2 3] threads: a quota of 5.5 processors, 2 streams of 2 threads each. binding: a "
     "quota of 5.5 processors."},
    {"quota12", "CPU_THROUGHPUT_STREAMS=13",
     "13x1 NO [0: 0; 0: 1; 0: 2; 0: 3; 0: 4; 0: 5; 0: 6; 0: 7; 0: 0; 0: 1; 0: 2; 0: 3; 0: 4] threads: 13 "
     "streams of 1 thread each. binding: more threads than processors. ! CPU_THROUGHPUT_STREAMS: 13 is more "
     "than a quota of 12 processors: threads will wait for each other"},
    {"half1", "", "1x1 NO [0: 0] binding: a quota of 0.5 processors."},
    {"half1", "CPU_BIND_THREAD=YES", "1x1 YES [0: 0]"},
    {"single6", "",
     "1x6 YES [0: 0 1 2 3 4 5] threads: performance cores alone are faster for one inference. "
     "hyper-threading: one inference is faster with a thread per core on hybrid processors."},
    {"single6", "CPU_THREADS_NUM=8",
     "1x8 YES [0: 0 1 2 3 4 5 6 7] hyper-threading: one inference is faster with a thread per core on hybrid "
     "processors."},
    {"single6", "CPU_THREADS_NUM=8 ENABLE_HYPER_THREADING=NO", "1x8 YES [0: 0 1 2 3 4 5 6 7]"},
    {"one1", "", "1x1 YES [0: 0]"},
    {"one1", "CPU_THROUGHPUT_STREAMS=2",
     "2x1 NO [0: 0; 0: 0] threads: 2 streams of 1 thread each. binding: more threads than processors."},
    {"one1", "CPU_THROUGHPUT_STREAMS=0",
     "0x1 NO [] binding: without streams the work is done by the callers' threads."},
    {"one1", "CPU_THREADS_NUM=2",
     "1x1 YES [0: 0] threads: the process may use 1 processor. ! CPU_THREADS_NUM: 2 wanted: the process may "
     "use 1 processor"},
};

TEST(Placement, table) {
  for (const auto& row : kRows) {
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
