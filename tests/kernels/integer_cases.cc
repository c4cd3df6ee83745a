#include "tests/kernels/integer_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/kernels/random_cases.h"
#include "tests/support/run_graph.h"

namespace lamina::testing::integer_cases {

bool one_in(SplitMix& random, std::uint64_t n) { return random.below(n) == 0; }

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

std::string spread(const std::string& type) {
  return fmt::format(" k = const {}[] {{37}}\n x = Multiply(i, k)\n", type);
}

std::string ZeroPoints::arguments() const { return fmt::format(", _, {}, {}", source, weights); }

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

}  // namespace lamina::testing::integer_cases
