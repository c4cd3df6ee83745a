/// If. Branches return sequences as the values that they are made of.
#include "formats/onnx/build.h"
#include "formats/onnx/importer.h"
#include "formats/onnx/packed_sequence.h"
#include "ops/control.h"

namespace lamina::onnx {
namespace {

/// The outputs of a body, in its graph.
struct Branch {
  Graph body;
  Values outputs;
};

Branch read_branch(Call& c, const GraphProto& proto, const Captures& captured) {
  Branch branch;
  const BodyPlan plan{[](Graph&) { return Values{}; },
                      [&](Graph&, const Values& outputs) { branch.outputs = outputs; }};
  branch.body = c.importer().import_body(c.scope(), proto, captured, plan);
  return branch;
}

/// Makes both branches return the same form of sequence: adds its values to their results. Gives the
/// sequence that the If returns, its values still those of the first branch.
Sequence agreed(const Call& c, Branch& yes, Branch& no, std::size_t output) {
  const auto va = yes.outputs[output], vb = no.outputs[output];
  if (!is_sequence(yes.body, va) || !is_sequence(no.body, vb))
    c.unsupported("branches of which one returns a sequence or nothing, the other a tensor");
  auto a = sequence_of(yes.body, va), b = sequence_of(no.body, vb);
  const auto either = [&](SequenceForm form) { return a.form == form || b.form == form; };
  if (either(SequenceForm::absent)) {
    if (a.form != b.form) c.unsupported("an optional that has a value in one branch only");
    return a;
  }
  if (either(SequenceForm::open)) {
    const auto of_a = item_type(yes.body, a), of_b = item_type(no.body, b);
    const auto& known = of_a.shape.ranked() ? of_a : of_b;
    return {
        SequenceForm::open, {}, of_a.shape.ranked() && of_b.shape.ranked() ? common_item(of_a, of_b) : known};
  }
  if (a.form != SequenceForm::listed || b.form != SequenceForm::listed ||
      a.values.size() != b.values.size()) {
    const Building in_a(yes.body, c.importer().folding_budget), in_b(no.body, c.importer().folding_budget);
    const auto like_a = item_type(yes.body, a), like_b = item_type(no.body, b);
    a = packed(in_a, a, like_b);
    b = packed(in_b, b, like_a);
    a.item = common_item(a.item, b.item);
    if (!a.item.shape.ranked()) c.unsupported("a sequence whose elements have different ranks");
  }
  add_results(yes.body, a.values);
  add_results(no.body, b.values);
  return a;
}

Values convert_if(Call& c) {
  const auto* yes = c.body("then_branch");
  const auto* no = c.body("else_branch");
  if (yes->outputs.size() != c.outputs() || no->outputs.size() != c.outputs())
    c.fail("the branches have {} and {} outputs, the node {}", yes->outputs.size(), no->outputs.size(),
           c.outputs());
  if (const auto condition = c.known_number(c.in(0)))
    return c.importer().inline_body(c.scope(), *condition != 0 ? *yes : *no);
  const auto captured = c.importer().captures(c.scope(), {yes, no});
  auto first = read_branch(c, *yes, captured), second = read_branch(c, *no, captured);
  std::vector<std::optional<Sequence>> sequences(c.outputs());
  for (std::size_t i = 0; i < c.outputs(); ++i) {
    if (is_sequence(first.body, first.outputs[i]) || is_sequence(second.body, second.outputs[i])) {
      sequences[i] = agreed(c, first, second, i);
    } else {
      add_results(first.body, {first.outputs[i]});
      add_results(second.body, {second.outputs[i]});
    }
  }
  Values inputs{c.in(0)};
  for (auto v : captured_values(c.graph(), captured)) inputs.push_back(v);
  std::vector<Graph> bodies;
  for (auto* branch : {&first, &second}) {
    erase_sequences(branch->body);
    bodies.push_back(std::move(branch->body));
  }
  const auto results = bodies[0].results().size();
  const auto made = results == 0
                        ? Values{}
                        : c.add_all(If{}, std::move(inputs), static_cast<int>(results), std::move(bodies));
  Values out;
  auto next = made.begin();
  for (auto& s : sequences) {
    if (s)
      for (auto& v : s->values) v = *next++;
    out.push_back(s ? add_sequence(c.graph(), *s) : *next++);
  }
  return out;
}

}  // namespace

void register_conditional(ConverterTable& t) { t.add("If", convert_if); }

}  // namespace lamina::onnx
