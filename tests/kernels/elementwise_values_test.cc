/// Element-wise operators of every type on special values, against the reference, element by element.
#include <bit>

#include "base/half.h"
#include "tests/kernels/native_offers.h"

namespace lamina::testing {
namespace {

const char* const kUnary[] = {"Abs",      "Negative", "Sign",    "Ceiling", "Floor",    "Round", "Sqrt",
                              "Exp",      "Log",      "Erf",     "Sin",     "Cos",      "Tan",   "Acos",
                              "Asin",     "Atan",     "Acosh",   "Asinh",   "Atanh",    "Sinh",  "Cosh",
                              "Tanh",     "Relu",     "Sigmoid", "HSwish",  "HSigmoid", "Mish",  "SoftPlus",
                              "SoftSign", "Gelu",     "Swish",   "IsNaN",   "IsFinite", "IsInf"};

TEST(Elementwise, unary_operators_on_floats_of_all_sizes) {
  const auto x = many_floats(6000, 1);
  const auto shape = dims_text(x.shape());
  for (const std::string op : kUnary)
    expect_native(fmt::format("graph (x: f32{}) -> (y) {{\n y = {}(x)\n}}\n", shape, op), {x});
  for (const std::string tail :
       {"Round(x) mode=half_away_from_zero", "Gelu(x) approximation_mode=tanh", "Clamp(x) min=-1.5 max=6",
        "Elu(x) alpha=0.7", "IsInf(x) detect_negative=false", "IsInf(x) detect_positive=false",
        "IsInf(x) detect_negative=false detect_positive=false"})
    expect_native(fmt::format("graph (x: f32{}) -> (y) {{\n y = {}\n}}\n", shape, tail), {x});
  for (const std::string tail : {"Selu(x, a, b)", "HardSigmoid(x, a, b)", "Swish(x, a)"})
    expect_native(fmt::format("graph (x: f32{}, a: f32[1], b: f32[]) -> (y) {{\n y = {}\n}}\n", shape, tail),
                  {x, floats_of({1.6f}), Tensor::of({}, std::vector<float>{1.05f})});
}

const char* const kBinary[] = {"Add",     "Subtract",    "Multiply", "Divide",   "Maximum",
                               "Minimum", "Power",       "Mod",      "FloorMod", "SquaredDifference",
                               "PRelu",   "Equal",       "NotEqual", "Less",     "LessEqual",
                               "Greater", "GreaterEqual"};

TEST(Elementwise, binary_operators_on_all_pairs_of_special_values) {
  const auto& s = special_floats();
  std::vector<float> a, b;
  for (const auto x : s)
    for (const auto y : s) a.push_back(x), b.push_back(y);
  const auto left = floats_of(a), right = floats_of(b);
  const auto n = dims_text(left.shape());
  for (const std::string op : kBinary) {
    SCOPED_TRACE(op);
    expect_native(fmt::format("graph (x: f32{0}, z: f32{0}) -> (y) {{\n y = {1}(x, z)\n}}\n", n, op),
                  {left, right});
  }
  for (const std::string op : kBinary)  // one operand is a number
    for (const auto value : s) {
      const auto one = floats_of({value}), all = floats_of(s);
      const auto count = dims_text(all.shape());
      expect_native(fmt::format("graph (x: f32{}, z: f32[1]) -> (y) {{\n y = {}(x, z)\n}}\n", count, op),
                    {all, one});
      if (op == "PRelu") continue;
      expect_native(fmt::format("graph (x: f32{}, z: f32[1]) -> (y) {{\n y = {}(z, x)\n}}\n", count, op),
                    {all, one});
    }
}

/// What every kernel makes of the operator on values from `first` on, alone and behind a convolution.
void expect_of_every_kernel(const std::string& op, float first, float step, double relative,
                            double absolute = 0) {
  std::vector<float> one(16 * 16, 0.0f);
  for (std::size_t i = 0; i < 16; ++i) one[i * 17] = 1;
  const auto convolution = fmt::format(
      "graph (x: f32[1,16,5,25]) -> (y) {{\n w = const f32[16,16,1,1] {{{}}}\n y = Convolution(x, w) {{\n"
      " body graph (a: f32[1,16,5,25]) -> (r) {{\n r = {}(a)\n }}\n }}\n}}\n",
      fmt::join(one, ","), op);
  Tensor x(ElementType::f32, {1, 16, 5, 25});
  for (std::size_t i = 0; i < x.size(); ++i) x.data<float>()[i] = first + step * static_cast<float>(i);
  for (const auto& text :
       {fmt::format("graph (x: f32[1,16,5,25]) -> (y) {{\n y = {}(x)\n}}\n", op), convolution}) {
    const auto g = parse(text);
    const auto id = g.order().back();
    std::vector<Tensor> in{x};
    if (g.node(id).inputs.size() > 1) in.push_back(*g.constant(g.node(id).inputs[1]));
    const auto wanted = interpret(g, {x}).at(0);
    for (const auto& offer : ask_kernels(NodeView(g, id)).offers)
      if (!offer.last_resort)
        expect_elements(run_offer(g, id, offer, in).at(0), wanted, relative, absolute, offer.label);
  }
}

TEST(Elementwise, logarithms_next_to_0) { expect_of_every_kernel("Log", 0.9f, 0.0001f, 0, 2e-7); }

/// The exponential function has normal numbers from -87.33654 to 88.72283.
TEST(Elementwise, exponentials_to_both_ends_of_normal_numbers) {
  expect_of_every_kernel("Exp", -87.33654f, 0.0005f, 2e-5);
  expect_of_every_kernel("Exp", 88.72283f, -0.0005f, 2e-5);
}

TEST(Elementwise, powers) {
  const auto x = many_floats(3000, 2);
  for (const double e :
       {0.0, 1.0, 2.0, 3.0, 4.0, 7.0, -1.0, -2.0, -3.0, 0.5, -0.5, 0.45, 2.2, 1.0 / 3, -1.7, 31.0})
    expect_native(fmt::format("graph (x: f32{}) -> (y) {{\n e = const f32[] {{{}}}\n y = Power(x, e)\n}}\n",
                              dims_text(x.shape()), e),
                  {x}, 2e-5);
  SplitMix random(3);
  std::vector<float> a, b;
  for (int i = 0; i < 20000; ++i) {
    a.push_back(std::ldexp(1 + 0.5f * random.uniform(), static_cast<int>(random.below(40)) - 20));
    b.push_back(random.uniform() * 6);
  }
  expect_native("graph (x: f32[20000], z: f32[20000]) -> (y) {\n y = Power(x, z)\n}\n",
                {floats_of(a), floats_of(b)}, 1e-5);
}

Tensor random_ints(ElementType type, std::int64_t count, std::uint64_t seed) {
  SplitMix random(seed);
  Ints values;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto bits = static_cast<std::int64_t>(random.next());
    values.push_back(i % 3 == 0 ? bits : i % 3 == 1 ? bits % 16 : bits % 300);
  }
  if (type == ElementType::boolean)
    for (auto& v : values) v &= 1;
  return from_ints(type, {count}, values);
}

const char* const kIntegers[] = {"i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"};

TEST(Elementwise, integer_operators_wrap_as_the_reference) {
  std::uint64_t seed = 0;
  for (const std::string t : kIntegers) {
    const auto type = *element_type_named(t);
    const auto a = random_ints(type, 301, ++seed), b = random_ints(type, 301, ++seed),
               one = random_ints(type, 1, ++seed);
    for (const std::string op :
         {"Add",          "Subtract",  "Multiply",   "Divide",           "Maximum",
          "Minimum",      "Power",     "Mod",        "FloorMod",         "SquaredDifference",
          "BitwiseAnd",   "BitwiseOr", "BitwiseXor", "BitwiseLeftShift", "BitwiseRightShift",
          "Equal",        "NotEqual",  "Less",       "LessEqual",        "Greater",
          "GreaterEqual", "PRelu"}) {
      SCOPED_TRACE(op + " of " + t);
      expect_native(fmt::format("graph (x: {0}[301], z: {0}[301]) -> (y) {{\n y = {1}(x, z)\n}}\n", t, op),
                    {a, b});
      expect_native(fmt::format("graph (x: {0}[301], z: {0}[1]) -> (y) {{\n y = {1}(x, z)\n}}\n", t, op),
                    {a, one});
      if (op != "PRelu")
        expect_native(fmt::format("graph (x: {0}[301], z: {0}[1]) -> (y) {{\n y = {1}(z, x)\n}}\n", t, op),
                      {a, one});
    }
    for (const std::string op : {"Abs", "Negative", "Sign", "Relu", "Floor", "Ceiling", "Round", "BitwiseNot",
                                 "Exp", "Sqrt", "Sin", "IsNaN", "IsFinite", "IsInf"})
      expect_native(fmt::format("graph (x: {}[301]) -> (y) {{\n y = {}(x)\n}}\n", t, op), {a});
    expect_native(fmt::format("graph (x: {}[301]) -> (y) {{\n y = Clamp(x) min=-3.5 max=70000.5\n}}\n", t),
                  {a});
    expect_native(
        fmt::format("graph (x: {0}[301], z: {0}[301]) -> (y) {{\n y = Divide(x, z) m_pythondiv=false\n}}\n",
                    t),
        {a, b});
  }
}

TEST(Elementwise, logic) {
  const auto a = random_ints(ElementType::boolean, 130, 1), b = random_ints(ElementType::boolean, 130, 2);
  for (const std::string op :
       {"LogicalAnd", "LogicalOr", "LogicalXor", "Equal", "NotEqual", "Less", "GreaterEqual"})
    expect_native("graph (x: boolean[130], z: boolean[130]) -> (y) {\n y = " + op + "(x, z)\n}\n", {a, b});
  expect_native("graph (x: boolean[130]) -> (y) {\n y = LogicalNot(x)\n}\n", {a});
}

TEST(Elementwise, f64_as_the_reference) {
  std::vector<double> values;
  for (const auto v : special_floats()) values.push_back(v), values.push_back(v * 1.00000001);
  const auto x = from_doubles(ElementType::f64, {static_cast<std::int64_t>(values.size())}, values);
  const auto shape = dims_text(x.shape());
  for (const std::string op : kUnary)
    expect_native(fmt::format("graph (x: f64{}) -> (y) {{\n y = {}(x)\n}}\n", shape, op), {x}, 0, 0);
  for (const std::string op : kBinary)
    expect_native(fmt::format("graph (x: f64{0}, z: f64{0}) -> (y) {{\n y = {1}(x, z)\n}}\n", shape, op),
                  {x, x}, 0, 0);
  for (const std::string tail : {"Clamp(x) min=-1.5 max=6", "Elu(x) alpha=0.7"})
    expect_native(fmt::format("graph (x: f64{}) -> (y) {{\n y = {}\n}}\n", shape, tail), {x}, 0, 0);
}

TEST(Elementwise, halves_are_rounded_after_each_operator) {
  for (const std::string t : {"f16", "bf16"}) {
    const auto type = *element_type_named(t);
    const auto x = convert(many_floats(3000, 4), type), z = convert(many_floats(3000, 5), type);
    const double step =
        t == "f16" ? 0x1p-10 : 0x1p-7;  // one unit in the last place, where f32 rounds otherwise
    for (const std::string op : {"Exp", "Sigmoid", "Relu", "Sqrt", "Gelu", "Tanh", "Log"})
      expect_native(fmt::format("graph (x: {}[3000]) -> (y) {{\n y = {}(x)\n}}\n", t, op), {x}, step);
    for (const std::string op : {"Add", "Multiply", "Subtract", "Divide", "Maximum", "Less", "Equal"})
      expect_native(fmt::format("graph (x: {0}[3000], z: {0}[3000]) -> (y) {{\n y = {1}(x, z)\n}}\n", t, op),
                    {x, z}, 0, 0);
    const std::string body = fmt::format(
        " y = Elementwise(x, z) {{\n body graph (x: {0}[3000], z: {0}[3000]) -> (r) {{\n a = Multiply(x, "
        "z)\n b = "
        "Add(a, x)\n c = Abs(b)\n r = Subtract(c, a)\n }}\n }}\n",
        t);
    expect_native(fmt::format("graph (x: {0}[3000], z: {0}[3000]) -> (y) {{\n{1}}}\n", t, body), {x, z}, 0,
                  0);
  }
}

TEST(Elementwise, conversions_between_all_types) {
  const std::vector<std::string> types = {"f32", "f16", "bf16", "f64", "i64", "i32",    "i16",
                                          "i8",  "u64", "u32",  "u16", "u8",  "boolean"};
  const auto numbers = many_floats(1000, 6);
  for (const auto& from : types) {
    const auto type = *element_type_named(from);
    const auto x = is_float(type) ? convert(numbers, type) : random_ints(type, 1000, 7);
    for (const auto& to : types) {
      if (to == from) continue;
      SCOPED_TRACE(from + " to " + to);
      expect_native(
          fmt::format("graph (x: {}[1000]) -> (y) {{\n y = Convert(x) destination_type={}\n}}\n", from, to),
          {x}, 0, 0);
      expect_native(
          fmt::format("graph (x: {}[1000], l: {}[1]) -> (y) {{\n y = ConvertLike(x, l)\n}}\n", from, to),
          {x, from_ints(*element_type_named(to), {1}, {1})}, 0, 0);
    }
  }
}

TEST(Elementwise, every_half_float_and_the_ties_between_them) {
  Tensor halves(ElementType::f16, {65536}), brains(ElementType::bf16, {65536});
  std::vector<float> between;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    halves.data<f16_t>()[i] = {static_cast<std::uint16_t>(i)};
    brains.data<bf16_t>()[i] = {static_cast<std::uint16_t>(i)};
    const float here = to_float(f16_t{static_cast<std::uint16_t>(i)});
    const float next = to_float(f16_t{static_cast<std::uint16_t>(i + 1)});
    between.push_back((here + next) / 2);
    between.push_back(std::bit_cast<float>(i << 16 | 0x8000u));
  }
  expect_native("graph (x: f16[65536]) -> (y) {\n y = Convert(x) destination_type=f32\n}\n", {halves}, 0, 0);
  expect_native("graph (x: bf16[65536]) -> (y) {\n y = Convert(x) destination_type=f32\n}\n", {brains}, 0, 0);
  const auto ties = floats_of(between);
  for (const std::string to : {"f16", "bf16"})
    expect_native(
        fmt::format("graph (x: f32[131072]) -> (y) {{\n y = Convert(x) destination_type={}\n}}\n", to),
        {ties}, 0, 0);
}

TEST(Elementwise, fake_quantize_bit_for_bit) {
  const auto x = many_floats(4000, 12);
  const auto one =
      "graph (x: f32[4000], a: f32[1], b: f32[1], c: f32[1], d: f32[1]) -> (y) {\n y = FakeQuantize(x, a, b, "
      "c, d) levels=";
  for (const int levels : {2, 16, 255, 256, 65536})
    for (const auto& [a, b, c, d] : {std::tuple{-1.f, 1.f, -1.f, 1.f},
                                     {0.f, 2.55f, 0.f, 2.55f},
                                     {3.f, -2.f, -7.f, 5.5f},
                                     {0.1f, 0.1f, 0.f, 1.f}})
      expect_native(one + std::to_string(levels) + "\n}\n",
                    {x, floats_of({a}), floats_of({b}), floats_of({c}), floats_of({d})}, 0, 0);
  const auto y = seeded_tensor(ElementType::f32, {2, 5, 6, 7}, 1);
  const auto low = seeded_tensor(ElementType::f32, {5, 1, 1}, 2),
             high = seeded_tensor(ElementType::f32, {1, 5, 6, 1}, 3);
  expect_native(
      "graph (x: f32[2,5,6,7], a: f32[5,1,1], b: f32[1,5,6,1], c: f32[], d: f32[7]) -> (y) {\n y = "
      "FakeQuantize(x, a, b, c, d) levels=256\n}\n",
      {y, low, high, Tensor::of({}, std::vector<float>{-1}), seeded_tensor(ElementType::f32, {7}, 4)}, 0, 0);
}

TEST(Elementwise, fake_quantize_to_whole_levels) {
  const auto x = many_floats(4000, 15);
  for (const auto& [levels, low, high] : {std::tuple{256, 0, 255},
                                          {256, -128, 127},
                                          {255, -127, 127},
                                          {2, 0, 1},
                                          {16, 0, 15},
                                          {256, 0, 510},
                                          {65536, 0, 65535}})
    for (const char* range : {"{-1}", "{3}"})
      expect_native(
          fmt::format("graph (x: f32[4000]) -> (y) {{\n a = const f32[] {}\n b = const f32[] {{2.5}}\n"
                      " c = const f32[] {{{}}}\n d = const f32[] {{{}}}\n"
                      " y = FakeQuantize(x, a, b, c, d) levels={}\n}}\n",
                      range, low, high, levels),
          {x}, 0, 0);
}

TEST(Elementwise, quantize_by_one_scale) {
  auto values = to_floats(many_floats(3000, 14));
  for (int i = -600; i < 600; ++i) values.push_back(static_cast<float>(i) / 2);  // halves go to even
  const auto x = floats_of(values);
  for (const std::string t : {"u8", "i8", "i16", "u16"})
    for (const char* scale : {"1", "0.5", "8", "0.3", "-1", "0", "1e-40", "3e38", "inf", "nan"})
      for (const char* zero : {"0", "3", "127"})
        expect_native(
            fmt::format("graph (x: f32[{0}]) -> (y) {{\n s = const f32[] {{{2}}}\n z = const {1}[] {{{3}}}\n"
                        " y = Quantize(x, s, z) destination_type={1}\n}}\n",
                        values.size(), t, scale, zero),
            {x}, 0, 0);
  const auto bytes = random_ints(ElementType::u8, 1203, 7);
  for (const char* type : {"f32", "f16", "bf16"})
    expect_native(
        fmt::format("graph (x: u8[1203]) -> (y) {{\n s = const {}[] {{0.37}}\n z = const u8[] {{131}}\n"
                    " y = Dequantize(x, s, z)\n}}\n",
                    type),
        {bytes}, 0, 0);
}

TEST(Elementwise, quantize_and_dequantize) {
  auto values = to_floats(many_floats(3 * 400, 13));
  const auto x = Tensor::of({1, 3, 400}, values);
  const auto scale = floats_of({0.01f, 1.5f, 3e5f});
  std::uint64_t seed = 20;
  for (const std::string t : {"u8", "i8", "i16", "u16", "i32", "u32"}) {
    const auto type = *element_type_named(t);
    const auto zero = random_ints(type, 3, ++seed);
    expect_native(fmt::format("graph (x: f32[1,3,400], s: f32[3], z: {0}[3]) -> (y) {{\n y = Quantize(x, s, "
                              "z) destination_type={0}\n}}\n",
                              t),
                  {x, scale, zero}, 0, 0);
    expect_native(
        fmt::format(
            "graph (x: f32[1,3,400], s: f32[1]) -> (y) {{\n y = Quantize(x, s) destination_type={0}\n}}\n",
            t),
        {x, floats_of({0.3f})}, 0, 0);
    const auto q = random_ints(type, 1200, ++seed).reshaped({1, 3, 400});
    expect_native(
        fmt::format("graph (x: {0}[1,3,400], s: f32[3], z: {0}[3]) -> (y) {{\n y = Dequantize(x, s, z)\n}}\n",
                    t),
        {q, scale, zero}, 0, 0);
    expect_native(
        fmt::format("graph (x: {0}[1,3,400], s: f32[400]) -> (y) {{\n y = Dequantize(x, s) axis=-1\n}}\n", t),
        {q, seeded_tensor(ElementType::f32, {400}, 5)}, 0, 0);
  }
}

}  // namespace
}  // namespace lamina::testing
