#pragma once
/// Counterparts: which value of a quantised model stands for which value of the f32 model that it was made
/// of.
#include <map>
#include <set>
#include <vector>

#include "graph/graph.h"

namespace lamina {

/// What stands for a value of the f32 graph in the quantised graph, before and after rounding to levels.
struct Counterpart {
  ValueId computed;  ///< before rounding: the same but for noise; invalid if the quantised graph has no such
                     ///< value
  std::vector<ValueId> rounded;  ///< after rounding, as floats again; several if each reader has its own
};

struct Counterparts {
  std::map<ValueId, Counterpart> of;  ///< by value of the f32 graph; inputs and results are among them
  std::set<ValueId> quantised;        ///< all values of the quantised graph that are in `of`

  void forget(ValueId f32);
  const Counterpart* find(ValueId f32) const {
    const auto it = of.find(f32);
    return it == of.end() ? nullptr : &it->second;
  }
};

/// Values are found by names, as quantisers give them ("NAME_quantized", "NAME_QuantizeLinear_Output", ...);
/// layers whose values have other names are found by operator, shape and numbers of the weights. `f32`: as
/// prepared_f32() makes it. Throws Error(bad_input) if inputs or results of the two do not fit each other.
Counterparts find_counterparts(const Graph& quantised, const Graph& f32);

}  // namespace lamina
