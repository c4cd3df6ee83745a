#include "tests/kernels/onednn_integer_nodes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/element_types.h"
#include "tests/support/run_graph.h"

namespace lamina::testing {

const std::vector<Epilogue> kEpilogues{
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

const std::vector<Host> kConvolutions{
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
    {"1,16,9,10", "given 32,16,3,3", "pads_begin=[1,1] pads_end=[1,1]", "1,32,9,10", 144},
    {"1,33,9,9", "given 33,1,3,3", "groups=33 pads_begin=[1,1] pads_end=[1,1]", "1,33,9,9", 9},
    {"1,24,8,8", "given 36,8,3,3", "groups=3 pads_begin=[0,1] pads_end=[1,0]", "1,36,7,7", 72},
    {"1,8,5,6,7", "16,8,3,3,3", "pads_begin=[1,1,1] pads_end=[1,1,1]", "1,16,5,6,7", 216},
    {"1,5,6,1", "7,5,3,1", "pads_begin=[1,0] pads_end=[1,0]", "1,7,6,1", 15},
    {"1,100,5,5", "5,100,3,3", "pads_begin=[1,1] pads_end=[1,1]", "1,5,5,5", 900},
};

const std::vector<Host> kProducts{{"33,50", "50,75", "", "33,75", 50, true},
                                  {"1,700", "300,700", "transpose_b=true", "1,300", 700, true},
                                  {"2,5,37", "37,53", "", "2,5,53", 37, true},
                                  {"2,5,37", "given 37,53", "", "2,5,53", 37, true},
                                  {"2,3,9,40", "given 2,3,21,40", "transpose_b=true", "2,3,9,21", 40, true},
                                  {"2,7,40", "2,40,9", "", "2,7,9", 40, true},
                                  {"7,40", "40,1", "", "7,1", 40, true}};

const std::vector<Operands> kOperands{{},
                                      {"i8"},
                                      {"u8", "i8", "131"},
                                      {"i8", "i8", "-7"},
                                      {"u8", "i8", "given"},
                                      {"i8", "i8", "given"},
                                      {"u8", "u8", "3", "128"},
                                      {"i8", "u8", "_", "per channel"}};

namespace {

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

}  // namespace

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

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
  text += fmt::format(" y = {}(x, w, _, {}{}, {}{}) {}",
                      h.rows         ? "MatMul"
                      : h.transposed ? "ConvolutionBackpropData"
                                     : "Convolution",
                      h.transposed ? "_, " : "", o.zero == "_" ? "_" : "a", o.weights_zero == "_" ? "_" : "v",
                      e.second.empty() ? "" : ", p", h.attributes);
  if (!stages.empty())
    text += fmt::format(" {{\n body graph (s: i32[{}]{}) -> ({}) {{\n {}\n }}\n }}", h.y,
                        e.second.empty() ? "" : fmt::format(", p: {}[{}]", e.second, h.y),
                        with_stored && !e.stored.empty() ? "q" : "r", stages);
  return text + "\n}\n";
}

std::vector<Tensor> widen(Graph& g, std::uint64_t seed) {
  for (std::uint32_t i = 0, count = static_cast<std::uint32_t>(g.value_slots()); i < count; ++i)
    if (const auto* t = g.constant(ValueId{i}); t && is_byte(t->element_type()) && t->shape().size() > 1)
      g.replace(ValueId{i}, g.add_constant(weights_of(*t, ++seed)));
  auto inputs = random_inputs(g, seed);
  for (auto& t : inputs)
    if (is_byte(t.element_type()) && t.size() > 1) t = whole_range(t, ++seed);
  return inputs;
}

bool multiplies_here() {
  const auto& features = host().features;
  return (features.has(Feature::avx512_vnni) || features.has(Feature::avx_vnni)) &&
         host().library >= Isa::avx2 && !std::getenv("ONEDNN_MAX_CPU_ISA");
}

}  // namespace lamina::testing
