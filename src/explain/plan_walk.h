#pragma once
/// A walk over plans, for whatever shows a run as a graph: a drawing, or an IR of what was executed.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace lamina {

/// Calls a function for each input, step and result in the order of execution, and for the nodes between them
/// for which nothing runs (views). These functions of a derived class add the parts of the graph that it
/// makes.
class PlanWalk {
 public:
  virtual ~PlanWalk() = default;

 protected:
  /// An output of a part: ports are counted without outputs that nobody needs.
  struct Origin {
    std::size_t part = 0, port = 0;
  };
  struct Read {
    Origin from;
    TensorType type;
  };
  using Reads = std::vector<Read>;

  /// The plan of a deferred subgraph follows the plan that it was deferred from. All other plans begin a run
  /// of their own.
  void walk(const std::vector<std::shared_ptr<const Plan>>& plans);

  /// Each of these returns the number of the part that it has added.
  virtual std::size_t add_input(const Graph& graph, ValueId input) = 0;
  virtual std::size_t add_constant(const Plan& plan, ValueId constant) = 0;
  virtual std::size_t add_step(const Plan& plan, const PlanStep& step, const Reads& reads) = 0;
  virtual std::size_t add_idle(const Plan& plan, NodeId node, const Reads& reads) = 0;
  /// `name`: of the output of the model.
  virtual void add_result(const std::string& name, const PlanTensor& tensor, const Origin& from) = 0;

 private:
  void begin_run(const Graph& graph);
  void begin_rest(const Plan& plan);
  void add_steps(const Plan& plan);
  void add_results(const Plan& plan);
  Origin origin_of(const Plan& plan, std::uint32_t tensor);
  Origin origin_of(const Plan& plan, ValueId value);
  void add_idle_node(const Plan& plan, NodeId node);

  std::vector<Origin> inputs_;        ///< of the current plan
  std::vector<std::size_t> results_;  ///< of the current plan: numbers of the model's outputs
  std::vector<std::string> names_;    ///< of the model's outputs
  std::map<std::uint32_t, Origin> by_tensor_;
  std::map<ValueId, Origin> by_value_;
};

}  // namespace lamina
