#include "graph/op.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/nearest.h"

namespace lamina {
namespace {

std::string number(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  std::string s = fmt::format("{}", v);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s;
}

bool same_double(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

struct Print {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return number(v); }
  std::string operator()(const std::string& v) const {
    std::string out = "\"";
    for (char c : v) {
      if (c == '"' || c == '\\') out += '\\';
      if (c == '\n')
        out += "\\n";
      else
        out += c;
    }
    return out + '"';
  }
  std::string operator()(const Ints& v) const { return fmt::format("[{}]", fmt::join(v, ",")); }
  std::string operator()(const Floats& v) const { return list(v); }
  std::string operator()(const Strings& v) const { return list(v); }
  std::string operator()(ElementType v) const { return std::string(name_of(v)); }
  std::string operator()(const Shape& v) const { return "shape" + lamina::to_string(v); }
  std::string operator()(const Tensor& v) const {
    return v.valid() ? fmt::format("tensor<{}{}>", name_of(v.element_type()), lamina::to_string(v.shape()))
                     : "tensor<>";
  }
  template <class T>
  std::string list(const T& v) const {
    std::string out = "[";
    for (std::size_t i = 0; i < v.size(); ++i) out += (i ? "," : "") + (*this)(v[i]);
    return out + "]";
  }
};

}  // namespace

std::string to_string(const Attribute& value) { return std::visit(Print{}, value); }

bool equal_attribute(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<double>(&a)) return same_double(*x, std::get<double>(b));
  if (const auto* x = std::get_if<Floats>(&a)) {
    const auto& y = std::get<Floats>(b);
    return std::equal(x->begin(), x->end(), y.begin(), y.end(), same_double);
  }
  if (const auto* x = std::get_if<Tensor>(&a)) {
    const auto& y = std::get<Tensor>(b);
    return x->valid() == y.valid() && (!x->valid() || x->same_as(y));
  }
  return std::visit(
      [&](const auto& x) -> bool {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, Tensor>)
          return false;
        else
          return x == std::get<T>(b);
      },
      a);
}

void unknown_attribute(const AnyOp& op, std::string_view name) {
  std::string all;
  for (const auto& a : op.attributes()) all += (all.empty() ? "" : ", ") + a.name;
  fail(ErrorCode::bad_file, "{} has no attribute \"{}\", it has: {}", op.info().name, name,
       all.empty() ? "none" : all);
}

void wrong_attribute(const AnyOp& op, std::string_view name, const Attribute& value,
                     std::string_view wanted) {
  fail(ErrorCode::bad_file, "{}: attribute \"{}\" is {}, wanted {}", op.info().name, name, to_string(value),
       wanted);
}

bool Op::operator==(const Op& other) const {
  if (op_ == other.op_) return true;
  if (!op_ || !other.op_ || op_->type() != other.op_->type()) return false;
  const auto a = op_->attributes(), b = other.op_->attributes();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!equal_attribute(a[i].value, b[i].value)) return false;
  return true;
}

OpFamily Op::family() const {
  if (info().family != OpFamily::by_traits) return info().family;
  if (has(Trait::control_flow)) return OpFamily::control;
  if (has(Trait::unary_elementwise)) return OpFamily::activation;
  return has(Trait::elementwise) ? OpFamily::arithmetic : OpFamily::other;
}

void Registry::add(std::shared_ptr<const AnyOp> prototype) {
  const std::string name(prototype->info().name);
  LAMINA_CHECK(ops_.emplace(name, std::move(prototype)).second, "operator {} is registered twice", name);
}

const AnyOp* Registry::find(std::string_view name) const {
  const auto it = ops_.find(name);
  return it == ops_.end() ? nullptr : it->second.get();
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> out;
  for (const auto& [name, op] : ops_) out.push_back(name);
  return out;
}

std::string Registry::nearest(std::string_view name) const { return nearest_name(name, names()); }

}  // namespace lamina
