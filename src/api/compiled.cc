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

namespace lamina {
namespace {

/// Memory of constants that lie in a mapped file.
void drop_pages(const Graph& graph) {
  for (std::uint32_t v = 0; v < graph.value_slots(); ++v)
    if (const auto* constant = graph.constant({v})) drop_mapped_pages(constant->raw(), constant->bytes());
}

/// Fields need not have come through Options::set; the others are checked where they are used.
Options checked(const Options& o) {
  if (o.threads < 0 || o.threads > kMostThreads)
    fail(ErrorCode::bad_option, "threads {}: wanted 0 to {}", o.threads, kMostThreads);
  if (o.cached_plans < 1 || o.cached_plans > 1000)
    fail(ErrorCode::bad_option, "cached_plans {}: wanted 1 to 1000", o.cached_plans);
  if (o.precision != Precision::model && o.precision != Precision::f32 && o.precision != Precision::bf16)
    fail(ErrorCode::bad_option, "precision {}: wanted model, f32 or bf16", static_cast<int>(o.precision));
  return o;
}

/// Fixes the instruction set for the process.
void settle_isa(const std::string& most, const Logger& log) {
  if (most != "native") limit_isa(most, limit_onednn);
  effective_isa();
  if (const auto note = onednn_isa_note(); !note.empty()) log.warning("{}", note);
}

ProgramOptions program_options(const Options& options, std::shared_ptr<const Machine> machine,
                               const Logger& log) {
  ProgramOptions o;
  const int here = machine ? machine->core_count() : std::min(available_threads(), threads_here()),
            wanted = options.threads > 0 ? options.threads : std::min(here, kMostThreads),
            allowed = allowed_threads(wanted);
  o.threads = machine ? wanted : allowed;
  o.machine = std::move(machine);
  if (o.threads < options.threads)
    log.warning("{} threads, of {} wanted: this process limits oneTBB (tbb::global_control)", o.threads,
                options.threads);
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

}  // namespace

Compiled::Compiled(std::shared_ptr<const LoadedModel> model, const Options& options,
                   std::shared_ptr<const Machine> machine)
    : model_(std::move(model)), options_(checked(options)) {
  model_->require_supported();
  const Logger log(options.log, LogLevel::debug);
  settle_isa(options.max_isa, log);
  if (!machine && !this_machine().rates_known)
    log.info("how fast a \"{}\" is is not known: kernels are estimated with the rates of Sapphire Rapids",
             this_machine().name);
  rewritten_ = rewrite_model(model_->loaded().graph, options, log);
  check_wishes(options.force, original());
  drop_pages(original());  // what folding has read
  const auto program = std::make_shared<Program>(std::move(rewritten_.model),
                                                 program_options(options, std::move(machine), log),
                                                 std::make_shared<ModelWeights>());
  program->plan_ahead();
  program_ = program;
  if (const auto found = denormals()) log.info("{}", to_string(found));
  if (!options.keep_weights) forget_weights(rewritten_.original);
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

Compiled::Pooled::Pooled(const Compiled& compiled) : pool_(compiled.pool_) {
  {
    std::lock_guard lock(pool_->mutex);
    if (!pool_->idle.empty()) one_.splice(one_.begin(), pool_->idle, pool_->idle.begin());
  }
  if (one_.empty()) one_.push_back(compiled.request());
  one_.front().reset_state();
}

Compiled::Pooled::~Pooled() {
  auto& state = Inside::of(one_.front());
  for (std::size_t i = 0; i < state.inputs.size(); ++i) state.set_input(i, {});
  std::lock_guard lock(pool_->mutex);
  pool_->idle.splice(pool_->idle.begin(), one_);
}

}  // namespace lamina
