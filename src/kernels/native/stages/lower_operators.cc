/// From a body of element-wise operators to loops: each operator of each type; see lowering.h.
#include <algorithm>
#include <cmath>

#include "kernels/native/stages/lowering.h"
#include "ops/activation.h"
#include "ops/elementwise.h"

namespace lamina::stages {
namespace {

constexpr double kQuantizeCycles = 0.2, kDequantizeCycles = 0.15;

}  // namespace

int Lowering::lower_convert(const Node& n) {
  const auto from = body_.type(n.inputs[0]).element, to = body_.type(n.outputs[0]).element;
  const auto x = read(n.inputs[0]);
  if (x == kNone || from == to) return x;
  if (is_half(to)) return converted(x, carrier(from), ElementType::f32);  // rounded where it is read
  return carrier(from) == to ? x : converted(x, carrier(from), to);
}

int Lowering::lower_select(const Node& n) {
  const auto c = read(n.inputs[0]), a = read(n.inputs[1]), b = read(n.inputs[2]);
  if (c == kNone || a == kNone || b == kNone) return kNone;
  const auto bytes = bytes_of(carrier(body_.type(n.inputs[1]).element));
  const int log2 = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
  return operation(integer_loops().select[log2], {c, a, b}, bytes, 0.15);
}

namespace {

/// Whether the levels of the output's range are the steps above its low end, to the last bit.
bool levels_are_steps(std::int64_t levels, float low, float high) {
  if (levels > 65536) return false;
  const auto steps = static_cast<float>(levels - 1), range = high - low;
  for (std::int64_t i = 0; i < levels; ++i) {
    const auto level = static_cast<float>(i);
    if (level / steps * range + low != low + level) return false;
  }
  return low + steps == high;
}

}  // namespace

int Lowering::lower_fake_quantize(const Node& n, const FakeQuantize& q) {
  const auto type = carrier(body_.type(n.inputs[0]).element);
  std::vector<int> in;
  for (auto v : n.inputs) {
    const auto x = read(v);
    if (x == kNone) return kNone;
    in.push_back(converted(x, carrier(body_.type(v).element), ElementType::f32));
  }
  out_.numbers.push_back(std::make_shared<float>(static_cast<float>(q.levels - 1)));
  const auto low = constant_number(n.inputs[3]), high = constant_number(n.inputs[4]);
  const bool steps =
      low && high && levels_are_steps(q.levels, static_cast<float>(*low), static_cast<float>(*high));
  const auto& loops = float_loops();
  const auto y = operation(steps ? loops.fake_quantize_steps : loops.fake_quantize, in, 4, steps ? 0.2 : 1,
                           out_.numbers.back().get());
  return converted(y, ElementType::f32, type);
}

std::optional<Dims> Lowering::along(const Node& n, std::size_t input, std::int64_t axis_given) {
  const auto x = body_.type(n.inputs[0]).shape.sizes(), own = body_.type(n.inputs[input]).shape.sizes();
  if (element_count(own) == 1) return Dims{};
  Dims dims(x.size(), 1);
  dims[normalize_axis(axis_given, x.size(), "axis")] = own[0];
  return dims;
}

int Lowering::read_parameter(const Node& n, std::size_t input, std::int64_t axis) {
  const auto dims = along(n, input, axis);
  return read(n.inputs[input], &*dims);
}

int Lowering::read_zero_point(const Node& n, std::int64_t axis, ElementType as) {
  if (n.inputs.size() <= 2 || !n.inputs[2].valid()) return number(0, as);
  const auto zero = read_parameter(n, 2, axis);
  return zero == kNone ? kNone : converted(zero, carrier(body_.type(n.inputs[2]).element), as);
}

int Lowering::read_scale(const Node& n, std::int64_t axis) {
  const auto scale = read_parameter(n, 1, axis);
  return scale == kNone ? kNone
                        : converted(scale, carrier(body_.type(n.inputs[1]).element), ElementType::f32);
}

int Lowering::lower_quantize(const Node& n, const Quantize& q) {
  if (q.block_size > 0) return refuse("blocked scales");
  const auto to = q.destination_type;
  // For types of up to 16 bits the sum with the zero point is exact in f32 (beyond, the result saturates).
  const auto loop = quantize_loops().quantize[static_cast<int>(to)];
  const auto sum = loop ? ElementType::f32 : ElementType::f64;
  const auto given = read(n.inputs[0]), scale = read_scale(n, q.axis), zero = read_zero_point(n, q.axis, sum);
  if (given == kNone || scale == kNone || zero == kNone) return kNone;
  const auto x = converted(given, carrier(body_.type(n.inputs[0]).element), ElementType::f32);
  if (loop) return operation(loop, {x, scale, zero}, bytes_of(to), kQuantizeCycles);
  const auto level = unary(Unary::round_even, binary(Binary::divide, x, scale, 0.4));
  auto wide = converted(level, ElementType::f32, sum);
  if (n.inputs.size() > 2 && n.inputs[2].valid())
    wide = map(real_functions(Op(Add{}))->real2, sum, {wide, zero});
  return converted(wide, sum, to);
}

int Lowering::lower_dequantize(const Node& n, const Dequantize& q) {
  if (q.block_size > 0) return refuse("blocked scales");
  const auto type = body_.type(n.inputs[0]).element;
  if (type == ElementType::u64) return refuse("Dequantize of u64");
  // Differences of types of up to 16 bits are exact in f32, others wrap in i64.
  const auto loop = quantize_loops().dequantize[static_cast<int>(type)];
  const auto difference = loop ? ElementType::f32 : ElementType::i64;
  const auto given = read(n.inputs[0]), scale = read_scale(n, q.axis),
             zero = read_zero_point(n, q.axis, difference);
  if (given == kNone || scale == kNone || zero == kNone) return kNone;
  if (loop) return operation(loop, {given, scale, zero}, 4, kDequantizeCycles);
  auto x = given;
  if (n.inputs.size() > 2 && n.inputs[2].valid()) {
    const auto wide = converted(x, type, difference);
    x = converted(integer(Integer::subtract, difference, {wide, zero}), difference, ElementType::f32);
  } else {
    x = converted(x, type, ElementType::f32);
  }
  return binary(Binary::multiply, x, scale);
}

std::optional<std::vector<int>> Lowering::operands(const Node& n) {
  std::vector<int> in;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    if (!n.inputs[i].valid()) continue;
    const auto& shape = body_.type(n.inputs[i]).shape;
    int x = kNone;
    if (n.op.is<PRelu>() && i == 1) {
      const auto placed = prelu_slope_shape(body_.type(n.inputs[0]).shape, shape);
      const Dims dims = placed.sizes();
      x = dims == shape.sizes() ? read(n.inputs[i]) : read(n.inputs[i], &dims);
    } else {
      x = read(n.inputs[i]);
    }
    if (x == kNone) return std::nullopt;
    in.push_back(x);
  }
  return in;
}

namespace {

/// The function of a library, which takes vectors.
void call_custom(const LoopArgs& a) {
  const auto count = (a.vectors & 1) != 0 ? a.count : 1;
  (*static_cast<const ElementwiseKernel*>(a.function))(
      static_cast<const float*>(a.in[0]), static_cast<float*>(a.out), static_cast<std::size_t>(count));
}

}  // namespace

int Lowering::lower_custom(const Node& n, const CustomOp& op) {
  constexpr double kCyclesOfANanosecond = 3, kUsual = 0.1;
  const auto& calls = op.declared().calls;
  if (!calls.elementwise) return refuse("no element-wise function of " + op.where());
  const auto x = read(n.inputs[0]);
  if (x == kNone) return kNone;
  const auto label = body_.label(body_.producer(n.outputs[0]));
  out_.custom.push_back(
      std::make_shared<const ElementwiseKernel>(n.op, label, body_.type(n.inputs[0]).shape));
  const double each = calls.elementwise_nanoseconds > 0 ? calls.elementwise_nanoseconds : kUsual;
  return operation(call_custom, {x}, 4, kCyclesOfANanosecond * each, out_.custom.back().get());
}

int Lowering::lower_f32(const Node& n) {
  if (const auto* custom = custom_op(n.op)) return lower_custom(n, *custom);
  auto in = operands(n);
  if (!in) return kNone;
  const Op& op = n.op;
  if (op.is<Power>())
    if (const auto e = constant_number(n.inputs[1]))
      if (const auto y = power(in->at(0), *e); y != kNone) return y;
  if (const auto loop = float_unary(op)) {
    for (const double p : parameters_of(op)) in->push_back(number(p));
    if (op.is<Swish>() && in->size() == 1) in->push_back(number(1));
    return operation(float_loops().unary[static_cast<int>(loop->first)], *in, 4, loop->second);
  }
  if (const auto loop = float_binary(op))
    return operation(float_loops().binary[static_cast<int>(loop->first)], *in, 4, loop->second);
  if (const auto c = comparison(op))
    return operation(float_loops().compare[static_cast<int>(*c)], *in, 1, 0.15);
  if (const auto t = test_of(op)) return operation(float_loops().test[static_cast<int>(*t)], *in, 1, 0.15);
  if (const auto f = real_functions(op)) return map_any(*f, ElementType::f32, *in);
  return refuse("no loop for " + op.name());
}

int Lowering::power(int x, double e) {
  if (e == 2) return unary(Unary::square, x);
  if (e == 3) return unary(Unary::cube, x);
  if (e == 1) return x;
  if (e == 0.5) return unary(Unary::power_half, x, 0.5);
  if (e == -0.5) return unary(Unary::power_minus_half, x, 0.8);
  if (e == -1) return unary(Unary::reciprocal, x, 0.4);
  if (e == std::nearbyint(e) && std::fabs(e) <= 32)
    return operation(float_loops().unary[static_cast<int>(Unary::power_integer)], {x, number(e)}, 4, 0.6);
  return kNone;
}

int Lowering::map(const void* function, ElementType type, std::vector<int> in) {
  const auto loop = is_float(type) ? real_map(type, static_cast<int>(in.size()))
                                   : integer_map(type, static_cast<int>(in.size()));
  return operation(loop, std::move(in), bytes_of(type), 30, function);
}

int Lowering::map_any(const Functions& f, ElementType type, std::vector<int> in) {
  const void* function = in.size() == 1 ? f.real1 : in.size() == 2 ? f.real2 : f.real3;
  if (!function) return refuse(fmt::format("no function of {} operands", in.size()));
  return map(function, type, std::move(in));
}

int Lowering::lower_f64(const Node& n) {
  auto in = operands(n);
  if (!in) return kNone;
  const Op& op = n.op;
  if (const auto t = test_of(op)) {
    const auto y = map(test_function(*t), ElementType::f64, *in);
    return converted(y, ElementType::f64, ElementType::boolean);
  }
  for (const double p : parameters_of(op)) in->push_back(number(p, ElementType::f64));
  if (op.is<Swish>() && in->size() == 1) in->push_back(number(1, ElementType::f64));
  const auto f = real_functions(op);
  if (!f) return refuse("no loop for " + op.name());
  if (comparison(op)) return operation(real_compare(), *in, 1, 5, f->real2);
  return map_any(*f, ElementType::f64, *in);
}

int Lowering::integer(Integer i, ElementType type, std::vector<int> in) {
  return operation(integer_loops().operators[integer_index(type)][static_cast<int>(i)], std::move(in),
                   bytes_of(type), 0.2);
}

int Lowering::lower_integer(const Node& n, ElementType type) {
  auto in = operands(n);
  if (!in) return kNone;
  const Op& op = n.op;
  if (type == ElementType::boolean && comparison(op))  // as bytes, other values than 0 and 1 would differ
    for (auto& x : *in) x = integer(Integer::nonzero, ElementType::u8, {x});
  if (const auto c = comparison(op))
    return operation(integer_loops().compare[integer_index(type)][static_cast<int>(*c)], *in, 1, 0.2);
  if (op.is<Round>()) return in->at(0);
  if (const auto* clamp = op.as<Clamp>()) {
    with_number_type(type, [&]<class T>() {
      const auto [low, high] = clamp->bounds<T>(type);
      in->push_back(constant(from_numbers<T>(type, {}, {low})));
      in->push_back(constant(from_numbers<T>(type, {}, {high})));
    });
    return integer(Integer::clamp, type, *in);
  }
  if (const auto t = test_of(op)) {
    const auto x = converted(in->at(0), type, ElementType::f32);
    return operation(float_loops().test[static_cast<int>(*t)], {x}, 1, 0.15);
  }
  if (const auto i = integer_operator(op)) return integer(*i, type, *in);
  const auto f = real_functions(op);
  const void* function = f ? f->whole(type, in->size()) : nullptr;
  if (!function) return refuse(fmt::format("no loop for {} of {}", op.name(), name_of(type)));
  return map(function, type, *in);
}

}  // namespace lamina::stages
