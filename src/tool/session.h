#pragma once
/// A model read, compiled and ready, as most verbs need it.
#include "api/inside.h"
#include "tool/inputs.h"

namespace lamina::tool {

/// Reads the model that the command line names, and prints what its reader found odd.
Model open_model(const Common& common);

struct Session {
  Session(const Common& common, const InputOptions& inputs, Options options);

  Model model;
  std::vector<std::string> notes;  ///< inputs that were made up
  std::vector<Tensor> inputs;
  CompiledModel compiled;
  Request request;  ///< with the inputs set
  const Compiled& impl() const { return Inside::of(compiled); }
};

/// The graph with the shapes of --shape, types inferred anew. Throws Error(bad_input) for a wrong name or
/// shape.
Graph with_shapes(const Graph& graph, const Common& common);

/// How far two tensors are apart.
struct Difference {
  bool comparable = true;  ///< same type and shape
  bool within = true;      ///< f32: max <= 1e-4 + 1e-3 * largest (f16: 1e-3 + 1e-2); integers equal
  double max = 0, mean = 0, largest = 0, limit = 0;
  std::size_t mismatches = 0;  ///< integers that differ, values not finite in one only
  std::size_t undecided = 0;   ///< beyond the limit, but by what one rounding may change (tool/rounding.h)
};
/// `half`: the wider rule of half-precision tensors.
Difference difference(const Tensor& got, const Tensor& wanted, bool half = false);
std::string to_string(const Difference& d);

}  // namespace lamina::tool
