/// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/reduction.h"

namespace lamina::onnx {
namespace {

/// Sum over all axes: a scalar.
ValueId total(Call& c, ValueId v) { return c.add(ReduceSum{}, {v, c.axes_from(v, 0)}); }

/// The shape [N, d...] of targets for an input [N, C, d...].
Shape shape_of_targets(const Shape& input) {
  if (!input.ranked()) return input;
  auto dims = input.dims();
  dims.erase(dims.begin() + 1);
  return Shape(std::move(dims));
}

/// Fails where target is not [N, d...] or weight not [C] for an input [N, C, d...], as far as shapes are
/// known.
void check_loss(const Call& c, const Shape& input, ValueId target, ValueId weight) {
  if (input.ranked() && input.rank() < 2)
    c.fail("the input has shape {}, wanted [N,C,...]", to_string(input));
  if (const auto wanted = shape_of_targets(input); !c.shape(target).fits(wanted))
    c.fail("target has shape {}, wanted {} for an input {}", to_string(c.shape(target)), to_string(wanted),
           to_string(input));
  if (!weight.valid()) return;
  const Shape classes{input.ranked() ? input[1] : Dim()};
  if (!c.shape(weight).fits(classes))
    c.fail("weight has shape {}, wanted {} for an input {}", to_string(c.shape(weight)), to_string(classes),
           to_string(input));
}

/// The first elements of a vector; fails at run time where it has fewer.
ValueId first_of(Call& c, ValueId vector, ValueId count) {
  const auto indices = c.add(Range{ElementType::i64}, {c.int_constant(0), count, c.int_constant(1)});
  return c.add(Gather{.out_of_range = OutOfRange::error}, {vector, indices, c.int_constant(0)});
}

/// The input's number for each target. GatherElements takes targets of no more than the input's size on each
/// axis; where they may be less, which is known at run time, the Reshape to the input's sizes fails.
ValueId picked_by(Call& c, ValueId input, ValueId target) {
  const auto picked = c.add(GatherElements{1}, {input, c.unsqueeze(target, {1})});
  if (c.shape(target).same(shape_of_targets(c.shape(input)))) return c.squeeze(picked, {1});
  const auto sizes = c.shape_of(input);
  return c.reshape(picked, c.concat({c.slice(sizes, 0, 0, 1), c.slice(sizes, 0, 2, INT64_MAX)}, 0));
}

/// The weight of each target's class. Where the number of weights is known at run time only, more than there
/// are classes count for nothing, and fewer are an error.
ValueId weights_of(Call& c, ValueId input, ValueId weight, ValueId target) {
  const Shape &all = c.shape(weight), &x = c.shape(input);
  if (!x.ranked() || !all.same(Shape{x[1]})) weight = first_of(c, weight, size_of(c, input, 1));
  return c.add(Gather{}, {weight, target, c.int_constant(0)});
}

/// The loss of each target [N, ...] is minus the log probability [N, C, ...] of its class, times the weight
/// of that class. Targets equal to the attribute ignore_index, which need not be a class, have loss and
/// weight 0; "mean" divides by the sum of the weights.
ValueId loss_of(Call& c, ValueId log_probabilities, ValueId target, ValueId weight) {
  const auto reduction = c.s("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none")
    c.fail("reduction is \"{}\", wanted none, sum or mean", reduction);
  check_loss(c, c.shape(log_probabilities), target, weight);
  target = c.convert(target, ElementType::i64);
  const auto type = c.known_element(log_probabilities);
  const auto zero = c.number(0, type);
  ValueId ignored;
  if (c.has_attribute("ignore_index")) {
    ignored = c.add(Equal{}, {target, c.int_constant(c.i("ignore_index", 0))});
    target = c.add(Select{}, {ignored, c.int_constant(0), target});
  }
  auto loss = c.add(Negative{}, {picked_by(c, log_probabilities, target)});
  ValueId weights;
  if (weight.valid()) {
    weights = weights_of(c, log_probabilities, weight, target);
    loss = multiply(c, loss, weights);
  }
  if (ignored.valid()) {
    loss = c.add(Select{}, {ignored, zero, loss});
    weights = c.add(Select{}, {ignored, zero, weights.valid() ? weights : c.number(1, type)});
  }
  if (reduction == "none") return loss;
  // What is summed up over all targets soon is beyond halves, whose largest number is 65504.
  const auto wide = type == ElementType::f64 ? type : ElementType::f32;
  loss = c.convert(loss, wide);
  if (reduction == "sum") return c.convert(total(c, loss), type);
  if (weights.valid()) return c.convert(divide(c, total(c, loss), total(c, c.convert(weights, wide))), type);
  return c.convert(c.add(ReduceMean{}, {loss, c.axes_from(loss, 0)}), type);
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
