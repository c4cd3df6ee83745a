// Boxes, random numbers and state.
#include <numbers>

#include "formats/ir/write/legalise.h"
#include "ops/control.h"
#include "ops/detection.h"
#include "ops/elementwise.h"
#include "ops/generation.h"

namespace lamina::ir {
namespace {

/// Thresholds that are absent are 0; what stands behind the last one that is there may be absent.
std::vector<ValueId> suppression(Legalisation& c) {
  std::size_t count = c.inputs();
  while (count > 2 && !c.has(count - 1)) --count;
  bool complete = true;
  for (std::size_t i = 0; i < count; ++i) complete = complete && c.has(i);
  if (complete && count == c.inputs()) return {};
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < count; ++i)
    inputs.push_back(c.has(i) ? c.in(i)
                     : i == 2 ? c.integer(0, "boxes_per_class")
                              : c.number(0, ElementType::f32, fmt::format("threshold{}", i)));
  return c.add_many(c.op<NonMaxSuppression>(), std::move(inputs), c.outputs(), "kept");
}

/// Normal random numbers from two uniform ones, by the Box-Muller transform.
std::vector<ValueId> random_normal(Legalisation& c) {
  const auto& op = c.op<RandomNormal>();
  constexpr auto kFloat = ElementType::f32;
  const auto uniform = [&](std::int64_t further, double from, double to, const std::string& name) {
    RandomUniform random;
    random.output_type = kFloat;
    random.global_seed = op.global_seed;
    const bool seeded = op.global_seed != 0 || op.op_seed != 0;
    random.op_seed = seeded ? op.op_seed + further : 0;
    return c.add(
        random, {c.in(0), c.number(from, kFloat, name + "_low"), c.number(to, kFloat, name + "_high")}, name);
  };
  const ValueId logarithm = c.add(Log{}, {uniform(0, 1e-7, 1, "distance")}, "logarithm");
  const ValueId radius =
      c.add(Sqrt{}, {c.add(Multiply{}, {logarithm, c.number(-2, kFloat, "minus_two")}, "square")}, "radius");
  const ValueId angle = c.add(Cos{}, {uniform(10000, 0, 2 * std::numbers::pi, "angle")}, "cosine");
  const ValueId normal = c.add(Multiply{}, {radius, angle}, "normal");
  const ValueId mean = c.converted(c.scalar(c.in(1), "mean"), kFloat, "mean_f32");
  const ValueId deviation = c.converted(c.scalar(c.in(2), "deviation"), kFloat, "deviation_f32");
  const ValueId wide = c.add(Multiply{}, {normal, deviation}, "wide");
  return {c.converted(c.add(Add{}, {wide, mean}, "moved"), op.output_type, "random")};
}

std::vector<ValueId> read_value(Legalisation& c) {
  const auto& op = c.op<ReadValue>();
  if (!c.has(0) && op.variable_type == ElementType::undefined) c.refuse("a variable of unknown type");
  return {};
}

}  // namespace

void register_detection(LegalisationTable& t) {
  t.add("NonMaxSuppression", suppression);
  t.add("RandomNormal", random_normal);
  t.add("ReadValue", read_value);
}

}  // namespace lamina::ir
