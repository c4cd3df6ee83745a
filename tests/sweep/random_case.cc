/// Cases of the sweep at random, and those at the edges of blocks.
#include <algorithm>
#include <cmath>

#include "base/element_types.h"
#include "base/error.h"
#include "tests/sweep/case.h"
#include "tests/sweep/stages.h"

namespace lamina::sweep {
namespace {

using Number = std::int64_t;

Number below(SplitMix& random, Number bound) {
  return static_cast<Number>(random.below(static_cast<std::uint64_t>(bound)));
}
bool one_in(SplitMix& random, Number n) { return below(random, n) == 0; }

template <class T>
T pick(SplitMix& random, std::initializer_list<T> values) {
  return values.begin()[random.below(values.size())];
}

/// Small ones, multiples of blocks, and one more or less than these; up to `most`.
Number channels(SplitMix& random, Number most) {
  Number n = 1;
  switch (below(random, 5)) {
    case 0:
      n = 1 + below(random, 20);
      break;
    case 1:
      n = 8 * (1 + below(random, 16)) + below(random, 3) - 1;
      break;
    case 2:
      n = 16 * (1 + below(random, 64)) + below(random, 3) - 1;
      break;
    case 3:
      n = (Number{1} << below(random, 12)) + below(random, 3) - 1;
      break;
    default:
      n = 1 + static_cast<Number>(std::exp2(11.0 * static_cast<double>(random.next() >> 11) * 0x1p-53));
  }
  return std::clamp<Number>(n, 1, most);
}

struct Axis {
  Number in, kernel, stride, dilation, begin, end, more;
};

Axis random_axis(SplitMix& random, bool transposed, std::size_t axes) {
  Axis a{};
  a.kernel =
      pick<Number>(random, {1, 1, 2, 3, 3, 3, 4, 4, 5, 7, 8, 9, 11, 13, 16, 17, 31, 32, 33, 48, 63, 64});
  a.stride = pick<Number>(random, {1, 1, 1, 2, 2, 2, 3, 4, 5, 7, 8, 16, 32});
  if (!one_in(random, 4)) {
    a.dilation = 1;
  } else if (one_in(random, 3)) {
    a.dilation = pick<Number>(random, {32, 64, 127, 255, 256, 511, 1024, 2047, 2048});
  } else {
    a.dilation = pick<Number>(random, {2, 2, 3, 4, 7, 8, 16});
  }
  if (axes == 3 && a.kernel > 5) a.kernel = 1 + a.kernel % 5;
  if (one_in(random, 3)) a.stride = std::min(a.stride, a.kernel);
  const auto extent = (a.kernel - 1) * a.dilation + 1;
  a.in = pick<Number>(
      random, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 17, 20, 28, 31, 32, 33, 56, 57, 64, 96});
  if (axes == 1) a.in *= pick<Number>(random, {1, 1, 3, 16, 64});
  switch (below(random, 4)) {
    case 0:
      break;
    case 1:
      a.begin = (extent - 1) / 2, a.end = extent / 2;
      break;
    default:
      a.begin = below(random, extent + 1), a.end = below(random, extent + 1);
  }
  if (!transposed && a.in + a.begin + a.end < extent) a.in = extent - a.begin - a.end + below(random, 9);
  if (transposed && one_in(random, 3)) a.more = below(random, std::max(a.stride, a.dilation));
  return a;
}

const std::vector<std::string>& epilogues() {
  static const std::vector<std::string> common{"relu",  "sum relu",         "swish",
                                               "sum",   "scale shift relu", "hswish",
                                               "prelu", "relu sum",         "shift sigmoid times",
                                               "gelu"};
  return common;
}

void random_stages(SplitMix& random, Case& c) {
  if (one_in(random, 2) && !is_byte(c.type)) return;
  std::vector<std::string> words;
  if (one_in(random, 2)) {
    std::string text = epilogues()[random.below(epilogues().size())], word;
    for (std::size_t at = 0; at < text.size(); at += word.size() + 1)
      words.push_back(word = text.substr(at, text.find(' ', at) - at));
  } else {
    for (auto n = below(random, 5); n-- > 0;)
      words.push_back(all_stages()[random.below(all_stages().size())]);
  }
  if (is_byte(c.type) && !one_in(random, 4)) words.push_back(pick<std::string>(random, {"to_u8", "to_i8"}));
  if (c.type == ElementType::bf16 && !one_in(random, 3)) words.push_back("to_bf16");
  c.stages = words;
}

bool fits(const Case& c, const Bounds& bounds) {
  return !result_of(c).empty() && work_of(c) <= bounds.work && bytes_of(c) <= bounds.bytes;
}

void random_groups(SplitMix& random, Case& c, bool transposed) {
  const auto depthwise = one_in(random, transposed ? 12 : 6);
  c.groups = depthwise           ? channels(random, 2048)
             : one_in(random, 6) ? pick<Number>(random, {2, 3, 4, 8, 16, 32})
                                 : 1;
  const auto most = std::max<Number>(1, 2048 / c.groups);
  const Number inputs = depthwise ? 1 : channels(random, most),
               outputs = depthwise ? pick<Number>(random, {1, 1, 1, 2, 3}) : channels(random, most);
  c.x[1] = inputs * c.groups;
  c.w[0] = transposed ? c.x[1] : outputs * c.groups;
  c.w[1] = transposed ? outputs : inputs;
}

Case random_window_case(SplitMix& random, bool transposed, ElementType type, const Bounds& bounds) {
  while (true) {
    Case c;
    c.kind = transposed ? Kind::deconvolution : Kind::convolution;
    c.type = type;
    const auto axes = pick<std::size_t>(random, {1, 2, 2, 2, 2, 3});
    c.x = {pick<Number>(random, {1, 1, 1, 2, 3}), 1};
    c.w = {1, 1};
    random_groups(random, c, transposed);
    auto one = random_axis(random, transposed, axes);
    for (std::size_t i = 0; i < axes; ++i) {
      const auto a = one_in(random, 2) ? one : random_axis(random, transposed, axes);
      c.x.push_back(a.in), c.w.push_back(a.kernel), c.strides.push_back(a.stride);
      c.dilations.push_back(a.dilation), c.begin.push_back(a.begin), c.end.push_back(a.end);
      c.padding.push_back(transposed ? a.more : 0);
    }
    c.bias = !is_byte(type) && !one_in(random, 3);
    c.given = one_in(random, 10);
    random_stages(random, c);
    c.seed = random.next() % 100000;
    if (fits(c, bounds)) return c;
  }
}

Case random_product(SplitMix& random, ElementType type, const Bounds& bounds) {
  while (true) {
    Case c;
    c.kind = Kind::product;
    c.type = type;
    const auto rows = one_in(random, 4) ? 1 : channels(random, 4096), columns = channels(random, 4096),
               depth = channels(random, 2048) * pick<Number>(random, {1, 1, 1, 2, 5, 8});
    const auto batch = below(random, 4);
    for (Number i = 0; i < batch && i < 3; ++i) {
      const auto size = pick<Number>(random, {1, 2, 3, 8, 12, 40});
      c.x.push_back(one_in(random, 6) ? 1 : size);
      if (one_in(random, 2) || !c.w.empty())
        c.w.push_back(one_in(random, 4) ? 1 : c.x.back() == 1 ? size : c.x.back());
    }
    c.transpose_x = one_in(random, 3);
    c.transpose_w = one_in(random, 2);
    c.x.insert(c.x.end(), {c.transpose_x ? depth : rows, c.transpose_x ? rows : depth});
    c.w.insert(c.w.end(), {c.transpose_w ? columns : depth, c.transpose_w ? depth : columns});
    c.given = one_in(random, 2);
    c.bias = !is_byte(type) && one_in(random, 3);
    random_stages(random, c);
    c.seed = random.next() % 100000;
    if (fits(c, bounds)) return c;
  }
}

std::string sizes_of(SplitMix& random, std::size_t axes, Number most) {
  std::string out;
  for (std::size_t i = 0; i < axes; ++i)
    out += fmt::format(",{}", 1 + below(random, pick<Number>(random, {4, 16, most})));
  return out;
}

std::string repeated(Number n, std::size_t axes) {
  std::string out;
  for (std::size_t i = 0; i < axes; ++i) out += fmt::format("{}{}", i ? "," : "", n);
  return "[" + out + "]";
}

std::string graph_text(const std::string& inputs, const std::string& body) {
  return fmt::format("graph ({}) -> (y) {{\n{}\n}}", inputs, body);
}

std::string random_pooling(SplitMix& random, ElementType type) {
  const auto axes = pick<std::size_t>(random, {1, 2, 2, 2, 3});
  const auto kernel = pick<Number>(random, {1, 2, 3, 3, 5, 7, 8, 13}),
             stride = pick<Number>(random, {1, 2, 3, kernel});
  const auto pad = below(random, kernel);
  std::string sizes;
  for (std::size_t i = 0; i < axes; ++i)
    sizes += fmt::format(",{}", kernel + below(random, axes == 1 ? 500 : 30));
  return graph_text(
      fmt::format("x: {}[{},{}{}]", lamina::name_of(type), 1 + below(random, 2),
                  channels(random, axes == 2 ? 600 : 100), sizes),
      fmt::format("y = AvgPool(x) kernel={} strides={} pads_begin={} pads_end={}{}{}", repeated(kernel, axes),
                  repeated(stride, axes), repeated(pad, axes), repeated(below(random, kernel), axes),
                  one_in(random, 2) ? " exclude-pad=true" : "",
                  one_in(random, 3) ? " rounding_type=ceil" : ""));
}

std::string random_unary(SplitMix& random) {
  const auto word = pick<std::string>(
      random, {"Sigmoid(x)", "Tanh(x)", "Abs(x)", "Mish(x)", "SoftPlus(x)", "Negative(x)", "HSwish(x)",
               "Elu(x) alpha=0.5", "Gelu(x)", "Gelu(x) approximation_mode=tanh", "Swish(x)", "Round(x)"});
  return graph_text(
      fmt::format("x: f32[{},{}{}]", 1 + below(random, 3), channels(random, 2048), sizes_of(random, 2, 20)),
      "y = " + word);
}

std::string random_binary(SplitMix& random) {
  const auto axes = below(random, 4) + 1;
  std::string a, b;
  for (Number i = 0; i < axes; ++i) {
    const auto size = i == 1 ? channels(random, 500) : 1 + below(random, 24);
    a += fmt::format("{}{}", i ? "," : "", size);
    b += fmt::format("{}{}", i ? "," : "", one_in(random, 3) ? 1 : size);
  }
  if (one_in(random, 3)) b = a;
  const bool swapped = one_in(random, 4);
  const auto word = pick<std::string>(random, {"Add", "Subtract", "Multiply", "Add"});
  return graph_text(fmt::format("a: f32[{}], b: f32[{}]", a, b),
                    fmt::format("y = {}({})", word, swapped ? "b, a" : "a, b"));
}

std::string random_norm(SplitMix& random) {
  const auto columns = channels(random, 4096), rows = 1 + below(random, 200);
  if (one_in(random, 2))
    return graph_text(fmt::format("x: f32[{},{}]", rows, columns),
                      fmt::format("s = const f32[{0}] seed(1)\nb = const f32[{0}] seed(2)\ny = "
                                  "LayerNormalization(x, s{1})",
                                  columns, one_in(random, 2) ? ", b" : ""));
  return graph_text(
      fmt::format("x: f32[{},{}{}]", 1 + below(random, 2), channels(random, 600), sizes_of(random, 2, 20)),
      fmt::format("axes = const i64[1] {{1}}\ny = LRN(x, axes) size={} alpha=0.02 beta={} bias=1.5",
                  pick<Number>(random, {1, 3, 5, 5, 5, 7}), pick<std::string>(random, {"0.75", "0.5"})));
}

std::string random_mean(SplitMix& random) {
  const auto axes = pick<std::size_t>(random, {1, 2, 2, 3});
  const auto list = axes == 1 ? "2" : axes == 2 ? "2, 3" : "2, 3, 4";
  return graph_text(fmt::format("x: f32[{},{}{}]", 1 + below(random, 2), channels(random, 2048),
                                sizes_of(random, axes, 14)),
                    fmt::format("axes = const i64[{}] {{{}}}\ny = ReduceMean(x, axes) keep_dims={}", axes,
                                list, one_in(random, 2)));
}

std::string random_resize(SplitMix& random) {
  const auto axes = pick<std::size_t>(random, {1, 2, 2, 2, 3});
  std::string sizes, out, list;
  for (std::size_t i = 0; i < axes; ++i) {
    const auto size = 1 + below(random, axes == 3 ? 8 : 20), times = 1 + below(random, 4);
    sizes += fmt::format(",{}", size);
    out += fmt::format("{}{}", i ? ", " : "", size * times);
    list += fmt::format("{}{}", i ? ", " : "", i + 2);
  }
  const auto mode = pick<std::string>(
      random, {"mode=linear_onnx coordinate_transformation_mode=half_pixel",
               "mode=nearest coordinate_transformation_mode=asymmetric nearest_mode=floor",
               "mode=nearest coordinate_transformation_mode=half_pixel nearest_mode=round_prefer_floor"});
  return graph_text(
      fmt::format("x: f32[{},{}{}]", 1 + below(random, 2), channels(random, 300), sizes),
      fmt::format("s = const i64[{0}] {{{1}}}\na = const i64[{0}] {{{2}}}\ny = Interpolate(x, s, a) {3}",
                  axes, out, list, mode));
}

std::string random_convert(SplitMix& random) {
  const bool narrows = one_in(random, 2);
  return graph_text(fmt::format("x: {}[{},{}{}]", narrows ? "f32" : "bf16", 1 + below(random, 3),
                                channels(random, 1000), sizes_of(random, 2, 20)),
                    fmt::format("y = Convert(x) destination_type={}", narrows ? "bf16" : "f32"));
}

Case random_graph_case(SplitMix& random, ElementType type) {
  Case c;
  c.kind = Kind::graph;
  c.type = type;
  if (type == ElementType::bf16) {
    c.text = one_in(random, 3) ? random_convert(random) : random_pooling(random, type);
    return c;
  }
  switch (below(random, 8)) {
    case 0:
    case 1:
      c.text = random_pooling(random, type);
      break;
    case 2:
      c.text = random_unary(random);
      break;
    case 3:
      c.text = random_binary(random);
      break;
    case 4:
    case 5:
      c.text = random_norm(random);
      break;
    case 6:
      c.text = random_mean(random);
      break;
    default:
      c.text = random_resize(random);
  }
  return c;
}

constexpr Number kEdges[] = {1,  2,  3,  4,  5,  7,  8,  9,   12,  15,  16,  17,  23,  24,  25,  31,   32,
                             33, 47, 48, 49, 63, 64, 65, 127, 128, 129, 255, 256, 257, 512, 513, 1024, 2048};

}  // namespace

Case random_case(SplitMix& random, const std::string& family, ElementType type, const Bounds& bounds) {
  if (family == "conv" || family == "deconv")
    return random_window_case(random, family == "deconv", type, bounds);
  if (family == "matmul") return random_product(random, type, bounds);
  if (family != "other")
    fail(ErrorCode::bad_option, "family \"{}\": wanted conv, deconv, matmul or other", family);
  return random_graph_case(random, type);
}

std::vector<Case> edge_cases(const std::string& family, ElementType type, const Bounds& bounds) {
  struct Window {
    Number in, kernel, stride, pad;
  };
  std::vector<Case> cases;
  const bool transposed = family == "deconv", product = family == "matmul";
  if (!product && family != "conv" && !transposed) return cases;
  std::uint64_t seed = 0;
  for (const auto inputs : kEdges)
    for (const auto outputs : kEdges)
      for (const auto& a : {Window{5, 1, 1, 0}, {4, 3, 1, 1}, {4, 4, 2, 1}, {3, 2, 2, 0}, {5, 5, 3, 2}}) {
        Case c;
        c.seed = ++seed;
        c.type = type;
        c.bias = !is_byte(type) && seed % 3 != 0;
        if (is_byte(type)) c.stages = {"to_u8"};
        if (seed % 5 == 0) c.stages.insert(c.stages.begin(), {"sum", "relu"});
        if (product) {
          c.kind = Kind::product;
          c.transpose_x = a.kernel == 2, c.transpose_w = a.kernel == 3;
          const auto rows = a.kernel == 1 ? 1 : a.kernel * 5 + a.stride;
          c.x = {rows, inputs}, c.w = {inputs, outputs};
          if (c.transpose_x) std::swap(c.x[0], c.x[1]);
          if (c.transpose_w) std::swap(c.w[0], c.w[1]);
        } else {
          c.kind = transposed ? Kind::deconvolution : Kind::convolution;
          c.x = {1, inputs, a.in, a.in};
          c.w = {transposed ? inputs : outputs, transposed ? outputs : inputs, a.kernel, a.kernel};
          c.strides = {a.stride, a.stride}, c.dilations = {1, 1}, c.padding = {0, 0};
          c.begin = c.end = {a.pad, a.pad};
        }
        if (fits(c, bounds)) cases.push_back(c);
      }
  return cases;
}

}  // namespace lamina::sweep
