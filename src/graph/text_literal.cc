#include "graph/text_literal.h"

#include <bit>
#include <cstring>

#include "base/random.h"
#include "base/work_partition.h"
#include "graph/text_element.h"

namespace lamina::text {
namespace {

std::string dim_text(const Dim& dim) {
  if (dim.known()) return std::to_string(dim.size());
  std::string out = dim.name().empty() ? "" : quoted_if_needed(dim.name());
  if (dim.low() != 0 || dim.high() != Dim::kUnbounded)
    out += fmt::format("{}{}..{}", out.empty() ? "" : ":", dim.low(),
                       dim.high() == Dim::kUnbounded ? "" : std::to_string(dim.high()));
  return out.empty() ? "?" : out;
}

/// Attributes of floating point always look it.
std::string double_text(double v) {
  std::string out = float_text(ElementType::f64, std::bit_cast<std::uint64_t>(v));
  return out.find_first_of(".en") == std::string::npos ? out + ".0" : out;
}

std::uint64_t parse_element(Scanner& s, ElementType type) {
  const auto token = s.number("a number");
  const auto bits = parse_bits(token, type);
  if (!bits) s.fail("found \"{}\", wanted a value of {}", token.substr(0, 60), name_of(type));
  return *bits;
}

/// Calls item() for each of "[a, b, c]".
template <class F>
void parse_list(Scanner& s, std::string_view open, std::string_view close, F&& item) {
  s.expect(open);
  if (s.accept(close)) return;
  do {
    item();
  } while (s.accept(","));
  if (!s.accept(close)) s.unexpected(fmt::format("\",\" or \"{}\"", close));
}

Dim parse_bounds(Scanner& s, const std::string& name) {
  const auto low = s.digits("a size");
  if (name.empty() && !s.next_is("..")) {
    if (low == Dim::kUnbounded) s.fail("found the size {}, wanted one below 2^63 - 1", low);
    return low;
  }
  s.expect("..");
  const bool bounded = s.peek() >= '0' && s.peek() <= '9';
  const auto high = bounded ? s.digits("a size") : Dim::kUnbounded;
  if (low >= high) s.fail("found the bounds {}..{}, wanted the lower one first", low, high);
  return name.empty() ? Dim(low, high) : Dim::named(name, low, high);
}

Dim parse_dim(Scanner& s) {
  if (s.accept("?")) return {};
  if (!s.next_is_word() && !s.next_is_quoted()) {
    if (s.peek() < '0' || s.peek() > '9')
      s.unexpected("a dimension: a number, a name, ? or bounds such as 1..8");
    return parse_bounds(s, "");
  }
  const auto name = s.name("a dimension");
  return s.accept(":") ? parse_bounds(s, name) : Dim::named(name);
}

ElementType parse_element_type(Scanner& s) {
  const auto word = s.word("an element type such as f32");
  const auto type = element_type_named(word);
  if (!type) s.fail("found \"{}\", wanted an element type such as f32, i64 or boolean", word.substr(0, 60));
  return *type;
}

}  // namespace

std::string shape_text(const Shape& shape) {
  if (!shape.ranked()) return "[...]";
  std::string out = "[";
  for (std::size_t i = 0; i < shape.rank(); ++i) out += (i ? "," : "") + dim_text(shape[i]);
  return out + "]";
}

std::string type_text(const TensorType& type) {
  return std::string(name_of(type.element)) + shape_text(type.shape);
}

std::string ConstantWriter::operator()(const Tensor& t) {
  if (!t.valid()) return "none";
  std::string out = std::string(name_of(t.element_type())) + to_string(t.shape());
  if (self_contained_ || t.size() <= inline_elements_) {
    out += " {";
    for (std::size_t i = 0; i < t.size(); ++i) out += (i ? ", " : "") + element_text(t, i);
    return out + "}";
  }
  const auto [it, added] = offsets_.try_emplace({t.raw(), t.bytes()}, round_up(data_.size(), 64u));
  if (added) {
    data_.resize(it->second);
    data_.insert(data_.end(), t.raw(), t.raw() + t.bytes());
  }
  return out + fmt::format(" data({})", it->second);
}

namespace {

struct AttributePrinter {
  ConstantWriter& constants;
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return double_text(v); }
  std::string operator()(const std::string& v) const { return quoted(v); }
  std::string operator()(ElementType v) const { return std::string(name_of(v)); }
  std::string operator()(const Shape& v) const { return "shape" + shape_text(v); }
  std::string operator()(const Tensor& v) const { return "tensor " + constants(v); }
  template <class T>
  std::string operator()(const std::vector<T>& v) const {
    std::string out = "[";
    for (std::size_t i = 0; i < v.size(); ++i) out += (i ? "," : "") + (*this)(v[i]);
    return out + "]";
  }
};

}  // namespace

std::string attribute_text(const Attribute& value, ConstantWriter& constants) {
  return std::visit(AttributePrinter{constants}, value);
}

Shape parse_shape(Scanner& s) {
  std::vector<Dim> dims;
  bool ranked = true;
  parse_list(s, "[", "]", [&] {
    if (dims.empty() && s.accept("..."))
      ranked = false;
    else if (ranked)
      dims.push_back(parse_dim(s));
    else
      s.unexpected("\"]\"");
  });
  return ranked ? Shape(std::move(dims)) : Shape();
}

TensorType parse_type(Scanner& s) {
  const auto element = parse_element_type(s);
  return {element, parse_shape(s)};
}

ConstantParser::ConstantParser(std::span<const std::byte> data, std::size_t generated_elements)
    : data_size_(data.size()), generated_left_(generated_elements) {
  if (data.empty()) return;
  const auto copy =
      std::make_shared<Tensor>(ElementType::u8, Dims{static_cast<std::int64_t>(data.size())});  // aligned
  std::memcpy(copy->raw(), data.data(), data.size());
  data_ = std::shared_ptr<const std::byte>(copy, copy->raw());
}

Tensor ConstantParser::from_data(Scanner& s, ElementType type, const Dims& dims, std::size_t count) {
  const auto offset = s.unsigned_integer("an offset into the side file");
  s.expect(")");
  const auto bits = static_cast<std::size_t>(bits_of(type));
  const bool fits =
      offset <= data_size_ && count / 8 <= data_size_ && (count * bits + 7) / 8 <= data_size_ - offset;
  if (!fits)
    s.fail("constant {}{} at {} reaches beyond the side file of {} bytes", name_of(type), to_string(dims),
           offset, data_size_);
  if (count == 0) return Tensor(type, dims);
  return Tensor::share(type, dims, data_, data_.get() + offset);
}

Tensor ConstantParser::from_list(Scanner& s, ElementType type, const Dims& dims, std::size_t count) {
  std::vector<std::uint64_t> values;
  parse_list(s, "{", "}", [&] { values.push_back(parse_element(s, type)); });
  if (values.size() != count)
    s.fail("found {} values, wanted {} for {}{}", values.size(), count, name_of(type), to_string(dims));
  Tensor t(type, dims);
  for (std::size_t i = 0; i < count; ++i) put_bits(t, i, values[i]);
  return t;
}

void ConstantParser::generate(Scanner& s, std::size_t count) {
  if (count > generated_left_)
    s.fail("found a constant of {} elements, wanted at most {} more by seed() and fill()", count,
           generated_left_);
  generated_left_ -= count;
}

Tensor ConstantParser::parse(Scanner& s) {
  const auto type = parse_type(s);
  if (type.element == ElementType::undefined || !type.shape.known())
    s.fail("found a constant of type {}, wanted a known one", type_text(type));
  const auto dims = type.shape.sizes();
  std::size_t count = 0;
  try {
    count = element_count(dims);
  } catch (const Error& e) {
    s.fail("{}", e.what());
  }
  if (s.next_is("{")) return from_list(s, type.element, dims, count);
  const auto kind = s.word("{values}, data(offset), seed(number) or fill(value)");
  s.expect("(");
  if (kind == "data") return from_data(s, type.element, dims, count);
  Tensor t;
  if (kind == "seed") {
    const auto seed = s.unsigned_integer("a seed, 0 or more");
    generate(s, count);
    t = seeded_tensor(type.element, dims, seed);
  } else if (kind == "fill") {
    const auto value = parse_element(s, type.element);
    generate(s, count);
    t = Tensor(type.element, dims);
    for (std::size_t i = 0; i < count; ++i) put_bits(t, i, value);
  } else {
    s.fail("found \"{}\", wanted {{values}}, data(offset), seed(number) or fill(value)", kind.substr(0, 60));
  }
  s.expect(")");
  return t;
}

namespace {

double parse_double(Scanner& s, std::string_view wanted) {
  const auto token = s.number(wanted);
  const auto bits = parse_bits(token, ElementType::f64);
  if (!bits) s.fail("found \"{}\", wanted {}", token.substr(0, 60), wanted);
  return std::bit_cast<double>(*bits);
}

bool parse_bool(Scanner& s, std::string_view wanted) {
  if (s.accept_word("true")) return true;
  if (!s.accept_word("false")) s.unexpected(wanted);
  return false;
}

Tensor parse_tensor(Scanner& s, std::string_view wanted, ConstantParser& constants) {
  if (!s.accept_word("tensor")) s.unexpected(wanted);
  return s.accept_word("none") ? Tensor() : constants.parse(s);
}

struct AttributeParser {
  Scanner& s;
  std::string_view name;
  ConstantParser& constants;

  std::string wanted(std::string_view what) const { return fmt::format("{} for \"{}\"", what, name); }
  template <class T, class F>
  std::vector<T> list(std::string_view what, F&& item) const {
    if (!s.next_is("[")) s.unexpected(wanted(what));
    std::vector<T> out;
    parse_list(s, "[", "]", [&] { out.push_back(item()); });
    return out;
  }

  Attribute operator()(bool) const { return parse_bool(s, wanted("true or false")); }
  Attribute operator()(std::int64_t) const { return s.integer(wanted("an integer")); }
  Attribute operator()(double) const { return parse_double(s, wanted("a number")); }
  Attribute operator()(const std::string&) const {
    return s.word_or_quoted(wanted("a word or text in quotes"), "-");
  }
  Attribute operator()(ElementType) const { return parse_element_type(s); }
  Attribute operator()(const Ints&) const {
    return list<std::int64_t>("[integers]", [&] { return s.integer(wanted("an integer")); });
  }
  Attribute operator()(const Floats&) const {
    return list<double>("[numbers]", [&] { return parse_double(s, wanted("a number")); });
  }
  Attribute operator()(const Strings&) const {
    return list<std::string>("[texts]",
                             [&] { return s.word_or_quoted(wanted("a word or text in quotes"), "-"); });
  }
  Attribute operator()(const Shape&) const {
    if (!s.accept_word("shape")) s.unexpected(wanted("shape[...]"));
    return parse_shape(s);
  }
  Attribute operator()(const Tensor&) const {
    return parse_tensor(s, wanted("tensor TYPE {values} or tensor none"), constants);
  }
};

}  // namespace

Attribute parse_attribute(Scanner& s, std::string_view name, const Attribute& like,
                          ConstantParser& constants) {
  return std::visit(AttributeParser{s, name, constants}, like);
}

}  // namespace lamina::text
