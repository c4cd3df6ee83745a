#pragma once
/// A quantised graph and its f32 graph in one, with switches between the two.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "quantise/counterparts.h"
#include "quantise/observe.h"

namespace lamina {

/// A value at which the two graphs meet.
struct Meeting {
  ValueId value;    ///< of the f32 graph
  ValueId on, off;  ///< in the switched graph: what the quantised model has, and f32 of the same operands
};

/// One place where the quantised model adds noise of its own.
struct NoiseSwitch {
  std::vector<Meeting> meetings;  ///< the outputs of one node, mostly one
  /// The noise is that of rounding to levels; otherwise that of computing the values, as a layer does with
  /// its weights.
  bool rounding = false;
  /// The values are known as levels only, so the rounding is part of computing them.
  bool only_levels = false;
  std::vector<NodeId> nodes = {};    ///< nodes of the f32 graph that compute the values; none for a rounding
  std::vector<ValueId> levels = {};  ///< values of the f32 graph that these nodes read as levels
  ValueId value() const { return meetings[0].value; }
};

/// The graph has an input for each switch behind the model's own: true takes the quantised model's value,
/// false f32. With all of them on it computes what the quantised model does, with all of them off what the
/// f32 model does (where every layer has a counterpart).
struct SwitchedGraph {
  Graph graph;
  std::vector<NoiseSwitch> switches;
};

/// `f32`: as prepared_f32() makes it. Throws Error(bad_input) naming the layer where the two do not fit, and
/// Error(unsupported) where state or random numbers have no counterpart.
SwitchedGraph make_switched(const Graph& quantised, const Graph& f32, const Counterparts& counterparts);

/// Which switches are on.
using Switched = std::vector<bool>;

/// The switched graph, compiled. One caller at a time.
class SwitchedRuns {
 public:
  /// `model`: the quantised one.
  SwitchedRuns(const Model& model, const SwitchedGraph& switched, const Running& running);
  /// The model's outputs; good until the next run.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const Switched& on);

 private:
  CompiledModel compiled_;
  Request request_;
  Tensor yes_, no_;
};

/// Inputs of the switched graph with all switches on.
std::vector<Tensor> with_all_on(std::vector<Tensor> inputs, const SwitchedGraph& switched);

}  // namespace lamina
