#pragma once
/// What runs, step by step, with times: for benchmark, explain and drawings.
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <unordered_map>

#include "api/compiled.h"
#include "exec/runner.h"
#include "graph/work.h"
#include "lamina/model.h"

namespace lamina {

/// Sums of the times of steps over runs of requests that were compiled with Options::profile.
class Profile {
 public:
  /// After a run of the request that took so long from call to return.
  void add(const Request& request, double microseconds);
  void add(const Profile& other);

  std::size_t runs() const { return runs_; }
  /// Means per run, in microseconds.
  double whole() const { return runs_ ? whole_ / static_cast<double>(runs_) : 0; }
  double of(const PlanStep& step) const;
  /// Plans that were met, in the order of execution.
  const std::vector<std::shared_ptr<const Plan>>& plans() const { return plans_; }

 private:
  std::size_t runs_ = 0;
  double whole_ = 0;
  std::unordered_map<const PlanStep*, double> sums_;
  std::vector<std::shared_ptr<const Plan>> plans_;
};

/// Runs the request once unmeasured, then for about that long, at least three times. Throws Error(canceled)
/// when a stop is requested, from any thread.
Profile profile_runs(Request& request, double seconds, const std::stop_token& stop = {});

/// One step of a plan in words and figures.
struct LayerRow {
  const Plan* plan = nullptr;
  const PlanStep* step = nullptr;
  std::string name, op, kernel;
  std::string layout;     ///< "channels_last", "plain -> channels_last"
  std::string precision;  ///< "f32", "u8 -> f32"
  double microseconds = 0;
  NodeWork work;
  double pace = 1;  ///< multiply-adds of its operands in the time of one of f32

  /// The arithmetic of the layer as an equivalent amount of f32.
  double flops() const { return work.flops() / pace; }
};

LayerRow row_of(const Plan& plan, const PlanStep& step);
/// All steps in the order of execution.
std::vector<LayerRow> rows_of(const Profile& profile);
std::vector<LayerRow> rows_of(const std::vector<std::shared_ptr<const Plan>>& plans);

/// In which types the layers compute: steps that are no conversions, reorders or views, by what they read.
struct Precisions {
  std::map<std::string, std::size_t>
      layers;          ///< by type: floats, and products and poolings of 8-bit integers
  std::string reason;  ///< why not what was asked for, or empty
  bool bf16() const { return layers.contains("bf16"); }
};
Precisions precisions_of(const Compiled& compiled, const Request& request);
/// "bf16: 52 of 57 layers; f32: 5"
std::string to_string(const Precisions& precisions);

/// For a node of a plan without a step: where its result comes from.
std::string_view why_nothing_runs(const Node& node);

}  // namespace lamina
