#include "api/compiled.h"

#include <algorithm>
#include <limits>

#include "api/at_work.h"
#include "api/errors.h"
#include "api/inside.h"
#include "api/limit_checks.h"
#include "api/limit_rows.h"
#include "api/preparing.h"
#include "api/request_state.h"
#include "base/arena.h"
#include "base/cpu.h"
#include "base/guard.h"
#include "base/parallel.h"
#include "base/shape_only.h"
#include "base/users_calls.h"
#include "kernels/onednn_isa.h"
#include "plan/forecast.h"
#include "plan/kernel_overrides.h"

namespace lamina {
namespace {

/// Fixes the instruction set for the process.
void fix_isa(const std::string& most, const Logger& log) {
  if (most != kNativeIsa) limit_isa(most, limit_onednn);
  if (const auto wanted = isa_named(most); wanted && *wanted > native_isa())
    log.warning("max isa {}: this processor has {} at most, which is used", most, name_of(native_isa()));
  effective_isa();
  if (const auto note = onednn_isa_note(); !note.empty()) log.warning("{}", note);
}

ProgramOptions program_options(const Options& options, int threads, std::shared_ptr<const Machine> machine,
                               std::shared_ptr<const Rules> more,
                               std::shared_ptr<const Rewriting> rewriting) {
  ProgramOptions o;
  o.threads = threads;
  o.machine = std::move(machine);
  o.keep_weights = options.keep_weights;
  o.progress = options.progress;
  o.cached_plans = options.cached_plans;
  o.force = options.force;
  o.run_seconds = options.limits.run_seconds;
  o.plan_seconds = options.limits.compile_seconds;
  o.loop_iterations = static_cast<std::int64_t>(
      std::min<std::uint64_t>(options.limits.loop_iterations, std::numeric_limits<std::int64_t>::max()));
  o.rewrite = [late = late_optimize_options(options, options.precision.value_or(Precision::model),
                                            o.machine ? *o.machine : host(), std::move(more)),
               keep = o.machine,
               rewriting = std::move(rewriting)](Graph& graph, const std::vector<Carried>& carried) {
    Ledger ledger;
    RuleOptions once = late;  // a copy: its callback counts
    once.carried = carried;
    optimize(graph, once, ledger);
    rewriting->warn_of_stopped(ledger);
    return ledger;
  };
  return o;
}

/// Times of steps by the estimates of a plan that is not made for running; none if shapes are not known.
std::vector<StepTimeAlone> estimated_times(const Graph& graph, const Options& options) {
  auto here = std::make_shared<Machine>(host());
  here->here = false;
  ProgramOptions o;
  o.machine = here;
  o.force = options.force;
  const auto plan = Program(graph, std::move(o), std::make_shared<ModelWeights>()).plan_for_looking();
  return plan ? times_alone(*plan) : std::vector<StepTimeAlone>();
}

}  // namespace

Compiled::Compiled(std::shared_ptr<const LoadedModel> model, const Options& options,
                   std::shared_ptr<const Machine> machine)
    : model_(std::move(model)),
      options_(options),
      stop_(options.stop),
      log_(options.log, LogLevel::debug),
      elsewhere_(machine != nullptr) {
  const AtWork here;
  // Threads, and objects of libraries, may be gone.
  if (Quiescence::ends_process()) fail(ErrorCode::canceled, "the process ends: nothing is compiled any more");
  check_options(options);
  options_.limits = tighter(model_->limits(), options.limits);
  run_stoppable(rules("compiling"), [&] { compile_from(options, std::move(machine)); });
}

void Compiled::compile_from(const Options& options, std::shared_ptr<const Machine> machine) {
  stop_point();
  options_.progress = of_user(options.progress);
  bounds_ = std::make_shared<const WorkBounds>(
      bounds_of(options_.limits, model_->bounds().given, model_->bounds().memory));
  const Within within(bounds_.get());
  require_within(*model_, options_.limits);
  model_->require_supported();
  fix_isa(options.max_isa, log_);
  if (!machine && !this_machine().rates_known)
    log_.info("the rates of \"{}\" are not known: kernels are estimated with those of Sapphire Rapids",
              this_machine().name);
  const bool as_in_file = resolve_precision(options, machine ? *machine : host());
  for (const auto& note : precision_sentences(settings())) log_.info("{}", note);
  auto rewriting = settings();
  rewriting.options = options_;
  rewriting.placement.threads = threads_to_compile(options_);
  rewriting_ = std::make_shared<Rewriting>(model_, std::move(rewriting), machine, log_);
  const int threads = options.threads > 0 ? options.threads
                      : machine           ? std::min(machine->core_count(), kMostThreads)
                                          : 1;
  auto program = program_options(options_, threads, std::move(machine), model_->rules(), rewriting_);
  program.bounds = bounds_;
  make_program(std::move(program), as_in_file);
  tell(rewriting_facts(), log_);
  if (const auto found = denormals()) log_.info("{}", to_string(found));
  scheduler_ =
      std::make_unique<Scheduler>(settings().placement, options.exclusive, std::move(resolved_.held), log_);
}

/// Without a precision in the options, a compiled model keeps the one that it was compiled with. True if the
/// file was compiled with the options in use.
bool Compiled::resolve_precision(const Options& options, const Machine& machine) {
  auto& s = resolved_.settings;
  s.options = s.made_with = options;
  s.made_with.limits = options_.limits;
  decide_precision(s, machine);
  options_.precision = s.precision;
  const auto& file = model_->compiled();
  if (!file) return false;
  require_isa(*file, machine);
  const bool asked_nothing = asked_precision(options).second.empty() && decide_alike(options_, Options());
  const bool as_in_file = take_options(options_of(*file), asked_nothing);
  if (as_in_file) s.made_with = options_;
  if (*options_.precision != s.precision) s.precision_reason = kOfFile;
  s.precision = *options_.precision;
  return as_in_file;
}

void Compiled::make_program(ProgramOptions options, bool as_in_file) {
  cache_reason_ = why_not_kept();
  if (as_in_file && !options_.keep_weights && !elsewhere_) {
    take_from(model_->compiled(), options);
    cache_reason_ = model_->path();
  } else if (cache_reason_.empty()) {
    cache_reason_ = take_from_cache(options);
  }
  if (!options_.cache_dir.empty())
    log_.info("cache: {}{}", program_ ? "loaded: " : "compiled: ", cache_reason_);
  if (!program_) compile(std::move(options));
}

std::string Compiled::why_not_kept() const {
  if (elsewhere_) return "it is planned for another machine";
  if (options_.keep_weights) return "KEEP_WEIGHTS=YES: models whose weights are kept are always compiled";
  if (model_->compiled()) return "a compiled model's file is not kept";
  if (options_.cache_dir.empty()) return "no CACHE_DIR is given";
  return model_->derived() ? "the graph is not that of a file" : "";
}

std::vector<Property> Compiled::properties() const {
  const AtWork here;
  const ModelFacts facts{model_->loaded().graph.name, loaded_from_cache(), cache_reason_};
  return list_properties(settings(), read_topology(), &facts);
}

/// Decides about streams and threads, once. `times`: asked where the numbers depend on the model.
void Compiled::place(const std::function<std::vector<StepTimeAlone>()>& times) {
  if (placed_ || elsewhere_) return;
  InferenceTime time;
  if (by_throughput(options_))
    if (auto steps = times(); !steps.empty()) {
      if (keeper_) keeper_->streams_chosen_by(steps);
      time = [steps = std::move(steps)](int threads, int streams) {
        return predicted_time(steps, threads, streams);
      };
    }
  resolve(resolved_, time, log_);
  placed_ = true;
}

/// False when other options were given than those.
bool Compiled::take_options(const Options& of_file, bool asked_nothing) {
  if (asked_nothing) take_deciding(options_, of_file);
  const bool alike = decide_alike(options_, of_file);
  if (!alike)
    log_.info("{}: the options differ from those that it was compiled with: it is compiled again",
              model_->path());
  return alike;
}

void Compiled::compile(ProgramOptions options) {
  rewriting_->get();
  check_overrides(options_.force, original());
  place([&] { return estimated_times(rewriting_->get().model.graph, options_); });
  if (!elsewhere_) options.threads = settings().placement.threads_each;
  const auto program =
      std::make_shared<Program>(rewriting_->take(), std::move(options), std::make_shared<ModelWeights>());
  program->plan_ahead();
  if (keeper_) {
    keeper_->keep(program);
    keeper_->store();
  }
  program->forget_weights_read();
  if (!options_.keep_weights) rewriting_->forget();
  program_ = program;
}

void Compiled::take_from(const std::shared_ptr<const CompiledFile>& file, ProgramOptions options) {
  const auto rewriting = rewriting_;
  std::shared_ptr<const SavedCompiled> saved;
  on_threads(threads_to_compile(options_), [&] {
    saved = std::make_shared<const SavedCompiled>(
        file, [rewriting](const Hash128& content) { return rewriting->constant(content); },
        model_->described().extensions);
  });
  place([&] { return saved->times(); });
  options.threads = settings().placement.threads_each;
  options.kept = saved;
  options.kept_fails = [log = log_](const Error& e) { log.info("planned anew: {}", e.what()); };
  options.whole = [rewriting] { return rewriting->get().model.graph; };
  if (keeper_) keeper_->came_from(saved);
  const auto program =
      std::make_shared<Program>(saved->program(), std::move(options), std::make_shared<ModelWeights>(saved));
  program->plan_ahead();
  if (keeper_) {
    keeper_->keep(program);
    if (program->made_plans() != 0) keeper_->store();  // of this number of threads
  }
  program->forget_weights_read();
  saved_ = saved;
  program_ = program;
}

std::string Compiled::take_from_cache(ProgramOptions& options) {
  const auto folder =
      std::make_shared<CacheFolder>(options_.cache_dir, std::uint64_t{options_.cache_size} << 20, log_);
  const auto key = key_of(*model_, options_, folder->memo());
  if (!key) return "the model's file was changed since it was read";
  keeper_ = std::make_shared<EntryKeeper>(Saving{model_, options_, rewriting_, nullptr}, *key, folder, log_);
  options.planned = [keeper = keeper_] { keeper->store(); };
  auto reason = folder->open(*key, [&](const auto& file) { take_from(file, options); });
  if (reason.empty()) return saved_->file().path();
  keeper_->came_from(nullptr);
  return reason;
}

void Compiled::save(const std::string& path) const {
  const AtWork here;
  run_stoppable(rules("saving the compiled model"), [&] { save_to(path); });
}

std::shared_ptr<const Compiled> Compiled::compiled_with_weights(const ProgressCallback& progress,
                                                                const std::stop_token& stop) const {
  if (!as_it_was_read(*model_))
    fail(ErrorCode::bad_file, "{}: was changed since it was read", model_->path());
  auto options = options_;
  options.keep_weights = true;
  options.progress = progress;
  options.stop = stop;
  options.log = {};  // the user has been told
  options.cache_dir.clear();
  return std::make_shared<const Compiled>(model_, options);
}

void Compiled::save_to(const std::string& path) const {
  if (model_->derived())
    fail(ErrorCode::unsupported, "{}: models with a graph other than the file's cannot be saved",
         model_->path());
  if (elsewhere_) fail(ErrorCode::bad_call, "planned for another machine: it is compiled and saved there");
  const auto key = key_of(*model_, options_, HashMemo({}));
  if (!key) fail(ErrorCode::bad_file, "{}: was changed since it was read", model_->path());
  if (!has_weights()) {
    const auto anew = compiled_with_weights({}, options_.stop);
    for (const auto& [of, planned] : program_->cache()->all()) anew->plan_as(*program_, of, *planned->plan);
    return anew->save_to(path);
  }
  const Saving saving{model_, options_, rewriting_, nullptr};
  const auto file = file_of(saving, *program_, true);
  if (!as_it_was_read(*model_))
    fail(ErrorCode::bad_file, "{}: was changed since it was read", model_->path());
  file.write(path, header_of(*key));
}

/// Makes the same plan here, unless it is the plan of a deferred subgraph.
void Compiled::plan_as(const Program& other, const std::string& key, const Plan& plan) const {
  std::vector<Tensor> inputs;
  for (const auto v : plan.graph.inputs()) {
    const auto& type = plan.graph.type(v);
    inputs.push_back(shape_only(type.element, type.shape.sizes()));
  }
  if (inputs.size() != program_->graph().inputs().size() || other.key_of(inputs) != key) return;
  on_threads(threads(), [&] { program_->plan(inputs); });
}

void Compiled::plan_for(const std::vector<Dims>& shapes, const std::stop_token& stop) const {
  const AtWork here;
  const Within within(bounds_.get());
  auto inputs = standing_for(shapes);
  for (const auto& v : program_->variables())
    if (!v.initial.valid() && !v.type.shape.known()) return;  // a run computes the value, and its shape
  on_shapes(model_->inputs(), inputs, [&] {
    auto all = inputs;
    for (const auto& v : program_->variables())
      all.push_back(v.initial.valid() ? v.initial : shape_only(v.type.element, v.type.shape.sizes()));
    const TokenSignal signal(stop);
    const auto what = model_->path() + ": planning";
    run_stoppable({.signal = &signal, .what = what}, [&] {
      run_stoppable(rules("planning"), [&] { on_threads(threads(), [&] { program_->plan(all); }); });
    });
    return true;
  });
}

const RewritingFacts& Compiled::rewriting_facts() const {
  return saved_ ? saved_->facts() : rewriting_->get().facts;
}

Denormals Compiled::denormals() const {
  auto sum = rewriting_facts().denormals;
  return sum += program_->denormals();
}

std::string Compiled::precision_reason() const {
  const auto [asked, key] = asked_precision(settings().options);
  return key.empty() || asked == precision() ? "" : settings().precision_reason;
}

std::vector<std::string> Compiled::precision_notes() const {
  auto notes = rewriting_facts().widened;
  for (auto& note : precision_sentences(settings())) notes.push_back(std::move(note));
  if (const auto found = denormals()) notes.push_back(to_string(found));
  return notes;
}

std::vector<Tensor> Compiled::standing_for(const std::vector<Dims>& shapes) const {
  const auto& ports = model_->inputs();
  if (shapes.size() != ports.size())
    fail(ErrorCode::bad_input, "{} shapes given, wanted {}", shapes.size(), ports.size());
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < ports.size(); ++i)
    inputs.push_back(naming_port("input", ports[i], [&] {
      element_count(shapes[i]);
      return shape_only(ports[i].type, shapes[i]);
    }));
  return inputs;
}

std::vector<Port> Compiled::output_ports(const std::vector<Dims>& shapes) const {
  const AtWork here;
  const Within within(bounds_.get());
  const auto& ports = model_->inputs();
  const auto inputs = standing_for(shapes);
  std::vector<TensorType> types;
  run_stoppable(rules("finding the outputs' shapes"), [&] {
    on_threads(threads(),
               [&] { types = on_shapes(ports, inputs, [&] { return program_->result_types(inputs); }); });
  });
  auto out = model_->outputs();
  for (std::size_t r = 0; r < out.size(); ++r) out[r] = port_of(out[r].name, {out[r].type, types[r].shape});
  return out;
}

Request Compiled::request() const { return Request(std::make_shared<Request::State>(shared_from_this())); }

RequestPool::Lent::Lent(RequestPool& pool, const Compiled& compiled) : pool_(pool) {
  {
    const Quiescence::Undisturbed here;
    if (!pool_.idle_.empty()) one_.splice(one_.begin(), pool_.idle_, pool_.idle_.begin());
  }
  if (one_.empty()) one_.push_back(compiled.request());
  one_.front().reset_state();
}

RequestPool::Lent::~Lent() {
  auto& state = Inside::of(one_.front());
  for (std::size_t i = 0; i < state.inputs.size(); ++i) state.set_input(i, {});
  const Quiescence::Undisturbed here;
  pool_.idle_.splice(pool_.idle_.begin(), one_);
}

}  // namespace lamina
