#include "ops/elementwise.h"

#include <algorithm>

#include "graph/op_model.h"
#include "ops/operators.h"
#include "ops/packed.h"
#include "ops/require.h"
#include "ops/walk.h"

namespace lamina {
namespace {

constexpr std::int64_t kElementGrain = 4096;

bool takes(Takes kind, ElementType type) {
  switch (kind) {
    case Takes::numbers:
      return is_float(type) || is_integer(type);
    case Takes::floats:
      return is_float(type);
    case Takes::integers:
      return is_integer(type);
    case Takes::booleans:
      return type == ElementType::boolean;
    case Takes::anything:
      return true;
  }
  return false;
}

std::string_view wanted(Takes kind) {
  constexpr std::array<std::string_view, 5> names{"numbers", "floating-point numbers", "integers", "boolean",
                                                  "anything"};
  return names[static_cast<std::size_t>(kind)];
}

Shape require_broadcast(const InferContext& c, const Shape& a, const Shape& b) {
  auto shape = broadcast(a, b);
  c.require(shape.has_value(), "shapes {} and {} do not broadcast", to_string(a), to_string(b));
  return std::move(*shape);
}

/// Element type that both inputs share; one may be unknown.
ElementType common_element(const InferContext& c, std::size_t i, std::size_t j) {
  const auto a = c.element(i), b = c.element(j);
  if (a == ElementType::undefined || b == ElementType::undefined) return a == ElementType::undefined ? b : a;
  c.require(a == b, "inputs {} and {} are {} and {}, wanted equal element types", i, j, name_of(a),
            name_of(b));
  return a;
}

template <class T, class F>
std::vector<T> mapped(std::vector<T> values, const F& f) {
  parallel_for(static_cast<std::int64_t>(values.size()), kElementGrain,
               [&](std::int64_t begin, std::int64_t end) {
                 for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
                   values[i] = f(values[i]);
               });
  return values;
}

template <class T, class F>
void combine(EvalContext& c, const std::vector<T>& a, const std::vector<T>& b, const F& f) {
  const Dims& dims = c.out_dims();
  const auto sa = broadcast_strides(c.dims(0), dims), sb = broadcast_strides(c.dims(1), dims);
  const std::int64_t step_a = sa.empty() ? 0 : sa.back(), step_b = sb.empty() ? 0 : sb.back();
  std::vector<T> out(element_count(dims));
  for_each_row<2>(dims, {sa, sb}, [&](std::int64_t first, const auto& at, std::int64_t count) {
    T* to = out.data() + first;
    const T* x = a.data() + at[0];
    const T* y = b.data() + at[1];
    for (std::int64_t i = 0; i < count; ++i) to[i] = f(x[i * step_a], y[i * step_b]);
  });
  c.store(0, out);
}

void infer_test(InferContext& c) {
  require_takes(c, 0, Takes::numbers);
  c.set(0, ElementType::boolean, c.shape(0));
}

}  // namespace

void require_takes(const InferContext& c, std::size_t input, Takes kind) {
  const auto type = c.element(input);
  c.require(type == ElementType::undefined || takes(kind, type), "input {} is {}, wanted {}", input,
            name_of(type), wanted(kind));
}

void infer_unary(InferContext& c, Takes kind) {
  require_takes(c, 0, kind);
  c.set(0, c.type(0));
}

void evaluate_unary(EvalContext& c, UnaryFunction f) {
  with_number_type(c.in(0).element_type(),
                   [&]<class T>() { c.store(0, mapped(c.numbers<T>(0), f.of<T>())); });
}

void evaluate_unary(EvalContext& c, const std::function<double(double)>& f) {
  c.store(0, mapped(c.doubles(0), f));
}

void infer_binary(InferContext& c, Takes kind, bool compares) {
  const auto element = common_element(c, 0, 1);
  require_takes(c, 0, kind);
  require_takes(c, 1, kind);
  c.set(0, compares ? ElementType::boolean : element, require_broadcast(c, c.shape(0), c.shape(1)));
}

void evaluate_binary(EvalContext& c, BinaryFunction f) {
  with_number_type(c.in(0).element_type(),
                   [&]<class T>() { combine(c, c.numbers<T>(0), c.numbers<T>(1), f.of<T>()); });
}

ShapeValue Divide::shape_value(ShapeValueContext& c) const {
  return combine_sizes(c, [](const Dim& a, const Dim& b) {
    return b.known() && b.size() > 0 ? std::optional(floor_div(a, b.size())) : std::nullopt;
  });
}

void Divide::infer(InferContext& c) const { infer_binary(c, Takes::numbers, false); }

void Divide::evaluate(EvalContext& c) const {
  constexpr auto real = [](double a, double b) { return a / b; };
  evaluate_binary(
      c, {real, integer_quotient<std::int64_t>(m_pythondiv), integer_quotient<std::uint64_t>(m_pythondiv)});
}

void Round::infer(InferContext& c) const { infer_unary(c, Takes::numbers); }

void Round::evaluate(EvalContext& c) const {
  const bool even = mode == RoundMode::half_to_even;
  evaluate_unary(c, {even ? scalar::round_half_even : scalar::round_half_away,
                     [](std::int64_t x) { return x; }, [](std::uint64_t x) { return x; }});
}

void IsNaN::infer(InferContext& c) const { infer_test(c); }
void IsNaN::evaluate(EvalContext& c) const {
  evaluate_unary(c, [](double x) { return double(std::isnan(x)); });
}

void IsFinite::infer(InferContext& c) const { infer_test(c); }
void IsFinite::evaluate(EvalContext& c) const {
  evaluate_unary(c, [](double x) { return double(std::isfinite(x)); });
}

void IsInf::infer(InferContext& c) const { infer_test(c); }
void IsInf::evaluate(EvalContext& c) const {
  evaluate_unary(
      c, [this](double x) { return double(std::isinf(x) && (x < 0 ? detect_negative : detect_positive)); });
}

void Select::infer(InferContext& c) const {
  require_takes(c, 0, Takes::booleans);
  const auto element = common_element(c, 1, 2);
  c.set(0, element, require_broadcast(c, require_broadcast(c, c.shape(1), c.shape(2)), c.shape(0)));
}

void Select::evaluate(EvalContext& c) const {
  if (moved_unpacked(c)) return;
  const Dims& dims = c.out_dims();
  const std::array<Ints, 3> strides{broadcast_strides(c.dims(0), dims), broadcast_strides(c.dims(1), dims),
                                    broadcast_strides(c.dims(2), dims)};
  const auto bytes = static_cast<std::int64_t>(element_bytes(c.out_element(0)));
  std::array<std::int64_t, 3> step{};
  for (std::size_t k = 0; k < 3; ++k) step[k] = dims.empty() ? 0 : strides[k].back();
  const std::byte* condition = c.in(0).raw();
  const std::array<const std::byte*, 2> from{c.in(1).raw(), c.in(2).raw()};
  std::byte* out = c.out().raw();
  for_each_row<3>(dims, strides, [&](std::int64_t first, const auto& at, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::size_t k = condition[at[0] + i * step[0]] != std::byte{0} ? 0 : 1;
      std::copy_n(from[k] + (at[k + 1] + i * step[k + 1]) * bytes, bytes, out + (first + i) * bytes);
    }
  });
}

void Convert::infer(InferContext& c) const {
  c.require(destination_type != ElementType::undefined,
            "destination_type is undefined, wanted an element type");
  c.set(0, destination_type, c.shape(0));
}
void Convert::evaluate(EvalContext& c) const { c.set(0, convert(c.in(0), destination_type)); }

void ConvertLike::infer(InferContext& c) const { c.set(0, c.element(1), c.shape(0)); }
void ConvertLike::evaluate(EvalContext& c) const { c.set(0, convert(c.in(0), c.out_element(0))); }

void BitCast::infer(InferContext& c) const {
  c.require(destination_type != ElementType::undefined,
            "destination_type is undefined, wanted an element type");
  const auto from = c.element(0);
  c.require(from == ElementType::undefined || bits_of(from) == bits_of(destination_type),
            "input is {}, wanted a type of {} bits as {} is", name_of(from), bits_of(destination_type),
            name_of(destination_type));
  c.set(0, destination_type, c.shape(0));
}
void BitCast::evaluate(EvalContext& c) const {
  const auto* from = c.in(0).raw();
  auto* to = c.out().raw();
  if (destination_type == ElementType::boolean)
    std::transform(from, from + c.in(0).bytes(), to,
                   [](std::byte b) { return std::byte{b != std::byte{0}}; });
  else
    std::copy_n(from, c.in(0).bytes(), to);
}

void Elementwise::infer(InferContext& c) const { c.set(0, c.type(0)); }
void Elementwise::evaluate(EvalContext& c) const { c.set(0, c.in(0)); }

namespace {

template <class... T>
void add_all(Registry& r) {
  (r.add<T>(), ...);
}

}  // namespace

void register_elementwise(Registry& r) {
  add_all<Abs, Acos, Acosh, Asin, Asinh, Atan, Atanh, BitwiseNot, Ceiling, Cos, Cosh, Erf, Exp, Floor,
          IsFinite, IsInf, IsNaN, Log, LogicalNot, Negative, Round, Sign, Sin, Sinh, Sqrt, Tan>(r);
  add_all<Add, BitwiseAnd, BitwiseLeftShift, BitwiseOr, BitwiseRightShift, BitwiseXor, Divide, FloorMod,
          Maximum, Minimum, Mod, Multiply, Power, SquaredDifference, Subtract>(r);
  add_all<Equal, Greater, GreaterEqual, Less, LessEqual, LogicalAnd, LogicalOr, LogicalXor, NotEqual>(r);
  add_all<BitCast, Convert, ConvertLike, Elementwise, Select>(r);
}

}  // namespace lamina
