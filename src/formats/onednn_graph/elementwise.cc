/// Arithmetic of two tensors, comparisons, choices.
#include "ops/elementwise.h"

#include "formats/onednn_graph/call.h"

namespace lamina::onednn_graph {
namespace {

/// Checks that all operands have one shape if auto_broadcast is none.
void check_broadcast(const Call& c) {
  if (c.choice("auto_broadcast", "numpy", {"none", "numpy"}) == 1) return;
  for (std::size_t i = 1; i < c.inputs(); ++i)
    if (!c.shape(c.in(i)).fits(c.shape(c.in(0))))
      c.fail("inputs of shapes {} and {}, wanted one shape: attribute \"auto_broadcast\" is none",
             to_string(c.shape(c.in(0))), to_string(c.shape(c.in(i))));
}

template <class O>
Values binary(const Call& c) {
  c.in(1);
  check_broadcast(c);
  return {c.add(O{}, {c.in(0), c.in(1)})};
}

Values convert_select(const Call& c) {
  c.in(2);
  check_broadcast(c);
  return {c.add(Select{}, {c.in(0), c.in(1), c.in(2)})};
}

Values convert_bias_add(const Call& c) {
  const auto x = c.in(0), bias = c.in(1);
  const auto rank = c.known_rank(x);
  if (c.known_rank(bias) != 1)
    c.fail("the bias has shape {}, wanted an element for each channel", to_string(c.shape(bias)));
  return {c.add(Add{}, {x, c.channels_last() || rank < 3 ? bias : c.along_channels(bias, x)})};
}

}  // namespace

void register_elementwise(ConverterTable& t) {
  t.add("Add", binary<Add>);
  t.add("BiasAdd", convert_bias_add);
  t.add("Divide", binary<Divide>);
  t.add("GreaterEqual", binary<GreaterEqual>);
  t.add("Maximum", binary<Maximum>);
  t.add("Minimum", binary<Minimum>);
  t.add("Multiply", binary<Multiply>);
  t.add("Select", convert_select);
  t.add("SquaredDifference", binary<SquaredDifference>);
  t.add("Subtract", binary<Subtract>);
}

}  // namespace lamina::onednn_graph
