/// Products of u8 and i8: every offer against the reference, whose sums are exact. Equal means equal.
#include <gtest/gtest.h>

#include <map>

#include "kernels/native/gemm/product.h"
#include "kernels/native/integer/matching.h"
#include "tests/kernels/random_cases.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

bool one_in(SplitMix& random, std::uint64_t n) { return random.below(n) == 0; }

/// A constant of that type with numbers of its whole range, or of 7 bits; of small ones where it is large.
std::string numbers(SplitMix& random, const std::string& name, const std::string& type) {
  const auto graph = parse(fmt::format("graph (x: {}) -> (x) {{\n}}\n", type));
  const auto count = element_count(graph.type(graph.inputs()[0]).shape.sizes());
  if (count > 20000) return fmt::format(" {} = const {} seed(1)\n", name, type);
  const bool narrow = one_in(random, 3);
  std::vector<int> values;
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<int>(random.below(narrow ? 129 : 256));
    values.push_back(type[0] == 'u' ? value : value - (narrow ? 64 : 128));
  }
  return fmt::format(" {} = const {} {{{}}}\n", name, type, fmt::join(values, ","));
}

/// Inputs of small numbers i as x of the whole range.
std::string spread(const std::string& type) {
  return fmt::format(" k = const {}[] {{37}}\n x = Multiply(i, k)\n", type);
}

/// Inputs 3 and 4 of a product of u8 or i8.
struct ZeroPoints {
  std::string inputs, constants, source = "_", weights = "_";

  std::string arguments() const { return fmt::format(", _, {}, {}", source, weights); }
};

ZeroPoints zero_points(SplitMix& random, const std::string& x, const std::string& w, std::int64_t columns) {
  ZeroPoints z;
  switch (random.below(4)) {
    case 0:
      z.inputs = fmt::format(", z: {}[]", x);
      z.source = "z";
      break;
    case 1:
    case 2:
      z.constants += fmt::format(" z = const {}[] {{{}}}\n", x, random.below(x == "u8" ? 256 : 128));
      z.source = "z";
      break;
  }
  switch (random.below(5)) {
    case 0:
      z.constants += fmt::format(" v = const {}[] {{{}}}\n", w, w == "u8" ? 128 : 3);
      z.weights = "v";
      break;
    case 1:
      z.constants += numbers(random, "v", fmt::format("{}[{}]", w, columns));
      z.weights = "v";
      break;
  }
  return z;
}

/// What is behind sums of [dims] with `columns` along that axis of constants.
std::string epilogue(SplitMix& random, const std::string& dims, const std::string& constants) {
  const std::string scaled = fmt::format(
      " s = const f32[{0}] seed(7)\n b = const f32[{0}] seed(8)\n f = Convert(r) destination_type=f32\n"
      " m = Multiply(f, s)\n a = Add(m, b)\n",
      constants);
  static const std::string kinds[] = {"",
                                      "",
                                      "{0} q = Relu(a)\n",
                                      "{0} k = const f32[] {{100}}\n o = const u8[] {{7}}\n"
                                      " t = Clamp(a) min=-300 max=20000\n q = Quantize(t, k, o)\n",
                                      "{0} k = const f32[] {{70}}\n q = Quantize(a, k) destination_type=i8\n",
                                      "{0} k = const f32[] {{0.5}}\n q = Greater(a, k)\n",
                                      "{0} t = Sigmoid(a)\n q = Convert(t) destination_type=f16\n",
                                      " k = const i32[] {{5}}\n q = Maximum(r, k)\n"};
  const auto body = fmt::format(fmt::runtime(pick(random, kinds)), scaled);
  if (body.empty()) return "";
  return fmt::format(" {{\n body graph (r: i32[{}]) -> (q) {{\n{} }}\n }}", dims, body);
}

/// Numbers of 9 bits.
std::string wide_numbers(SplitMix& random, const std::string& name, const std::string& shape,
                         std::size_t count) {
  std::vector<int> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<int>(random.below(511)) - 255);
  return fmt::format(" {} = const i16[{}] {{{}}}\n", name, shape, fmt::join(values, ","));
}

std::string convolution(SplitMix& random) {
  static const std::int64_t channels[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 31, 32, 33, 48, 64, 65, 100},
                            sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 20},
                            kernels[] = {1, 1, 3, 3, 3, 5, 2, 7}, strides[] = {1, 1, 2, 3},
                            dilations[] = {1, 1, 1, 2, 3};
  static const std::string types[] = {"u8", "i8"};
  while (true) {
    const auto rank = one_in(random, 4) ? random.below(2) == 0 ? 1u : 3u : 2u;
    std::int64_t groups = 1, inputs = pick(random, channels), outputs = pick(random, channels);
    if (one_in(random, 3)) {
      groups = pick(random, {2, 3, 5});
      inputs = groups * pick(random, {1, 2, 3, 4, 8, 13});
      outputs = groups * pick(random, {1, 2, 5, 17, 40});
    }
    const std::int64_t images = one_in(random, 4) ? 2 : 1;
    std::vector<std::int64_t> in, kernel, stride, dilation, begin, end, out;
    bool fits = true;
    for (unsigned i = 0; i < rank; ++i) {
      in.push_back(rank == 3 ? pick(random, {2, 3, 5, 8}) : pick(random, sizes));
      kernel.push_back(i > 0 && !one_in(random, 5) ? kernel[0] : pick(random, kernels));
      stride.push_back(pick(random, strides));
      dilation.push_back(pick(random, dilations));
      begin.push_back(one_in(random, 2) ? kernel[i] / 2 : static_cast<std::int64_t>(random.below(4)));
      end.push_back(one_in(random, 2) ? kernel[i] / 2 : static_cast<std::int64_t>(random.below(4)));
      out.push_back(window_count(in[i], kernel[i], stride[i], dilation[i], begin[i] + end[i]));
      fits = fits && out[i] > 0;
    }
    if (!fits) continue;
    const auto x = pick(random, types), w = pick(random, types);
    const bool constant = !one_in(random, 6);
    const auto weights = fmt::format("{}[{},{},{}]", w, outputs, inputs / groups, fmt::join(kernel, ","));
    const auto z = zero_points(random, x, w, outputs);
    const auto behind = epilogue(random, fmt::format("{},{},{}", images, outputs, fmt::join(out, ",")),
                                 fmt::format("1,{}{}", outputs,
                                             std::string(rank == 1   ? ",1"
                                                         : rank == 2 ? ",1,1"
                                                                     : ",1,1,1")));
    return fmt::format(
        "graph (i: {}[{},{},{}]{}{}) -> (y) {{\n{}{}{} y = Convolution(x, w{}) strides=[{}] dilations=[{}] "
        "pads_begin=[{}] pads_end=[{}] groups={}{}\n}}\n",
        x, images, inputs, fmt::join(in, ","), constant ? "" : ", w: " + weights, z.inputs,
        constant ? numbers(random, "w", weights) : "", spread(x), z.constants, z.arguments(),
        fmt::join(stride, ","), fmt::join(dilation, ","), fmt::join(begin, ","), fmt::join(end, ","), groups,
        behind);
  }
}

std::string product(SplitMix& random) {
  static const std::int64_t rows[] = {1, 1, 2, 3, 4, 5, 7, 12, 13, 25, 57},
                            depths[] = {1, 3, 4, 7, 8, 16, 17, 64, 130, 500},
                            columns[] = {1, 2, 3, 5, 8, 9, 16, 17, 31, 33, 48, 64, 65, 100};
  static const std::string types[] = {"u8", "i8"};
  const auto m = pick(random, rows), k = pick(random, depths), n = pick(random, columns);
  const bool ta = one_in(random, 4), tb = one_in(random, 3), constant = !one_in(random, 3);
  const std::string batches[] = {"", "", "3,", "2,3,"};
  const auto batch = pick(random, batches), b_batch = one_in(random, 2) ? "" : batch;
  const auto x = pick(random, types), w = pick(random, types);
  const auto matrix = [](std::int64_t r, std::int64_t c, bool transposed) {
    return fmt::format("{},{}", transposed ? c : r, transposed ? r : c);
  };
  const auto weights = fmt::format("{}[{}{}]", w, b_batch, matrix(k, n, tb));
  const auto z = zero_points(random, x, w, n);
  return fmt::format(
      "graph (i: {}[{}{}]{}{}) -> (y) {{\n{}{}{} y = MatMul(x, w{}) transpose_a={} transpose_b={}{}\n}}\n", x,
      batch, matrix(m, k, ta), constant ? "" : ", w: " + weights, z.inputs,
      constant ? numbers(random, "w", weights) : "", spread(x), z.constants, z.arguments(), ta, tb,
      epilogue(random, fmt::format("{}{},{}", batch, m, n), std::to_string(n)));
}

/// The right operand is a vector: the last axis of what comes out is that of rows, and there are no columns.
std::string vector_product(SplitMix& random) {
  const auto m = pick(random, {1, 2, 7, 33}), k = pick(random, {1, 5, 64});
  const std::string batch = one_in(random, 2) ? "" : "2,";
  const auto weights = fmt::format("i8[{}]", k);
  return fmt::format("graph (i: u8[{}{},{}]) -> (y) {{\n{}{} y = MatMul(x, w){}\n}}\n", batch, m, k,
                     numbers(random, "w", weights), spread("u8"),
                     epilogue(random, fmt::format("{}{}", batch, m), std::to_string(m)));
}

std::string transposed(SplitMix& random) {
  static const std::int64_t sizes[] = {1, 2, 3, 5, 8, 13}, kernels[] = {1, 2, 2, 3, 4, 5},
                            strides[] = {1, 2, 2, 3, 4}, dilations[] = {1, 1, 2, 3};
  static const std::string types[] = {"u8", "i8"};
  while (true) {
    const auto rank = one_in(random, 4) ? random.below(2) == 0 ? 1u : 3u : 2u;
    std::int64_t groups = pick(random, {1, 1, 1, 2, 3, 7}),
                 inputs = groups * pick(random, {1, 2, 3, 4, 8, 13, 32}),
                 outputs = pick(random, {1, 2, 3, 4, 9, 16, 33});
    if (one_in(random, 3)) {  // depthwise
      groups = inputs = pick(random, {2, 3, 5, 8, 16, 19, 33, 64});
      outputs = one_in(random, 4) ? 2 : 1;
    }
    const std::int64_t images = one_in(random, 4) ? 2 : 1;
    std::vector<std::int64_t> in, kernel, stride, dilation, begin, end, more, out;
    bool fits = true;
    for (unsigned i = 0; i < rank; ++i) {
      in.push_back(rank == 3 ? pick(random, {1, 2, 3, 5}) : pick(random, sizes));
      kernel.push_back(i > 0 && !one_in(random, 3) ? kernel[0] : pick(random, kernels));
      stride.push_back(one_in(random, 4) ? kernel[i] : pick(random, strides));
      dilation.push_back(pick(random, dilations));
      const auto extent = (kernel[i] - 1) * dilation[i] + 1;
      begin.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(extent) + 1)));
      end.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(extent))));
      more.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(stride[i]))));
      out.push_back(stride[i] * (in[i] - 1) + extent - begin[i] - end[i] + more[i]);
      fits = fits && out[i] > 0;
    }
    if (!fits) continue;
    const auto x = pick(random, types), w = pick(random, types);
    const bool constant = !one_in(random, 6);
    const auto weights = fmt::format("{}[{},{},{}]", w, inputs, outputs, fmt::join(kernel, ","));
    const auto z = zero_points(random, x, w, outputs * groups);
    std::string ones;
    for (unsigned i = 0; i < rank; ++i) ones += ",1";
    const auto behind =
        epilogue(random, fmt::format("{},{},{}", images, outputs * groups, fmt::join(out, ",")),
                 fmt::format("1,{}{}", outputs * groups, ones));
    return fmt::format(
        "graph (i: {}[{},{},{}]{}{}) -> (y) {{\n{}{}{} y = ConvolutionBackpropData(x, w, _{}) strides=[{}] "
        "dilations=[{}] pads_begin=[{}] pads_end=[{}] output_padding=[{}] groups={}{}\n}}\n",
        x, images, inputs, fmt::join(in, ","), constant ? "" : ", w: " + weights, z.inputs,
        constant ? numbers(random, "w", weights) : "", spread(x), z.constants, z.arguments(),
        fmt::join(stride, ","), fmt::join(dilation, ","), fmt::join(begin, ","), fmt::join(end, ","),
        fmt::join(more, ","), groups, behind);
  }
}

bool has_integer_offer(const Graph& g) {
  for (const auto id : g.order())
    for (const auto& offer : ask_kernels(NodeView(g, id)).offers)
      if (offer.label.ends_with("_int8")) return true;
  return false;
}

void check(const std::string& text, std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
  const auto graph = parse(text);
  EXPECT_TRUE(has_integer_offer(graph));
  check_all_offers(graph, seed);
}

TEST(Integers, random_convolutions) {
  for (std::uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    check(convolution(random), seed);
  }
}

TEST(Integers, random_transposed_convolutions) {
  for (std::uint64_t seed = 1; seed <= 400 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    check(transposed(random), seed);
  }
}

TEST(Integers, random_products) {
  for (std::uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    check(product(random), seed);
  }
}

TEST(Integers, random_vector_products) {
  for (std::uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    check(vector_product(random), seed);
  }
}

/// This machine's AVX-512, or AVX2, without VNNI.
const Machine& without_vnni() {
  static const Machine machine = [] {
    auto m = host();
    m.features = m.features.without({Feature::avx512_vnni, Feature::avx_vnni});
    return m;
  }();
  return machine;
}

/// Runs the offers of integers there; how many have that word in their labels.
int check_without_vnni(const std::string& text, std::uint64_t seed, const std::string& word = "int8") {
  SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
  const auto graph = parse(text);
  int count = 0;
  InterpreterOptions observe;
  observe.observe = [&](const Graph& g, NodeId id, const std::vector<Tensor>& in,
                        const std::vector<Tensor>& out) {
    for (const auto& offer : ask_kernels(NodeView(g, id, without_vnni())).offers) {
      if (!offer.label.ends_with("_int8")) continue;
      EXPECT_EQ(offer.label.find("vnni"), std::string::npos);
      if (offer.label.find(word) != std::string::npos) ++count;
      expect_close(run_offer(g, id, offer, in, {.threads = 2}).at(0), out.at(0), offer.label);
    }
  };
  interpret(graph, random_inputs(graph, seed), observe);
  return count;
}

TEST(Integers, without_vnni) {
  for (std::uint64_t seed = 1001; seed <= 1250 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    check_without_vnni(seed % 3 == 0   ? convolution(random)
                       : seed % 3 == 1 ? transposed(random)
                                       : product(random),
                       seed);
  }
}

/// A zero point of another type, which no byte of the source stands for: along a border, too.
TEST(Integers, zero_points_beyond_the_source) {
  for (const auto& [x, zero, number] :
       {std::tuple{"i8", "u8", 200}, {"u8", "i8", -100}, {"i8", "i32", 131}, {"u8", "i32", -7}}) {
    const std::string layer =
        " w = const i8[16,16,3,3] seed(1)\n y = Convolution(x, w, _, z) pads_begin=[1,1] pads_end=[1,1]\n}\n";
    check_without_vnni(
        fmt::format("graph (x: {}[1,16,9,9]) -> (y) {{\n z = const {}[] {{{}}}\n{}", x, zero, number, layer),
        1);
  }
  check_without_vnni(
      "graph (x: i8[1,16,9,9], z: u8[]) -> (y) {\n w = const i8[16,16,3,3] seed(1)\n"
      " y = Convolution(x, w, _, z) pads_begin=[1,1] pads_end=[1,1]\n}\n",
      1);
}

/// Convolutions of 3x3 taps: channels and tiles that fill no vectors, borders on all sides.
TEST(Integers, winograd) {
  static const std::int64_t channels[] = {1, 3, 8, 15, 16, 17, 33, 64},
                            columns[] = {1, 5, 8, 9, 16, 24, 31, 40, 100},
                            sizes[] = {1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 30};
  static const std::string types[] = {"u8", "i8"};
  for (std::uint64_t seed = 1; seed <= 120 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    const std::int64_t c = pick(random, channels), k = pick(random, columns),
                       images = pick(random, {1, 1, 2});
    std::int64_t in[2], pads[4], out[2];
    for (int i = 0; i < 2; ++i) {
      in[i] = pick(random, sizes);
      for (const int j : {i, i + 2})
        pads[j] = static_cast<std::int64_t>(one_in(random, 3) ? random.below(4) : 1);
      out[i] = window_count(in[i], 3, 1, 1, pads[i] + pads[i + 2]);
    }
    if (out[0] == 0 || out[1] == 0) continue;
    const auto x = pick(random, types), w = pick(random, types);
    const auto z = zero_points(random, x, w, k);
    const auto behind =
        epilogue(random, fmt::format("{},{},{},{}", images, k, out[0], out[1]), fmt::format("1,{},1,1", k));
    const auto text = fmt::format(
        "graph (i: {}[{},{},{},{}]{}) -> (y) {{\n{}{}{} y = Convolution(x, w{}) pads_begin=[{},{}] "
        "pads_end=[{},{}]{}\n}}\n",
        x, images, c, in[0], in[1], z.inputs, numbers(random, "w", fmt::format("{}[{},{},3,3]", w, k, c)),
        spread(x), z.constants, z.arguments(), pads[0], pads[1], pads[2], pads[3], behind);
    EXPECT_EQ(check_without_vnni(text, seed, "winograd"), 1);
  }
}

/// Weights for which an output might be larger than its transforms tell: these are not used then.
TEST(Integers, winograd_extremes) {
  for (const int w : {-128, 127, 3})
    for (const auto& [x, zero] : {std::pair{"u8", 0}, {"u8", 255}, {"i8", 127}, {"i8", -128}})
      for (const int channels : {64, 200}) {
        const auto text = fmt::format(
            "graph (i: {0}[1,{3},9,6]) -> (y) {{\n k = const {0}[] fill({4})\n x = Maximum(i, k)\n"
            " w = const i8[17,{3},3,3] fill({1})\n z = const {0}[] {{{2}}}\n"
            " y = Convolution(x, w, _, z) pads_begin=[1,1] pads_end=[1,1]\n}}\n",
            x, w, zero, channels, x[0] == 'u' ? 255 : 127);
        EXPECT_EQ(check_without_vnni(text, 1, "winograd"), 1);
      }
}

/// Mostly small numbers, few of the whole range: as weights are.
std::vector<int> bell(SplitMix& random, std::int64_t count, bool is_unsigned = false) {
  std::vector<int> values;
  for (std::int64_t i = 0; i < count; ++i) {
    int sum = 0;
    for (int j = 0; j < 6; ++j) sum += static_cast<int>(random.below(31)) - 15;
    if (one_in(random, 100)) sum = pick(random, {-128, 127, 127, 100});
    values.push_back(std::clamp(sum, -128, 127) + (is_unsigned ? 128 : 0));
  }
  return values;
}

/// Products whose pairs of weights are chosen, with all that shifts k: borders, groups, batches.
TEST(Integers, matched) {
  static const std::string types[] = {"u8", "i8"};
  for (std::uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    const std::int64_t groups = pick(random, {1, 1, 2}), c = groups * pick(random, {16, 64, 128, 176}),
                       k = groups * pick(random, {1, 8, 17, 24, 40, 72, 100}),
                       images = pick(random, {1, 1, 2}), kernel = pick(random, {1, 1, 2, 3}),
                       stride = pick(random, {1, 2}), pad = pick(random, {0, 1, 2}),
                       height = pick(random, {3, 7, 12}), width = pick(random, {3, 6, 29});
    const auto x = pick(random, types), w = pick(random, types);
    const bool is_unsigned = w == "u8";
    auto z = zero_points(random, x, w, k);
    z.weights = is_unsigned ? "wz" : "_";
    z.constants += " wz = const u8[] {128}\n";
    const auto out = [&](std::int64_t in) { return window_count(in, kernel, stride, 1, 2 * pad); };
    const auto behind = epilogue(random, fmt::format("{},{},{},{}", images, k, out(height), out(width)),
                                 fmt::format("1,{},1,1", k));
    check_without_vnni(
        fmt::format(
            "graph (i: {}[{},{},{},{}]{}) -> (y) {{\n w = const {}[{},{},{},{}] {{{}}}\n{}{} y = "
            "Convolution(x, w{}) strides=[{},{}] pads_begin=[{},{}] pads_end=[{},{}] groups={}{}\n}}\n",
            x, images, c, height, width, z.inputs, w, k, c / groups, kernel, kernel,
            fmt::join(bell(random, k * c / groups * kernel * kernel, is_unsigned), ","), spread(x),
            z.constants, z.arguments(), stride, stride, pad, pad, pad, pad, groups, behind),
        seed);
    const std::int64_t m = pick(random, {1, 2, 5, 13, 57}), depth = pick(random, {16, 208, 512});
    const bool tb = one_in(random, 2);
    check_without_vnni(
        fmt::format(
            "graph (i: {}[{}{},{}]{}) -> (y) {{\n w = const {}[{},{}] {{{}}}\n{}{} y = MatMul(x, w{}) "
            "transpose_b={}\n}}\n",
            x, one_in(random, 3) ? "3," : "", m, depth, z.inputs, w, tb ? k : depth, tb ? depth : k,
            fmt::join(bell(random, depth * k, is_unsigned), ","), spread(x), z.constants, z.arguments(), tb),
        seed);
  }
}

/// Each number of k has its place once, and no pair can leave 16 bits in any column of its group.
TEST(Integers, matching) {
  const std::int64_t depth = 160, columns = 75;
  SplitMix random(3);
  auto values = bell(random, depth * columns);
  const auto matched = [&](gemm::Product& p) {
    Tensor weights(ElementType::i8, {depth, columns});
    for (std::size_t i = 0; i < values.size(); ++i)
      weights.data<std::int8_t>()[i] = static_cast<std::int8_t>(values[i]);
    integers::Operands o;
    o.arithmetic = gemm::Arithmetic::matched_quads;
    integers::WeightPlaces places;
    places.channels = depth;
    places.channel = columns;
    ModelWeights store;
    return integers::match(p, o, places, weights, store);
  };
  gemm::Product p(host(), gemm::Arithmetic::matched_quads, Family::native_int8, depth / 4, columns);
  const auto order = matched(p);
  ASSERT_TRUE(order);
  const auto& r = *p.reorder;
  for (std::int64_t g = 0; g < r.groups; ++g) {
    const auto first = p.panels.column(g * r.panels),
               last = std::min(p.panels.column(std::min((g + 1) * r.panels, p.panels.count)), columns);
    std::map<std::int64_t, int> seen;
    for (std::int64_t w = 0; w < r.windows; ++w)
      for (int i = 0; i < 4 * (r.starts_of(g)[w + 1] - r.starts_of(g)[w]); i += 2) {
        const auto place = [&](int n) {
          const auto* list = r.places_of(g) + (n < 16 ? w : r.windows + w) * 16;
          return list[n % 16] == 0x80 ? -1 : w * 16 + list[n % 16];
        };
        for (const int n : {i, i + 1})
          if (place(n) >= 0) ++seen[place(n)];
        for (auto j = first; j < last; ++j) {
          int above = 0, below = 0;
          for (const int n : {i, i + 1})
            if (place(n) >= 0) {
              const int x = values[static_cast<std::size_t>(place(n) * columns + j)];
              (x > 0 ? above : below) += std::abs(x);
            }
          EXPECT_LE(255 * above, 32767);
          EXPECT_LE(255 * below, 32768);
        }
      }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(depth));
    for (const auto& [k, times] : seen) EXPECT_EQ(times, 1) << k;
  }
  for (auto& v : values) v = 127;
  EXPECT_FALSE(matched(p));
  EXPECT_FALSE(p.reorder);
}

/// Where sums of 16 bits would saturate, and where those of 32 wrap.
TEST(Integers, extremes) {
  for (const std::string types : {"u8 255 i8 -128", "i8 -128 i8 -128", "u8 255 u8 255", "i8 -128 i8 127"})
    for (const std::int64_t depth : {2, 63, 4096, 70000}) {
      std::istringstream words(types);
      std::string x, w;
      int xv = 0, wv = 0;
      words >> x >> xv >> w >> wv;
      check(
          fmt::format("graph (i: {0}[2,{4}]) -> (y) {{\n k = const {0}[2,{4}] fill({1})\n x = Maximum(i, k)\n"
                      " w = const {2}[{4},33] fill({3})\n y = MatMul(x, w)\n}}\n",
                      x, xv, w, wv, depth),
          1);
    }
  check(
      "graph (x: u8[1,64,9,9]) -> (y) {\n w = const i8[40,64,3,3] fill(-128)\n z = const u8[] {255}\n"
      " y = Convolution(x, w, _, z) pads_begin=[1,1] pads_end=[1,1]\n}\n",
      1);
}

TEST(Integers, weights_of_9_bits) {
  for (std::uint64_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    const std::int64_t k = pick(random, {1, 3, 4, 17, 64}), n = pick(random, {1, 5, 16, 33});
    check(fmt::format(
              "graph (i: u8[3,{0}]) -> (y) {{\n{1}{2} z = const u8[] {{9}}\n y = MatMul(x, w, _, z)\n}}\n", k,
              wide_numbers(random, "w", fmt::format("{},{}", k, n), static_cast<std::size_t>(k * n)),
              spread("u8")),
          seed);
    check(fmt::format(
              "graph (i: u8[2,3,{0}]) -> (y) {{\n{1}{2} y = MatMul(x, w) transpose_b=true\n}}\n", k,
              wide_numbers(random, "w", fmt::format("2,{},{}", n, k), static_cast<std::size_t>(2 * k * n)),
              spread("u8")),
          seed);
    const bool depthwise = one_in(random, 2);
    const auto groups = depthwise ? n : 1, inputs = depthwise ? n : k;
    for (const std::string op : {"Convolution", "ConvolutionBackpropData"}) {
      const bool back = op != "Convolution";
      const auto shape =
          back ? fmt::format("{},{},3,3", inputs, n / groups) : fmt::format("{},{},3,3", n, inputs / groups);
      check(fmt::format(
                "graph (i: i8[1,{0},5,6]) -> (y) {{\n{1}{2} z = const i8[] {{-9}}\n y = {3}(x, w, {4}_, z) "
                "pads_begin=[1,1] pads_end=[1,1] groups={5}\n}}\n",
                inputs, wide_numbers(random, "w", shape, static_cast<std::size_t>(inputs * n / groups * 9)),
                spread("i8"), op, back ? "_, " : "", groups),
            seed);
    }
  }
}

/// For several threads, with depths in parts.
TEST(Integers, large) {
  check(
      "graph (x: u8[1,64,56,56]) -> (y) {\n w = const i8[96,64,3,3] seed(1)\n z = const u8[] {3}\n"
      " y = Convolution(x, w, _, z) pads_begin=[1,1] pads_end=[1,1]\n}\n",
      1);
  check(
      "graph (x: i8[1,3,60,60]) -> (y) {\n w = const i8[64,3,7,7] seed(1)\n z = const i8[] {3}\n"
      " y = Convolution(x, w, _, z) pads_begin=[3,3] pads_end=[3,3] strides=[2,2]\n}\n",
      1);
  check(
      "graph (x: i8[40,20000], z: i8[1]) -> (y) {\n w = const i8[20000,33] seed(1)\n"
      " y = MatMul(x, w, _, z)\n}\n",
      1);
}

TEST(Integers, refusals) {
  const auto refused = [](const std::string& text) {
    const auto graph = parse(text);
    std::string all;
    for (const auto id : graph.order())
      for (const auto& r : ask_kernels(NodeView(graph, id)).refusals)
        if (r.kernel == "native_int8") all += r.reason + "\n";
    return all;
  };
  EXPECT_NE(
      refused(
          "graph (x: u8[3,4], v: i8[]) -> (y) {\n w = const i8[4,5] seed(1)\n y = MatMul(x, w, _, _, v)\n}\n")
          .find("zero points of weights that are given at run time"),
      std::string::npos);
  EXPECT_NE(refused("graph (x: i16[3,4]) -> (y) {\n w = const i8[4,5] seed(1)\n y = MatMul(x, w)\n}\n")
                .find("operands of i16"),
            std::string::npos);
}

}  // namespace
}  // namespace lamina::testing
