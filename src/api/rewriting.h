#pragma once
/// The rewriting of a model: done when somebody asks for it.
#include <mutex>
#include <set>

#include "api/loaded_model.h"
#include "api/rewrite_model.h"
#include "base/once.h"

namespace lamina {

/// Thread-safe but for take() and forget().
class Rewriting {
 public:
  /// `machine`: null: this one.
  Rewriting(std::shared_ptr<const LoadedModel> model, Settings settings,
            std::shared_ptr<const Machine> machine, Logger log)
      : model_(std::move(model)),
        settings_(std::move(settings)),
        machine_(std::move(machine)),
        log_(std::move(log)) {}

  const RewrittenModel& get() const;
  /// Warns of rules that were left out, of each once.
  void warn_of_stopped(const Ledger& ledger) const;
  /// Moves the rewritten graph out, to the program that plans it.
  Stateless take();
  /// Forgets the weights of the graph as it was read.
  void forget();
  /// A large constant of the rewritten graph by its content, or an invalid tensor.
  Tensor constant(const Hash128& content) const;

 private:
  std::shared_ptr<const LoadedModel> model_;
  Settings settings_;
  std::shared_ptr<const Machine> machine_;
  Logger log_;
  mutable Once done_, indexed_;
  mutable RewrittenModel result_;
  mutable std::mutex mutex_;
  mutable std::set<std::string> warned_;  // rules
  mutable std::map<Hash128, Tensor> constants_;
};

}  // namespace lamina
