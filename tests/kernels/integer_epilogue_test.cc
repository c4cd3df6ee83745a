/// What registers do with sums of integers, on random chains, bit for bit as the interpreter does it; and
/// which chains they leave to programs of stages.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/native/stages/epilogue.h"
#include "kernels/native/stages/sum_rows.h"
#include "tests/kernels/native_offers.h"

namespace lamina::testing {
namespace {

/// A product of integers and what is behind it.
struct Chain {
  Dims dims;                ///< of the sums: rank 2 a MatMul, rank 4 a Convolution
  std::string stages;       ///< makes q of r
  std::string second = {};  ///< type of the second tensor e, or empty
  std::int64_t depth = 5;   ///< products of a sum

  bool rows() const { return dims.size() == 2; }
  std::int64_t channels() const { return dims[1]; }
  std::string host(const std::string& behind) const {
    const auto e = second.empty() ? "" : fmt::format(", e: {}{}", second, dims_text(dims));
    const std::string extra = second.empty() ? "" : ", _, _, _, e";
    if (rows())
      return fmt::format(
          "graph (x: u8[{},{}]{}) -> (y) {{\n w = const i8[{},{}] seed(3)\n y = MatMul(x, w{}){}\n}}\n",
          dims[0], depth, e, depth, channels(), extra, behind);
    return fmt::format(
        "graph (x: u8[{},{},{},{}]{}) -> (y) {{\n w = const i8[{},{},1,1] seed(3)\n y = Convolution(x, "
        "w{}){}\n}}\n",
        dims[0], depth, dims[2], dims[3], e, channels(), depth, extra, behind);
  }
  std::string text() const {
    if (stages.empty()) return host("");
    const auto e = second.empty() ? "" : fmt::format(", e: {}{}", second, dims_text(dims));
    return host(
        fmt::format(" {{\n body graph (r: i32{}{}) -> (q) {{\n{}\n }}\n}}", dims_text(dims), e, stages));
  }
};

Layout layout_of(const Chain& c) { return c.rows() ? Layout::plain : Layout::channels_last; }

std::optional<Epilogue> epilogue_of(const Graph& g, const Chain& c, std::string& why) {
  return Epilogue::of(NodeView(g, g.order().at(0)), layout_of(c), why);
}

/// Channels [from, to) of all points.
void finish(const Epilogue& e, const RunArgs& args, const Tensor& sums, std::int64_t from, std::int64_t to) {
  constexpr std::int64_t kVector = 16;  // behind the last sums, too
  const auto channels = e.out.channels, points = static_cast<std::int64_t>(sums.size()) / channels;
  std::vector<std::int32_t> readable(sums.size() + kVector);
  std::memcpy(readable.data(), sums.raw(), sums.bytes());
  std::vector<std::byte> apart(static_cast<std::size_t>(e.apart_bytes(points * channels)));
  const auto at = e.sums(args.out[0], {0, points, from, to - from}, apart.data());
  const auto* added = static_cast<const std::byte*>(e.added_at(args, 0, from));
  finish_rows(e.integer_finish(), {readable.data() + from, channels, at.memory(), at.row_bytes(), added,
                                   e.added.bytes(e.added.step), points, from, to - from});
  if (e.registers_only()) return;
  StageRun stages(*e.stages, args.in);
  at.apply(stages);
}

/// Results of the whole node, from its sums; some elements are kept free between the points.
Tensor finished(const Graph& g, const Chain& c, const Tensor& sums, const Tensor& second) {
  std::string why;
  auto e = epilogue_of(g, c, why);
  ModelWeights weights;
  const auto channels = c.channels(), row = channels + 3;
  e->lay(MakeContext{weights, {}, {row}});
  const auto laid = laid_out(sums, layout_of(c));
  const auto other = second.valid() ? laid_out(second, layout_of(c)) : Tensor();
  const void* in[] = {nullptr, nullptr, nullptr, nullptr, nullptr, other.valid() ? other.raw() : nullptr};
  const auto& type = g.type(g.results()[0].value);
  const std::int64_t bytes = bits_of(type.element) / 8,
                     points = static_cast<std::int64_t>(sums.size()) / channels;
  std::vector<std::byte> out(static_cast<std::size_t>(points * row * bytes), std::byte{7});
  void* to[] = {out.data()};
  const RunArgs args{in, to, nullptr};
  // In two parts, as tasks of a kernel do it.
  const auto half = channels > 20 && e->registers_only() ? 16 : channels;
  finish(*e, args, laid, 0, half);
  if (half < channels) finish(*e, args, laid, half, channels);
  Tensor got(type.element, c.dims);
  for (std::int64_t p = 0; p < points; ++p) {
    const auto* point = out.data() + p * row * bytes;
    std::memcpy(got.raw() + p * channels * bytes, point, static_cast<std::size_t>(channels * bytes));
    for (auto i = channels * bytes; i < row * bytes; ++i) EXPECT_EQ(point[i], std::byte{7}) << "beside";
  }
  return plain_of(got, type.element, c.dims, layout_of(c));
}

Tensor special(const Tensor& t, SplitMix& random) {
  Tensor out = t.clone();
  for (auto& v : out.data<float>())
    if (random.below(8) == 0) v = special_floats()[random.below(special_floats().size())];
  return out;
}

enum class By { registers, stages };

void expect_same(const Chain& c, By by, std::uint64_t seed, bool special_numbers = false) {
  SCOPED_TRACE(c.text());
  auto g = parse(c.text());
  if (seed % 2 != 0) unalign_constants(g);
  std::string why;
  const auto e = epilogue_of(g, c, why);
  ASSERT_TRUE(e) << why;
  ASSERT_EQ(e->registers_only(), by == By::registers);
  auto in = random_inputs(g, seed);
  SplitMix random(seed);
  if (special_numbers) in.at(1) = special(in.at(1), random);
  const auto wanted = interpret(g, in).at(0);
  auto bare = c;
  bare.second.clear();
  const auto sums = interpret(parse(bare.host("")), {in[0]}).at(0);
  ASSERT_EQ(sums.element_type(), ElementType::i32);
  expect_elements(finished(g, c, sums, in.size() > 1 ? in[1] : Tensor()), wanted, 0, 0, c.text());
}

/// Writes random chains: each part is there or not.
class Writer {
 public:
  explicit Writer(SplitMix& random) : random_(random) {
    constexpr std::int64_t kChannels[] = {1, 3, 4, 8, 15, 16, 17, 31, 40, 64, 70};
    const auto channels = kChannels[random.below(std::size(kChannels))];
    c_.dims = random.below(2) ? Dims{1 + static_cast<std::int64_t>(random.below(9)), channels}
                              : Dims{2, channels, 3, 2};
  }

  Chain chain() {
    if (random_.below(12) == 0) return c_;
    stage("", "Convert(r) destination_type=f32");
    if (random_.below(6) != 0) by_channels("Multiply");
    if (random_.below(3) != 0) by_channels("Add");
    if (random_.below(3) == 0) levels();
    if (random_.below(2) != 0) second();
    if (c_.second != "f32" && random_.below(3) == 0) levels();
    activation();
    if (random_.below(4) == 0) by_channels("Multiply");
    if (random_.below(4) == 0) by_channels("Add");
    if (random_.below(4) != 0) quantize();
    c_.stages.replace(c_.stages.rfind(last_ + " = "), last_.size(), "q");
    return c_;
  }

 private:
  std::string any(std::initializer_list<const char*> list) {
    return *(list.begin() + random_.below(list.size()));
  }

  void stage(const std::string& constants, const std::string& call) {
    last_ = fmt::format("t{}", count_++);
    c_.stages += fmt::format("{}\n {} = {}", constants, last_, call);
  }

  void by_channels(const std::string& name) {
    const auto n = fmt::to_string(c_.channels());
    const auto shape = random_.below(4) == 0 ? any({"", c_.rows() ? "1,1" : "1,1,1,1"})
                       : c_.rows()           ? any({"", "1,"}) + n
                                             : any({"", "1,"}) + n + ",1,1";
    const auto constant =
        fmt::format("\n {}{} = const f32[{}] seed({})", name, count_, shape, random_.below(99));
    const auto k = fmt::format("{}{}", name, count_);
    stage(constant, random_.below(2) ? fmt::format("{}({}, {})", name, last_, k)
                                     : fmt::format("{}({}, {})", name, k, last_));
  }

  void second() {
    if (random_.below(4) == 0) {  // a constant
      const auto e = fmt::format("e{}", count_);
      const auto values = random_.below(2) ? fmt::format("seed({})", random_.below(99)) : few_rows();
      return stage(
          fmt::format("\n {} = const f32{} {}", e, dims_text(c_.dims), values),
          random_.below(2) ? fmt::format("Add({}, {})", last_, e) : fmt::format("Add({}, {})", e, last_));
    }
    c_.second = any({"f32", "u8", "i8"});
    std::string e = "e";
    if (c_.second != "f32") {
      c_.stages +=
          fmt::format("\n es = const f32[] {{0.37}}\n ez = const {}[] {{{}}}\n d = Dequantize(e, es{})",
                      c_.second, c_.second == "u8" ? 131 : -7, random_.below(3) ? ", ez" : "");
      e = "d";
    }
    stage("", random_.below(2) ? fmt::format("Add({}, {})", last_, e) : fmt::format("Add({}, {})", e, last_));
  }

  /// Two kinds of points, most of them of one.
  std::string few_rows() const {
    const auto count = static_cast<std::int64_t>(element_count(c_.dims));
    const std::int64_t behind = c_.rows() ? 1 : 6;
    std::string text;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto channel = i / behind % c_.channels();
      const bool first = !c_.rows() && i % behind == 0;
      text += fmt::format("{}{}", i ? "," : "", static_cast<double>(channel % 7) * 0.3 - (first ? 5.5 : 0.7));
    }
    return "{" + text + "}";
  }

  /// A quantise step in the midst.
  void levels() {
    if (random_.below(2) != 0) activation(2);
    const bool is_signed = random_.below(2) != 0;
    const auto type = is_signed ? "i8" : "u8";
    const auto zero = any({"3", "127", "0"});
    const auto n = count_;  // there may be two
    const auto of_both = random_.below(3) ? fmt::format(", lz{}", n) : "";
    const auto step = any({"1", "1", "0.31", "2.5"});
    stage(fmt::format("\n l{} = const f32[] {{{}}}\n lz{} = const {}[] {{{}}}", n, step, n, type, zero),
          fmt::format("Quantize({}, l{}{}) destination_type={}", last_, n, of_both, type));
    stage(fmt::format("\n back{} = const f32[] {{0.043}}", n),
          fmt::format("Dequantize({}, back{}{})", last_, n, of_both));
  }

  void activation(std::uint64_t kinds = 5) {
    const auto kind = random_.below(kinds);
    if (kind == 0) stage("", fmt::format("Relu({})", last_));
    if (kind == 1)
      stage("", fmt::format("Clamp({}) min={} max={}", last_, any({"-3.5", "0", "-200.25"}),
                            any({"6", "0.5", "300"})));
    if (kind == 2) stage("\n leaky = const f32[1] {0.1}", fmt::format("PRelu({}, leaky)", last_));
    if (kind == 3) {
      const auto n = c_.channels();
      const auto shape = c_.rows() || random_.below(2) ? fmt::to_string(n) : fmt::format("{},1,1", n);
      stage(fmt::format("\n slope = const f32[{}] seed(7)", shape), fmt::format("PRelu({}, slope)", last_));
    }
  }

  void quantize() {
    const bool is_signed = random_.below(2) != 0;
    const auto type = is_signed ? "i8" : "u8";
    const auto zero = is_signed ? any({"-5", "-128", "11"}) : any({"3", "128", "255"});
    stage(fmt::format("\n s = const f32[] {{{}}}\n z = const {}[] {{{}}}",
                      any({"1", "1", "0.25", "0.3", "7.7"}), type, zero),
          fmt::format("Quantize({}, s{}) destination_type={}", last_, random_.below(2) ? ", z" : "", type));
  }

  SplitMix& random_;
  Chain c_;
  std::string last_ = "r";
  int count_ = 0;
};

TEST(IntegerEpilogue, random_chains_are_the_interpreter_s) {
  SplitMix random(11);
  for (int i = 0; i < 600; ++i) {
    const auto c = Writer(random).chain();
    expect_same(c, By::registers, static_cast<std::uint64_t>(i), c.second == "f32" && i % 3 == 0);
    if (HasFailure()) return;
  }
}

const std::string kFloats = " t = Convert(r) destination_type=f32\n";

TEST(IntegerEpilogue, numbers_at_their_ends) {
  const std::string quantize =
      "\n s = const f32[] {1}\n z = const u8[] {9}\n q = Quantize(v, s, z) destination_type=u8";
  // Products and sums beyond all integers, infinities, and NaN, which gives the integer 0.
  for (const char* scale : {"1e9", "-1e9", "3e38", "-3e38", "inf", "nan", "0", "1e-45"})
    for (const char* shift : {"0", "-3e38", "-inf", "nan"})
      for (const auto& end :
           {quantize, std::string("\n q = Relu(v)"), std::string("\n q = Clamp(v) min=-2 max=7")})
        expect_same(
            {{3, 20},
             kFloats + fmt::format(" m = const f32[] {{{}}}\n b = const f32[] {{{}}}\n u = Multiply(t, m)\n"
                                   " v = Add(u, b){}",
                                   scale, shift, end)},
            By::registers, 1);
  // Sums that f32 does not hold.
  expect_same({{2, 9}, kFloats + " h = const f32[] {1}\n q = Add(t, h)", "", 9000}, By::registers, 1);
}

/// Quotients near ties, by steps of all kinds of mantissas.
TEST(IntegerEpilogue, steps_divide_as_f32_does) {
  SplitMix random(5);
  for (int i = 0; i < 200; ++i) {
    const auto step = static_cast<double>(random.below(1 << 24) + (1 << 24)) * std::pow(2.0, -24.0 - i % 7);
    const auto scale = (i % 2 ? 0.5 : 1.0 / 3) * step;
    const auto chain = fmt::format(
        " m = const f32[] {{{}}}\n u = Multiply(t, m)\n es = const f32[] {{{}}}\n"
        " d = Dequantize(e, es)\n v = Add(u, d)\n s = const f32[] {{{}}}\n"
        " q = Quantize(v, s) destination_type=i8",
        scale, i % 3 ? scale : step, step);
    expect_same({{64, 64}, kFloats + chain, "i8", 1}, By::registers, static_cast<std::uint64_t>(i));
    if (HasFailure()) return;
  }
}

TEST(IntegerEpilogue, halves_go_to_even_before_the_zero_point) {
  const std::string quantize =
      " h = const f32[] {0.5}\n u = Multiply(t, h)\n s = const f32[] {1}\n z = const u8[] {77}\n"
      " q = Quantize(u, s, z) destination_type=u8";
  expect_same({{40, 33}, kFloats + quantize, "", 1}, By::registers, 3);
}

TEST(IntegerEpilogue, others_are_stages) {
  const std::string scale = kFloats + " m = const f32[1,20,1,1] seed(1)\n u = Multiply(t, m)\n";
  const Dims dims{1, 20, 3, 5};
  expect_same({dims, " q = Relu(r)"}, By::stages, 1);
  expect_same({dims, scale + " q = Abs(u)"}, By::stages, 1);
  expect_same({dims, scale + " v = Relu(u)\n q = Add(v, e)", "f32"}, By::stages, 1);
  expect_same({dims, scale + " v = Add(u, e)\n b = const f32[1,1,3,5] seed(2)\n q = Add(v, b)", "f32"},
              By::stages, 1);
  expect_same({dims, scale + " b = const f32[1,1,3,5] seed(2)\n q = Add(u, b)"}, By::stages, 1);
  expect_same({dims, scale + " b = const f32[5] seed(2)\n q = Add(u, b)"}, By::stages, 1);
  expect_same({dims, scale + " s = const f32[20] fill(0.5)\n q = Quantize(u, s) destination_type=u8"},
              By::stages, 1);
  expect_same({dims, scale + " s = const f32[] {0.5}\n q = Quantize(u, s) destination_type=i16"}, By::stages,
              1);
  const std::string there = " l = const f32[] {-2}\n k = Quantize(u, l) destination_type=u8\n";
  expect_same({dims, scale + there + " q = Dequantize(k, l)"}, By::stages, 1);
  expect_same({dims,
               scale + " v = Add(u, e)\n l = const f32[] {2}\n k = Quantize(v, l) destination_type=u8\n"
                       " d = Dequantize(k, l)\n q = Relu(d)",
               "f32"},
              By::stages, 1);
  expect_same({dims, scale + " q = Convert(u) destination_type=bf16"}, By::stages, 1);
  expect_same({{4, 20}, kFloats + " m = const f32[4,1] seed(1)\n q = Multiply(t, m)"}, By::stages, 1);
}

}  // namespace
}  // namespace lamina::testing
