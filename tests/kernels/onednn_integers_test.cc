/// oneDNN's products of u8 and i8 with exact i32 sums, and the epilogues of quantised networks behind them:
/// every offer of oneDNN against the interpreter, over the whole range of the operands.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/native_offers.h"

namespace lamina::testing {
namespace {

/// oneDNN's instructions may be limited from outside; then it offers nothing.
bool multiplies_here() {
  const auto& features = host().features;
  return (features.has(Feature::avx512_vnni) || features.has(Feature::avx_vnni)) &&
         host().library >= Isa::avx2 && !std::getenv("ONEDNN_MAX_CPU_ISA");
}

/// Numbers of 8 bits over their whole range, the bounds often.
Tensor whole_range(const Tensor& like, std::uint64_t seed) {
  SplitMix random(seed);
  Tensor out(like.element_type(), like.shape());
  auto* bytes = reinterpret_cast<std::uint8_t*>(out.raw());
  for (std::size_t i = 0; i < out.bytes(); ++i) {
    const auto kind = random.below(8);
    bytes[i] = static_cast<std::uint8_t>(kind == 0   ? 0x7f
                                         : kind == 1 ? 0x80
                                         : kind == 2 ? 0xff
                                                     : random.below(256));
  }
  return out;
}

/// Without the largest u8 number, so that all but zero points of 127 and 128 fit into i8.
Tensor weights_of(const Tensor& like, std::uint64_t seed) {
  Tensor out = whole_range(like, seed);
  if (out.element_type() == ElementType::u8)
    for (auto& w : out.data<std::uint8_t>()) w = std::min<std::uint8_t>(w, 254);
  return out;
}

bool is_byte(ElementType type) { return type == ElementType::u8 || type == ElementType::i8; }

/// Weights and inputs of 8 bits; zero points, which are single numbers or written out, stay.
std::vector<Tensor> widen(Graph& g, std::uint64_t seed) {
  for (std::uint32_t i = 0, count = static_cast<std::uint32_t>(g.value_slots()); i < count; ++i)
    if (const auto* t = g.constant(ValueId{i}); t && is_byte(t->element_type()) && t->shape().size() > 1)
      g.replace(ValueId{i}, g.add_constant(weights_of(*t, ++seed)));
  auto inputs = random_inputs(g, seed);
  for (auto& t : inputs)
    if (is_byte(t.element_type()) && t.size() > 1) t = whole_range(t, ++seed);
  return inputs;
}

/// What runs behind the sums s: floats r, then what is stored. {C} stands for the shape of one number per
/// channel, {per channel} for such numbers.
struct Epilogue {
  std::string floats, stored;  // "" and "": the sums; only floats: these
  double scale = 1;            // of Quantize
  bool exact = false;          // all numbers are: results are the very same
  std::string second = "";     // type of a second tensor p
};

const Epilogue kEpilogues[] = {
    {"", ""},
    {"r = Convert(s) destination_type=f32", ""},
    {"f = Convert(s) destination_type=f32\n m = const f32{C} {M}\n g = Multiply(f, m)\n b = const f32{C} "
     "{B}\n r = Add(g, b)",
     ""},
    {"f = Convert(s) destination_type=f32\n m = const f32[] {0.0009765625}\n r = Multiply(f, m)",
     "o = const f32[] {1}\n z = const u8[] {7}\n q = Quantize(r, o, z) destination_type=u8", 1, true},
    {"f = Convert(s) destination_type=f32\n m = const f32[] {0.001953125}\n r = Multiply(f, m)",
     "o = const f32[] {2}\n z = const i8[] {-3}\n q = Quantize(r, o, z) destination_type=i8", 2, true},
    {"f = Convert(s) destination_type=f32\n m = const f32{C} {M}\n g = Multiply(f, m)\n b = const f32{C} "
     "{B}\n h = Add(g, b)\n r = Relu(h)",
     "o = const f32[] {1}\n q = Quantize(r, o) destination_type=i8"},
    {"f = Convert(s) destination_type=f32\n m = const f32{C} {M}\n r = Multiply(f, m)",
     "o = const f32[] {0.7}\n z = const u8[] {128}\n q = Quantize(r, o, z) destination_type=u8", 0.7},
    {"f = Convert(s) destination_type=f32\n m = const f32{C} {M}\n g = Multiply(f, m)\n b = const f32{C} "
     "{B}\n h = Add(g, b)\n k = HSwish(h)\n r = Clamp(k) min=-20 max=90.5",
     "o = const f32[] {0.5}\n z = const u8[] {3}\n q = Quantize(r, o, z) destination_type=u8", 0.5},
    {"f = Convert(s) destination_type=f32\n m = const f32{C} {M}\n g = Multiply(f, m)\n b = const f32{C} "
     "{B}\n h = Add(g, b)\n d = const f32[] {0.3}\n e = const u8[] {7}\n k = Dequantize(p, d, e)\n l = "
     "Add(h, k)\n r = Relu(l)",
     "o = const f32[] {1}\n q = Quantize(r, o) destination_type=u8", 1, false, "u8"},
    {"f = Convert(s) destination_type=f32\n m = const f32[] {0.0009765625}\n g = Multiply(f, m)\n d = const "
     "f32[] {0.5}\n k = Dequantize(p, d)\n r = Add(k, g)",
     "o = const f32[] {1}\n z = const i8[] {5}\n q = Quantize(r, o, z) destination_type=i8", 1, true, "i8"},
    {"f = Convert(s) destination_type=f32\n m = const f32{C} {M}\n g = Multiply(f, m)\n h = Relu(g)\n d = "
     "const f32[] {0.3}\n e = const i8[] {-9}\n k = Dequantize(p, d, e)\n r = Subtract(h, k)",
     "o = const f32[] {1}\n z = const u8[] {10}\n q = Quantize(r, o, z) destination_type=u8", 1, false, "i8"},
    {"f = Convert(s) destination_type=f32\n m = const f32{C} {M}\n g = Multiply(f, m)\n r = Add(g, p)",
     "o = const f32[] {1}\n q = Quantize(r, o) destination_type=u8", 1, false, "f32"},
    {"f = Convert(s) destination_type=f32\n m = const f32{C} {M}\n g = Multiply(f, m)\n h = Sigmoid(g)\n d "
     "= const f32[] {0.25}\n k = Dequantize(p, d)\n r = Multiply(h, k)",
     "", 1, false, "u8"},
    {"f = Convert(s) destination_type=f32\n m = const f32{C} {M}\n r = Multiply(f, m)",
     "q = Convert(r) destination_type=bf16"},
    {"f = Convert(s) destination_type=f32\n m = const f32{C} {M}\n r = Multiply(f, m)",
     "q = Convert(r) destination_type=u8"},
    {"f = Convert(s) destination_type=f32\n m = const f32[] {0.0009765625}\n g = Multiply(f, m)\n i = const "
     "f32[] {1}\n n = const u8[] {7}\n h = Quantize(g, i, n) destination_type=u8\n d = const f32[] {0.5}\n k "
     "= "
     "Dequantize(h, d, n)\n r = Relu(k)",
     "o = const f32[] {0.25}\n z = const u8[] {9}\n q = Quantize(r, o, z) destination_type=u8", 0.25, true},
    {"f = Convert(s) destination_type=f32\n m = const f32[] {0.0009765625}\n g = Multiply(f, m)\n i = const "
     "f32[] {2}\n n = const i8[] {-3}\n h = Quantize(g, i, n) destination_type=i8\n d = const f32[] {0.25}\n "
     "e = "
     "const i8[] {4}\n r = Dequantize(h, d, e)",
     "", 1, true},
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// Products of so many numbers each: scales that leave results within some hundreds.
struct Host {
  std::string x, w, attributes, y;
  std::int64_t depth;
  bool rows = false;        // a matrix product
  bool transposed = false;  // a transposed convolution, which has no zero points
};

std::int64_t channels_of(const Host& h) {
  const auto shape = parse(fmt::format("graph (x: f32[{}]) -> (x) {{\n}}\n", h.y));
  const auto dims = shape.type(shape.inputs()[0]).shape.sizes();
  return h.rows ? dims.back() : dims[1];
}

std::string filled(const Host& h, const std::string& stages) {
  const auto channels = channels_of(h);
  SplitMix random(channels + h.depth);
  const auto numbers = [&](float around, float spread) {
    std::string out = "{";
    for (std::int64_t c = 0; c < channels; ++c)
      out += fmt::format("{}{}", c ? ", " : "", around + spread * random.uniform());
    return out + "}";
  };
  const float scale = 60.0f / (8000 * std::sqrt(static_cast<float>(h.depth)));
  const auto axes = std::count(h.y.begin(), h.y.end(), ',') + 1;
  auto dims = h.rows ? std::string() : fmt::format("[1,{}", channels);
  for (std::ptrdiff_t i = 2; i < axes && !h.rows; ++i) dims += ",1";
  dims = h.rows ? fmt::format("[{}]", channels) : dims + "]";
  auto out = replaced(stages, "{C}", dims);
  out = replaced(out, "{M}", numbers(scale, scale * 0.4f));
  return replaced(out, "{B}", numbers(10, 40));
}

/// How operands are given.
struct Operands {
  std::string x = "u8", w = "i8", zero = "_", weights_zero = "_";
};

std::string text_of(const Host& h, const Operands& o, const Epilogue& e, bool with_stored) {
  const std::string stages =
      e.floats.empty() ? "" : filled(h, e.floats) + "\n " + (with_stored ? e.stored : "");
  std::string text = fmt::format("graph (x: {}[{}]", o.x, h.x);
  if (!e.second.empty()) text += fmt::format(", p: {}[{}]", e.second, h.y);
  if (o.zero == "given") text += fmt::format(", a: {}[1]", o.x);
  if (h.w.find("given ") == 0) text += fmt::format(", w: {}[{}]", o.w, h.w.substr(6));
  text += ") -> (y) {\n";
  if (h.w.find("given ") != 0) text += fmt::format(" w = const {}[{}] seed(1)\n", o.w, h.w);
  if (o.zero != "_" && o.zero != "given") text += fmt::format(" a = const {}[] {{{}}}\n", o.x, o.zero);
  if (o.weights_zero == "per channel") {
    text += fmt::format(" v = const {}[{}] {{", o.w, channels_of(h));
    for (std::int64_t c = 0; c < channels_of(h); ++c) text += fmt::format("{}{}", c ? ", " : "", 127 + c % 2);
    text += "}\n";
  } else if (o.weights_zero != "_") {
    text += fmt::format(" v = const {}[] {{{}}}\n", o.w, o.weights_zero);
  }
  text += fmt::format(" y = {}(x, w, _, {}{}{}) {}",
                      h.rows         ? "MatMul"
                      : h.transposed ? "ConvolutionBackpropData"
                                     : "Convolution",
                      o.zero == "_" ? "_" : "a",
                      h.transposed            ? ""
                      : o.weights_zero == "_" ? ", _"
                                              : ", v",
                      e.second.empty() ? "" : ", p", h.attributes);
  if (!stages.empty())
    text += fmt::format(" {{\n body graph (s: i32[{}]{}) -> ({}) {{\n {}\n }}\n }}", h.y,
                        e.second.empty() ? "" : fmt::format(", p: {}[{}]", e.second, h.y),
                        with_stored && !e.stored.empty() ? "q" : "r", stages);
  return text + "\n}\n";
}

/// Integers may be one step apart beside a tie.
void expect_stored(const Tensor& got, const Tensor& wanted, const Tensor& floats, const Epilogue& e,
                   const std::string& what) {
  ASSERT_EQ(got.element_type(), wanted.element_type()) << what;
  if (is_float(wanted.element_type())) {
    double largest = 0;
    for (const auto v : to_doubles(wanted)) largest = std::max(largest, std::fabs(v));
    const bool half = wanted.element_type() == ElementType::bf16;
    return expect_elements(got, wanted, half ? 0x1p-7 : 1e-5, largest * 1e-6, what);
  }
  const auto a = to_doubles(got), b = to_doubles(wanted), f = to_doubles(floats);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const double steps = f[i] / e.scale, beside = std::fabs(std::fabs(steps - std::floor(steps)) - 0.5);
    const bool truncated = e.stored.find("Convert") != std::string::npos;
    const double border = truncated ? std::fabs(steps - std::round(steps)) : beside;
    ASSERT_TRUE(!e.exact && !e.stored.empty() && std::fabs(a[i] - b[i]) <= 1 && border < 1e-4)
        << what << " at " << i << ": " << a[i] << ", wanted " << b[i] << " of " << f[i];
  }
}

/// How many offers of oneDNN there were.
std::size_t check(const Host& h, const Operands& o, const Epilogue& e, std::uint64_t seed) {
  const auto text = text_of(h, o, e, true);
  SCOPED_TRACE(text);
  auto g = parse(text);
  const auto inputs = widen(g, seed);
  Tensor floats;
  if (!e.stored.empty()) {
    auto before = parse(text_of(h, o, e, false));
    floats = interpret(before, widen(before, seed)).at(0);
  }
  std::size_t offers = 0;
  InterpreterOptions observe;
  observe.observe = [&](const Graph& graph, NodeId id, const std::vector<Tensor>& in,
                        const std::vector<Tensor>& out) {
    if (graph.node_slots() != g.node_slots()) return;
    for (const auto& offer : ask_kernels(NodeView(graph, id)).offers) {
      if (offer.kernel.find("onednn") != 0 || offer.stages < epilogue_size(graph.node(id))) continue;
      ++offers;
      EXPECT_TRUE(offer.label.find("vnni") != std::string::npos ||
                  offer.label.find("amx") != std::string::npos)
          << offer.label;
      const auto got =
          run_offer(graph, id, offer, in, {.threads = 1 + static_cast<int>(seed % 2), .shift = seed % 3});
      expect_stored(got.at(0), out[0], floats.valid() ? floats : out[0], e, offer.label);
    }
  };
  interpret(g, inputs, observe);
  return offers;
}

const Host kConvolutions[] = {
    {"1,16,9,10", "32,16,3,3", "pads_begin=[1,1] pads_end=[1,1]", "1,32,9,10", 144},
    {"2,40,7,7", "24,40,1,1", "", "2,24,7,7", 40},
    {"1,64,6,6", "130,64,1,1", "strides=[2,2]", "1,130,3,3", 64},
    {"1,3,20,21", "17,3,7,7", "strides=[2,2] pads_begin=[3,3] pads_end=[3,3]", "1,17,10,11", 147},
    {"1,33,9,9", "33,1,3,3", "groups=33 pads_begin=[1,1] pads_end=[1,1]", "1,33,9,9", 9},
    {"1,48,9,9", "48,1,5,5", "groups=48 strides=[2,2] pads_begin=[2,1] pads_end=[1,2]", "1,48,4,4", 25},
    {"1,24,8,8", "36,8,3,3", "groups=3 pads_begin=[0,1] pads_end=[1,0]", "1,36,7,7", 72},
    {"1,12,8,8", "12,12,3,3", "dilations=[2,2] pads_begin=[2,2] pads_end=[2,2]", "1,12,8,8", 108},
    {"1,7,8,8", "14,1,3,3", "groups=7 pads_begin=[1,1] pads_end=[1,1]", "1,14,8,8", 9},
    {"1,20,30", "8,20,5", "pads_begin=[2] pads_end=[2]", "1,8,30", 100},
    {"1,8,5,6,7", "16,8,3,3,3", "pads_begin=[1,1,1] pads_end=[1,1,1]", "1,16,5,6,7", 216},
    {"1,5,6,1", "7,5,3,1", "pads_begin=[1,0] pads_end=[1,0]", "1,7,6,1", 15},
    {"1,100,5,5", "5,100,3,3", "pads_begin=[1,1] pads_end=[1,1]", "1,5,5,5", 900},
};

const Operands kOperands[] = {{},
                              {"i8"},
                              {"u8", "i8", "131"},
                              {"i8", "i8", "-7"},
                              {"u8", "i8", "given"},
                              {"i8", "i8", "given"},
                              {"u8", "u8", "3", "128"},
                              {"i8", "u8", "_", "per channel"}};

TEST(OnednnIntegers, convolutions) {
  if (!multiplies_here()) GTEST_SKIP() << "this processor has no VNNI";
  std::uint64_t seed = 1;
  for (const auto& h : kConvolutions)
    for (const auto& o : kOperands) {
      std::size_t offers = 0;
      for (auto i = ++seed % 2; i < std::size(kEpilogues); i += 2) {  // the others with other operands
        offers += check(h, o, kEpilogues[i], ++seed);
        if (HasFatalFailure()) return;
      }
      const bool refused = h.w == "14,1,3,3" && o.x == "i8" && o.zero != "_";
      if (!refused) {
        EXPECT_GE(offers, std::size(kEpilogues) / 2 - 2) << h.w << " " << o.x << " " << o.zero;
      }
    }
}

const Host kProducts[] = {{"33,50", "50,75", "", "33,75", 50, true},
                          {"1,700", "300,700", "transpose_b=true", "1,300", 700, true},
                          {"2,5,37", "37,53", "", "2,5,53", 37, true},
                          {"2,5,37", "given 37,53", "", "2,5,53", 37, true},
                          {"2,3,9,40", "given 2,3,21,40", "transpose_b=true", "2,3,9,21", 40, true},
                          {"2,7,40", "2,40,9", "", "2,7,9", 40, true},
                          {"7,40", "40,1", "", "7,1", 40, true}};

TEST(OnednnIntegers, matrix_products) {
  if (!multiplies_here()) GTEST_SKIP() << "this processor has no VNNI";
  const Operands more[] = {{"u8", "i8", "_", "5"}, {"i8", "i8", "3", "-100"}, {"u8", "u8", "_", "17"}};
  std::uint64_t seed = 1;
  for (const auto& h : kProducts) {
    std::vector<Operands> operands(std::begin(kOperands), std::end(kOperands));
    operands.insert(operands.end(), std::begin(more), std::end(more));
    for (const auto& o : operands) {
      std::size_t offers = 0;
      for (auto i = ++seed % 2; i < std::size(kEpilogues); i += 2) {  // the others with other operands
        offers += check(h, o, kEpilogues[i], ++seed);
        if (HasFatalFailure()) return;
      }
      const bool packed = h.w == "50,75" || h.w == "300,700" || h.w == "37,53" || h.w == "40,1";
      const bool refused = o.w == "u8" && !packed;
      if (!refused) {
        EXPECT_GE(offers, std::size(kEpilogues) / 2 - 2) << h.w << " " << o.x << o.w << o.zero;
      }
    }
  }
}

const Host kTransposed[] = {
    {"1,16,9,10", "16,32,2,2", "strides=[2,2]", "1,32,18,20", 16, false, true},
    {"1,40,7,7", "40,24,4,4", "strides=[2,2] pads_begin=[1,1] pads_end=[1,1]", "1,24,14,14", 160, false,
     true},
    {"2,33,5,6", "33,9,3,3", "pads_begin=[1,1] pads_end=[1,1]", "2,9,5,6", 297, false, true},
    {"1,64,6,6", "64,64,3,3", "strides=[2,2] pads_begin=[1,1] pads_end=[0,0] dilations=[1,1]", "1,64,12,12",
     144, false, true},
    {"1,24,8,8", "24,6,3,3", "groups=3 strides=[2,2]", "1,18,17,17", 18, false, true},
    {"1,20,30", "20,8,5", "strides=[3]", "1,8,92", 40, false, true},
    {"1,8,4,4,5", "8,16,3,3,3", "strides=[2,2,2]", "1,16,9,9,11", 27, false, true}};

/// Where oneDNN has something else than what saturates.
TEST(OnednnIntegers, transposed_convolutions) {
  if (!multiplies_here()) GTEST_SKIP() << "this processor has no VNNI";
  std::uint64_t seed = 1;
  std::size_t offers = 0;
  for (const auto& h : kTransposed)
    for (const Operands& o : {Operands{"u8"}, Operands{"i8"}})
      for (const auto& e : kEpilogues) {
        offers += check(h, o, e, ++seed);
        if (HasFatalFailure()) return;
      }
  EXPECT_GE(offers, std::size(kEpilogues) * 11);
}

/// What oneDNN says of a node's last operator on a machine: its offers, and why there are no others.
Answers asked(const std::string& text, const Machine& machine = host()) {
  const auto g = parse(text);
  auto answers = ask_kernels(NodeView(g, g.order().back(), machine));
  std::erase_if(answers.offers, [](const Offer& o) { return o.kernel.find("onednn") != 0; });
  std::erase_if(answers.refusals, [](const auto& r) { return r.kernel.find("onednn") != 0; });
  return answers;
}

void expect_refused(const std::string& text, const std::string& reason, const Machine& machine = host()) {
  const auto answers = asked(text, machine);
  EXPECT_TRUE(answers.offers.empty()) << text << answers.offers[0].label;
  const auto says = [&](const auto& r) { return r.reason.find(reason) != std::string::npos; };
  EXPECT_TRUE(std::any_of(answers.refusals.begin(), answers.refusals.end(), says)) << text << reason;
}

TEST(OnednnIntegers, are_refused_where_sums_would_saturate) {
  for (const auto isa : {Isa::sse41, Isa::avx2})
    for (const auto& o : kOperands) {
      auto machine = limited(host(), isa);
      machine.features = machine.features.without({Feature::avx_vnni});
      expect_refused(text_of(kConvolutions[0], o, kEpilogues[3], true), "int8: without VNNI", machine);
      expect_refused(text_of(kProducts[0], o, kEpilogues[3], true), "int8: without VNNI", machine);
    }
}

TEST(OnednnIntegers, what_would_be_wrong_is_refused) {
  if (!multiplies_here()) GTEST_SKIP() << "this processor has no VNNI";
  const auto& sums = kEpilogues[0];
  const auto& stored = kEpilogues[3];
  const Host multiplier{"1,7,8,8", "14,1,3,3", "groups=7", "1,14,6,6", 9},
      large{"1,100,5,5", "8,100,3,3", "", "1,8,3,3", 900}, long_rows{"3,600", "600,8", "", "3,8", 600, true};
  expect_refused(text_of(multiplier, {"i8", "i8", "3"}, stored, true), "one channel and several results");
  expect_refused(replaced(text_of(kConvolutions[0], {"u8", "u8"}, stored, true), "seed(1)", "fill(200)"),
                 "int8: weights of u8");
  expect_refused(text_of(large, {"i8"}, sums, true), "before it stores i32");
  expect_refused(text_of(large, {"u8", "i8", "3"}, sums, true), "before it stores i32");
  EXPECT_FALSE(asked(text_of(large, {"u8"}, sums, true)).offers.empty());
  expect_refused(text_of(long_rows, {"i8"}, sums, true), "before it stores i32");
  EXPECT_FALSE(asked(text_of(long_rows, {"i8"}, stored, true)).offers.empty());
  expect_refused(text_of({"7,40", "given 40,9", "", "7,9", 40, true}, {"u8", "u8"}, stored, true),
                 "int8: weights");
}

/// Scales are powers of two: nothing is rounded but the stored integers.
TEST(OnednnIntegers, a_block_of_layers_is_planned_in_8_bits) {
  const auto layer = [](const std::string& name, const std::string& call, const std::string& second) {
    return fmt::format(
        " {0} = {1} {{\n body graph (s: i32[1,64,14,14]{2}) -> (q) {{\n f = Convert(s) "
        "destination_type=f32\n m = "
        "const f32[] {{0.0009765625}}\n g = Multiply(f, m)\n{3} o = const f32[] {{1}}\n z = const u8[] "
        "{{9}}\n q "
        "= Quantize(t, o, z) destination_type=u8\n }}\n }}\n",
        name, call, second.empty() ? "" : ", p: u8[1,64,14,14]",
        second.empty()
            ? " t = Relu(g)\n"
            : " d = const f32[] {0.5}\n e = const u8[] {11}\n k = Dequantize(p, d, e)\n l = Add(g, k)\n t = "
              "Relu(l)\n");
  };
  const auto text =
      "graph (x: u8[1,64,14,14], nine: u8[1]) -> (y, c) {\n u = const i8[64,64,1,1] seed(1)\n v = const "
      "i8[64,1,3,3] "
      "seed(2)\n w = const i8[64,64,3,3] seed(3)\n n = const u8[] {9}\n" +
      layer("a", "Convolution(x, u, _, nine)", "") +
      layer("b", "Convolution(a, v, _, n) groups=64 pads_begin=[1,1] pads_end=[1,1]", "") +
      layer("c", "Convolution(b, w, _, n, _, x) pads_begin=[1,1] pads_end=[1,1]", "p") +
      " y = MaxPool(c) kernel=[2,2] strides=[2,2]\n}\n";
  auto g = parse(text);
  const auto inputs = widen(g, 5);
  const auto wanted = interpret(g, inputs);
  const auto got = run_graph(g, inputs);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(got.outputs[i].same_as(wanted[i])) << i;
  if (!multiplies_here()) return;
  for (const auto& label : got.labels) EXPECT_NE(label, "reference");
}

/// A second tensor may hold anything: what is not a number becomes 0.
TEST(OnednnIntegers, what_is_not_a_number_is_stored_as_the_reference_does) {
  if (!multiplies_here()) GTEST_SKIP() << "this processor has no VNNI";
  for (const std::string type : {"u8", "i8"})
    for (const std::string zero : {"0", "5", "6"}) {
      Epilogue e = kEpilogues[11];
      e.stored = fmt::format(
          "o = const f32[] {{1}}\n z = const {0}[] {{{1}}}\n q = Quantize(r, o, z) destination_type={0}",
          type, zero);
      const auto g = parse(text_of(kConvolutions[0], {}, e, true));
      auto inputs = random_inputs(g, 3);
      auto second = inputs[1].data<float>();
      const auto& special = special_floats();
      for (std::size_t i = 0; i < second.size(); ++i) second[i] = special[i % special.size()];
      const auto wanted = interpret(g, inputs).at(0);
      const auto id = g.order().back();
      std::size_t seen = 0;
      for (const auto& offer : ask_kernels(NodeView(g, id)).offers) {
        if (offer.kernel.find("onednn") != 0 || offer.stages < epilogue_size(g.node(id))) continue;
        ++seen;
        const std::vector<Tensor> in{inputs[0], *g.constant(g.node(id).inputs[1]), {}, {}, {}, inputs[1]};
        EXPECT_TRUE(run_offer(g, id, offer, in).at(0).same_as(wanted)) << offer.label << type << zero;
      }
      EXPECT_EQ(seen, 1u);
    }
}

}  // namespace
}  // namespace lamina::testing
