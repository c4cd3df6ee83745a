/// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include "formats/onnx/build.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/reduction.h"

namespace lamina::onnx {
namespace {

/// Sum over all axes: a scalar.
ValueId total(Call& c, ValueId v) { return c.add(ReduceSum{}, {v, c.axes_from(v, 0)}); }

/// The loss of each target [N, ...] is minus the log probability [N, C, ...] of its class, times the weight
/// of that class. Targets equal to the attribute ignore_index, which need not be a class, have loss and
/// weight 0; "mean" divides by the sum of the weights.
ValueId loss_of(Call& c, ValueId log_probabilities, ValueId target, ValueId weight) {
  const auto reduction = c.s("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    c.fail("reduction is \"{}\", wanted none, sum or mean", reduction);
  const auto type = c.known_element(log_probabilities);
  const auto zero = c.number(0, type);
  ValueId ignored;
  if (c.has_attribute("ignore_index")) {
    ignored = c.add(Equal{}, {target, c.number_like(static_cast<double>(c.i("ignore_index", 0)), target)});
    target = c.add(Select{}, {ignored, c.number_like(0, target), target});
  }
  const auto picked = c.add(GatherElements{1}, {log_probabilities, c.unsqueeze(target, {1})});
  auto loss = c.add(Negative{}, {c.squeeze(picked, {1})});
  ValueId weights;
  if (weight.valid()) {
    weights = c.add(Gather{}, {weight, target, c.int_constant(0)});
    loss = multiply(c, loss, weights);
  }
  if (ignored.valid()) {
    loss = c.add(Select{}, {ignored, zero, loss});
    weights = c.add(Select{}, {ignored, zero, weights.valid() ? weights : c.number(1, type)});
  }
  if (reduction == "none") return loss;
  if (reduction == "sum") return total(c, loss);
  if (weights.valid()) return divide(c, total(c, loss), total(c, weights));
  return c.add(ReduceMean{}, {loss, c.axes_from(loss, 0)});
}

Values convert_nll_loss(Call& c) { return {loss_of(c, c.in(0), c.in(1), c.maybe(2))}; }

Values convert_cross_entropy_loss(Call& c) {
  const auto logarithms = c.add(LogSoftmax{1}, {c.in(0)});
  return {loss_of(c, logarithms, c.in(1), c.maybe(2)), logarithms};
}

}  // namespace

void register_loss(ConverterTable& t) {
  t.add("NegativeLogLikelihoodLoss", convert_nll_loss);
  t.add("SoftmaxCrossEntropyLoss", convert_cross_entropy_loss);
}

}  // namespace lamina::onnx
