/// Loop. Sequences go in and out of its body as the values that they are made of.
#include <map>

#include "formats/onnx/build.h"
#include "formats/onnx/importer.h"
#include "formats/onnx/packed_sequence.h"
#include "ops/control.h"
#include "ops/elementwise.h"

namespace lamina::onnx {
namespace {

/// A count below 0 is no iteration in ONNX, and no limit to our Loop.
ValueId trip_count(Call& c) {
  if (!c.has(0)) return {};
  const auto given = c.in(0);
  const auto known = c.known_number(given);
  if (known) return *known < 0 ? c.int_constant(0) : given;
  return c.add(Maximum{}, {given, c.number_like(0, given)});
}

/// Reads a Loop. Ranks of carried values, and the forms of carried sequences, may turn out to change in an
/// iteration: the body is read again then.
class LoopReading {
 public:
  explicit LoopReading(Call& c) : c_(c), proto_(*c.body("body")) {
    count_ = c.inputs() < 2 ? 0 : c.inputs() - 2;
    if (proto_.outputs.size() < 1 + count_ || proto_.outputs.size() - 1 < c.outputs())
      c.fail("the body has {} outputs, wanted one condition, {} carried values and {} outputs in all",
             proto_.outputs.size(), count_, c.outputs());
  }

  Values run() {
    const auto captured = c_.importer().captures(c_.scope(), {&proto_});
    for (std::size_t i = 0; i < count_; ++i) carried_.push_back(first_guess(i));
    constexpr int kMostPasses = 8;
    for (int pass = 0; pass < kMostPasses; ++pass) {
      auto listed = c_.importer().listed();
      read(captured);
      if (stable_) return add_loop(captured);
      c_.importer().take_back(std::move(listed));
    }
    c_.unsupported("a carried value whose type changes again and again");
  }

 private:
  /// A carried value: what the body has in its place. A sequence that the body only appends to is none: what
  /// is appended are outputs of the Loop.
  struct Carried {
    ValueId initial;
    bool is_sequence = false, appended = false;
    Sequence sequence;              // its form in the body; values of the body's graph
    std::vector<TensorType> types;  // of a tensor, or of the elements of a list
  };

  /// Sizes may change from one iteration to the next.
  static TensorType of_any_sizes(const TensorType& type) {
    return {type.element, type.shape.ranked() ? Shape::of_rank(type.shape.rank()) : Shape()};
  }

  Carried first_guess(std::size_t i) {
    Carried v;
    v.initial = c_.in(2 + i);
    v.is_sequence = is_sequence(c_.graph(), v.initial);
    if (!v.is_sequence) {
      v.types.push_back(of_any_sizes(c_.type(v.initial)));
      return v;
    }
    const auto s = sequence_of(c_.graph(), v.initial);
    v.sequence = {s.form, {}, item_type(c_.graph(), s)};
    if (s.form == SequenceForm::listed) {
      for (auto element : s.values) v.types.push_back(of_any_sizes(c_.type(element)));
      if (s.values.empty()) v.sequence.form = SequenceForm::open;
    } else if (s.form != SequenceForm::absent && s.form != SequenceForm::open) {
      v.sequence.form = SequenceForm::packed;
    }
    v.appended = s.form != SequenceForm::absent && only_appends(i);
    return v;
  }

  /// The body's output is its input with elements put behind it, and nothing else reads that.
  bool only_appends(std::size_t i) const {
    if (2 + i >= proto_.inputs.size()) return false;
    const auto reads = c_.importer().reads(proto_);
    const auto once = [&](std::string_view name) {
      const auto it = reads.find(name);
      return it != reads.end() && it->second == 1;
    };
    std::map<std::string_view, const NodeProto*> makers;
    for (const auto& n : proto_.nodes)
      for (auto name : n.outputs) makers.emplace(name, &n);
    auto name = proto_.outputs[1 + i].name;
    for (std::size_t steps = 0; steps <= proto_.nodes.size() && once(name); ++steps) {
      if (name == proto_.inputs[2 + i].name) return steps > 0;
      const auto maker = makers.find(name);
      if (maker == makers.end() || maker->second->op_type != "SequenceInsert") return false;
      const auto& inputs = maker->second->inputs;
      if (inputs.size() < 2 || (inputs.size() > 2 && !inputs[2].empty()) || inputs[0] == inputs[1])
        return false;
      name = inputs[0];
    }
    return false;
  }

  Values begin(Graph& body) {
    const auto name = [&](std::size_t i) {
      return i < proto_.inputs.size() ? std::string(proto_.inputs[i].name) : "";
    };
    const Shape scalar(std::vector<Dim>{});
    Values own{body.add_input(name(0), {ElementType::i64, scalar}),
               body.add_input(name(1), {ElementType::boolean, scalar})};
    for (std::size_t i = 0; i < count_; ++i) own.push_back(parameter(body, carried_[i], name(2 + i)));
    return own;
  }

  static ValueId parameter(Graph& body, const Carried& v, const std::string& name) {
    if (!v.is_sequence) return body.add_input(name, v.types[0]);
    auto s = v.sequence;
    if (v.appended) s = {SequenceForm::listed, {}, {s.item.element, {}}};
    if (!v.appended && s.form == SequenceForm::listed)
      for (const auto& type : v.types) s.values.push_back(body.add_input(name, type));
    if (!v.appended && s.form == SequenceForm::packed) {
      const auto rank = static_cast<std::int64_t>(s.item.shape.rank());
      s.values = {body.add_input(name, {s.item.element, Shape::of_rank(1)}),
                  body.add_input(name + ".sizes", {ElementType::i64, Shape{Dim(), Dim(rank)}})};
    }
    return add_sequence(body, s);
  }

  void read(const Captures& captured) {
    for (auto& v : carried_)
      if (v.is_sequence && !v.appended && v.sequence.form == SequenceForm::packed) require_ranked(v);
    op_ = {};
    stable_ = true;
    BodyPlan plan;
    plan.begin = [&](Graph& body) { return begin(body); };
    plan.end = [&](Graph& body, const Values& outputs) {
      for (std::size_t i = 0; i < count_; ++i)
        if (carried_[i].is_sequence)
          widen_sequence(body, carried_[i], outputs[1 + i]);
        else
          widen_tensor(carried_[i].types[0], body, outputs[1 + i]);
      if (stable_) end(body, outputs);
    };
    body_ = c_.importer().import_body(c_.scope(), proto_, captured, plan);
  }

  void require_ranked(const Carried& v) const {
    if (v.sequence.item.element == ElementType::undefined || !v.sequence.item.shape.ranked())
      c_.unsupported("a carried sequence with elements of different or unknown ranks");
  }

  void widen_tensor(TensorType& type, const Graph& body, ValueId next) {
    if (is_sequence(body, next))
      c_.fail("a carried value is a tensor before an iteration and a sequence after it");
    const auto& after = body.type(next);
    if (after.element == ElementType::undefined || type.element == ElementType::undefined)
      return;  // what makes it is listed
    if (type.element != after.element) c_.unsupported("a carried value whose element type may change");
    if (!type.shape.ranked() || (after.shape.ranked() && after.shape.rank() == type.shape.rank())) return;
    type.shape = {};
    stable_ = false;
  }

  void widen_sequence(const Graph& body, Carried& v, ValueId next) {
    if (!is_sequence(body, next)) c_.unsupported("a carried sequence that becomes a tensor or is not known");
    const auto after = sequence_of(body, next);
    if (v.appended) {
      if (after.form != SequenceForm::listed) v.appended = stable_ = false;
      return;
    }
    const auto form = v.sequence.form;
    if (form == SequenceForm::absent || after.form == SequenceForm::absent) {
      if (form != after.form) c_.unsupported("a carried optional that has a value in some iterations only");
    } else if (form == SequenceForm::listed && after.form == form && after.values.size() == v.types.size()) {
      for (std::size_t i = 0; i < v.types.size(); ++i) widen_tensor(v.types[i], body, after.values[i]);
    } else {
      widen_items(v, after, item_type(body, after));
    }
  }

  /// A sequence of any length, which a list becomes whose length changes.
  void widen_items(Carried& v, const Sequence& after, const TensorType& items) {
    const bool was_open = v.sequence.form == SequenceForm::open;
    const bool empty = after.form == SequenceForm::listed && after.values.empty();
    const bool nothing = empty || (after.form == SequenceForm::open && !items.shape.ranked());
    if (was_open && nothing) {
      v.sequence.form = SequenceForm::listed;  // it has no elements and gets none
      stable_ = false;
      return;
    }
    auto item = was_open ? items : nothing ? v.sequence.item : common_item(v.sequence.item, items);
    for (std::size_t i = 0; item.shape.ranked() && i < item.shape.rank(); ++i)
      if (!item.shape[i].known()) item.shape[i] = Dim();  // names and bounds are not written down
    if (v.sequence.form == SequenceForm::packed && item == v.sequence.item) return;
    v.sequence.form = SequenceForm::packed;
    v.sequence.item = std::move(item);
    stable_ = false;
  }

  void end(Graph& body, const Values& outputs) {
    const Building inside(body, c_.importer().folding_budget);
    body.add_result("condition", outputs[0]);
    Values appended;
    for (std::size_t i = 0; i < count_; ++i) {
      auto& v = carried_[i];
      if (!v.is_sequence) {
        add_results(body, {outputs[1 + i]});
        continue;
      }
      const auto after = sequence_of(body, outputs[1 + i]);
      if (v.appended) {
        const auto added = packed(inside, after);
        v.sequence.item = added.item;
        appended.insert(appended.end(), added.values.begin(), added.values.end());
      } else if (v.sequence.form == SequenceForm::packed) {
        add_results(body, packed(inside, after, v.sequence.item).values);
      } else if (v.sequence.form == SequenceForm::listed) {
        add_results(body, after.values);
      }
    }
    op_.carried = std::ssize(body.results()) - 1;
    const Values stacked(outputs.begin() + 1 + static_cast<std::ptrdiff_t>(count_), outputs.end());
    for (auto v : stacked)
      if (is_sequence(body, v)) throw NotSupported{"iterations that give a sequence each"};
    op_.concat_axes.assign(stacked.size(), 0);
    add_stacked(body, stacked, op_.concat_axes);
    add_results(body, appended);
    op_.concat_axes.insert(op_.concat_axes.end(), appended.size(), 0);
  }

  Values add_loop(const Captures& captured) {
    Values inputs{trip_count(c_), c_.maybe(1)};
    for (const auto& v : carried_)
      for (auto held : initial_values(v)) inputs.push_back(held);
    for (auto v : captured_values(c_.graph(), captured)) inputs.push_back(v);
    std::vector<Graph> bodies;
    const auto count = static_cast<int>(body_.results().size()) - 1;
    bodies.push_back(std::move(body_));
    const auto made = c_.add_all(op_, std::move(inputs), count, std::move(bodies));
    const auto stacked = proto_.outputs.size() - 1 - count_;
    auto next = made.begin();
    auto added = made.begin() + op_.carried + static_cast<std::ptrdiff_t>(stacked);
    Values out;
    for (const auto& v : carried_)
      out.push_back(v.is_sequence ? final_sequence(v, v.appended ? added : next) : *next++);
    out.insert(out.end(), next, next + static_cast<std::ptrdiff_t>(stacked));
    return out;
  }

  Values initial_values(const Carried& v) const {
    if (!v.is_sequence) return {v.initial};
    if (v.appended) return {};
    auto s = sequence_of(c_.graph(), v.initial);
    // The loop is in a body that will be read again: any sequence will do for now.
    if (s.form == SequenceForm::open) s = {SequenceForm::listed, {}, s.item};
    return v.sequence.form == SequenceForm::packed ? packed(c_, s, v.sequence.item).values : s.values;
  }

  ValueId final_sequence(const Carried& v, Values::const_iterator& next) const {
    auto s = v.sequence;
    if (v.appended) s.form = SequenceForm::packed;
    const auto count = s.form == SequenceForm::packed ? 2 : std::ssize(v.types);
    s.values.assign(next, next + count);
    next += count;
    const auto before = sequence_of(c_.graph(), v.initial);
    if (before.form == SequenceForm::open) {
      const bool changes = s.form == SequenceForm::packed;
      const auto item = !changes                     ? before.item
                        : before.item.shape.ranked() ? common_item(before.item, s.item)
                                                     : s.item;
      return add_sequence(c_.graph(), {SequenceForm::open, {}, item});
    }
    if (v.appended && !(before.form == SequenceForm::listed && before.values.empty()))
      s = chained(c_, packed(c_, before, s.item), s);
    return add_sequence(c_.graph(), s);
  }

  Call& c_;
  const GraphProto& proto_;
  std::size_t count_ = 0;  // carried values of the file
  std::vector<Carried> carried_;
  Loop op_;
  Graph body_;
  bool stable_ = true;
};

Values convert_loop(Call& c) { return LoopReading(c).run(); }

}  // namespace

void register_loop(ConverterTable& t) { t.add("Loop", convert_loop); }

}  // namespace lamina::onnx
