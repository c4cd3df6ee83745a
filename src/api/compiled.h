#pragma once
/// What stands behind the public CompiledModel.
#include <list>
#include <mutex>

#include "api/rewrite_model.h"
#include "exec/program.h"
#include "lamina/model.h"

namespace lamina {

class Compiled {
 public:
  /// `machine`: another one, to look at its plans; null: this one.
  Compiled(std::shared_ptr<const LoadedModel> model, const Options& options,
           std::shared_ptr<const Machine> machine = nullptr);

  const LoadedModel& model() const { return *model_; }
  const Options& options() const { return options_; }
  int threads() const { return program_->threads(); }
  /// The graph as it was read (in the precision that runs, with variables as inputs and results), and as it
  /// is planned.
  const Graph& original() const { return rewritten_.original; }
  const Graph& optimized() const { return program_->graph(); }
  const std::shared_ptr<const Program>& program() const { return program_; }
  /// What rewriting did when the model was compiled; what it did for the shapes of a plan says Plan::ledger.
  const Ledger& ledger() const { return rewritten_.ledger; }
  /// What happened to the model's precision, a sentence each; empty when nothing did.
  std::vector<std::string> precision_notes() const;
  /// Half-precision tensors of the model are computed in f32.
  bool widened() const { return rewritten_.widened; }
  /// The outputs for inputs of these shapes, -1 where a size depends on values.
  std::vector<Port> output_ports(const std::vector<Dims>& input_shapes) const;

  Request request() const;
  /// Requests that wait for calls of CompiledModel::operator().
  struct Pool {
    std::mutex mutex;
    std::list<Request> idle;
  };
  /// One from the pool, given back without its inputs when this goes.
  class Pooled {
   public:
    explicit Pooled(const Compiled& compiled);
    ~Pooled();
    Pooled(const Pooled&) = delete;
    Pooled& operator=(const Pooled&) = delete;
    Request* operator->() { return &one_.front(); }

   private:
    std::shared_ptr<Pool> pool_;
    std::list<Request> one_;
  };

 private:
  Denormals denormals() const;

  std::shared_ptr<const LoadedModel> model_;
  Options options_;
  RewrittenModel rewritten_;  // but for its model, which the program has
  std::shared_ptr<const Program> program_;
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
};

}  // namespace lamina
