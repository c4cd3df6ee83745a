/// Reads JSON into a GraphDef. This is the only unit of the readers that uses the JSON library.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/work_bounds.h"
#include "formats/onednn_graph/graph_def.h"
#include "formats/reading_points.h"
#include "graph/limits.h"

namespace lamina::onednn_graph {
namespace {

using Json = nlohmann::json;

template <class... A>
[[noreturn]] void bad(fmt::format_string<A...> text, A&&... args) {
  fail(ErrorCode::bad_file, text, std::forward<A>(args)...);
}

std::string_view kind_of(const Json& j) {
  return j.is_object() ? "an object" : j.is_array() ? "an array" : "null";
}

/// The text with quotes around inf and nan, which oneDNN writes as C++ prints them and JSON does not have;
/// empty when there are none.
std::string with_quoted_numbers(std::string_view text) {
  std::string out;
  std::size_t copied = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    note_read(1);
    if (text[i] == '"') inside = !inside;
    if (inside && text[i] == '\\') ++i;
    if (inside) continue;
    const auto rest = text.substr(i);
    if (!rest.starts_with("inf") && !rest.starts_with("nan")) continue;
    const auto begin = i > copied && (text[i - 1] == '-' || text[i - 1] == '+') ? i - 1 : i;
    out.append(text, copied, begin - copied);
    out += fmt::format("\"{}\"", text.substr(begin, i + 3 - begin));
    copied = i + 3;
    i += 2;
  }
  if (copied != 0) out.append(text.substr(copied));
  return out;
}

/// Deeper than the format nests values, which end at the shape of a tensor of an operation.
constexpr int kMostDepth = 32;

/// Characters that the library takes one by one, with stop points between them: it asks nobody in the midst
/// of white space, a string or a number.
class Characters {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  explicit Characters(const char* at) : at_(at) {}
  reference operator*() const { return *at_; }
  Characters& operator++() {
    if (--left_ == 0) {
      left_ = kPiece;
      stop_point();
    }
    ++at_;
    return *this;
  }
  Characters operator++(int) {
    const auto before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Characters& other) const { return at_ == other.at_; }

 private:
  static constexpr int kPiece = 1 << 14;
  const char* at_;
  int left_ = kPiece;
};

Json parse_json(std::string_view text) {
  const auto watch = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMostDepth) bad("JSON nests more than {} deep", kMostDepth);
    note_parsed(64);  // about what a value takes
    return true;
  };
  return Json::parse(Characters(text.data()), Characters(text.data() + text.size()), watch);
}

/// The reason of an exception, without the library's own names.
std::string reason_of(const Json::exception& e) {
  const std::string_view text = e.what();
  const auto end = text.find("] ");
  return std::string(end == std::string_view::npos ? text : text.substr(end + 2));
}

Json document(std::string_view text) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 28;
  if (text.size() > kMostBytes) bad("has {} bytes of JSON, wanted at most {}", text.size(), kMostBytes);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  try {
    return parse_json(text);
  } catch (const Json::exception& e) {
    const auto quoted = with_quoted_numbers(text);
    if (quoted.empty()) bad("is no JSON: {}", reason_of(e));
    try {
      return parse_json(quoted);
    } catch (const Json::exception&) {
      bad("is no JSON: {}", reason_of(e));
    }
  }
}

/// A value and where it is, of which words are made for errors only.
struct Place {
  const Json& value;
  std::string_view name;  ///< a key, or words for the whole; empty: an element of the parent
  const Place* parent = nullptr;
  std::size_t index = 0;

  std::string where() const {
    if (!parent) return std::string(name);
    return name.empty() ? fmt::format("{}[{}]", parent->where(), index)
                        : fmt::format("{}: {}", parent->where(), name);
  }
  template <class... A>
  [[noreturn]] void bad(fmt::format_string<A...> text, A&&... args) const {
    onednn_graph::bad("{}: {}", where(), fmt::format(text, std::forward<A>(args)...));
  }
  [[noreturn]] void wanted(std::string_view what) const { bad("is {}, wanted {}", shown(), what); }

  bool has(std::string_view key) const {
    if (!value.is_object()) wanted("an object");
    return value.contains(key);
  }
  Place at(std::string_view key) const {
    if (!has(key)) bad("has no \"{}\"", key);
    return {*value.find(key), key, this};
  }
  const Json::array_t& array() const {
    if (!value.is_array()) wanted("an array");
    return value.get_ref<const Json::array_t&>();
  }

  const std::string& text() const {
    if (!value.is_string()) wanted("a string");
    return value.get_ref<const std::string&>();
  }
  std::uint64_t id() const {
    if (!value.is_number_unsigned()) wanted("an id of 0 or more");
    return value.get<std::uint64_t>();
  }
  std::int64_t integer() const {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{INT64_MAX}))
      wanted("an integer of 64 bits");
    return value.get<std::int64_t>();
  }
  /// A number of f32.
  double number() const {
    if (value.is_number()) {
      const auto number = value.get<double>();
      if (std::abs(number) > double{std::numeric_limits<float>::max()}) wanted("a number of f32");
      return double{static_cast<float>(number)};
    }
    const auto word = value.is_string() ? value.get_ref<const std::string&>() : std::string();
    const bool negative = word.starts_with('-');
    const auto magnitude = word.substr(negative || word.starts_with('+') ? 1 : 0);
    if (magnitude == "inf") return negative ? -HUGE_VAL : HUGE_VAL;
    if (magnitude == "nan") return std::nan("");
    wanted("a number");
  }
  /// oneDNN writes 0 and 1, others words.
  bool flag() const {
    if (value.is_boolean()) return value.get<bool>();
    if (value == 0 || value == "0" || value == "false") return false;
    if (value == 1 || value == "1" || value == "true") return true;
    wanted("0 or 1");
  }

 private:
  std::string shown() const {
    if (value.is_null() || !value.is_primitive()) return std::string(kind_of(value));
    return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 40);
  }
};

template <class T, class F>
std::vector<T> all_of(const Place& list, F&& read) {
  std::vector<T> out;
  out.reserve(list.array().size());
  for (const auto& element : list.array()) {
    note_read(16);
    out.push_back(read(Place{element, {}, &list, out.size()}));
  }
  return out;
}

Attribute read_attribute(const Place& p) {
  const auto& type = p.at("type").text();
  const auto value = p.at("value");
  if (type == "string") return value.text();
  if (type == "bool") return value.flag();
  if (type == "s64") return value.integer();
  if (type == "f32") return value.number();
  if (type == "s64[]") return all_of<std::int64_t>(value, [](const Place& e) { return e.integer(); });
  if (type == "f32[]") return all_of<double>(value, [](const Place& e) { return e.number(); });
  p.bad("has the type \"{}\", wanted string, bool, s64, s64[], f32 or f32[]", type);
}

ElementType element_of(std::string_view dtype) {
  constexpr std::pair<std::string_view, ElementType> kTypes[] = {
      {"f32", ElementType::f32}, {"f16", ElementType::f16}, {"bf16", ElementType::bf16},
      {"s32", ElementType::i32}, {"s64", ElementType::i64}, {"boolean", ElementType::boolean},
      {"u8", ElementType::u8},   {"s8", ElementType::i8},   {"s4", ElementType::i4},
      {"u4", ElementType::u4}};
  for (const auto& [name, type] : kTypes)
    if (name == dtype) return type;
  return ElementType::undefined;
}

/// Sizes that oneDNN does not know are INT64_MIN; -1 in its first versions. One alone is an unknown rank.
Shape read_shape(const Place& p) {
  std::vector<Dim> dims;
  for (const auto d : all_of<std::int64_t>(p, [](const Place& e) { return e.integer(); })) {
    const bool known = d != INT64_MIN && d != -1;
    if (known && d < 0) p.bad("has the size {}, wanted 0 or more", d);
    dims.push_back(known ? Dim(d) : Dim());
  }
  if (dims.size() == 1 && !dims[0].known()) return {};
  Shape shape(std::move(dims));
  if (const auto reason = beyond_limits(shape); !reason.empty()) p.bad("{}", reason);
  return shape;
}

TensorDef read_tensor(const Place& p) {
  TensorDef t;
  t.id = p.at("id").id();
  const auto name = fmt::format("tensor {}", t.id);
  const Place named{p.value, name, p.parent};
  t.dtype = named.at("dtype").text();
  t.element = element_of(t.dtype);
  t.shape = read_shape(named.at("shape"));
  return t;
}

OpDef read_op(const Place& p) {
  OpDef op;
  op.id = p.at("id").id();
  op.kind = p.at("kind").text();
  if (op.kind.empty()) p.at("kind").bad("is empty, wanted an operation");
  if (p.has("name")) op.name = p.at("name").text();
  const auto name = label(op);
  const Place named{p.value, name};
  if (named.has("attrs")) {
    const auto attributes = named.at("attrs");
    if (!attributes.value.is_object()) attributes.wanted("an object");
    for (const auto& [key, value] : attributes.value.items())
      op.attributes.emplace(key, read_attribute({value, key, &attributes}));
  }
  op.inputs = all_of<TensorDef>(named.at("inputs"), read_tensor);
  op.outputs = all_of<TensorDef>(named.at("outputs"), read_tensor);
  return op;
}

std::vector<std::uint64_t> read_ports(const Place& p) {
  return all_of<std::uint64_t>(p, [](const Place& e) { return e.id(); });
}

}  // namespace

std::string label(const OpDef& op) {
  return op.name.empty() ? fmt::format("op {} ({})", op.id, op.kind)
                         : fmt::format("op {} \"{}\" ({})", op.id, op.name, op.kind);
}

bool looks_like_json(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const auto next = [&] {
    const auto at = text.find_first_not_of(" \t\r\n");
    const char c = at == std::string_view::npos ? '\0' : text[at];
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
    return c;
  };
  if (next() != '{') return false;
  const char second = next();
  return second == '"' || second == '}';
}

GraphDef parse_graph(std::string_view text) {
  const auto json = document(text);
  GraphDef graph;
  if (!json.is_object() || !json.contains("graph"))
    bad("is JSON without \"graph\", wanted a graph of oneDNN Graph");
  const Place top{json, "the file"};
  for (const auto& [key, value] : json.items())
    if (value.is_string()) graph.settings[key] = value.get<std::string>();
  if (const auto version = graph.settings.extract("version")) graph.version = version.mapped();
  if (top.has("input_ports")) graph.input_ports = read_ports(top.at("input_ports"));
  if (top.has("output_ports")) graph.output_ports = read_ports(top.at("output_ports"));
  graph.ops = all_of<OpDef>(Place{json.at("graph"), "graph"}, read_op);
  std::set<std::uint64_t> ids;
  for (const auto& op : graph.ops)
    if (!ids.insert(op.id).second) bad("{}: its id is that of another operation", label(op));
  return graph;
}

}  // namespace lamina::onednn_graph
