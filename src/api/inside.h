#pragma once
/// The way from the public objects to what stands behind them, for the tool, tests and this module.
#include "api/compiled.h"
#include "api/loaded_model.h"
#include "exec/runner.h"
#include "lamina/model.h"

namespace lamina {

/// Every function throws Error(bad_call) for an object that was moved from.
struct Inside {
  static const LoadedModel& of(const Model& model);
  static std::shared_ptr<const LoadedModel> shared(const Model& model);
  /// The model with another graph.
  static Model changed(const Model& model, Graph graph);
  /// Compiles for another machine: the plans can be looked at, but not run.
  static CompiledModel compile_for(const Machine& machine, const Model& model, const Options& options);
  static const Compiled& of(const CompiledModel& compiled);
  /// Compiles the model once more, from the same file with the same options, and keeps its original weights.
  static CompiledModel with_weights(const CompiledModel& compiled, const ProgressCallback& progress,
                                    const std::stop_token& stop);
  static Request::State& of(const Request& request);
  static const Runner& runner_of(const Request& request);
};

}  // namespace lamina
