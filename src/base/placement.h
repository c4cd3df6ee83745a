#pragma once
/// How many streams and threads a compiled model gets, and on which processors.
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/topology.h"
#include "lamina/options.h"

namespace lamina {

struct StreamPlace {
  int node = -1;          ///< -1: several
  std::vector<int> cpus;  ///< a processor per thread, in the order of the stream's threads
  /// For Binding::numa_nodes: where each of its threads may be. One list for all streams of a node.
  std::shared_ptr<const std::vector<int>> node_cpus;
};

/// What so many streams promise.
struct StreamForecast {
  int streams = 1, threads_each = 1;
  double per_second = 0;  ///< inferences; 0: not known
};

struct Placement {
  std::vector<StreamPlace> streams;  ///< none: the callers' threads
  StreamPlace callers;               ///< without streams: for the helpers of a caller
  int threads = 1;                   ///< of all streams together, or of a caller
  int threads_each = 1;              ///< of a stream, or of a caller
  Binding binding = Binding::none;
  CoreType cores = CoreType::any;
  bool hyper_threading = true;
  std::vector<StreamForecast> forecast;  ///< of Streams::automatic(), by number
  /// A sentence each; empty where all is as asked, or as it is by default.
  struct {
    std::string threads, streams, binding, cores, hyper_threading;
  } why;
  std::vector<std::string> warnings;  ///< what an explicit number did not get, or should not have got
};

/// Microseconds of one inference by so many threads, while so many streams run one each.
using InferenceTime = std::function<double(int threads, int streams)>;

/// The number of streams is left to what they promise.
bool by_throughput(const Options& options);

/// Decides by the fields of `options` that are about threads and streams. A pure function: the same machine
/// and options give the same placement. `arena`: threads_of_own_arena() of who compiles. `taken`:
/// processors that other processes have bound themselves to. Without `time`, that of convolutions bound by
/// computing.
Placement place_streams(const Topology& machine, const Options& options, int arena = 0,
                        const InferenceTime& time = {}, const std::set<int>& taken = {});

}  // namespace lamina
