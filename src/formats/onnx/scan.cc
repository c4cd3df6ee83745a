/// Scan: a Loop that slices its inputs.
#include "formats/onnx/build.h"
#include "formats/onnx/importer.h"
#include "ops/control.h"
#include "ops/shaping.h"

namespace lamina::onnx {
namespace {

/// Sizes may change from one iteration to the next, the rank may not.
TensorType carried_type(const TensorType& initial) {
  return {initial.element, initial.shape.ranked() ? Shape::of_rank(initial.shape.rank()) : Shape()};
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

/// A Scan's inputs: initial states, then what is scanned.
struct Scanned {
  const GraphProto* body = nullptr;
  std::vector<TensorType> types;
  std::size_t carried = 0;
  std::size_t scanned() const { return types.size() - carried; }
};

/// `first`: the first initial state.
Scanned scanned_inputs(Call& c, std::size_t first) {
  Scanned s;
  s.body = c.body("body");
  if (c.inputs() <= first) c.fail("has {} inputs, wanted {} or more", c.inputs(), first + 1);
  const auto inputs = c.inputs() - first;
  const auto count = c.i("num_scan_inputs", 0);
  if (count < 1 || count > static_cast<std::int64_t>(inputs))
    c.fail("num_scan_inputs is {}, the node has {} inputs", count, inputs);
  for (std::size_t i = first; i < c.inputs(); ++i) s.types.push_back(c.type(c.in(i)));
  s.carried = inputs - static_cast<std::size_t>(count);
  if (s.body->outputs.size() < s.carried || s.body->outputs.size() != c.outputs())
    c.fail("the body has {} outputs, the node {} and {} states", s.body->outputs.size(), c.outputs(),
           s.carried);
  return s;
}

/// The type of one slice of a scanned input, which keeps its axis.
TensorType slice_type(const Call& c, TensorType type, std::int64_t axis) {
  if (type.shape.ranked()) type.shape[c.axis(axis, type.shape.rank())] = Dim(1);
  return type;
}

/// A Scan's attributes as a Loop's.
Loop loop_of_scan(Call& c, const Scanned& s) {
  Loop op;
  const bool batched = c.version() < 9;
  const auto joined = s.body->outputs.size() - s.carried;
  op.carried = static_cast<std::int64_t>(s.carried);
  op.slice_axes = batched ? Ints(s.scanned(), 0) : listed(c, "scan_input_axes", s.scanned());
  for (std::size_t i = 0; i < s.scanned(); ++i)
    if (auto& a = op.slice_axes[i]; a < 0) {
      const auto& shape = s.types[s.carried + i].shape;
      if (!shape.ranked()) c.unsupported("a scanned input of unknown rank with an axis counted from the end");
      a = static_cast<std::int64_t>(c.axis(a, shape.rank()));
    }
  for (auto d : listed(c, batched ? "directions" : "scan_input_directions", s.scanned()))
    op.slice_strides.push_back(d == 1 ? -1 : 1);
  for (auto stride : op.slice_strides) {
    op.slice_starts.push_back(stride > 0 ? 0 : -1);
    op.slice_ends.push_back(stride > 0 ? -1 : 0);
  }
  op.slice_part_sizes.assign(s.scanned(), 1);
  op.concat_axes = batched ? Ints(joined, 0) : listed(c, "scan_output_axes", joined);
  for (auto d : batched ? Ints(joined, 0) : listed(c, "scan_output_directions", joined))
    op.concat_strides.push_back(d == 1 ? -1 : 1);
  return op;
}

Graph read_body(Call& c, const Scanned& s, const Captures& captured, Loop& op) {
  BodyPlan plan;
  plan.begin = [&](Graph& body) {
    const auto name = [&](std::size_t i) {
      return i < s.body->inputs.size() ? std::string(s.body->inputs[i].name) : "";
    };
    add_counters(body);
    Values own;
    for (std::size_t i = 0; i < s.carried; ++i)
      own.push_back(body.add_input(name(i), carried_type(s.types[i])));
    for (std::size_t i = 0; i < s.scanned(); ++i) {
      const auto part = body.add_input(name(s.carried + i) + ".slice",
                                       slice_type(c, s.types[s.carried + i], op.slice_axes[i]));
      const auto axis = body.add_constant(Tensor::of<std::int64_t>({1}, Ints{op.slice_axes[i]}));
      own.push_back(body.add(Squeeze{}, {part, axis}));
    }
    return own;
  };
  plan.end = [&](Graph& body, const Values& outputs) {
    const auto middle = outputs.begin() + static_cast<std::ptrdiff_t>(s.carried);
    body.add_result("condition", body.add_constant(Tensor::scalar<bool>(true)));
    add_results(body, Values(outputs.begin(), middle));
    add_stacked(body, Values(middle, outputs.end()), op.concat_axes);
  };
  auto body = c.importer().import_body(c.scope(), *s.body, captured, plan);
  check_carried(c, body, op);
  return body;
}

/// Opset 8 scans each element of a batch by itself: a Loop over those, in which the Scan is.
Values convert_batched_scan(Call& c) {
  if (c.has(0)) c.unsupported("Scan before opset 9 with lengths of sequences");
  auto s = scanned_inputs(c, 1);
  Loop outer;
  Graph body;
  add_counters(body);
  const auto axis = body.add_constant(Tensor::of<std::int64_t>({1}, Ints{0}));
  Values inputs{ValueId{}, ValueId{}}, inner{ValueId{}, ValueId{}};
  for (std::size_t i = 0; i < s.types.size(); ++i) {
    inputs.push_back(c.in(1 + i));
    inner.push_back(body.add(Squeeze{}, {body.add_input("", slice_type(c, s.types[i], 0)), axis}));
    s.types[i] = body.type(inner.back());
    outer.slice_axes.push_back(0);
  }
  const auto captured = c.importer().captures(c.scope(), {s.body});
  for (auto v : captured_values(c.graph(), captured)) {
    inputs.push_back(v);
    inner.push_back(body.add_input("", c.type(v)));
  }
  auto op = loop_of_scan(c, s);
  std::vector<Graph> bodies;
  bodies.push_back(read_body(c, s, captured, op));
  const auto count = static_cast<int>(c.outputs());
  const auto made = body.node(body.add_node(op, std::move(inner), {}, count, std::move(bodies))).outputs;
  body.add_result("condition", body.add_constant(Tensor::scalar<bool>(true)));
  outer.concat_axes.assign(made.size(), 0);
  add_stacked(body, made, outer.concat_axes);
  std::vector<Graph> around;
  around.push_back(std::move(body));
  return c.add_all(outer, std::move(inputs), count, std::move(around));
}

Values convert_scan(Call& c) {
  if (c.version() < 9) return convert_batched_scan(c);
  const auto s = scanned_inputs(c, 0);
  auto op = loop_of_scan(c, s);
  const auto captured = c.importer().captures(c.scope(), {s.body});
  std::vector<Graph> bodies;
  bodies.push_back(read_body(c, s, captured, op));
  Values inputs{ValueId{}, ValueId{}};
  for (auto v : c.all_present()) inputs.push_back(v);
  for (auto v : captured_values(c.graph(), captured)) inputs.push_back(v);
  return c.add_all(op, std::move(inputs), static_cast<int>(c.outputs()), std::move(bodies));
}

}  // namespace

void register_scan(ConverterTable& t) { t.add("Scan", convert_scan); }

}  // namespace lamina::onnx
