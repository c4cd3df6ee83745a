#pragma once
/// What stands behind the public CompiledModel.
#include <atomic>
#include <list>
#include <mutex>

#include "api/preparing.h"
#include "api/properties.h"
#include "api/resolve.h"
#include "api/saving.h"
#include "base/exiting.h"
#include "exec/program.h"
#include "exec/scheduler.h"
#include "lamina/model.h"

namespace lamina {

class Compiled : public std::enable_shared_from_this<Compiled> {
 public:
  /// `machine`: another one, to look at its plans; null: this one.
  Compiled(std::shared_ptr<const LoadedModel> model, const Options& options,
           std::shared_ptr<const Machine> machine = nullptr);

  const LoadedModel& model() const { return *model_; }
  /// The limits of all work on the model: of compiling, and of all its requests.
  const WorkBounds& bounds() const { return *bounds_; }
  /// The options as given, except that `precision` is the one in use, and `limits` include those of the
  /// model.
  const Options& options() const { return options_; }
  const Settings& settings() const { return resolved_.settings; }
  Scheduler& scheduler() const { return *scheduler_; }
  /// Must be called before the object is used: static objects must outlive other threads' work during exit().
  void notice_exit() const noexcept {
    if (!used_.load(std::memory_order_relaxed) && !used_.exchange(true)) lamina::notice_exit();
  }
  int threads() const { return program_->threads(); }
  std::vector<Property> properties() const;
  /// The graph as it was read (in the precision that runs, with variables as inputs and results), and as it
  /// is planned.
  const Graph& original() const { return rewriting_->get().original; }
  const Graph& optimized() const { return program_->graph(); }
  const std::shared_ptr<const Program>& program() const { return program_; }
  /// What rewriting did when the model was compiled; what it did for the shapes of a plan says Plan::ledger.
  const Ledger& ledger() const { return rewriting_->get().ledger; }
  /// What happened to the model's precision, a sentence each; empty when nothing did.
  std::vector<std::string> precision_notes() const;
  /// The precision that is used, and why it is another one than was asked for; or empty.
  Precision precision() const { return settings().precision; }
  std::string precision_reason() const;
  /// Half-precision tensors of the model are computed in f32.
  bool widened() const { return !rewriting_facts().widened.empty(); }
  /// True if the model was loaded from a compiled file, not rewritten and planned again.
  bool loaded_from_cache() const { return saved_ != nullptr; }
  /// False if the original weights were released, or were never read.
  bool has_weights() const { return options_.keep_weights && !saved_; }
  /// Compiled once more, from the same file with the same options, with its original weights.
  std::shared_ptr<const Compiled> compiled_with_weights(const ProgressCallback& progress,
                                                        const std::stop_token& stop) const;
  /// Makes the plan for inputs of these shapes now. Throws Error(bad_input).
  void plan_for(const std::vector<Dims>& input_shapes, const std::stop_token& stop) const;
  /// Into a file that is a model again. Throws Error(bad_file).
  void save(const std::string& path) const;
  /// The outputs for inputs of these shapes, -1 where a size depends on values.
  std::vector<Port> output_ports(const std::vector<Dims>& input_shapes) const;

  Request request() const;

 private:
  /// The rules by which `what` is stopped: by Options::stop, and by the time limit.
  StopRules rules(std::string_view what) const { return preparing_rules(what, stop_, options_.limits); }
  void compile_from(const Options& options, std::shared_ptr<const Machine> machine);
  const RewritingFacts& rewriting_facts() const;
  Denormals denormals() const;
  bool resolve_precision(const Options& options, const Machine& machine);
  void place(const std::function<std::vector<StepTimeAlone>()>& times);
  void make_program(ProgramOptions options, bool as_in_file);
  void compile(ProgramOptions options);
  void take_from(const std::shared_ptr<const CompiledFile>& file, ProgramOptions options);
  /// Why no cache folder is used; empty if one is.
  std::string why_not_kept() const;
  /// Takes the model from a cache entry. Returns the name of the entry, or why there was none.
  std::string take_from_cache(ProgramOptions& options);
  void save_to(const std::string& path) const;
  bool take_options(const Options& of_file, bool asked_nothing);
  void plan_as(const Program& other, const std::string& key, const Plan& plan) const;
  std::vector<Tensor> standing_for(const std::vector<Dims>& input_shapes) const;

  std::shared_ptr<const LoadedModel> model_;
  Options options_;
  std::shared_ptr<const WorkBounds> bounds_;
  TokenSignal stop_;
  ResolvedSettings resolved_;
  Logger log_;
  std::shared_ptr<Rewriting> rewriting_;
  std::shared_ptr<const SavedCompiled> saved_;  // where it came from, if not from rewriting
  std::string cache_reason_;                    // where it was found, or why not
  std::shared_ptr<EntryKeeper> keeper_;         // of CACHE_DIR, or null
  bool elsewhere_ = false;                      // planned for another machine
  mutable std::atomic<bool> used_{false};
  bool placed_ = false;  // resolved_ is decided
  std::shared_ptr<const Program> program_;
  std::unique_ptr<Scheduler> scheduler_;
};

/// Requests that wait for calls of CompiledModel::operator(). They keep the model alive, so it does not have
/// them.
class RequestPool {
 public:
  /// A request from the pool, which its destructor returns without the inputs.
  class Lent {
   public:
    Lent(RequestPool& pool, const Compiled& compiled);
    ~Lent();
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    Request* operator->() { return &one_.front(); }

   private:
    RequestPool& pool_;
    std::list<Request> one_;
  };

 private:
  std::list<Request> idle_;  // changed under Quiescence::Undisturbed: calls of models are no activities
};

}  // namespace lamina
