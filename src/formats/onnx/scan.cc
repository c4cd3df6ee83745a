/// Scan: a Loop that slices its inputs.
#include "formats/onnx/build.h"
#include "formats/onnx/importer.h"
#include "formats/onnx/loops.h"
#include "ops/control.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

/// Sizes may change from one iteration to the next, the rank may not.
TensorType carried_type(const Call& c, ValueId initial) {
  const auto& type = c.type(initial);
  return {type.element, type.shape.ranked() ? Shape::of_rank(type.shape.rank()) : Shape()};
}

void check_carried(const Call& c, const Graph& body, const Loop& loop) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(loop.carried); ++i) {
    const auto& before = body.type(body.inputs()[2 + i]);
    const auto& after = body.type(body.results()[1 + i].value);
    if (before.shape.ranked() && (!after.shape.ranked() || before.shape.rank() != after.shape.rank()))
      c.unsupported("a carried value whose rank may change");
    if (before.element != after.element) c.unsupported("a carried value whose element type may change");
  }
}

/// A list attribute with one value for each of `wanted` things, 0 when it is absent.
Ints listed(const Call& c, std::string_view name, std::size_t wanted) {
  const auto values = c.ints(name, Ints(wanted, 0));
  if (values.size() != wanted) c.fail("{} has {} values, wanted {}", name, values.size(), wanted);
  return values;
}

/// The type of one slice of a scanned input, which keeps its axis.
TensorType slice_type(const Call& c, ValueId v, std::int64_t axis) {
  auto type = c.type(v);
  if (type.shape.ranked()) type.shape[c.axis(axis, type.shape.rank())] = Dim(1);
  return type;
}

/// A Scan's attributes as a Loop's.
Loop loop_of_scan(Call& c, std::size_t carried, std::size_t scanned, std::size_t joined) {
  Loop op;
  op.carried = static_cast<std::int64_t>(carried);
  op.slice_axes = listed(c, "scan_input_axes", scanned);
  for (std::size_t i = 0; i < scanned; ++i)
    if (auto& a = op.slice_axes[i]; a < 0)
      a = static_cast<std::int64_t>(c.axis(a, c.known_rank(c.in(carried + i))));
  for (auto d : listed(c, "scan_input_directions", scanned)) op.slice_strides.push_back(d == 1 ? -1 : 1);
  for (auto s : op.slice_strides) {
    op.slice_starts.push_back(s > 0 ? 0 : -1);
    op.slice_ends.push_back(s > 0 ? -1 : 0);
  }
  op.slice_part_sizes.assign(scanned, 1);
  op.concat_axes = listed(c, "scan_output_axes", joined);
  for (auto d : listed(c, "scan_output_directions", joined)) op.concat_strides.push_back(d == 1 ? -1 : 1);
  return op;
}

Values convert_scan(Call& c) {
  if (c.version() < 9) c.unsupported("Scan before opset 9");
  const auto* proto = c.body("body");
  const auto count = c.i("num_scan_inputs", 0);
  if (count < 1 || count > static_cast<std::int64_t>(c.inputs()))
    c.fail("num_scan_inputs is {}, the node has {} inputs", count, c.inputs());
  const auto scanned = static_cast<std::size_t>(count), carried = c.inputs() - scanned;
  if (proto->outputs.size() < carried || proto->outputs.size() != c.outputs())
    c.fail("the body has {} outputs, the node {} and {} states", proto->outputs.size(), c.outputs(), carried);
  auto op = loop_of_scan(c, carried, scanned, proto->outputs.size() - carried);
  const auto captured = c.importer().captures(c.scope(), {proto});
  BodyPlan plan;
  plan.begin = [&](Graph& body) {
    const auto name = [&](std::size_t i) {
      return i < proto->inputs.size() ? std::string(proto->inputs[i].name) : "";
    };
    body.add_input("iteration", {ElementType::i64, Shape(std::vector<Dim>{})});
    body.add_input("condition", {ElementType::boolean, Shape(std::vector<Dim>{})});
    Values own;
    for (std::size_t i = 0; i < carried; ++i)
      own.push_back(body.add_input(name(i), carried_type(c, c.in(i))));
    for (std::size_t i = 0; i < scanned; ++i) {
      const auto part =
          body.add_input(name(carried + i) + ".slice", slice_type(c, c.in(carried + i), op.slice_axes[i]));
      const auto axis =
          body.add_constant(Tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{op.slice_axes[i]}));
      own.push_back(body.add(Squeeze{}, {part, axis}));
    }
    return own;
  };
  plan.end = [&](Graph& body, const Values& outputs) {
    const auto middle = outputs.begin() + static_cast<std::ptrdiff_t>(carried);
    body.add_result("condition", body.add_constant(Tensor::scalar<bool>(true)));
    for (auto v = outputs.begin(); v != middle; ++v) body.add_result(body.value(*v).name, *v);
    add_stacked(body, Values(middle, outputs.end()), op.concat_axes);
  };
  std::vector<Graph> bodies;
  bodies.push_back(c.importer().import_body(c.scope(), *proto, captured, plan));
  check_carried(c, bodies[0], op);
  Values inputs{ValueId{}, ValueId{}};
  for (auto v : c.all_present()) inputs.push_back(v);
  for (auto v : captured_values(c.graph(), captured)) inputs.push_back(v);
  return c.add_all(op, std::move(inputs), static_cast<int>(c.outputs()), std::move(bodies));
}

}  // namespace

void register_scan(ConverterTable& t) { t.add("Scan", convert_scan); }

}  // namespace lamina::onnx
