/// Products of u8 and i8 on processors without VNNI: Winograd's transforms of 3x3 taps, pairs that pmaddubsw
/// takes exactly, and all others, against the reference.
#include <gtest/gtest.h>

#include <map>

#include "kernels/native/gemm/product.h"
#include "kernels/native/integer/matching.h"
#include "tests/kernels/integer_cases.h"
#include "tests/kernels/random_cases.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {
namespace {

using namespace integer_cases;

/// This machine's AVX-512, or AVX2, without VNNI. With caches so large that what is offered depends on the
/// layer alone.
const Machine& without_vnni() {
  static const Machine machine = [] {
    auto m = host();
    m.features = m.features.without({Feature::avx512_vnni, Feature::avx_vnni});
    m.l2 = m.l3 = std::size_t{1} << 30;
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
  EXPECT_GT(count, 0);
  return count;
}

TEST(IntegersWithoutVnni, random_layers) {
  for (std::uint64_t seed = 1001; seed <= 1250 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    check_without_vnni(seed % 3 == 0   ? convolution(random)
                       : seed % 3 == 1 ? transposed(random)
                                       : product(random),
                       seed);
  }
}

/// Convolutions of 3x3 taps: channels and tiles that fill no vectors, borders on all sides.
TEST(IntegersWithoutVnni, winograd) {
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
TEST(IntegersWithoutVnni, winograd_extremes) {
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

/// The direct kernel runs then, and says so.
TEST(IntegersWithoutVnni, winograd_that_is_direct) {
  for (const int w : {3, 127}) {
    const auto graph =
        parse(fmt::format("graph (x: u8[1,200,9,9]) -> (y) {{\n w = const i8[17,200,3,3] fill({})\n"
                          " y = Convolution(x, w) pads_begin=[1,1] pads_end=[1,1]\n}}\n",
                          w));
    for (const auto& offer : ask_kernels(NodeView(graph, graph.order()[0], without_vnni())).offers) {
      if (offer.label.find("winograd") == std::string::npos) continue;
      ModelWeights weights;
      MakeContext context{weights};
      EXPECT_TRUE(offer.make(context));
      EXPECT_EQ(context.label.starts_with("native_direct"), w == 127) << context.label;
    }
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

/// Products whose pairs of weights are chosen, with all that shifts k: borders, groups, batches, windows that
/// channels do not fill.
TEST(IntegersWithoutVnni, matched) {
  static const std::string types[] = {"u8", "i8"};
  for (std::uint64_t seed = 1; seed <= 200 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    const std::int64_t groups = pick(random, {1, 1, 2}),
                       c = groups * pick(random, {16, 27, 50, 56, 64, 121, 128, 176}),
                       k = groups * pick(random, {1, 8, 17, 24, 40, 72, 100}),
                       images = pick(random, {1, 1, 2}), kernel = pick(random, {1, 1, 2, 3}),
                       stride = pick(random, {1, 2}), pad = pick(random, {0, 1, 2}),
                       height = pick(random, {3, 7, 12, 31}), width = pick(random, {3, 6, 29});
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
    const std::int64_t m = pick(random, {1, 2, 5, 13, 57}), depth = pick(random, {16, 121, 208, 250, 512});
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

/// Products of more columns than are finished at once, and of lines that follow each other or do not.
TEST(IntegersWithoutVnni, finished_together) {
  for (std::uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    SplitMix random(seed);
    const std::int64_t m = pick(random, {1, 7, 12, 25, 64}), depth = pick(random, {4, 18, 60}),
                       columns = pick(random, {56, 170, 200, 333}), line = pick(random, {5, 19, 36}),
                       kernel = pick(random, {1, 3});
    check_without_vnni(
        fmt::format("graph (i: u8[{},{}]) -> (y) {{\n{}{} y = MatMul(x, w){}\n}}\n", m, depth,
                    numbers(random, "w", fmt::format("i8[{},{}]", depth, columns)), spread("u8"),
                    epilogue(random, fmt::format("{},{}", m, columns), std::to_string(columns))),
        seed);
    check_without_vnni(
        fmt::format(
            "graph (i: u8[1,{},{},{}]) -> (y) {{\n{}{} y = Convolution(x, w) pads_begin=[{},{}] "
            "pads_end=[{},{}]{}\n}}\n",
            depth, m, line,
            numbers(random, "w", fmt::format("i8[{},{},{},{}]", columns, depth, kernel, kernel)),
            spread("u8"), kernel / 2, kernel / 2, kernel / 2, kernel / 2,
            epilogue(random, fmt::format("1,{},{},{}", columns, m, line), fmt::format("1,{},1,1", columns))),
        seed);
  }
}

/// Each number of k has its place once, and no pair can leave 16 bits in any column of its group.
void check_matching(std::int64_t depth) {
  const std::int64_t columns = 75;
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
  gemm::Product p(host(), gemm::Arithmetic::matched_quads, Family::native_int8, ceil_div(depth, 16) * 4,
                  columns);
  const auto order = matched(p);
  ASSERT_TRUE(order);
  const auto& r = *p.matched_order;
  for (std::int64_t g = 0; g < r.groups; ++g) {
    const auto first = p.panels.column(g * r.panels),
               last = std::min(p.panels.column(std::min((g + 1) * r.panels, p.panels.count)), columns);
    std::map<std::int64_t, int> seen;
    for (std::int64_t w = 0; w < r.windows; ++w)
      for (int i = 0; i < 4 * (r.starts_of(g)[w + 1] - r.starts_of(g)[w]); i += 2) {
        const auto place = [&](int n) {
          const auto* list = r.places_of(g) + (n < 16 ? w : r.windows + w) * 16;
          const auto first = w + 1 == r.windows ? depth - 16 : w * 16;
          return list[n % 16] == 0x80 ? -1 : first + list[n % 16];
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
  EXPECT_FALSE(p.matched_order);
}

TEST(IntegersWithoutVnni, matching) {
  for (const int depth : {160, 151, 250}) {
    SCOPED_TRACE(depth);
    check_matching(depth);
  }
}

}  // namespace
}  // namespace lamina::testing
