#include "base/placement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.h"
#include "base/parallel.h"

namespace lamina {
namespace {

using Cpus = std::vector<Cpu>;

bool in_order(const Cpu& a, const Cpu& b) {
  return std::tuple(a.efficient, a.package, a.core, a.number) <
         std::tuple(b.efficient, b.package, b.core, b.number);
}

int cores_of(const Cpus& cpus, bool efficient) {
  std::set<std::pair<int, int>> seen;
  for (const auto& c : cpus)
    if (c.efficient == efficient) seen.emplace(c.package, c.core);
  return static_cast<int>(seen.size());
}

Cpus only(const Cpus& cpus, bool efficient) {
  Cpus out;
  std::copy_if(cpus.begin(), cpus.end(), std::back_inserter(out),
               [&](const Cpu& c) { return c.efficient == efficient; });
  return out;
}

/// The lowest processor of each core.
Cpus first_of_cores(const Cpus& cpus) {
  std::map<std::pair<int, int>, Cpu> lowest;
  for (const auto& c : cpus) {
    const auto [it, fresh] = lowest.try_emplace({c.package, c.core}, c);
    if (!fresh && c.number < it->second.number) it->second = c;
  }
  Cpus out;
  for (const auto& [core, cpu] : lowest) out.push_back(cpu);
  std::sort(out.begin(), out.end(), [](const Cpu& a, const Cpu& b) { return a.number < b.number; });
  return out;
}

bool has_siblings(const Cpus& cpus) { return first_of_cores(cpus).size() < cpus.size(); }

std::string count_of(int count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// Assigns a pool of processors to streams.
class CpuAllocator {
 public:
  explicit CpuAllocator(const Cpus& pool) {
    for (const auto& c : pool) nodes_[c.node].push_back(c);
    for (auto& [node, cpus] : nodes_) std::sort(cpus.begin(), cpus.end(), in_order);
  }

  std::vector<StreamPlace> assign(int streams, int threads) {
    std::size_t all = 0;
    for (const auto& [node, cpus] : nodes_) all += cpus.size();
    if (static_cast<std::size_t>(streams) * static_cast<std::size_t>(threads) > all)
      return go_round(streams, threads);
    std::vector<StreamPlace> out(static_cast<std::size_t>(streams));
    std::map<int, std::vector<std::size_t>> of_node;
    std::map<int, int> free;
    for (const auto& [node, cpus] : nodes_) free[node] = static_cast<int>(cpus.size());
    std::vector<std::size_t> spanning;
    for (std::size_t s = 0; s < out.size(); ++s) {
      const auto most = std::max_element(free.begin(), free.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      if (most->second < threads) {
        spanning.push_back(s);
        continue;
      }
      most->second -= threads;
      of_node[most->first].push_back(s);
    }
    for (const auto& [node, its] : of_node) {
      auto cpus = take(node, static_cast<int>(its.size()) * threads);
      for (std::size_t i = 0; i < cpus.size(); ++i)
        out[its[i / static_cast<std::size_t>(threads)]].cpus.push_back(cpus[i]);
      for (const auto s : its) out[s].node = node;
    }
    for (const auto s : spanning)
      for (const auto& [node, cpus] : nodes_) {
        const auto wanted = threads - static_cast<int>(out[s].cpus.size());
        if (wanted == 0) break;
        const auto some = take(node, std::min(wanted, static_cast<int>(cpus.size())));
        out[s].cpus.insert(out[s].cpus.end(), some.begin(), some.end());
      }
    return out;
  }

 private:
  /// Takes processors that are left: the first one of each core, then second ones.
  std::vector<int> take(int node, int count) {
    auto& left = nodes_[node];
    Cpus chosen;
    std::map<std::pair<int, int>, int> rank;  // processors of a core seen so far
    std::vector<std::pair<int, Cpu>> by_rank;
    for (const auto& c : left) by_rank.emplace_back(rank[{c.package, c.core}]++, c);
    std::stable_sort(by_rank.begin(), by_rank.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (int i = 0; i < count; ++i) chosen.push_back(by_rank[static_cast<std::size_t>(i)].second);
    std::sort(chosen.begin(), chosen.end(), in_order);
    std::vector<int> out;
    for (const auto& c : chosen) {
      out.push_back(c.number);
      left.erase(std::find(left.begin(), left.end(), c));
    }
    return out;
  }

  /// More threads than processors.
  std::vector<StreamPlace> go_round(int streams, int threads) const {
    Cpus all;
    for (const auto& [node, cpus] : nodes_) all.insert(all.end(), cpus.begin(), cpus.end());
    std::vector<StreamPlace> out(static_cast<std::size_t>(streams));
    std::size_t next = 0;
    for (auto& stream : out) {
      std::set<int> nodes;
      for (int t = 0; t < threads; ++t) {
        const auto& cpu = all[next++ % all.size()];
        stream.cpus.push_back(cpu.number);
        nodes.insert(cpu.node);
      }
      stream.node = nodes.size() == 1 ? *nodes.begin() : -1;
    }
    return out;
  }

  std::map<int, Cpus> nodes_;
};

Streams wanted_streams(const Options& o) {
  if (o.streams) return *o.streams;
  switch (o.hint) {
    case PerformanceHint::latency:
      return Streams::numa();
    case PerformanceHint::throughput:
    case PerformanceHint::cumulative_throughput:
      return Streams::automatic();
    case PerformanceHint::none:
      break;
  }
  return 1;
}

/// The steps of the decision, in their order; each says why where it departs from what was asked.
class Decision {
 public:
  Decision(const Topology& machine, const Options& options, int arena)
      : machine_(machine), wishes_(options), arena_(arena), streams_(wanted_streams(options)) {}

  Placement made(const InferenceTime& time, const std::set<int>& taken) {
    choose_cores();
    choose_pool();
    choose_threads();
    choose_streams(time);
    choose_binding(taken);
    return std::move(out_);
  }

 private:
  std::string quota() const { return fmt::format("a quota of {} processors", *machine_.quota); }
  bool is(Streams::Kind kind) const { return streams_.kind() == kind && !wishes_.exclusive; }
  bool automatic() const { return by_throughput(wishes_); }
  bool numa() const { return is(Streams::Kind::numa); }
  /// Streams wanted, where that is a number.
  int wanted() const {
    if (wishes_.exclusive) return streams_ == Streams(0) ? 0 : 1;
    return numa() ? nodes_ : streams_.number();
  }
  bool binding_is(Binding b) const { return wishes_.binding.value_or(Binding::processors) == b; }

  void choose_cores() {
    usable_ = machine_.cpus;
    if (wishes_.cores != CoreType::any) {
      const bool efficient = wishes_.cores == CoreType::efficient;
      if (auto some = only(usable_, efficient); some.empty())
        out_.why.cores = fmt::format("there are no {} cores", efficient ? "efficiency" : "performance");
      else
        usable_ = std::move(some), out_.cores = wishes_.cores;
    }
    Topology t;
    t.cpus = usable_;
    nodes_ = t.nodes();
    sockets_ = t.sockets();
  }

  void choose_pool() {
    pool_ = usable_;
    const int large = cores_of(usable_, false), small = cores_of(usable_, true);
    const bool hybrid = large > 0 && small > 0, latency = !automatic() && wanted() <= std::max(nodes_, 1);
    if (hybrid && out_.cores == CoreType::any && latency && 2 * large > small) {
      pool_ = only(pool_, false);
      shrunk_ = "performance cores alone are faster for one inference";
    }
    const bool for_latency = wishes_.hint == PerformanceHint::latency;
    const bool off_by_itself =
        latency && ((sockets_ > 1 && !binding_is(Binding::none)) || hybrid || for_latency);
    const bool off = wishes_.hyper_threading == HyperThreading::off ||
                     (wishes_.hyper_threading == HyperThreading::automatic && off_by_itself);
    out_.hyper_threading = !off;
    if (!off) return;
    if (wishes_.hyper_threading == HyperThreading::automatic)
      out_.why.hyper_threading =
          fmt::format("one inference is faster with a thread per core {}", for_latency ? "(PERFORMANCE_HINT)"
                                                                           : hybrid ? "on hybrid processors"
                                                                                    : "on several sockets");
    if (!has_siblings(pool_)) return;  // nothing to leave out
    pool_ = first_of_cores(pool_);
    add_to(shrunk_, "a thread per core");
  }

  void choose_threads() {
    const int limit = machine_.limit(), asked = wishes_.threads, all = static_cast<int>(usable_.size());
    const int pool = static_cast<int>(pool_.size());
    std::string& why = out_.why.threads;
    if (asked == 0) {
      threads_ = pool;
      why = shrunk_;
      if (limit < threads_) threads_ = limit, why = quota();
      if (kMostThreads < threads_)
        threads_ = kMostThreads, why = fmt::format("{} threads are the most", kMostThreads);
      if (arena_ > 0 && arena_ < threads_)
        threads_ = arena_, why = "the oneTBB arena that compiles has no more";
      return;
    }
    threads_ = std::min(asked, all);
    if (threads_ < asked) why = fmt::format("the process may use {}", count_of(all, "processor"));
    if (threads_ <= pool) return;
    pool_ = usable_;
    if (out_.hyper_threading || !has_siblings(pool_)) return;
    out_.hyper_threading = true;
    out_.why.hyper_threading = "CPU_THREADS_NUM asks for more threads than that would give";
  }

  void choose_streams(const InferenceTime& time) {
    int streams = automatic() ? best(time) : wanted();
    const bool number = !automatic() && !numa();
    if (wishes_.exclusive && streams_ != Streams(0) && streams_ != Streams(1)) {
      out_.why.streams = "EXCLUSIVE_ASYNC_REQUESTS: one request after another";
      if (wishes_.streams && streams_.kind() == Streams::Kind::number)
        warn("CPU_THROUGHPUT_STREAMS", streams_.number(), out_.why.streams);
    }
    if (numa()) out_.why.streams = count_of(nodes_, "node");
    if ((numa() || (number && wishes_.threads > 0)) && streams > threads_) {
      out_.why.streams = fmt::format("there {} for them",
                                     threads_ == 1 ? "is 1 thread" : fmt::format("are {} threads", threads_));
      if (number) warn("CPU_THROUGHPUT_STREAMS", streams, out_.why.streams);
      streams = threads_;
    }
    const int each = streams == 0 ? threads_ : std::max(1, threads_ / streams);
    out_.threads_each = each;
    out_.threads = std::max(streams, 1) * each;
    if (out_.threads > threads_) out_.why.threads.clear();  // it was about fewer
    if (out_.threads != threads_)
      add_to(out_.why.threads,
             fmt::format("{} of {} each", count_of(streams, "stream"), count_of(each, "thread")));
    out_.streams.resize(static_cast<std::size_t>(streams));
    if (out_.threads < wishes_.threads) warn("CPU_THREADS_NUM", wishes_.threads, out_.why.threads);
    warn_beyond_quota();
  }

  /// Only numbers that were asked for go beyond it.
  void warn_beyond_quota() {
    if (!machine_.quota || out_.threads <= std::max(1.0, std::floor(*machine_.quota))) return;
    out_.warnings.push_back(fmt::format("{}: {} is more than {}: threads will wait for each other",
                                        wishes_.threads > 0 ? "CPU_THREADS_NUM" : "CPU_THROUGHPUT_STREAMS",
                                        out_.threads, quota()));
  }

  /// The smallest number of streams that is nearly the best.
  int best(const InferenceTime& time) {
    constexpr double kNearly = 0.97;
    const int most =
        wishes_.hint_requests > 0 ? std::min(threads_, static_cast<int>(wishes_.hint_requests)) : threads_;
    double highest = 0;
    for (int s = 1; s <= most; ++s) {
      const int each = threads_ / s;
      // Without a model: what threads of one inference lose to each other in compute-bound convolutions.
      const double us = time ? time(each, s) : 1e3 / each * (1 + 0.05 * (each - 1));
      out_.forecast.push_back({s, each, us > 0 ? 1e6 * s / us : 0});
      highest = std::max(highest, out_.forecast.back().per_second);
    }
    const auto chosen =
        std::find_if(out_.forecast.begin(), out_.forecast.end(),
                     [&](const StreamForecast& f) { return f.per_second >= kNearly * highest; });
    out_.why.streams =
        fmt::format("highest predicted throughput of {}",
                    most == threads_ ? "all numbers of streams" : count_of(most, "stream") + " at most");
    return chosen->streams;
  }

  void choose_binding(const std::set<int>& taken) {
    const int total = out_.threads, pool = static_cast<int>(pool_.size());
    out_.binding = wishes_.binding.value_or(Binding::processors);
    auto left = pool_;
    std::erase_if(left, [&](const Cpu& c) { return taken.contains(c.number); });
    if (!wishes_.binding) {
      std::string& why = out_.why.binding;
      if (out_.streams.empty())
        why = "without streams the work is done by the callers' threads";
      else if (machine_.quota && *machine_.quota < static_cast<double>(machine_.cpus.size()))
        why = quota();
      else if (total > pool)
        why = "more threads than processors";
      else if (static_cast<int>(left.size()) < total)
        why = "other processes of lamina have bound their threads to these processors";
      if (!why.empty()) out_.binding = Binding::none;
    }
    const bool around = out_.binding != Binding::none && static_cast<int>(left.size()) >= total;
    CpuAllocator allocator(around ? left : pool_);
    auto places =
        allocator.assign(std::max<int>(1, static_cast<int>(out_.streams.size())), out_.threads_each);
    std::map<int, std::shared_ptr<const std::vector<int>>> of_node;
    for (auto& place : places) {
      auto& its = of_node[place.node];
      if (!its) its = std::make_shared<const std::vector<int>>(usable_of(place.node));
      place.node_cpus = its;
    }
    if (out_.streams.empty())
      out_.callers = std::move(places[0]);
    else
      out_.streams = std::move(places);
  }

  /// Numbers of those in a node; -1: in all.
  std::vector<int> usable_of(int node) const {
    std::vector<int> out;
    for (const auto& cpu : usable_)
      if (node < 0 || cpu.node == node) out.push_back(cpu.number);
    return out;
  }

  static void add_to(std::string& why, const std::string& more) { why += (why.empty() ? "" : ", ") + more; }
  void warn(const std::string& key, int asked, const std::string& why) {
    out_.warnings.push_back(fmt::format("{}: {} wanted: {}", key, asked, why));
  }

  const Topology& machine_;
  const Options& wishes_;
  const int arena_;
  const Streams streams_;  // wanted
  Placement out_;
  Cpus usable_, pool_;
  std::string shrunk_;  // why the pool is less than what is usable
  int nodes_ = 1, sockets_ = 1, threads_ = 1;
};

}  // namespace

bool by_throughput(const Options& o) { return !o.exclusive && wanted_streams(o) == Streams::automatic(); }

Placement place_streams(const Topology& machine, const Options& options, int arena, const InferenceTime& time,
                        const std::set<int>& taken) {
  return Decision(machine, options, arena).made(time, taken);
}

}  // namespace lamina
