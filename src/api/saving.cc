#include "api/saving.h"

#include <algorithm>
#include <new>

#include "graph/constants.h"
#include "kernels/onednn_isa.h"
#include "saved/engine.h"
#include "saved/libraries.h"
#include "saved/model.h"

namespace lamina {
namespace {

Isa needed_isa() { return std::max(effective_isa(), onednn_isa()); }

/// Constants of the plan that nothing reads but kernels that have packed them.
std::set<const void*> packed_constants(const Plan& plan, const std::set<const void*>& can_be_had) {
  std::map<ValueId, std::size_t> packed;  // how often it is read so
  for (const auto& step : plan.steps)
    for (const auto i : step.packed) {
      const auto v = plan.graph.node(step.node).inputs[i];
      if (plan.graph.constant(v) && step.in[i] == kNoTensor) ++packed[v];
    }
  std::set<const void*> out;
  for (const auto& [v, times] : packed)
    if (const auto* constant = plan.graph.constant(v);
        times == plan.graph.readers(v) && can_be_had.contains(constant->raw()))
      out.insert(constant->raw());
  // A tensor may be there under several names, which others read: in bodies, and in what waits for shapes,
  // too.
  for (std::uint32_t v = 0; v < plan.graph.value_slots(); ++v)
    if (const auto* constant = plan.graph.constant({v}); constant && !packed.contains({v}))
      out.erase(constant->raw());
  const auto read = [&](const Tensor& t) { out.erase(t.raw()); };
  for (const auto id : plan.graph.order())
    for (const auto& body : plan.graph.node(id).bodies) for_constants(body, read);
  if (plan.rest) for_constants(*plan.rest, read);
  return out;
}

std::vector<Packing> packings_of(const Saving& saving, const Program& program) {
  if (saving.options.cache_mode == CacheMode::size) return {};
  auto packings = program.packings();
  if (saving.before)
    for (auto& p : saving.before->packings()) packings.push_back(std::move(p));
  return packings;
}

/// A plan of the file that something came from.
struct Kept {
  SavedCompiled::PlanKey key;
  KeptPlan plan;
  std::set<const void*> hollow;  ///< constants without data
};

/// The plans of the file without those that the program has itself. `of_model`: constants that need not be
/// kept.
template <class Plans>
std::vector<Kept> kept_plans(const Saving& saving, const Plans& own, int threads,
                             const std::set<const void*>& of_model) {
  std::vector<Kept> out;
  if (!saving.before) return out;
  for (const auto& key : saving.before->keys()) {
    if (key.threads == threads && own.contains(key.key)) continue;
    out.push_back({key, saving.before->plan(key), {}});
    for_constants(out.back().plan.graph, [&](const Tensor& t) {
      if (saving.before->known(t) || of_model.contains(t.raw())) out.back().hollow.insert(t.raw());
    });
  }
  return out;
}

/// Adds the shapes of the graph's first inputs, which are the model's, unless they are there or not all
/// known.
void add_shapes(std::vector<InputShapes>& to, const Graph& plan, std::size_t inputs) {
  if (plan.inputs().size() < inputs) return;
  InputShapes shapes;
  for (std::size_t i = 0; i < inputs; ++i) {
    const auto& shape = plan.type(plan.inputs()[i]).shape;
    if (!shape.known()) return;
    shapes.push_back(shape.sizes());
  }
  if (std::find(to.begin(), to.end(), shapes) == to.end()) to.push_back(std::move(shapes));
}

/// The shapes of inputs that whole plans are for. `plans`: in the order of their keys. The key of a part that
/// waits for shapes begins with that of the plan which it is a part of.
std::vector<InputShapes> planned_shapes(const std::vector<PlanToSave>& plans, std::size_t inputs) {
  std::vector<InputShapes> out;
  const std::string* whole = nullptr;
  for (const auto& plan : plans) {
    if (whole && plan.key != *whole && plan.key.starts_with(*whole)) continue;
    whole = &plan.key;
    add_shapes(out, *plan.graph, inputs);
  }
  return out;
}

}  // namespace

std::optional<Hash128> key_of(const LoadedModel& model, const Options& options, const HashMemo& memo) {
  const auto& file = model.compiled();
  if (file && decide_alike(options, options_of(*file)) && file->header().needs == needed_isa())
    return file->header().key;
  Hasher hasher;
  hasher.text(engine_name());
  hasher.text(name_of(effective_isa()));
  hasher.text(name_of(onednn_isa()));
  if (file) hasher.text(to_string(file->header().key));
  for (const auto& part : model.parts()) {
    const auto content = memo.content_of(*part.file);
    if (!content) return std::nullopt;
    hasher.text(part.role);
    hasher.hash(*content);
  }
  for (const auto& name : model.settable()) hasher.text(name);
  for (const auto& [name, shape] : shapes_of(model.input_shapes()))
    hasher.text(fmt::format("{}={}", name, to_string(shape)));
  add_libraries(hasher, *model.described().extensions);
  add_deciding(hasher, options);
  return hasher.result();
}

CompiledFileWriter file_of(const Saving& saving, const Program& program, bool whole) {
  const auto cache = program.cache();
  const auto all = cache->all();
  const auto packings = packings_of(saving, program);
  const bool small = saving.options.cache_mode == CacheMode::size;
  std::set<const void*> sources, of_model;  // without packings the model's own constants serve
  for (const auto& p : packings) sources.insert(p.source.raw());
  if (small) of_model = constants_of(program.whole());
  std::vector<PlanToSave> plans;
  for (const auto& [key, planned] : all)
    plans.push_back({key, program.threads(), &planned->plan->graph, &planned->plan->recipes,
                     small ? of_model : packed_constants(*planned->plan, sources)});
  const auto kept = kept_plans(saving, all, program.threads(), of_model);  // that this program has not used
  for (const auto& k : kept)
    plans.push_back({k.key.key, k.key.threads, &k.plan.graph, &k.plan.recipes, k.hollow});
  std::sort(plans.begin(), plans.end(), [](const auto& a, const auto& b) {
    return std::tie(a.key, a.threads) < std::tie(b.key, b.threads);
  });

  ProgramToSave made;
  made.options = deciding(saving.options);
  made.facts = saving.before ? saving.before->facts() : saving.rewriting->get().facts;
  made.times = saving.before           ? saving.before->times()
               : !saving.times.empty() ? saving.times
               : !all.empty()          ? times_alone(*all.begin()->second->plan)
                                       : std::vector<StepTimeAlone>();
  made.graph = &program.graph();
  made.variables = &program.variables();
  if (program.initial_values()) made.initial = &program.initial_values()->graph();
  CompiledFileWriter file;
  write_model(file, saving.model->loaded(), whole, planned_shapes(plans, saving.model->inputs().size()));
  write_compiled(file, made, plans, packings, saving.before.get());
  return file;
}

bool as_it_was_read(const LoadedModel& model) {
  return std::all_of(model.parts().begin(), model.parts().end(),
                     [](const auto& part) { return unchanged(*part.file); });
}

FileHeader header_of(const Hash128& key) { return {engine_name(), needed_isa(), key}; }

void require_isa(const CompiledFile& file, const Machine& machine) {
  const auto needs = file.header().needs;
  if (needs > effective_isa() || needs > onednn_isa())
    fail(ErrorCode::unsupported, "{}: needs {}, this process may use {}", file.path(), name_of(needs),
         name_of(std::min(effective_isa(), onednn_isa())));
  if (options_of(file).precision == Precision::bf16)
    if (const auto verdict = multiplies_bf16(machine); !verdict)
      fail(ErrorCode::unsupported, "{}: needs bf16 instructions: {}", file.path(), verdict.reason());
}

void EntryKeeper::keep(const std::shared_ptr<const Program>& program) {
  program_ = program;
  there_ = saving_.before != nullptr;
  if (there_) most_ -= std::min(most_, saving_.before->keys().size());
}

void EntryKeeper::store() {
  if (mutex_.is_held_here()) return;  // a log callback has made another plan: the next time has it, too
  const ForkSafeMutex::Lock here(mutex_);
  const auto program = program_.lock();
  if (!program || (there_ && (stored_ >= most_ || program->made_plans() <= stored_))) return;
  stored_ = program->made_plans();
  there_ = true;
  try {
    const bool whole = saving_.options.cache_mode == CacheMode::speed;
    const auto file = file_of(saving_, *program, whole);
    // The entry would be found by the content that the model had before.
    if (!as_it_was_read(*saving_.model)) return log_.warning("cache: not kept: the model's file was changed");
    folder_->store(file, header_of(key_));
  } catch (const Error& e) {
    warn(e.what());
  } catch (const std::bad_alloc&) {
    warn("not kept: out of memory");
  }
}

/// The run that called this has its plan: it continues even if there is no memory for the warning.
void EntryKeeper::warn(const char* text) const {
  try {
    log_.warning("cache: {}", text);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace lamina
