#include "api/compiled.h"

#include <algorithm>

#include "api/errors.h"
#include "api/inside.h"
#include "api/request_state.h"
#include "base/cpu.h"
#include "base/mapped_file.h"
#include "base/parallel.h"
#include "base/shape_only.h"
#include "kernels/onednn_isa.h"
#include "plan/force.h"
#include "plan/forecast.h"

namespace lamina {
namespace {

/// Memory of constants that lie in a mapped file.
void drop_pages(const Graph& graph) {
  for (std::uint32_t v = 0; v < graph.value_slots(); ++v)
    if (const auto* constant = graph.constant({v})) drop_mapped_pages(constant->raw(), constant->bytes());
}

/// Fixes the instruction set for the process.
void settle_isa(const std::string& most, const Logger& log) {
  if (most != "native") limit_isa(most, limit_onednn);
  effective_isa();
  if (const auto note = onednn_isa_note(); !note.empty()) log.warning("{}", note);
}

ProgramOptions program_options(const Options& options, int threads, std::shared_ptr<const Machine> machine) {
  ProgramOptions o;
  o.threads = threads;
  o.machine = std::move(machine);
  o.keep_weights = options.keep_weights;
  o.progress = options.progress;
  o.cached_plans = options.cached_plans;
  o.force = options.force;
  o.rewrite = [late = late_optimize_options(options)](Graph& graph) {
    Ledger ledger;
    optimize(graph, OptimizeOptions(late), ledger);  // a copy: its callback counts
    return ledger;
  };
  return o;
}

/// What streams promise, by the estimates of a plan that is not made for running; nothing where shapes are
/// not known.
InferenceTime time_of(const Graph& graph, const Options& options) {
  auto here = std::make_shared<Machine>(host());
  here->here = false;
  ProgramOptions o;
  o.machine = here;
  o.force = options.force;
  const auto plan = Program(graph, std::move(o), std::make_shared<ModelWeights>()).plan_for_looking();
  if (!plan) return {};
  return [plan, here](int threads, int streams) { return predicted_time(*plan, threads, streams); };
}

bool by_throughput(const Options& o) {
  if (o.exclusive) return false;
  return o.streams
             ? *o.streams == Streams::automatic()
             : o.hint == PerformanceHint::throughput || o.hint == PerformanceHint::cumulative_throughput;
}

}  // namespace

Compiled::Compiled(std::shared_ptr<const LoadedModel> model, const Options& options,
                   std::shared_ptr<const Machine> machine)
    : model_(std::move(model)), options_(options) {
  const Uninterrupted here;
  check_options(options);
  model_->require_supported();
  const Logger log(options.log, LogLevel::debug);
  settle_isa(options.max_isa, log);
  if (!machine && !this_machine().rates_known)
    log.info("how fast a \"{}\" is is not known: kernels are estimated with the rates of Sapphire Rapids",
             this_machine().name);
  options_.precision = asked_precision(options).first;
  rewritten_ = rewrite_model(model_->loaded().graph, options_, log);
  check_wishes(options.force, original());
  drop_pages(original());  // what folding has read
  auto threads = options.threads > 0 ? options.threads
                 : machine           ? std::min(machine->core_count(), kMostThreads)
                                     : 1;
  if (!machine) {
    const auto& graph = rewritten_.model.graph;
    settled_ = settle(options, by_throughput(options) ? time_of(graph, options) : InferenceTime(), log);
    threads = settings().placement.threads_each;
  }
  const auto program = std::make_shared<Program>(std::move(rewritten_.model),
                                                 program_options(options, threads, std::move(machine)),
                                                 std::make_shared<ModelWeights>());
  program->plan_ahead();
  program_ = program;
  if (const auto found = denormals()) log.info("{}", to_string(found));
  if (!options.keep_weights) forget_weights(rewritten_.original);
  const auto& s = settings();
  scheduler_ = std::make_unique<Scheduler>(s.placement, options.exclusive, std::move(settled_.held), log);
}

std::vector<Property> Compiled::properties() const {
  const ModelFacts facts{model_->loaded().graph.name, false};
  return list_properties(settings(), read_topology(), &facts);
}

Denormals Compiled::denormals() const {
  auto sum = rewritten_.denormals;
  return sum += program_->denormals();
}

std::vector<std::string> Compiled::precision_notes() const {
  auto notes = rewritten_.precision_notes;
  if (const auto found = denormals()) notes.push_back(to_string(found));
  return notes;
}

std::vector<Port> Compiled::output_ports(const std::vector<Dims>& shapes) const {
  const auto& ports = model_->inputs();
  if (shapes.size() != ports.size())
    fail(ErrorCode::bad_input, "{} shapes given, wanted {}", shapes.size(), ports.size());
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < ports.size(); ++i)
    inputs.push_back(naming_port("input", ports[i], [&] {
      element_count(shapes[i]);
      return shape_only(ports[i].type, shapes[i]);
    }));
  const auto types = on_shapes(ports, inputs, [&] { return program_->result_types(inputs); });
  auto out = model_->outputs();
  for (std::size_t r = 0; r < out.size(); ++r) out[r] = port_of(out[r].name, {out[r].type, types[r].shape});
  return out;
}

Request Compiled::request() const { return Request(std::make_shared<Request::State>(shared_from_this())); }

RequestPool::Lent::Lent(RequestPool& pool, const Compiled& compiled) : pool_(pool) {
  {
    std::lock_guard lock(pool_.mutex_);
    if (!pool_.idle_.empty()) one_.splice(one_.begin(), pool_.idle_, pool_.idle_.begin());
  }
  if (one_.empty()) one_.push_back(compiled.request());
  one_.front().reset_state();
}

RequestPool::Lent::~Lent() {
  auto& state = Inside::of(one_.front());
  for (std::size_t i = 0; i < state.inputs.size(); ++i) state.set_input(i, {});
  std::lock_guard lock(pool_.mutex_);
  pool_.idle_.splice(pool_.idle_.begin(), one_);
}

}  // namespace lamina
