/// Sequences whose length is known while the model is read.
#include "formats/onnx/sequence.h"

#include <algorithm>
#include <array>

#include "formats/onnx/build.h"
#include "formats/onnx/importer.h"
#include "ops/control.h"
#include "ops/movement.h"

namespace lamina::onnx {
namespace {

constexpr std::string_view kSequence = "sequence";
constexpr std::size_t kLongest = 4096;

Values make_sequence(Call& c, Values elements) {
  if (elements.size() > kLongest)
    c.unsupported("a sequence of {} elements, more than {}", elements.size(), kLongest);
  auto& budget = c.importer().sequence_budget;
  if ((budget -= static_cast<int>(elements.size())) < 0) c.unsupported("too many sequences");
  for (auto v : elements)
    if (is_sequence(c.graph(), v)) c.fail("a sequence as an element of a sequence");
  return c.add_all(Opaque{"", std::string(kSequence), "", {}}, std::move(elements), 1);
}

Values elements_of(const Call& c, std::size_t input) {
  const auto v = c.in(input);
  if (!is_sequence(c.graph(), v)) {
    if (c.element(v) == ElementType::undefined) c.unsupported("a sequence that is not known");
    c.fail("input {} is a tensor, wanted a sequence", input);
  }
  return c.graph().node(c.graph().producer(v)).inputs;
}

/// Input 1 or 2 as an index into `size` elements (an insertion may also be behind the last).
std::size_t position(const Call& c, std::size_t input, std::size_t size, std::size_t most) {
  const auto given = c.known_ints(c.in(input));
  if (!given) c.unsupported("a position that is computed");
  if (given->size() != 1) c.fail("the position has {} elements, wanted 1", given->size());
  const auto count = static_cast<std::int64_t>(size);
  const auto at = (*given)[0];
  if (at < -count || at > static_cast<std::int64_t>(most))
    c.fail("position {} is outside of a sequence of {} elements", at, size);
  return static_cast<std::size_t>(at < 0 ? at + count : at);
}

Values convert_construct(Call& c) {
  if (c.inputs() == 0) c.fail("has no inputs");
  return make_sequence(c, c.all_present());
}

Values convert_empty(Call& c) { return make_sequence(c, {}); }

Values convert_insert(Call& c) {
  auto elements = elements_of(c, 0);
  const auto at = c.has(2) ? position(c, 2, elements.size(), elements.size()) : elements.size();
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(at), c.in(1));
  return make_sequence(c, std::move(elements));
}

/// The position of an element that is there, the last one by default.
std::size_t place_of(const Call& c, const Values& elements) {
  if (elements.empty()) c.fail("the sequence is empty");
  return c.has(1) ? position(c, 1, elements.size(), elements.size() - 1) : elements.size() - 1;
}

Values convert_erase(Call& c) {
  auto elements = elements_of(c, 0);
  elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(place_of(c, elements)));
  return make_sequence(c, std::move(elements));
}

Values convert_at(Call& c) {
  c.in(1);
  const auto elements = elements_of(c, 0);
  return {elements[place_of(c, elements)]};
}

Values convert_length(Call& c) {
  return {c.int_constant(static_cast<std::int64_t>(elements_of(c, 0).size()))};
}

Values convert_join(Call& c) {
  if (!c.has_attribute("axis")) c.fail("has no axis");
  auto parts = elements_of(c, 0);
  if (parts.empty()) c.fail("the sequence is empty");
  const auto axis = c.i("axis", 0);
  if (c.flag("new_axis"))
    for (auto& v : parts) v = c.unsqueeze(v, {axis});
  if (parts.size() == 1) {
    c.axis(axis, c.known_rank(parts[0]));
    return parts;
  }
  return {c.concat(std::move(parts), axis)};
}

/// Lengths of parts of `part` each, the last one smaller where that does not come out even.
Ints even_parts(const Call& c, std::int64_t size, std::int64_t part) {
  if (part < 1) c.fail("split is {}, wanted 1 or more", part);
  if (size / part > static_cast<std::int64_t>(kLongest))
    c.unsupported("a sequence of {} elements, more than {}", size / part, kLongest);
  Ints lengths(static_cast<std::size_t>(size / part), part);
  if (size % part != 0) lengths.push_back(size % part);
  return lengths;
}

Values convert_split_to_sequence(Call& c) {
  const auto x = c.in(0);
  const auto axis = static_cast<std::int64_t>(c.axis(c.i("axis", 0), c.known_rank(x)));
  const auto size = c.type(x).shape[static_cast<std::size_t>(axis)];
  Ints lengths;
  if (c.has(1)) {
    const auto split = c.known_ints(c.in(1));
    if (!split) c.unsupported("a split that is computed");
    lengths = *split;
    const auto rank = c.known_rank(c.in(1));
    if (rank > 1) c.fail("split has rank {}, wanted 0 or 1", rank);
    if (rank == 0) {
      if (!size.known()) c.unsupported("an axis of unknown size");
      lengths = even_parts(c, size.size(), lengths.at(0));
    }
  } else {
    if (!size.known()) c.unsupported("an axis of unknown size");
    lengths = even_parts(c, size.size(), 1);
  }
  for (auto length : lengths)
    if (length < 0) c.fail("split has {}, wanted 0 or more", length);
  if (lengths.empty()) return make_sequence(c, {});
  if (lengths.size() > kLongest)
    c.unsupported("a sequence of {} elements, more than {}", lengths.size(), kLongest);
  auto parts = c.add_all(VariadicSplit{}, {x, c.int_constant(axis), c.ints_constant(lengths)},
                         static_cast<int>(lengths.size()));
  if (!c.has(1) && !c.flag("keepdims", true))
    for (auto& v : parts) v = c.squeeze(v, {axis});
  return make_sequence(c, std::move(parts));
}

}  // namespace

bool is_sequence(const Graph& graph, ValueId v) {
  if (!v.valid()) return false;
  const auto producer = graph.producer(v);
  if (!producer.valid()) return false;
  const auto* op = graph.node(producer).op.as<Opaque>();
  return op != nullptr && op->type == kSequence && op->version.empty();  // those of files have a version
}

bool takes_sequences(std::string_view op_type) {
  constexpr std::array all{"ConcatFromSequence", "Identity",       "SequenceAt",
                           "SequenceErase",      "SequenceInsert", "SequenceLength"};
  return std::ranges::find(all, op_type) != all.end();
}

void refuse_sequences(const Graph& body, const Values& results) {
  for (auto v : results)
    if (is_sequence(body, v)) throw NotSupported{"a body that returns a sequence"};
}

void erase_sequences(Graph& graph) {
  for (auto n = static_cast<std::uint32_t>(graph.node_slots()); n-- > 0;) {
    const auto& node = graph.node({n});
    if (!node.erased() && is_sequence(graph, node.outputs[0]) && graph.readers(node.outputs[0]) == 0)
      graph.erase({n});
  }
}

void register_sequence(ConverterTable& t) {
  t.add("ConcatFromSequence", convert_join);
  t.add("SequenceAt", convert_at);
  t.add("SequenceConstruct", convert_construct);
  t.add("SequenceEmpty", convert_empty);
  t.add("SequenceErase", convert_erase);
  t.add("SequenceInsert", convert_insert);
  t.add("SequenceLength", convert_length);
  t.add("SplitToSequence", convert_split_to_sequence);
}

}  // namespace lamina::onnx
