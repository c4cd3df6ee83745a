#pragma once
/// A run against the reference interpreter: rewriting, kernels and whole outputs.
#include "check/bisect.h"
#include "check/judge.h"
#include "check/stored.h"

namespace lamina::checking {

/// A result of the run.
struct Output {
  std::string name;
  Tensor got;
  Tensor stored;  ///< what it was elsewhere; may be invalid
};

/// The run to check. The original graph must have its weights.
struct Run {
  const Graph& original;
  std::vector<Tensor> inputs;                      ///< of the original
  std::vector<std::shared_ptr<const Plan>> plans;  ///< Runner::plans
  std::vector<Output> outputs;                     ///< the first results of the original
  bool half = false;                               ///< the model is one of half precision
  /// The original with quantise steps that round to integers, where these are numbers of their own: between
  /// those layers nothing else has a name in both graphs. Empty: the original has them.
  std::function<Graph()> with_levels = {};
  /// For a run with bf16: a part's graph before the rule set `precision`. Then outputs are judged against the
  /// interpreter on the rewritten graph, conversions included.
  std::function<Graph(const RunPart&)> before_bf16 = {};
};

/// A result of a plan's step, on the interpreter's own inputs. `note`: why it is not compared; or empty.
struct LayerCheck {
  std::string name, op, kernel;
  Difference difference;
  std::string note = {};
  bool ok() const { return difference.within; }
};

/// A whole output. Where a model rounds to levels or chooses by scores, one rounding may change all that
/// follows: then the layers, one by one on what the layers before gave, must make the very same.
struct OutputCheck {
  std::string name, against;
  Difference difference;
  std::string note = {};  ///< why it is not compared: it depends on a custom layer that is not pure; or empty
  /// The agreement with a stored output, judged by check/stored.h.
  std::optional<Agreement> agreement = {};
  bool ok() const { return difference.within; }
};

struct Findings {
  std::vector<ValueCheck> values;
  std::vector<LayerCheck> layers;
  std::vector<OutputCheck> outputs;
  std::vector<OutputCheck> drifts;  ///< how far bf16 outputs are from f32; they are not judged
  std::vector<RunPart> wrong;  ///< in which rewriting made a wrong value; they refer to the run's original
  /// Number of results, values and outputs that are not ok.
  std::size_t faults() const;
};

/// `progress`: told what part is done.
Findings check_run(const Run& run, const std::function<void(double)>& progress = {});

}  // namespace lamina::checking
