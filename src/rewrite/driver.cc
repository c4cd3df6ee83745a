#include "rewrite/driver.h"

#include <algorithm>
#include <deque>
#include <unordered_set>

#include "base/cancellation.h"
#include "base/nearest.h"
#include "graph/verify.h"
#include "rewrite/propagate.h"

namespace lamina {
namespace {

constexpr std::size_t kMostVisited = 512;  // readers looked at again after one rewrite
constexpr std::size_t kRewritesPerNode = 50;
constexpr std::size_t kRewritesOfAnEnd = 2;   // of one rule and node: a rule of a library that ends has fewer
constexpr std::size_t kVerifiedAtOnce = 100;  // nodes of a graph that is verified after each rewrite

/// Each once, in order.
void drop_repeats(std::vector<SourceId>& sources) {
  std::unordered_set<std::uint32_t> seen;
  std::erase_if(sources, [&](SourceId s) { return !seen.insert(s.index).second; });
}

bool unread(const Graph& graph, const Node& n) {
  return std::all_of(n.outputs.begin(), n.outputs.end(), [&](ValueId v) { return graph.readers(v) == 0; });
}

}  // namespace

/// Nodes that are still to be looked at.
struct Driver::Work {
  std::deque<NodeId> queue;
  std::vector<bool> waiting;
  WideNodes wide;
  std::vector<std::uint32_t> seen;  ///< by node: in which call of push_readers() it was, the last one
  std::uint32_t calls = 0;          ///< of push_readers()
  std::unordered_map<const Rule*, std::size_t> hits;
  std::size_t nodes = 0;  ///< at the beginning
  std::size_t most = 0;   ///< rewrites until then: more do not end

  void push(NodeId id) {
    if (!id.valid()) return;
    if (waiting.size() <= id.index) waiting.resize(id.index + 64);
    if (waiting[id.index]) return;
    waiting[id.index] = true;
    queue.push_back(id);
  }
  NodeId pop() {
    const auto id = queue.front();
    queue.pop_front();
    waiting[id.index] = false;
    return id;
  }
  /// The readers of a value, theirs, and so on: as far as a pattern can look. Only so many of them, even
  /// where one value has far more: it takes as long for each rewrite of what reads that.
  void push_readers(const Graph& graph, ValueId v, int depth) {
    std::vector<ValueId> level{v};
    if (seen.size() < graph.node_slots()) seen.resize(graph.node_slots() + 64, 0);
    ++calls;
    std::size_t visited = 0;
    for (int d = 0; d < depth && !level.empty(); ++d) {
      std::vector<ValueId> next;
      for (auto value : level)
        for (const auto& use : graph.value(value).uses) {
          if (visited > kMostVisited) return;
          auto& last = seen[use.node.index];
          if (last == calls) continue;
          last = calls;
          ++visited;
          push(use.node);
          const auto& outputs = graph.node(use.node).outputs;
          next.insert(next.end(), outputs.begin(), outputs.end());
        }
      level = std::move(next);
    }
  }
};

Driver::Driver(std::span<const Rule> rules, const RewriteOptions& options, Ledger& ledger)
    : rules_(rules), options_(options), exempt_(options.exempt), ledger_(ledger), folding_(options.folding) {
  std::vector<std::string> names;
  for (const auto& r : rules) names.push_back(r.name);
  for (const auto& d : options.disable)
    if (std::find(names.begin(), names.end(), d) == names.end())
      fail(ErrorCode::bad_option, "there is no rule \"{}\"{}", d, did_you_mean(d, names));
}

NodePath Driver::path_to(NodeId id) const {
  auto path = where_;
  path.push_back(id.index);
  return path;
}

Ledger::Subject Driver::subject(std::string label, const std::vector<SourceId>& sources) const {
  Ledger::Subject out{std::move(label), {}};
  for (auto s : sources) {
    if (s.index >= outermost_->sources.size()) continue;
    ledger_.name_source(s, outermost_->sources[s.index].name);
    out.sources.push_back(s);
  }
  return out;
}

std::size_t Driver::run(Graph& graph, RuleSet set) {
  set_ = set;
  if (!folding_) folding_.emplace(graph);
  active_.clear();
  depth_ = 1;
  for (const auto& r : rules_) {
    const auto& off = options_.disable;
    if (!r.runs_in(set) || std::find(off.begin(), off.end(), r.name) != off.end()) continue;
    if (r.option && !(options_.*r.option)) continue;
    active_.push_back({&r, ledger_.rule(r.name)});
    depth_ = std::max(depth_, depth_of(r.pattern));
  }
  outermost_ = &graph;
  return run_graph(graph, set);
}

std::size_t Driver::run_graph(Graph& graph, RuleSet set) {
  const auto before = done_;
  Work work;
  const auto order = graph.order();
  for (auto id : order) {
    // Bodies of fused nodes are finished.
    const auto& op = graph.node(id).op;
    if (op.has(Trait::control_flow) && !op.has(Trait::epilogue) && set != RuleSet::precision)
      for (std::uint32_t body = 0; body < graph.bodies(id).size(); ++body) {
        where_.insert(where_.end(), {id.index, body});
        run_graph(graph.bodies(id)[body], set);
        where_.resize(where_.size() - 2);
      }
    work.push(id);
  }
  work.nodes = order.size();
  work.most = before + kRewritesPerNode * (order.size() + 20);
  work_off(graph, work, Turn::of_others);
  const bool some_wait = std::any_of(active_.begin(), active_.end(), [](auto& a) { return a.rule->patient; });
  for (auto id : some_wait ? graph.order() : std::vector<NodeId>())
    if (!graph.node(id).erased() && try_rules(graph, id, work, Turn::of_patient)) {
      work.push(id);
      work_off(graph, work, Turn::all);
    }
  graph.erase_unused_constants();
  return done_ - before;
}

/// Until no rule whose turn it is fits any node that waits.
void Driver::work_off(Graph& graph, Work& work, Turn turn) {
  while (!work.queue.empty()) {
    stop_point();
    const auto id = work.pop();
    while (!graph.node(id).erased() && try_rules(graph, id, work, turn))
      if (done_ > work.most) give_up(work);
  }
}

/// A library's rule is to blame where it goes on firing, though ours that undo it may fire more often.
void Driver::give_up(const Work& work) {
  const auto most_of = [&](bool libraries) {
    std::pair<const Rule*, std::size_t> most{nullptr, 0};
    for (const auto& [rule, hits] : work.hits)
      if (rule->library.empty() != libraries && hits > most.second) most = {rule, hits};
    return most;
  };
  if (const auto [rule, hits] = most_of(true); rule && hits > kRewritesOfAnEnd * (work.nodes + 20))
    throw EndlessRule(*rule, hits);
  const auto [rule, hits] = most_of(false);
  fail(ErrorCode::internal, "internal error: rewriting does not end; rule \"{}\" fired {} times", rule->name,
       hits);
}

bool Driver::try_rules(Graph& graph, NodeId id, Work& work, Turn turn) {
  if (options_.stop_after >= 0 && done_ >= static_cast<std::size_t>(options_.stop_after)) return false;
  for (const auto& active : active_) {
    if (turn != Turn::all && active.rule->patient != (turn == Turn::of_patient)) continue;
    if (!root_fits(graph, active.rule->pattern, graph.node(id))) continue;
    const auto outcome = try_rule(graph, active, id, work);
    if (outcome == Outcome::nothing_to_do) continue;
    ++ledger_.count(active.id).tries;
    if (outcome != Outcome::fired) continue;
    ++ledger_.count(active.id).hits;
    ++work.hits[active.rule];
    ++done_;
    return true;
  }
  return false;
}

Found<Making> Driver::bind(const Rule& rule, Match& match) {
  const Graph& graph = match.graph();
  match.machine = options_.machine;
  match.bf16 = options_.bf16;
  match.integers = options_.integers;
  match.stored = options_.for_file || (options_.integers && set_ <= RuleSet::integers);
  match.for_file = options_.for_file;
  match.kept = &kept_;
  match.folding = &*folding_;
  match.narrowed = options_.narrowed ? &options_.narrowed : nullptr;
  if (!exempt_.empty())
    match.exempt = [&](NodeId n) { return exempt_.covers(graph.node(n), outermost_->sources); };
  if (auto verdict = check_guards(match, rule.pattern); !verdict) return verdict;
  auto making = rule.bind(match);
  if (making && !exempt_.empty())
    for (auto n : match.nodes())
      if (match.is_exempt(n)) return Verdict::no("'{}' is exempt", graph.label(n));
  return making;
}

Driver::Outcome Driver::try_rule(Graph& graph, const Active& active, NodeId id, Work& work) {
  auto outcome = Outcome::unfit;
  std::string reason;
  const bool tried_all = for_each_match(graph, id, active.rule->pattern, [&](Match& match) {
    const auto making = bind(*active.rule, match);
    if (!making) {
      if (reason.empty()) reason = making.verdict().reason();
      outcome = reason.empty() ? Outcome::nothing_to_do : Outcome::unfit;
      return false;
    }
    const Match kept = match;  // the graph changes under the matcher
    reason = apply(graph, active, kept, *making, work);
    outcome = reason.empty() ? Outcome::fired : Outcome::unfit;
    return true;
  });
  if (!tried_all && reason.empty()) {
    outcome = Outcome::unfit;
    reason = "its pattern could fit in too many orders of inputs to try them all";
  }
  if (outcome == Outcome::unfit && !reason.empty())
    ledger_.refused(active.id, path_to(id), subject(graph.label(id), graph.node(id).sources),
                    std::move(reason));
  return outcome;
}

namespace {

void check_type(const Graph& graph, const Rule& rule, const std::string& label, ValueId from, ValueId to) {
  const auto &old_type = graph.type(from), &new_type = graph.type(to);
  const bool same_element =
      old_type.element == new_type.element || old_type.element == ElementType::undefined;
  LAMINA_CHECK(same_element && merge(old_type.shape, new_type.shape), "rule \"{}\" at '{}' makes {} of {}",
               rule.name, label, to_string(new_type), to_string(old_type));
}

/// Takes a node out; its inputs' producers and their other readers may now fit.
void take_out(Graph& graph, NodeId id, std::vector<ValueId>& touched, std::vector<SourceId>& sources) {
  const Node& n = graph.node(id);
  sources.insert(sources.end(), n.sources.begin(), n.sources.end());
  for (auto v : n.inputs)
    if (v.valid() && graph.producer(v).valid()) touched.push_back(v);
  graph.erase(id);
}

}  // namespace

/// Results that are made anew.
struct Driver::Redirected {
  struct Retyped {
    ValueId value;
    bool same_type;
  };
  std::vector<Retyped> retyped;                          // inference may now know more
  std::vector<std::pair<ValueId, std::string>> renamed;  // names of replaced values live on
};

/// Readers of outputs that are replaced read what replaces them.
Driver::Redirected Driver::redirect(Graph& graph, const Rule& rule, const Rewrite& r) {
  Redirected out;
  const auto is_new = [&](NodeId n) {
    return std::find(r.added_.begin(), r.added_.end(), n) != r.added_.end() ||
           std::any_of(r.successors_.begin(), r.successors_.end(),
                       [&](const auto& s) { return s.node == n; });
  };
  for (const auto& [from, to] : r.replaced_) {
    check_type(graph, rule, graph.label(graph.producer(from)), from, to);
    const bool same_type = graph.type(from) == graph.type(to);
    if (!same_type || graph.constant(to) || may_hold_sizes(graph.type(to)))
      out.retyped.push_back({to, same_type});
    const auto maker = graph.producer(to);
    const bool fresh = maker.valid() ? is_new(maker) : graph.constant(to) && graph.value(to).uses.empty();
    if (fresh) out.renamed.emplace_back(to, graph.value(from).name);
    if (const auto kept = kept_.find(from); kept != kept_.end()) kept_.emplace(to, kept->second);
    graph.replace(from, to);
  }
  return out;
}

/// The root goes, and what was matched and nobody reads any more.
void Driver::take_out_replaced(Graph& graph, const Rewrite& r, std::vector<ValueId>& touched,
                               std::vector<SourceId>& sources) {
  auto left = r.match().nodes();
  left.insert(left.end(), r.absorbed_.begin(), r.absorbed_.end());
  std::unordered_set<std::uint32_t> matched;
  for (const auto n : left) matched.insert(n.index);
  const auto take = [&](NodeId n) {
    for (const auto v : graph.node(n).inputs)  // nobody may read these any more
      if (const auto p = graph.producer(v); p.valid() && matched.contains(p.index)) left.push_back(p);
    ledger_.forget(path_to(n));
    take_out(graph, n, touched, sources);
  };
  take(r.match().root());
  for (std::size_t i = 0; i < left.size(); ++i)
    if (const Node& n = graph.node(left[i]); !n.erased() && unread(graph, n) && !n.op.has(Trait::impure))
      take(left[i]);
  drop_repeats(sources);
}

/// What stood for the sources has become what the rewrite added.
void Driver::record(const Graph& graph, const Active& active, const std::string& label, const Rewrite& r,
                    const std::vector<SourceId>& sources) {
  std::string became = r.note_;
  if (became.empty())
    for (auto n : r.added_)
      became += (became.empty() ? "" : ", ") + graph.node(n).op.name() + " '" + graph.label(n) + "'";
  if (became.empty()) became = "removed";
  auto gone = subject(label, sources);
  if (r.added_.empty() && r.successors_.empty() && !r.heir_.valid())
    for (const auto s : gone.sources) ledger_.removed(active.id, s, became);
  ledger_.fired(active.id, std::move(gone), std::move(became));
}

/// Makes what replaces the match; why not, where the model contradicts itself there: a branch that must not
/// be taken, sizes that do not fit. All is as before then, and running the model finds the fault where it is.
std::string Driver::made(Graph& graph, const Rule& rule, const std::string& label, const Making& make,
                         Rewrite& r) {
  const auto before = graph.node_slots();
  try {
    make(r);
    return {};
  } catch (const Error& e) {
    if (ends_the_work(e.code())) throw Error(e.code(), fmt::format("node \"{}\": {}", label, e.what()));
    if (e.code() == ErrorCode::internal || e.code() == ErrorCode::extension)
      fail(ErrorCode::internal, "internal error: rule \"{}\" at '{}': {}", rule.name, label, e.what());
    for (auto n = static_cast<std::uint32_t>(graph.node_slots()); n-- > before;) graph.erase({n});
    return std::string(kDoesNotFit) + e.what();
  }
}

std::string Driver::apply(Graph& graph, const Active& active, const Match& match, const Making& make,
                          Work& work) {
  const Rule& rule = *active.rule;
  const auto label = graph.label(match.root());
  Rewrite r(graph, match);
  if (auto why = made(graph, rule, label, make, r); !why.empty()) return why;
  LAMINA_CHECK(r.removed_ || !r.replaced_.empty(), "rule \"{}\" at '{}' did nothing", rule.name, label);

  const auto number = ledger_.rewrites();
  if (options_.observer) options_.observer->before(seen(graph, rule, r, number));
  const auto results = redirect(graph, rule, r);
  std::vector<ValueId> touched;
  std::vector<SourceId> sources;
  take_out_replaced(graph, r, touched, sources);
  for (const auto& [value, name] : results.renamed) graph.set_value_name(value, name);
  for (auto n : r.added_) {
    r.add_sources(n, sources);
    work.push(n);
  }
  for (const auto& [n, own] : r.successors_) {
    r.add_sources(n, own);
    work.push(n);
  }
  if (r.heir_.valid()) r.add_sources(r.heir_, sources);
  record(graph, active, label, r, sources);

  for (const auto& r : results.retyped) propagate_types(graph, r.value, r.same_type, work.wide);
  if (options_.observer) options_.observer->after(seen(graph, rule, r, number));
  // Large graphs are looked at after every few rewrites, so that the cost stays in proportion.
  if (options_.verify && done_ % (1 + outermost_->node_slots() / kVerifiedAtOnce) == 0)
    require_sound(*outermost_, fmt::format("after rule \"{}\" at '{}'", rule.name, label), Types::may_lag);
  for (const auto& [from, to] : r.replaced_) work.push_readers(graph, to, depth_);
  for (auto v : touched) {
    if (!graph.producer(v).valid()) continue;  // erased meanwhile
    work.push(graph.producer(v));
    work.push_readers(graph, v, depth_);
  }
  return {};
}

}  // namespace lamina
