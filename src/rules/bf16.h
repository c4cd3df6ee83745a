#pragma once
/// Decides which nodes and values of a graph with known shapes may be bf16 (rule set `precision`). Products
/// (convolutions, matrix products) multiply bf16 numbers and give f32 sums; values between them are stored as
/// bf16 if all nodes that write and read them can handle that, and computed in f32. All other values stay
/// f32.
#include <functional>

#include "base/machine.h"
#include "graph/carried.h"
#include "graph/graph.h"
#include "rewrite/pattern.h"

namespace lamina::bf16 {

/// Convert from f32 to bf16, and back.
bool narrows(const Graph& graph, const Node& node);
bool widens(const Graph& graph, const Node& node);
/// The bf16 value that `v` widens; invalid where it does not.
ValueId narrow_value(const Graph& graph, ValueId v);
bool narrows_widened(const Graph& graph, const Node& node);

bool is_product(const Node& node);
/// Gives or moves elements of what it reads, or their means: what it reads and gives may be bf16 together.
bool passes_on(const Graph& graph, const Node& node);
/// What makes f32 values may store them as bf16: products and groups of element-wise operators.
bool may_store(const Graph& graph, const Node& node);

/// What a rule has to know of its match.
struct Context {
  const Graph& graph;
  const Machine& machine;
  std::function<bool(NodeId)> exempt;
  std::function<const std::string*(ValueId)> why_kept;
  explicit Context(const Match& match);
};

/// An f32 product that may multiply bf16 numbers: by its operands, whatever that gains.
Verdict may_multiply(const Context& context, NodeId product);
/// Estimated microseconds that this saves, conversions aside; and what it takes to convert a value.
double gain(const Machine& machine, const Graph& graph, const Node& product);
double conversion(const Machine& machine, const Graph& graph, ValueId v);

/// Values that decide shapes or the way of control flow, in this run or by what it hands to the next one, and
/// all that these are made of: nothing of it may be rounded.
KeptValues deciding_values(const Graph& graph, const std::vector<Carried>& carried);

/// Whether a value, with all others that are the same elements, may be bf16: a reason where it may not.
Verdict lies_between(const Context& context, ValueId v);

}  // namespace lamina::bf16
