/// SequenceMap: a body runs on the elements of one or more sequences.
#include "formats/onnx/importer.h"
#include "formats/onnx/packed_sequence.h"
#include "formats/onnx/sequence_operators.h"
#include "ops/control.h"

namespace lamina::onnx {
namespace {

const GraphProto& map_body(Call& c) {
  const auto* proto = c.body("body");
  if (proto->outputs.size() != c.outputs() || proto->inputs.size() != c.inputs())
    c.fail("the body has {} inputs and {} outputs, the node {} and {}", proto->inputs.size(),
           proto->outputs.size(), c.inputs(), c.outputs());
  return *proto;
}

/// The sequences are lists: the body is read once for each element.
Values map_lists(Call& c, const GraphProto& proto, std::size_t count) {
  std::vector<Values> made(c.outputs());
  for (std::size_t i = 0; i < count; ++i) {
    Values own;
    for (auto v : c.all())
      own.push_back(is_sequence(c.graph(), v) ? sequence_of(c.graph(), v).values.at(i) : v);
    const auto outputs = c.importer().inline_body(c.scope(), proto, own);
    for (std::size_t o = 0; o < made.size(); ++o) made[o].push_back(outputs[o]);
  }
  Values out;
  for (auto& elements : made) out.push_back(list_values(c, std::move(elements))[0]);
  return out;
}

/// Makes a Loop over the elements; its results are joined to packed sequences.
Values map_by_loop(Call& c, const GraphProto& proto) {
  const auto captured = c.importer().captures(c.scope(), {&proto});
  std::vector<TensorType> items;
  Loop op;
  BodyPlan plan;
  plan.begin = [&](Graph& body) {
    const auto iteration = add_counters(body);
    const Building inside(body, c.importer().folding_budget);
    Values own;
    for (std::size_t i = 0; i < c.inputs(); ++i) {
      const auto v = bring_in(body, c.graph(), c.in(i), proto.inputs[i].name);
      own.push_back(is_sequence(body, v) ? element_at(inside, sequence_of(body, v), iteration) : v);
    }
    return own;
  };
  plan.end = [&](Graph& body, const Values& outputs) {
    const Building inside(body, c.importer().folding_budget);
    body.add_result("condition", body.add_constant(Tensor::scalar<bool>(true)));
    for (auto v : outputs) {
      if (is_sequence(body, v)) throw NotSupported{"a sequence as an element of a sequence"};
      items.push_back(body.type(v));
      for (auto part : {numbers_of(inside, v), shape_row(inside, v)}) {
        body.add_result(body.value(part).name, part);
        op.concat_axes.push_back(0);
      }
    }
  };
  std::vector<Graph> bodies;
  bodies.push_back(c.importer().import_body(c.scope(), proto, captured, plan));
  Values inputs{length_of(c, sequence_in(c, 0)), {}};
  for (auto v : c.all())
    for (auto held : held_values(c.graph(), v)) inputs.push_back(held);
  for (auto v : captured_values(c.graph(), captured)) inputs.push_back(v);
  const auto made =
      c.add_all(op, std::move(inputs), static_cast<int>(op.concat_axes.size()), std::move(bodies));
  Values out;
  for (std::size_t o = 0; o < items.size(); ++o)
    out.push_back(sequence_values(c, {SequenceForm::packed, {made[2 * o], made[2 * o + 1]}, items[o]})[0]);
  return out;
}

Values convert_map(Call& c) {
  constexpr std::size_t kMostInlined = 10'000;
  const auto& proto = map_body(c);
  const auto first = sequence_in(c, 0);
  bool listed = first.form == SequenceForm::listed && !first.values.empty() &&
                first.values.size() * (proto.nodes.size() + 1) <= kMostInlined;
  for (auto v : c.all_present()) {
    if (!is_sequence(c.graph(), v)) continue;
    const auto s = sequence_of(c.graph(), v);
    if (s.form != SequenceForm::listed) listed = false;
    if (s.form == SequenceForm::listed && first.form == SequenceForm::listed &&
        s.values.size() != first.values.size())
      c.fail("sequences of {} and {} elements, wanted the same number", first.values.size(), s.values.size());
  }
  return listed ? map_lists(c, proto, first.values.size()) : map_by_loop(c, proto);
}

}  // namespace

void register_sequence_map(ConverterTable& t) { t.add("SequenceMap", convert_map); }

}  // namespace lamina::onnx
