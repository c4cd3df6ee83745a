#include "extension/samples.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/numbers.h"
#include "extension/attribute_text.h"
#include "extension/custom_op.h"
#include "ops/eval.h"

namespace lamina {
namespace {

struct Word {
  std::string name, value;
};

/// NAME=VALUE between spaces; VALUE may be in quotes.
std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> out;
  while (true) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    if (text.empty()) return out;
    const auto equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos ||
        text.substr(0, equals).find(' ') != std::string_view::npos)
      fail(ErrorCode::bad_file, "\"{}\": wanted NAME=VALUE", text.substr(0, 40));
    Word word{std::string(text.substr(0, equals)), {}};
    text.remove_prefix(equals + 1);
    const bool quoted = text.starts_with('"');
    if (quoted) text.remove_prefix(1);
    const auto end = std::min(text.find(quoted ? '"' : ' '), text.size());
    word.value = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    out.push_back(std::move(word));
  }
}

/// "f32[2,6]", "[2,6]" of the first type that the port takes, "i64[2](2,3)", "f32(0.5)".
struct SampleInput {
  ElementType type = ElementType::undefined;
  Dims dims;
  std::optional<Floats> values;
};

SampleInput input_of(const Word& word, const DeclaredPort& port) {
  std::string_view rest = word.value;
  const auto wrong = [&] {
    fail(ErrorCode::bad_file, "{}={}: wanted TYPE[SIZES](VALUES)", word.name, word.value);
  };
  const auto list_in = [&](char open, char close) -> std::optional<std::string> {
    if (!rest.starts_with(open)) return std::nullopt;
    const auto end = rest.find(close);
    if (end == std::string_view::npos) wrong();
    std::string out(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
    return out;
  };
  SampleInput out;
  const auto name = rest.substr(0, std::min(rest.find_first_of("[("), rest.size()));
  const auto type = name.empty() ? std::optional(port.types[0]) : element_type_named(name);
  if (!type) wrong();
  out.type = *type;
  rest.remove_prefix(name.size());
  if (const auto sizes = list_in('[', ']')) {
    const auto list = attribute_of_text(LAMINA_INTS, *sizes);
    if (!list) wrong();
    out.dims = std::get<Ints>(*list);
  }
  if (const auto values = list_in('(', ')')) {
    const auto list = attribute_of_text(LAMINA_FLOATS, *values);
    if (!list) wrong();
    out.values = std::get<Floats>(*list);
  }
  if (!rest.empty() || std::any_of(out.dims.begin(), out.dims.end(), [](auto d) { return d < 0; })) wrong();
  if (out.values && out.values->size() != element_count(out.dims)) wrong();
  return out;
}

/// The place of a port's input: inputs of a variadic port follow one another.
std::size_t place_of(std::size_t port, const DeclaredPort& declared, std::vector<ValueId>& in) {
  auto at = port;
  while (declared.variadic && at < in.size() && in[at].valid()) ++at;
  if (at >= in.size()) in.resize(at + 1);
  return at;
}

}  // namespace

Tensor seeded_tensor(ElementType type, const Dims& shape, std::uint64_t seed) {
  std::vector<double> values(element_count(shape));
  std::uint64_t state = seed * 2654435761u + 1;
  for (auto& v : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto unit = static_cast<double>(state >> 11) * 0x1p-53;
    v = is_float(type) ? 4 * unit - 2 : std::floor(3 * unit);
  }
  return from_doubles(type, shape, values);
}

Graph sample_graph(const std::shared_ptr<const DeclaredOperation>& op, const std::string& text) {
  Graph g;
  auto made = std::make_unique<CustomOp>(op);
  std::vector<ValueId> in;
  for (const auto& word : words_of(text)) {
    const auto port =
        std::find_if(op->in.begin(), op->in.end(), [&](const auto& p) { return p.name == word.name; });
    if (port == op->in.end()) {
      const auto a = std::find_if(op->attributes.begin(), op->attributes.end(),
                                  [&](const auto& d) { return d.name == word.name; });
      const auto value = a == op->attributes.end() ? std::optional<Attribute>(word.value)
                                                   : attribute_of_text(a->kind, word.value);
      if (!value) fail(ErrorCode::bad_file, "{}={}: wanted {}", word.name, word.value, name_of_kind(a->kind));
      made->set(word.name, *value);
      continue;
    }
    const auto given = input_of(word, *port);
    const auto at = place_of(static_cast<std::size_t>(port - op->in.begin()), *port, in);
    if (in[at].valid()) fail(ErrorCode::bad_file, "{} is given twice", word.name);
    if (given.values)
      in[at] = g.add_constant(from_doubles(given.type, given.dims, *given.values));
    else if (port->constant)
      in[at] = g.add_constant(seeded_tensor(given.type, given.dims, at + 17));
    else
      in[at] = g.add_input(fmt::format("{}{}", word.name, at), {given.type, Shape::of(given.dims)});
  }
  made->require_attributes();
  const auto node = g.add_node(Op(std::shared_ptr<const AnyOp>(std::move(made))), in, op->type,
                               static_cast<int>(op->out.size()));
  for (const auto v : g.node(node).outputs) g.add_result(g.value(v).name, v);
  return g;
}

namespace {

constexpr std::size_t kMostUsual = 300;

/// One way to fill in what the declaration leaves open.
struct Guess {
  ElementType type;
  std::string data, integer;
  bool optional;
};

std::string text_of(const DeclaredOperation& op, const Guess& guess) {
  std::string out;
  for (const auto& port : op.in) {
    if (port.optional && !guess.optional) continue;
    const auto type = port.takes(guess.type) ? guess.type : port.types[0];
    const auto word = fmt::format("{}={}{} ", port.name, name_of(type), guess.data);
    out += port.variadic ? word + word : word;
  }
  for (const auto& a : op.attributes) {
    if (a.value) continue;
    const auto value = a.kind == LAMINA_BOOL                                 ? "true"
                       : a.kind == LAMINA_STRING || a.kind == LAMINA_STRINGS ? "\"\""
                                                                             : guess.integer;
    out += a.name + "=" + value + " ";
  }
  if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace

Strings usual_samples(const DeclaredOperation& op) {
  const auto any = [](const auto& ports, auto member) {
    return std::any_of(ports.begin(), ports.end(), member);
  };
  if (any(op.in, [](const auto& p) { return p.constant; })) return {};
  const bool optional = any(op.in, [](const auto& p) { return p.optional; });
  const bool required = any(op.attributes, [](const auto& a) { return !a.value.has_value(); });
  const Strings data{"[2,6,3,5]", "[2,6,5]", "[4,6]", "[6]", "[]"};
  const auto types = op.in.empty() ? std::vector{ElementType::f32} : op.in[0].types;
  Strings out;
  for (const auto type : types)
    for (const bool with : optional ? std::vector{false, true} : std::vector{false})
      for (const auto& d : data)
        for (const auto* integer : required ? std::vector{"1", "2"} : std::vector{""}) {
          auto text = text_of(op, {type, d, integer, with});
          if (out.size() < kMostUsual && std::find(out.begin(), out.end(), text) == out.end())
            out.push_back(std::move(text));
        }
  return out;
}

}  // namespace lamina
