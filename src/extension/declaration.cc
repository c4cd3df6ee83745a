#include "extension/declaration.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/element_types.h"
#include "base/error.h"
#include "extension/attribute_text.h"

namespace lamina {
namespace {

constexpr std::size_t kMostEntries = 256;     // of a list
constexpr std::size_t kMostStruct = 1 << 16;  // bytes of a struct
constexpr std::size_t kMostName = 200;        // characters
constexpr std::int32_t kOfInput = 1024;       // LAMINA_TYPE_OF_INPUT(0)
constexpr std::array kTypes = {
    std::pair{LAMINA_BOOLEAN, ElementType::boolean}, std::pair{LAMINA_F16, ElementType::f16},
    std::pair{LAMINA_BF16, ElementType::bf16},       std::pair{LAMINA_F32, ElementType::f32},
    std::pair{LAMINA_F64, ElementType::f64},         std::pair{LAMINA_I8, ElementType::i8},
    std::pair{LAMINA_I16, ElementType::i16},         std::pair{LAMINA_I32, ElementType::i32},
    std::pair{LAMINA_I64, ElementType::i64},         std::pair{LAMINA_U8, ElementType::u8},
    std::pair{LAMINA_U16, ElementType::u16},         std::pair{LAMINA_U32, ElementType::u32},
    std::pair{LAMINA_U64, ElementType::u64}};

std::string text_of(const char* text) { return text ? std::string(text) : std::string(); }

/// Entries of an array whose structs may be of another size than ours.
template <class T>
std::vector<T> list_of(const T* first, std::size_t count, std::string_view what, Strings& ignored) {
  std::vector<T> out;
  if (count == 0) return out;
  if (!first) fail(ErrorCode::bad_file, "{}: a null pointer to {} entries", what, count);
  if (count > kMostEntries)
    fail(ErrorCode::bad_file, "{}: {} entries, at most {}", what, count, kMostEntries);
  const auto* bytes = reinterpret_cast<const char*>(first);
  for (std::size_t i = 0, size = first->struct_size; i < count; ++i)
    out.push_back(taken(reinterpret_cast<const T*>(bytes + i * size), what, ignored));
  return out;
}

std::string required_name(const char* text, std::string_view what) {
  auto name = text_of(text);
  if (name.empty()) fail(ErrorCode::bad_file, "{} has no name", what);
  if (name.size() > kMostName) fail(ErrorCode::bad_file, "{} has a name of {} bytes", what, name.size());
  return name;
}

std::vector<DeclaredPort> ports_of(const lamina_port* first, std::size_t count, std::string_view what,
                                   Strings& ignored) {
  std::vector<DeclaredPort> out;
  for (const auto& from : list_of(first, count, what, ignored)) {
    DeclaredPort port;
    port.name = required_name(from.name, fmt::format("{} {}", what, out.size()));
    port.doc = text_of(from.doc);
    port.optional = (from.flags & LAMINA_OPTIONAL) != 0;
    port.variadic = (from.flags & LAMINA_VARIADIC) != 0;
    port.constant = (from.flags & LAMINA_CONSTANT) != 0;
    for (const auto* t = from.types; t && *t != LAMINA_NO_TYPE; ++t) {
      if (type_of_border(*t) == ElementType::undefined || port.types.size() >= kTypes.size())
        fail(ErrorCode::bad_file, "{} \"{}\": there is no element type {}", what, port.name, *t);
      port.types.push_back(type_of_border(*t));
    }
    if (port.types.empty()) port.types = {ElementType::f32};
    if (!out.empty() && out.back().variadic)
      fail(ErrorCode::bad_file, "{} \"{}\" is variadic, and is not the last", what, out.back().name);
    if (!out.empty() && out.back().optional && !port.optional && !port.variadic && what == "output")
      fail(ErrorCode::bad_file, "{} \"{}\" is optional, and \"{}\" behind it is not", what, out.back().name,
           port.name);
    out.push_back(std::move(port));
  }
  return out;
}

std::vector<DeclaredAttribute> attributes_of(const lamina_operation& op, Strings& ignored) {
  std::vector<DeclaredAttribute> out;
  for (const auto& from : list_of(op.attribute, op.attributes, "attribute", ignored)) {
    DeclaredAttribute a;
    a.name = required_name(from.name, fmt::format("attribute {}", out.size()));
    a.doc = text_of(from.doc);
    a.kind = from.kind;
    if (a.kind < LAMINA_BOOL || a.kind > LAMINA_TENSOR)
      fail(ErrorCode::bad_file, "attribute \"{}\": there is no kind {}", a.name, a.kind);
    if (from.value) {
      a.value = attribute_of_text(a.kind, from.value);
      if (!a.value)
        fail(ErrorCode::bad_file, "attribute \"{}\": the default \"{}\" is not {}", a.name, from.value,
             name_of_kind(a.kind));
    }
    for (const auto& other : out)
      if (other.name == a.name) fail(ErrorCode::bad_file, "two attributes are called \"{}\"", a.name);
    out.push_back(std::move(a));
  }
  return out;
}

/// One list of a configuration; `fits` says which numbers it may hold.
template <class Fits>
std::vector<std::int32_t> numbers_of(const std::int32_t* from, std::size_t count, std::int32_t usual,
                                     std::size_t inputs, std::string_view what, const Fits& fits) {
  std::vector<std::int32_t> out(count, usual);
  for (std::size_t i = 0; from && i < count; ++i) {
    out[i] = from[i];
    const bool of_input = from[i] >= kOfInput && from[i] < kOfInput + static_cast<std::int32_t>(inputs);
    if (!of_input && !fits(from[i])) fail(ErrorCode::bad_file, "{} {}: there is no {}", what, i, from[i]);
  }
  return out;
}

DeclaredConfiguration configuration_of(const lamina_configuration& from, const DeclaredOperation& op,
                                       std::size_t index) {
  const auto is_type = [](std::int32_t t) {
    return t == LAMINA_ANY_TYPE || type_of_border(t) != ElementType::undefined;
  };
  const auto is_layout = [](std::int32_t l) {
    return l == LAMINA_ANY_LAYOUT || (l >= LAMINA_PLAIN && l <= LAMINA_BLOCKED_16);
  };
  const auto inputs = op.in.size();
  DeclaredConfiguration c;
  c.name = required_name(from.name, fmt::format("configuration {}", index));
  if (c.name.find_first_of(" \t\n,=") != std::string::npos)
    fail(ErrorCode::bad_file, "configuration \"{}\": wanted one word", c.name);
  c.in_types = numbers_of(from.in_types, inputs, LAMINA_ANY_TYPE, inputs, "type of input", is_type);
  c.in_layouts = numbers_of(from.in_layouts, inputs, LAMINA_PLAIN, inputs, "layout of input", is_layout);
  c.out_types = numbers_of(from.out_types, op.out.size(), LAMINA_ANY_TYPE, inputs, "type of output", is_type);
  c.out_layouts = numbers_of(from.out_layouts, op.out.size(), inputs == 0 ? LAMINA_PLAIN : kOfInput, inputs,
                             "layout of output", is_layout);
  if (from.in_place_pairs > kMostEntries || (from.in_place_pairs != 0 && !from.in_place))
    fail(ErrorCode::bad_file, "configuration \"{}\": {} pairs in place", c.name, from.in_place_pairs);
  for (std::size_t p = 0; p < from.in_place_pairs; ++p) {
    const auto in = from.in_place[2 * p], out = from.in_place[2 * p + 1];
    if (in < 0 || out < 0 || static_cast<std::size_t>(in) >= inputs ||
        static_cast<std::size_t>(out) >= op.out.size())
      fail(ErrorCode::bad_file, "configuration \"{}\": the pair {}, {} names no input and output", c.name, in,
           out);
    c.in_place.emplace_back(in, out);
  }
  c.nanoseconds = from.nanoseconds > 0 && from.nanoseconds < 1e9 ? from.nanoseconds : 0;
  c.run = from.run ? from.run : op.calls.run;
  c.accepts = from.accepts;
  if (!c.run) fail(ErrorCode::bad_file, "configuration \"{}\" has no kernel (run is null)", c.name);
  return c;
}

void add_configurations(DeclaredOperation& op, const lamina_operation& from, Strings& ignored) {
  for (const auto& c : list_of(from.configuration, from.configurations, "configuration", ignored)) {
    op.configurations.push_back(configuration_of(c, op, op.configurations.size()));
    for (std::size_t i = 0; i + 1 < op.configurations.size(); ++i)
      if (op.configurations[i].name == op.configurations.back().name)
        fail(ErrorCode::bad_file, "two configurations are called \"{}\"", op.configurations[i].name);
  }
  if (!op.configurations.empty() || !op.calls.run) return;
  const lamina_configuration usual{sizeof(usual), "plain", {}, {}, {}, {}, {}, 0, 0, nullptr, nullptr};
  op.configurations.push_back(configuration_of(usual, op, 0));
}

/// A word of the text form of graphs.
std::string word_of(const std::string& domain, const std::string& type) {
  std::string out = (domain.empty() ? "onnx" : domain) + "." + type;
  for (auto& c : out)
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '.') c = '_';
  return out[0] >= '0' && out[0] <= '9' ? "_" + out : out;
}

std::size_t needed(const std::vector<DeclaredPort>& ports) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (!ports[i].optional && !ports[i].variadic) count = i + 1;
  return count;
}

/// `op` stays where it is: names are views of its texts.
OpInfo info_of(const DeclaredOperation& op) {
  const auto many = [](const auto& ports) { return !ports.empty() && ports.back().variadic; };
  OpInfo info;
  info.min_inputs = static_cast<int>(needed(op.in));
  info.max_inputs = many(op.in) ? kMany : static_cast<int>(op.in.size());
  info.outputs = many(op.out) || needed(op.out) < op.out.size() ? kMany : static_cast<int>(op.out.size());
  auto traits = Trait::none;
  if (op.calls.elementwise) traits = traits | Trait::unary_elementwise;
  if (op.has(LAMINA_SHAPE_AFTER_RUN)) traits = traits | Trait::data_dependent;
  if (op.has(LAMINA_IMPURE)) traits = traits | Trait::impure;
  if (op.has(LAMINA_TAKES_STAGES)) traits = traits | Trait::epilogue | Trait::host;
  info.traits = traits;
  info.family = op.calls.elementwise ? OpFamily::activation : OpFamily::other;
  return info;
}

void check_sense(const DeclaredOperation& op) {
  if (!op.calls.run && !op.calls.reference && !op.calls.elementwise && op.configurations.empty())
    fail(ErrorCode::bad_file, "has neither run, reference nor elementwise");
  if (op.out.empty()) fail(ErrorCode::bad_file, "has no outputs");
  if (op.calls.prepare && !op.calls.prepared_bytes)
    fail(ErrorCode::bad_file, "has prepare but not prepared_bytes");
  if (op.calls.prepared_bytes && !op.calls.prepare)
    fail(ErrorCode::bad_file, "has prepared_bytes but not prepare");
  const int keeping =
      (op.calls.saved_bytes != nullptr) + (op.calls.save != nullptr) + (op.calls.load != nullptr);
  if (keeping != 0 && keeping != 3) fail(ErrorCode::bad_file, "has not all of saved_bytes, save and load");
  if (keeping != 0 && op.calls.elementwise) fail(ErrorCode::bad_file, "is element-wise and has load");
  if (op.has(LAMINA_SHAPE_AFTER_RUN) && (op.calls.elementwise || op.has(LAMINA_TAKES_STAGES)))
    fail(ErrorCode::bad_file, "has a shape that is known after the run, and is element-wise or takes stages");
  const bool one_to_one =
      op.in.size() == 1 && op.out.size() == 1 && !op.in[0].variadic && !op.out[0].variadic;
  if (op.calls.elementwise && (!one_to_one || op.has(LAMINA_IMPURE)))
    fail(ErrorCode::bad_file, "is element-wise, wanted one input, one output and no impurity");
  if (op.calls.elementwise && !op.calls.run && !op.calls.reference)
    for (const auto* port : {&op.in[0], &op.out[0]})
      for (const auto type : port->types)
        if (type != ElementType::f32 && type != ElementType::f16 && type != ElementType::bf16)
          fail(ErrorCode::bad_file, "\"{}\" takes {}, and the element-wise function f32 only", port->name,
               name_of(type));
  if (op.has(LAMINA_TAKES_STAGES) && (op.out.size() != 1 || op.in.empty() || op.in.back().variadic))
    fail(ErrorCode::bad_file, "takes stages, wanted one output and inputs that are not variadic");
}

}  // namespace

template <class T>
T taken(const T* from, std::string_view what, Strings& ignored) {
  if (!from) fail(ErrorCode::bad_file, "{}: a null pointer", what);
  const auto size = from->struct_size;
  if (size < sizeof(size) || size > kMostStruct)
    fail(ErrorCode::bad_file, "{}: struct_size is {}, wanted sizeof the struct", what, size);
  T out{};
  std::memcpy(&out, from, std::min(size, sizeof(T)));
  const auto* bytes = reinterpret_cast<const char*>(from);
  if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](char c) { return c != 0; }))
    ignored.push_back(
        fmt::format("{}: members behind the first {} bytes are not known to this engine", what, sizeof(T)));
  return out;
}
template lamina_operation taken(const lamina_operation*, std::string_view, Strings&);
template lamina_rule taken(const lamina_rule*, std::string_view, Strings&);
template lamina_library taken(const lamina_library*, std::string_view, Strings&);
template lamina_value taken(const lamina_value*, std::string_view, Strings&);

bool DeclaredPort::takes(ElementType type) const {
  return std::find(types.begin(), types.end(), type) != types.end();
}

ElementType DeclaredPort::as_taken(ElementType type) const {
  return is_half(type) && !takes(type) && takes(ElementType::f32) ? ElementType::f32 : type;
}

std::size_t DeclaredOperation::port_index(const std::vector<DeclaredPort>& ports, std::size_t i) {
  return i >= ports.size() && !ports.empty() && ports.back().variadic ? ports.size() - 1 : i;
}

const DeclaredPort* DeclaredOperation::port(const std::vector<DeclaredPort>& ports, std::size_t i) const {
  const auto at = port_index(ports, i);
  return at < ports.size() ? &ports[at] : nullptr;
}

DeclaredOperation operation_of(const lamina_operation* given, Strings& ignored) {
  const auto before = ignored.size();
  const auto from = taken(given, "operation", ignored);
  DeclaredOperation op;
  op.type = required_name(from.type, "an operation");
  op.domain = text_of(from.domain);
  if (op.domain == "ai.onnx") op.domain.clear();
  try {
    op.doc = text_of(from.doc);
    op.word = word_of(op.domain, op.type);
    op.since = from.since_version == 0 ? 1 : from.since_version;
    if (op.since < 0) fail(ErrorCode::bad_file, "since_version is {}", op.since);
    op.flags = from.flags;
    op.accumulates = type_of_border(from.accumulates);
    op.calls = from;
    op.calls.domain = op.calls.type = op.calls.doc = nullptr;
    op.calls.in = op.calls.out = nullptr;
    op.calls.attribute = nullptr;
    op.calls.configuration = nullptr;
    op.calls.samples = nullptr;
    for (const auto* const* s = from.samples; s && *s && op.samples.size() < kMostEntries; ++s)
      op.samples.emplace_back(*s);
    op.in = ports_of(from.in, from.inputs, "input", ignored);
    op.out = ports_of(from.out, from.outputs, "output", ignored);
    op.attributes = attributes_of(from, ignored);
    add_configurations(op, from, ignored);
    check_sense(op);
  } catch (const Error& e) {
    fail(e.code(), "operation \"{}\": {}", op.name(), e.what());
  }
  for (auto i = before; i < ignored.size(); ++i)
    ignored[i] = "operation \"" + op.name() + "\": " + ignored[i];
  op.info = info_of(op);
  return op;
}

DeclaredRule rule_of(const lamina_rule* given, Strings& ignored) {
  const auto from = taken(given, "rule", ignored);
  DeclaredRule rule;
  rule.name = required_name(from.name, "a rule");
  if (rule.name.find_first_of(" \t\n,=") != std::string::npos)
    fail(ErrorCode::bad_file, "rule \"{}\": wanted one word", rule.name);
  rule.doc = text_of(from.doc);
  rule.stage = from.stage;
  if (rule.stage < LAMINA_BEFORE_FOLD || rule.stage > LAMINA_AFTER_FUSING)
    fail(ErrorCode::bad_file, "rule \"{}\": there is no stage {}", rule.name, rule.stage);
  rule.pattern = text_of(from.pattern);
  rule.replacement = text_of(from.replacement);
  if (rule.pattern.empty() || rule.replacement.empty())
    fail(ErrorCode::bad_file, "rule \"{}\" has no {}", rule.name,
         rule.pattern.empty() ? "pattern" : "replacement");
  rule.accepts = from.accepts;
  return rule;
}

DeclaredLibrary library_of(const lamina_library* given, Strings& ignored) {
  const auto from = taken(given, "library", ignored);
  DeclaredLibrary out{text_of(from.name), text_of(from.version), text_of(from.licence), {}, false};
  for (const auto* const* need = from.needs; need && *need; ++need) {
    if (out.needs.size() == kMostEntries) fail(ErrorCode::bad_file, "needs more than {} names", kMostEntries);
    out.needs.emplace_back(*need);
  }
  out.never_unload = (from.flags & LAMINA_NEVER_UNLOAD) != 0;
  return out;
}

ElementType type_of_border(std::int32_t type) {
  for (const auto& [number, ours] : kTypes)
    if (number == type) return ours;
  return ElementType::undefined;
}

std::int32_t border_type(ElementType type) {
  for (const auto& [number, ours] : kTypes)
    if (ours == type) return number;
  return LAMINA_NO_TYPE;
}

std::string layout_text(std::int32_t layout) {
  switch (layout) {
    case LAMINA_PLAIN:
      return "plain";
    case LAMINA_CHANNELS_LAST:
      return "channels_last";
    case LAMINA_BLOCKED_8:
      return "blocked_8";
    case LAMINA_BLOCKED_16:
      return "blocked_16";
    case LAMINA_ANY_LAYOUT:
      return "any";
    default:
      return fmt::format("that of input {}", layout - kOfInput);
  }
}

}  // namespace lamina
