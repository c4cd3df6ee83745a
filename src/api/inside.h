#pragma once
/// The way from the public objects to what stands behind them, for the tool, tests and this room.
#include "api/compiled.h"
#include "api/loaded_model.h"
#include "exec/runner.h"
#include "lamina/model.h"

namespace lamina {

/// Every function throws Error(bad_call) for an object that was moved from.
struct Inside {
  static const LoadedModel& of(const Model& model);
  static std::shared_ptr<const LoadedModel> shared(const Model& model);
  static const Compiled& of(const CompiledModel& compiled);
  static const Runner& of(const Request& request);
  static Request::State& state(const Request& request);
};

/// "there is no input "y", there are: "x", "z""
std::size_t index_of(const std::vector<Port>& ports, std::string_view name, std::string_view what);
std::optional<std::size_t> find_port(const std::vector<Port>& ports, std::string_view name);

}  // namespace lamina
