#pragma once
/// Which values of a quantised model stand for which values of the f32 model that it was made of.
#include <map>
#include <set>
#include <vector>

#include "graph/graph.h"

namespace lamina {

/// A value of the f32 graph in the quantised graph: before it is rounded to levels, and behind that.
struct Counterpart {
  ValueId computed;              ///< invalid where no value is the same but for noise
  std::vector<ValueId> rounded;  ///< the levels as floats again; several where each reader has its own
};

struct Counterparts {
  std::map<ValueId, Counterpart> of;  ///< by value of the f32 graph; inputs and results are among them
  std::set<ValueId> quantised;        ///< all values of the quantised graph that are in `of`

  const Counterpart* find(ValueId f32) const {
    const auto it = of.find(f32);
    return it == of.end() ? nullptr : &it->second;
  }
};

/// The graph has levels between its layers: it is quantised.
bool has_levels(const Graph& graph);

/// A convolution, product or recurrent layer with constant weights, which may be stored in few bits.
bool is_layer(const Graph& graph, NodeId node);

/// By names, as quantisers give them ("NAME_quantized", "NAME_QuantizeLinear_Output", ...); layers whose
/// values have other names by operator, shape and numbers of the weights. `f32`: as prepared_f32() makes it.
/// Throws Error(bad_input) where inputs or results of the two do not fit each other.
Counterparts find_counterparts(const Graph& quantised, const Graph& f32);

}  // namespace lamina
