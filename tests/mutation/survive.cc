#include "tests/mutation/survive.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "api/inside.h"
#include "base/arena.h"
#include "base/random.h"
#include "base/work_bounds.h"
#include "check/check.h"
#include "exec/variable_memory.h"
#include "graph/same.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "graph/work.h"
#include "ops/control.h"
#include "ops/eval.h"
#include "ops/operators.h"
#include "plan/plan.h"

namespace lamina::testing {
namespace {

constexpr std::int64_t kMostElements = 100000;  // of a value
constexpr double kMostWork = 2e7;               // multiply-adds of a node
constexpr std::int64_t kMostTurns = 50;
constexpr long kMostKilobytes = 1500 << 10;  // that one model may take

/// What tests can afford to run. Sizes that are not known, values decide on; inputs are small numbers.
bool is_affordable(const Graph& g) {
  for (std::uint32_t i = 0; i < g.value_slots(); ++i) {
    const auto& s = g.type({i}).shape;
    if (s.ranked() && s.rank() > 32) return false;
    Dim count = 1;
    for (const auto& d : s.dims()) count = count * Dim(std::max<std::int64_t>(d.low(), 1));
    if (count.low() > kMostElements) return false;
  }
  for (const auto id : g.order()) {
    const auto& n = g.node(id);
    if (n.op.is<Loop>()) {
      const auto* turns = n.inputs[0].valid() ? g.constant(n.inputs[0]) : nullptr;
      if (!turns || turns->size() != 1 || to_ints(*turns)[0] > kMostTurns) return false;
    }
    if (const auto work = work_of(g, n); work.multiply_adds > kMostWork) return false;
    for (const auto& body : n.bodies)
      if (!is_affordable(body)) return false;
  }
  return true;
}

bool any_node(const Graph& g, const std::function<bool(const Node&)>& is) {
  for (const auto id : g.order()) {
    if (is(g.node(id))) return true;
    for (const auto& body : g.node(id).bodies)
      if (any_node(body, is)) return true;
  }
  return false;
}

/// Inputs of small sizes where the model leaves them open, the same size for the same name. Nothing where an
/// element type is not known.
std::optional<std::vector<Tensor>> inputs_of(const Graph& g, std::uint64_t seed) {
  SplitMix random(seed);
  std::map<std::string, std::int64_t> named;
  std::vector<Tensor> inputs;
  for (const auto v : g.inputs()) {
    const auto& type = g.type(v);
    if (type.element == ElementType::undefined) return std::nullopt;
    std::vector<Dim> dims = type.shape.dims();
    if (!type.shape.ranked()) dims.resize(random.below(4));
    Dims sizes;
    for (const auto& d : dims) {
      auto size = std::clamp<std::int64_t>(static_cast<std::int64_t>(1 + random.below(4)), d.low(), d.high());
      if (!d.known() && !d.name().empty()) size = named.try_emplace(d.name(), size).first->second;
      sizes.push_back(d.known() ? d.size() : size);
    }
    std::int64_t count = 1;
    for (auto s : sizes)
      if (s > kMostElements || (count *= std::max<std::int64_t>(s, 1)) > kMostElements) return std::nullopt;
    inputs.push_back(seeded_tensor(type.element, sizes, seed + inputs.size()));
  }
  return inputs;
}

long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

Model read(const ModelFiles& files) {
  const auto bytes = [](const std::string& s) { return std::as_bytes(std::span(s)); };
  ModelBytes all;
  all.model = bytes(files.model);
  all.weights = bytes(files.weights);
  all.name = "model";
  return Model::from_memory(all);
}

std::string text_problem(const Graph& g) {
  const auto text = print_graph(g);
  const auto d = difference(parse_graph(text.text, operators(), text.data), g);
  return d.empty() ? "" : "its text is read as another graph: " + d;
}

/// Has numbers that no trained model has: what comes of them is as large as infinity, or not a number, here
/// and not there.
bool has_wild_numbers(const Graph& g) {
  constexpr double kWild = 1e5;
  const auto wild = [&](double v) { return !(std::fabs(v) <= kWild); };
  for (std::uint32_t i = 0; i < g.value_slots(); ++i)
    if (const auto* t = g.constant({i}); t && is_float(t->element_type()) && t->size() <= kMostElements) {
      const auto values = to_doubles(t->to_aligned());
      if (std::any_of(values.begin(), values.end(), wild)) return true;
    }
  return any_node(g, [&](const Node& n) {
    for (const auto& a : n.op->attributes()) {
      if (const auto* v = std::get_if<double>(&a.value); v && wild(*v)) return true;
      const auto* list = std::get_if<Floats>(&a.value);
      if (list && std::any_of(list->begin(), list->end(), wild)) return true;
    }
    return std::any_of(n.bodies.begin(), n.bodies.end(), has_wild_numbers);
  });
}

/// What the findings say is wrong.
std::string faults_of(const checking::Findings& found) {
  for (const auto& v : found.values)
    if (!v.ok())
      return fmt::format("rewritten value of {} ({}) is wrong: {}", v.made_by, v.name,
                         v.problem.empty() ? checking::to_string(v.difference) : v.problem);
  for (const auto& l : found.layers)
    if (!l.ok())
      return fmt::format("kernel {} of {} ({}) is wrong: {}", l.kernel, l.op, l.name,
                         checking::to_string(l.difference));
  for (const auto& o : found.outputs)
    if (!o.ok()) return fmt::format("output {} is wrong: {}", o.name, checking::to_string(o.difference));
  return {};
}

bool is_half(const Model& model, const Compiled& compiled) {
  const auto& ports = model.outputs();
  return compiled.widened() || std::any_of(ports.begin(), ports.end(), [](const Port& p) {
           return p.type == ElementType::f16 || p.type == ElementType::bf16;
         });
}

std::string ordinary(const Error& e) {
  const std::string_view what = e.what();
  if (e.code() == ErrorCode::internal) return fmt::format("an internal error: {}", what);
  if (what.find('\n') != std::string_view::npos || what.size() > 320)
    return fmt::format("an error of several lines: {}", what);
  return {};
}

/// Sizes that follow from data show only while a model runs: a value of more elements than tests can afford
/// ends the run there, with an Error(over_limit).
ModelLimits limits_of(bool sizes_follow_from_data) {
  ModelLimits limits;
  if (sizes_follow_from_data) limits.elements = kMostElements;
  return limits;
}

/// Erases what no result depends on, in bodies, too.
void erase_all_unused(Graph& g) {
  g.erase_unused();
  for (const auto id : g.order())
    for (auto& body : g.bodies(id)) erase_all_unused(body);
}

/// Whether the interpreter gives results for what the results depend on. Nodes that nobody reads may fail.
/// Throws Error(over_limit) for values beyond the limits.
std::string interpreted(const Graph& original, const std::vector<Tensor>& inputs, const ModelLimits& limits) {
  Graph used = original;
  erase_all_unused(used);
  const WorkBounds bounds{.elements = limits.elements};
  const Within here(&bounds);
  try {
    interpret(used, inputs);
    return {};
  } catch (const Error& e) {
    if (e.code() == ErrorCode::over_limit) throw;
    return e.what();
  }
}

Survival run(const Model& model, const Graph& graph, const std::vector<Tensor>& inputs,
             const ModelLimits& limits, std::uint64_t seed) {
  Survival out;
  Options options;
  options.limits = limits;
  options.threads = 1 + static_cast<int>(seed % 2);
  options.keep_weights = true;
  CompiledModel compiled(model, options);
  out.reached = Reached::compiled;
  auto request = compiled.create_request();
  for (std::size_t i = 0; i < inputs.size(); ++i) request.set_input(i, inputs[i]);
  const auto& impl = Inside::of(compiled);
  std::string failed;
  try {
    request.run();
  } catch (const Error& e) {
    if (e.code() == ErrorCode::over_limit && limits.elements == kMostElements) throw;
    out.reached = Reached::failed;
    out.problem = ordinary(e);
    failed = e.what();
  }
  if (!out.problem.empty()) return out;
  const bool impure = any_node(graph, [](const Node& n) { return n.op.has(Trait::impure); });
  if (impure) return out;
  const auto all = with_variables(impl.program(), inputs);
  const auto reference = interpreted(impl.original(), all, limits);
  if (reference.empty() != failed.empty()) {
    // An error that only one of them meets.
    out.problem = failed.empty() ? fmt::format("the plan gives a result, the interpreter: {}", reference)
                                 : fmt::format("the interpreter gives a result, the plan: {}", failed);
    return out;
  }
  out.error = failed;
  if (!failed.empty()) return out;
  out.reached = Reached::ran;
  checking::Run last{impl.original(), all, Inside::runner_of(request).plans(), {}, is_half(model, impl)};
  for (std::size_t i = 0; i < model.outputs().size(); ++i)
    last.outputs.push_back({model.outputs()[i].name, request.output(i), {}});
  last.with_levels = [&] { return checking::with_levels(impl); };
  const auto found = faults_of(checking::check_run(last));
  if (!has_wild_numbers(graph)) out.problem = found;
  return out;
}

Survival read_and_run(const ModelFiles& files, std::uint64_t seed) {
  Survival out;
  const auto model = read(files);
  const auto& graph = Inside::of(model).loaded().graph;
  if (const auto wrong = verify(graph); !wrong.empty()) {
    out.problem = "the graph as read is wrong: " + wrong.front();
    return out;
  }
  if (out.problem = text_problem(graph); !out.problem.empty()) return out;
  if (!model.unsupported().empty()) {
    out.reached = Reached::unsupported;
    return out;
  }
  out.reached = Reached::large;
  const auto inputs = inputs_of(graph, seed);
  if (!inputs || !is_affordable(graph)) return out;
  bool open = false;
  try {
    const auto known = specialise(graph, *inputs, {});
    if (!is_affordable(known)) return out;
    for (std::uint32_t i = 0; i < known.value_slots(); ++i)
      open = open || (known.value({i}).kind != ValueKind::none && !known.type({i}).shape.known());
  } catch (const Error& e) {  // a run says the same
    if (out.problem = ordinary(e); !out.problem.empty()) return out;
  }
  return run(model, graph, *inputs, limits_of(open), seed);
}

}  // namespace

std::string_view name_of(Reached reached) {
  constexpr std::string_view names[] = {"refused", "unsupported", "large", "compiled", "failed", "ran"};
  return names[static_cast<std::size_t>(reached)];
}

Survival survive(TreeFormat, const ModelFiles& files, std::uint64_t seed) {
  const auto before = peak_kilobytes();
  Survival out;
  try {
    out = read_and_run(files, seed);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::over_limit) out.reached = Reached::large;
    out.problem = ordinary(e);
    out.error = e.what();
  } catch (const std::exception& e) {
    out.problem = fmt::format("another exception: {}", e.what());
  }
  if (const auto more = peak_kilobytes() - before; more > kMostKilobytes && out.problem.empty())
    out.problem = fmt::format("{} MB of memory", more >> 10);
  return out;
}

}  // namespace lamina::testing
