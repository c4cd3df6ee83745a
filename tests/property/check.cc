#include "tests/property/check.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/random.h"
#include "check/check.h"
#include "exec/runner.h"
#include "graph/same.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "ops/operators.h"
#include "rules/optimize.h"
#include "tests/property/graph_builder.h"
#include "tests/support/findings_text.h"
#include "tests/support/mismatch.h"

namespace lamina::testing {
namespace {

std::vector<Dims> input_dims(const Graph& graph) {
  std::vector<Dims> dims;
  for (auto v : graph.inputs()) dims.push_back(graph.type(v).shape.sizes());
  return dims;
}

/// Memory of the caller: an address as users have them, and a margin on which nothing may write.
class Guarded {
 public:
  Guarded(ElementType type, const Dims& dims, std::size_t offset) : offset_(kMargin + offset) {
    bytes_.resize(2 * kMargin + 64 + Tensor(type, dims).bytes(), kMark);
    auto at = reinterpret_cast<std::uintptr_t>(bytes_.data());
    offset_ += (64 - at % 64) % 64;
    tensor_ = Tensor::wrap(type, dims, bytes_.data() + offset_);
  }
  Tensor& tensor() { return tensor_; }
  bool margins_are_whole() const {
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      if ((i < offset_ || i >= offset_ + tensor_.bytes()) && bytes_[i] != kMark) return false;
    return true;
  }

 private:
  static constexpr std::size_t kMargin = 128;
  static constexpr std::byte kMark{0xa5};
  std::vector<std::byte> bytes_;
  std::size_t offset_;
  Tensor tensor_;
};

RuleOptions options_of(const std::string& rules) {
  RuleOptions options;
  options.verify = true;
  if (rules == "all") return options;
  if (rules.rfind("first ", 0) == 0) {
    options.stop_after = std::stoll(rules.substr(6));
    return options;
  }
  for (const auto& r : all_rules())
    if (rules == "none" || (rules.rfind("only ", 0) == 0 && rules.substr(5) != r.name) ||
        rules == "without " + r.name)
      options.disable.push_back(r.name);
  return options;
}

/// These graphs nowhere contradict themselves: each replacement of a rule must fit.
std::string rule_problem(const Ledger& ledger) {
  for (const auto& refusal : ledger.refusals())
    if (refusal.text.starts_with(kDoesNotFit))
      return fmt::format("rule \"{}\" at '{}': {}", refusal.rule, refusal.node, refusal.text);
  return {};
}

std::string text_problem(const Graph& graph) {
  const auto text = print_graph(graph);
  const auto again = parse_graph(text.text, operators(), text.data);
  if (const auto d = difference(again, graph); !d.empty()) return "text is read as another graph: " + d;
  const auto twice = print_graph(again);
  return twice.text == text.text && twice.data == text.data ? "" : "text printed again is another";
}

/// Results against what is wanted; `what` says which run.
std::string compare(const Runner& runner, const Example::Run& run, const std::string& what) {
  for (std::size_t r = 0; r < run.wanted.size(); ++r)
    if (const auto d = mismatch(runner.output(r), run.wanted[r]); !d.empty())
      return fmt::format("{}: result {}: {}", what, r, d);
  return {};
}

std::string run_once(Runner& runner, const Example::Run& run, std::size_t offset, const std::string& what) {
  std::vector<Guarded> memory;
  memory.reserve(run.inputs.size());
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    const auto& t = run.inputs[i];
    memory.emplace_back(t.element_type(), t.shape(), offset);
    std::memcpy(memory.back().tensor().raw(), t.raw(), t.bytes());
    runner.set_input(i, memory.back().tensor());
  }
  runner.run();
  for (std::size_t i = 0; i < run.inputs.size(); ++i)
    if (!memory[i].tensor().same_as(run.inputs[i]) || !memory[i].margins_are_whole())
      return fmt::format("{}: input {} was written on", what, i);
  return compare(runner, run, what);
}

std::string run_into_user_memory(Runner& runner, const Example::Run& run, std::size_t offset) {
  std::vector<Guarded> memory;
  memory.reserve(run.wanted.size());
  for (std::size_t r = 0; r < run.wanted.size(); ++r) {
    memory.emplace_back(run.wanted[r].element_type(), run.wanted[r].shape(), offset);
    runner.set_output(r, memory.back().tensor());
  }
  auto found = run_once(runner, run, 0, "with outputs of the caller");
  for (std::size_t r = 0; r < run.wanted.size() && found.empty(); ++r) {
    if (runner.output(r).raw() != memory[r].tensor().raw())
      found = fmt::format("result {} is not in the caller's memory", r);
    else if (!memory[r].margins_are_whole())
      found = fmt::format("result {} was written beyond its end", r);
  }
  for (std::size_t r = 0; r < run.wanted.size(); ++r) runner.set_output(r, Tensor());
  return found;
}

/// What `lamina check` finds wrong in the runner's last run.
std::string wrong_parts(const Graph& original, const Runner& runner, const Example::Run& run) {
  if (runner.plans().empty()) return {};
  checking::Run last{original, run.inputs, runner.plans(), {}};
  for (std::size_t r = 0; r < run.wanted.size(); ++r)
    last.outputs.push_back({original.results()[r].name, runner.output(r), {}});
  const auto text = text_of(checking::check_run(last));
  std::string steps;
  for (const auto& step : runner.plans()[0]->steps) steps += "\n  " + step.name + ": " + step.label;
  return (text.empty() ? "\nnothing is wrong by itself" : "\nwrong by itself:" + text) + "\nplan:" + steps;
}

/// What rules changed, value by value (as `lamina check` judges it).
std::string rewriting_problem(const Graph& original, const Graph& rewritten, const Example::Run& run) {
  for (const auto& v : checking::judge_rewriting(original, run.inputs, rewritten).values)
    if (!v.ok())
      return fmt::format("rewriting: value {} made by {}: {}\n{}", v.name, v.made_by,
                         v.problem.empty() ? checking::to_string(v.difference) : v.problem,
                         print_graph(rewritten, {true, 16}).text);
  return {};
}

/// Where plan and kernels are to blame; rewriting has been judged before.
std::string blame(const Graph& original, const Runner& runner, const Example::Run& run) {
  try {
    return wrong_parts(original, runner, run);
  } catch (const std::exception& e) {
    return std::string("\nwhile looking for the reason: ") + e.what();
  }
}

/// This machine as one where caches are small and everything takes long, so that small graphs are cut as
/// large ones are.
std::shared_ptr<const Machine> small_machine(std::uint64_t seed) {
  auto machine = std::make_shared<Machine>(host());
  machine->l2 = std::size_t{8 << 10} << seed % 5;
  machine->l1 = machine->l2 / 2;
  machine->l3 = machine->l2 * 4;
  constexpr double kSlow = 0.02;
  machine->rates = {kSlow, kSlow, kSlow, kSlow, kSlow, kSlow};
  return machine;
}

std::shared_ptr<const Program> compiled(const Graph& graph, const RuleOptions& rewriting,
                                        const Setting& setting, std::uint64_t seed) {
  ProgramOptions options;
  options.threads = setting.threads;
  options.keep_weights = !setting.ahead;
  if (setting.any_kernels) {
    options.any_kernels = 1 + seed;
    if (seed % 3 != 0) options.machine = small_machine(seed);
  }
  auto again = rewriting;
  if (again.stop_after >= 0) again.stop_after = 0;
  options.rewrite = [again](Graph& g, const std::vector<Carried>&) {
    Ledger ledger;
    optimize(g, again, ledger);
    if (const auto found = rule_problem(ledger); !found.empty()) fail(ErrorCode::internal, "{}", found);
    return ledger;
  };
  const auto program = std::make_shared<Program>(graph, options, std::make_shared<ModelWeights>());
  if (setting.ahead) {
    program->plan_ahead();
    program->forget_weights_read();
  }
  return program;
}

/// Two requests of one program at the same time.
std::string run_two(const std::shared_ptr<const Program>& program, const std::vector<Example::Run>& runs) {
  std::string found[2];
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      try {
        Runner runner(program);
        for (int i = 0; i < 3 && found[t].empty(); ++i)
          found[t] = run_once(runner, runs[t % runs.size()], 0, fmt::format("request {} of 2 at once", t));
      } catch (const std::exception& e) {
        found[t] = std::string("of 2 requests at once: ") + e.what();
      }
    });
  for (auto& t : threads) t.join();
  return found[0].empty() ? found[1] : found[0];
}

std::string run_problem(const Example& example, const Setting& setting) {
  const auto options = options_of(setting.rules);
  Graph graph = example.graph();
  Ledger ledger;
  optimize(graph, options, ledger);
  if (auto found = rule_problem(ledger); !found.empty()) return found;
  if (auto found = text_problem(graph); !found.empty()) return found;

  const auto& runs = example.runs();
  for (const auto& run : runs)
    if (auto found = rewriting_problem(example.graph(), graph, run); !found.empty()) return found;

  const auto program = compiled(graph, options, setting, example.seed());
  Runner runner(program);
  const auto because = [&](const Example::Run& run) {
    if (!setting.ahead) return blame(example.graph(), runner, run);
    Setting kept = setting;  // the plan that is looked into needs its weights
    kept.ahead = false;
    Runner other(compiled(graph, options, kept, example.seed()));
    const auto found = run_once(other, run, 0, "");
    return found.empty() ? "\nonly when weights are forgotten" : blame(example.graph(), other, run);
  };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < runs.size(); ++i) order.push_back(i);
  order.push_back(0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto offset = example.seed() % 4 == 0 && i == 1 ? 1 : 0;  // inputs may lie anywhere
    const auto& run = runs[order[i]];
    const auto found = run_once(runner, run, offset, fmt::format("run {} (inputs {})", i, order[i]));
    if (!found.empty()) return found + because(run);
  }
  if (auto found = run_into_user_memory(runner, runs[0], example.seed() % 3 == 0 ? 8 : 0); !found.empty())
    return found + because(runs[0]);
  if (auto found = run_once(runner, runs[0], 0, "after outputs of the caller"); !found.empty()) return found;
  return example.seed() % 8 == 0 ? run_two(program, runs) : "";
}

}  // namespace

bool rewrites(const Example& example, const Setting& setting) {
  try {
    Graph graph = example.graph();
    Ledger ledger;
    optimize(graph, options_of(setting.rules), ledger);
    const auto counts = ledger.counts();
    return std::any_of(counts.begin(), counts.end(), [](const auto& rule) { return rule.second.hits > 0; });
  } catch (const std::exception&) {
    return true;  // whoever runs it will see
  }
}

std::string to_string(const Setting& s) {
  return fmt::format("rules: {}; threads: {}{}{}", s.rules, s.threads,
                     s.unknown_sizes ? "; unknown sizes" : "", s.any_kernels ? "; any kernels" : "");
}

Example::Example(Graph graph, std::uint64_t seed) : graph_(std::move(graph)), seed_(seed) {
  const auto dims = input_dims(graph_);
  find_runs({dims, dims});
}

void Example::find_runs(const std::vector<std::vector<Dims>>& dims) {
  constexpr std::uint64_t kTries = 4;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    for (std::uint64_t t = 0; t < kTries; ++t) {
      Run run;
      for (std::size_t k = 0; k < dims[i].size(); ++k)
        run.inputs.push_back(input_tensor(graph_, k, dims[i][k], i == 0 && t == 0 ? 0 : seed_ + 10 * i + t));
      Reference found;
      try {
        found = reference(graph_, run.inputs);
      } catch (const Error& e) {  // shapes depend on data, and with these they do not fit
        found.unstable = e.what();
      }
      unstable_ = found.unstable;
      if (!unstable_.empty()) continue;
      run.wanted = std::move(found.results);
      runs_.push_back(std::move(run));
      break;
    }
    if (runs_.empty()) return;
  }
  unstable_.clear();
}

const Example& Example::with_unknown_sizes() const {
  if (unknown_) return *unknown_;
  SplitMix random(seed_);
  for (int t = 0; t < 6; ++t) {
    auto example = std::shared_ptr<Example>(new Example);
    example->graph_ = graph_;
    example->seed_ = seed_;
    auto dims = input_dims(graph_), other = dims;
    // One or two sizes of one input, wherever inputs have them on that axis.
    bool named = false;
    for (const char* name : {"N", "M"}) {
      const auto& first = dims.empty() ? Dims{} : dims[random.below(dims.size())];
      if (first.empty() || (named && random.below(2) == 0)) continue;
      const auto axis = random.below(first.size());
      const auto size = first[axis],
                 new_size = size + static_cast<std::int64_t>(random.below(3)) + (size > 3 ? -2 : 1);
      for (std::size_t i = 0; i < dims.size(); ++i) {
        if (axis >= dims[i].size() || dims[i][axis] != size) continue;
        const auto v = example->graph_.inputs()[i];
        auto type = example->graph_.type(v);
        if (!type.shape[axis].known()) continue;
        type.shape[axis] = Dim::named(name);
        example->graph_.set_type(v, type);
        other[i][axis] = new_size;
        named = true;
      }
    }
    try {
      if (!named) break;
      example->graph_.infer_types();
      const auto text = print_graph(example->graph_);
      example->graph_ = parse_graph(text.text, operators(), text.data);
      example->find_runs({dims});
      if (example->runs_.empty()) continue;
      example->find_runs({other});  // where the graph allows that size
      example->unstable_.clear();
      unknown_ = std::move(example);
      return *unknown_;
    } catch (const Error&) {  // inference needs that size
    }
  }
  unknown_ = std::make_shared<Example>(*this);
  return *unknown_;
}

std::string problem(const Example& example, const Setting& setting) {
  try {
    return run_problem(setting.unknown_sizes ? example.with_unknown_sizes() : example, setting);
  } catch (const std::exception& e) {
    return std::string("error: ") + e.what();
  }
}

std::vector<Setting> some_settings(std::uint64_t seed, std::size_t rules_alone) {
  SplitMix random(seed);
  const auto& rules = all_rules();
  const auto some = random.below(rules.size());
  const int threads = 1 + static_cast<int>(seed % 2), many = 1 << random.below(5);
  std::vector<Setting> all{{"all", threads, false, seed % 2 == 0},
                           {"none", 3 - threads, false, false},
                           {"without " + rules[random.below(rules.size())].name, 3 - threads, false, false},
                           {"first " + std::to_string(random.below(12)), threads, false, false},
                           {"all", 3 - threads, true, seed % 4 == 1},
                           {"all", many, false, seed % 2 == 1, true},
                           {"none", many, false, seed % 2 == 1, true}};
  for (std::size_t i = 0; i < std::min(rules_alone, rules.size()); ++i)
    all.push_back({"only " + rules[(some + i) % rules.size()].name, threads, false, seed % 2 == 1});
  return all;
}

std::vector<Setting> every_setting() {
  std::vector<Setting> all;
  for (const int threads : {1, 2})
    for (const bool unknown : {false, true})
      for (const std::string rules : {"all", "none"})
        for (const bool any_kernels : {false, true})
          all.push_back({rules, threads, unknown, threads == 2, any_kernels});
  for (const auto& r : all_rules()) {
    all.push_back({"only " + r.name, 1, false, false});
    all.push_back({"without " + r.name, 2, false, false});
  }
  return all;
}

}  // namespace lamina::testing
