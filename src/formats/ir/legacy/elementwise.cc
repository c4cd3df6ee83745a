// Activations and arithmetic, element by element.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/no_destructor.h"
#include "formats/ir/legacy/lowering.h"
#include "formats/ir/text.h"
#include "ops/activation.h"
#include "ops/movement.h"
#include "ops/quantization.h"
#include "ops/shaping.h"

namespace lamina::ir::legacy {
namespace {

void finish_real(Lowering& c, Op op) {
  c.want_inputs(1, 1);
  c.finish(std::move(op), {c.real(0)});
}
template <class T>
void real_function(Lowering& c) {
  finish_real(c, T{});
}
/// Defined for integers, too.
template <class T>
void function(Lowering& c) {
  c.want_inputs(1, 1);
  c.finish(T{}, c.alike());
}

void relu(Lowering& c) {
  const double slope = c.number("negative_slope", 0);
  if (slope == 0) return finish_real(c, Relu{});
  c.want_inputs(1, 1);
  const ValueId x = c.real(0);
  c.finish(PRelu{}, {x, c.number_like(slope, x, "slope")});
}

void prelu(Lowering& c) {
  c.want_inputs(1, 1);
  const Shape& x = c.shape(0);
  c.require(x.ranked() && x.rank() >= 2 && x[1].known(), "input 0 has the shape {}, wanted [N, C, ...]",
            to_string(x));
  const bool shared = c.boolean("channel_shared", false);
  c.finish(PRelu{}, {c.real(0), shared ? c.blob("weights", {1}) : c.per_channel("weights", x[1].size())});
}

void finish_clamp(Lowering& c, double low, double high) {
  c.require(low <= high, "min is {} and max {}", low, high);
  Clamp op;
  op.min = low;
  op.max = high;
  finish_real(c, op);
}
void clamp(Lowering& c) {
  const double low = c.number("min"), high = c.number("max");
  finish_clamp(c, low, high);
}
void relu6(Lowering& c) { finish_clamp(c, 0, c.number("n", 6)); }

void elu(Lowering& c) {
  Elu op;
  op.alpha = c.number("alpha", 1);
  finish_real(c, op);
}

void finish_parameters(Lowering& c, Op op, const char* first, double a, const char* second, double b) {
  c.want_inputs(1, 1);
  const ValueId x = c.real(0);
  const double given_a = c.number(first, a), given_b = c.number(second, b);
  c.finish(std::move(op), {x, c.number_like(given_a, x, first), c.number_like(given_b, x, second)});
}
void selu(Lowering& c) {
  finish_parameters(c, Selu{}, "alpha", 1.67326319217681884765625, "gamma", 1.05070102214813232421875);
}
void hard_sigmoid(Lowering& c) { finish_parameters(c, HardSigmoid{}, "alpha", 0.2, "beta", 0.5); }

void logical_not(Lowering& c) {
  c.want_inputs(1, 1);
  c.finish(LogicalNot{}, {c.yes_no(0)});
}

void reciprocal(Lowering& c) {
  c.want_inputs(1, 1);
  const ValueId x = c.real(0);
  c.finish(Divide{}, {c.number_like(1, x, "one"), x});
}

void power(Lowering& c) {
  PowerStatic op;
  op.power = c.number("power");
  op.scale = c.number("scale");
  op.shift = c.number("shift");
  if (op.power == 1 && op.scale == 1 && op.shift == 0) return c.finish(Identity{}, c.all_inputs());
  finish_real(c, op);
}

void convert(Lowering& c) {
  c.want_inputs(1, 1);
  Convert op;
  op.destination_type = c.declared_element();
  if (c.has("precision")) {
    const auto type = parse_element_type(c.text("precision"));
    c.require(type.has_value(), "precision=\"{}\" is not supported", c.text("precision").substr(0, 80));
    op.destination_type = c.reading().widened(*type);
  }
  if (op.destination_type == ElementType::undefined) return c.finish(Identity{}, c.all_inputs());
  c.finish(op, c.all_inputs());
}

void identity(Lowering& c) {
  c.want_inputs(1, 1);
  c.finish(Identity{}, c.all_inputs());
}

void fake_quantize(Lowering& c) {
  c.want_inputs(5, 5);
  FakeQuantize op;
  op.levels = c.integer("levels");
  c.require(op.levels >= 2 && op.levels <= std::int64_t{1} << 32, "levels is {}, wanted at least 2",
            op.levels);
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < 5; ++i) inputs.push_back(c.real(i));
  c.finish(op, inputs);
}

void select(Lowering& c) {
  c.want_inputs(3, 3);
  auto inputs = c.alike(1);
  inputs.insert(inputs.begin(), c.yes_no(0));
  c.finish(Select{}, inputs);
}

// Eltwise.

/// Applies the operator to the inputs from left to right.
void fold(Lowering& c, const Op& op, std::vector<ValueId> inputs) {
  ValueId left = inputs[0];
  for (std::size_t i = 1; i + 1 < inputs.size(); ++i)
    left = c.add(op, {left, inputs[i]}, fmt::format("{}", i));
  c.finish(op, {left, inputs.back()});
}

/// A coefficient for each addend.
void weighted_sum(Lowering& c, const Floats& coefficients) {
  auto inputs = c.alike();
  const bool ones = std::all_of(coefficients.begin(), coefficients.end(), [](double k) { return k == 1; });
  if (ones) return fold(c, Add{}, std::move(inputs));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    inputs[i] = c.converted(inputs[i], ElementType::f32, fmt::format("real_{}", i));
  if (inputs.size() == 2 && coefficients[0] == 1 && coefficients[1] == -1)
    return c.finish(Subtract{}, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (coefficients[i] == 1) continue;
    const ValueId factor = c.number_like(coefficients[i], inputs[i], fmt::format("coefficient_{}", i));
    inputs[i] = c.add(Multiply{}, {inputs[i], factor}, fmt::format("scaled_{}", i));
  }
  fold(c, Add{}, std::move(inputs));
}

void sum(Lowering& c) {
  Floats coefficients;
  if (c.has("coeff")) {
    const auto given = parse_numbers(c.text("coeff"));
    c.require(given.has_value(), "coeff=\"{}\", wanted numbers", c.text("coeff").substr(0, 80));
    coefficients = *given;
  }
  c.require(coefficients.empty() || coefficients.size() == c.inputs(),
            "coeff has {} numbers, but there are {} inputs", coefficients.size(), c.inputs());
  for (const double k : coefficients) c.require(std::isfinite(k), "coeff contains {}", k);
  weighted_sum(c, coefficients);
}

template <class T>
void folded(Lowering& c) {
  fold(c, T{}, c.alike());
}
template <class T>
void of_two(Lowering& c) {
  c.want_inputs(2, 2);
  c.finish(T{}, c.alike());
}
template <class T>
void logical(Lowering& c) {
  std::vector<ValueId> inputs;
  for (std::size_t i = 0; i < c.inputs(); ++i) inputs.push_back(c.yes_no(i));
  fold(c, T{}, std::move(inputs));
}

using Table = std::map<std::string_view, Converter, std::less<>>;

const Table& operations() {
  static const ProcessLifetime all([] {
    return Table{{"sum", sum},
                 {"add", sum},
                 {"sub", folded<Subtract>},
                 {"mul", folded<Multiply>},
                 {"prod", folded<Multiply>},
                 {"div", folded<Divide>},
                 {"max", folded<Maximum>},
                 {"min", folded<Minimum>},
                 {"squared_diff", folded<SquaredDifference>},
                 {"floor_mod", folded<FloorMod>},
                 {"mod", folded<Mod>},
                 {"pow", folded<Power>},
                 {"equal", of_two<Equal>},
                 {"not_equal", of_two<NotEqual>},
                 {"less", of_two<Less>},
                 {"less_equal", of_two<LessEqual>},
                 {"greater", of_two<Greater>},
                 {"greater_equal", of_two<GreaterEqual>},
                 {"logical_not", logical_not},
                 {"logical_and", logical<LogicalAnd>},
                 {"logical_or", logical<LogicalOr>},
                 {"logical_xor", logical<LogicalXor>}};
  });
  return *all;
}

void eltwise(Lowering& c) {
  const std::string operation = c.word("operation", "sum");
  const auto it = operations().find(operation);
  c.require(it != operations().end(), "operation=\"{}\" is not known", operation.substr(0, 80));
  if (operation != "logical_not") c.want_inputs(2, kMany);
  if (operation != "sum" && operation != "add")
    c.require(c.text("coeff").empty(), "coeff belongs to sums, this is {}", operation);
  it->second(c);
}

/// What an Activation may be, too.
void register_functions(LoweringTable& t) {
  t.add("ReLU", relu);
  t.add("ReLU6", relu6);
  t.add("PReLU", prelu);
  t.add("Clamp", clamp);
  t.add("ELU", elu);
  t.add("Selu", selu);
  t.add("Sigmoid", real_function<Sigmoid>);
  t.add("Logistic", real_function<Sigmoid>);
  t.add("TanH", real_function<Tanh>);
  t.add("SoftPlus", real_function<SoftPlus>);
  t.add("SoftSign", real_function<SoftSign>);
  t.add("HardSigmoid", hard_sigmoid);
  t.add("Hard_Sigmoid", hard_sigmoid);
  t.add("Exp", real_function<Exp>);
  t.add("Log", real_function<Log>);
  t.add("Sqrt", real_function<Sqrt>);
  t.add("Erf", real_function<Erf>);
  t.add("Abs", function<Abs>);
  t.add("Neg", function<Negative>);
  t.add("Sign", function<Sign>);
  t.add("Floor", function<Floor>);
  t.add("Ceil", function<Ceiling>);
  t.add("Ceiling", function<Ceiling>);
  t.add("Acos", real_function<Acos>);
  t.add("Acosh", real_function<Acosh>);
  t.add("Asin", real_function<Asin>);
  t.add("Asinh", real_function<Asinh>);
  t.add("Atan", real_function<Atan>);
  t.add("Atanh", real_function<Atanh>);
  t.add("Cos", real_function<Cos>);
  t.add("Cosh", real_function<Cosh>);
  t.add("Sin", real_function<Sin>);
  t.add("Sinh", real_function<Sinh>);
  t.add("Tan", real_function<Tan>);
  t.add("Reciprocal", reciprocal);
  t.add("Not", logical_not);
  t.add("LogicalNot", logical_not);
  t.add("Power", power);
  t.add("Convert", convert);
  t.add("Copy", identity);
  t.add("Dropout", identity);
  t.add("Identity", identity);
  t.add("Quantize", fake_quantize);
  t.add("FakeQuantize", fake_quantize);
}

/// One layer type for many functions.
void activation(Lowering& c) {
  c.want("type");
  const std::string type = c.word("type");
  static const ProcessLifetime functions([] {
    LoweringTable t;
    register_functions(t);
    return t;
  });
  const Converter converter = (*functions).find(type);
  if (!converter) throw NotSupported{fmt::format("activation \"{}\"", type.substr(0, 80))};
  converter(c);
}

}  // namespace

void register_elementwise(LoweringTable& t) {
  register_functions(t);
  t.add("Activation", activation);
  t.add("Select", select);
  t.add("Eltwise", eltwise);
}

}  // namespace lamina::ir::legacy
