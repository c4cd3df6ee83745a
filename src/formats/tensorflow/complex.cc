#include "formats/tensorflow/complex.h"

#include <algorithm>
#include <array>

#include "formats/tensorflow/importer.h"
#include "ops/control.h"
#include "ops/elementwise.h"
#include "ops/gathering.h"
#include "ops/generation.h"
#include "ops/shaping.h"

namespace lamina::tensorflow {
namespace {

constexpr std::string_view kComplex = "complex numbers";

struct Parts {
  ValueId real, imaginary;
};

Parts parts_of(Call& c, ValueId v) {
  if (is_complex(c.graph(), v)) {
    const auto& inputs = c.graph().node(c.graph().producer(v)).inputs;
    return {inputs[0], inputs[1]};
  }
  const auto zero = c.number_like(0, v);
  return {v, c.filled(zero, c.shape_of(v))};
}

ValueId sum(Call& c, ValueId a, ValueId b) { return c.add(Add{}, {a, b}); }
ValueId difference(Call& c, ValueId a, ValueId b) { return c.add(Subtract{}, {a, b}); }
ValueId product(Call& c, ValueId a, ValueId b) { return c.add(Multiply{}, {a, b}); }
ValueId squares(Call& c, const Parts& p) {
  return sum(c, product(c, p.real, p.real), product(c, p.imaginary, p.imaginary));
}

Values multiplied(Call& c) {
  const auto a = parts_of(c, c.in(0)), b = parts_of(c, c.in(1));
  return {make_complex(c, difference(c, product(c, a.real, b.real), product(c, a.imaginary, b.imaginary)),
                       sum(c, product(c, a.real, b.imaginary), product(c, a.imaginary, b.real)))};
}

/// a times the conjugate of b, through the square of b's size.
Values divided(Call& c) {
  const auto a = parts_of(c, c.in(0)), b = parts_of(c, c.in(1));
  const auto size = squares(c, b);
  const auto real = sum(c, product(c, a.real, b.real), product(c, a.imaginary, b.imaginary));
  const auto imaginary = difference(c, product(c, a.imaginary, b.real), product(c, a.real, b.imaginary));
  return {make_complex(c, c.add(Divide{}, {real, size}), c.add(Divide{}, {imaginary, size}))};
}

/// Operators that do the same to both parts: what moves values, and sums.
bool goes_by_parts(std::string_view op) {
  static constexpr auto kAll = std::to_array<std::string_view>(
      {"Add",        "AddN",   "AddV2",    "BroadcastTo", "Concat",       "ConcatV2",
       "ExpandDims", "Gather", "GatherNd", "GatherV2",    "Identity",     "Mean",
       "Neg",        "Pack",   "Pad",      "Reshape",     "ReverseV2",    "Roll",
       "Slice",      "Split",  "SplitV",   "Squeeze",     "StopGradient", "StridedSlice",
       "Sub",        "Sum",    "Tile",     "Transpose",   "Unpack"});
  return std::find(kAll.begin(), kAll.end(), op) != kAll.end();
}

Values by_parts(Call& c, Converter converter) {
  std::array<Values, 2> made;
  for (std::size_t part = 0; part < 2; ++part) {
    Values inputs = c.all();
    for (auto& v : inputs)
      if (is_complex(c.graph(), v)) v = part == 0 ? parts_of(c, v).real : parts_of(c, v).imaginary;
    Call alone(c.importer(), c.node(), std::move(inputs));
    made[part] = converter(alone);
  }
  Values out;
  for (std::size_t i = 0; i < made[0].size(); ++i) out.push_back(make_complex(c, made[0][i], made[1][i]));
  return out;
}

/// The last axes of a value, as many as a transform goes over.
ValueId last_axes(Call& c, ValueId v, std::int64_t count) {
  const auto rank = static_cast<std::int64_t>(c.known_rank(v));
  if (rank < count) c.fail("transforms {} axes of {}", count, to_string(c.shape(v)));
  Ints axes;
  for (auto a = rank - count; a < rank; ++a) axes.push_back(a);
  return c.ints_constant(axes);
}

Values separated(Call& c, ValueId v) { return {make_complex(c, c.pick(v, -1, 0), c.pick(v, -1, 1))}; }

ValueId together(Call& c, ValueId v) {
  const auto p = parts_of(c, v);
  return c.concat({c.unsqueeze(p.real, {-1}), c.unsqueeze(p.imaginary, {-1})}, -1);
}

template <class Op, int kAxes>
Values convert_transform(Call& c) {
  const auto axes = last_axes(c, parts_of(c, c.in(0)).real, kAxes);
  return separated(c, c.add(Op{}, {together(c, c.in(0)), axes}));
}

template <int kAxes>
Values convert_real_transform(Call& c) {
  return separated(c, c.add(RDFT{}, {c.in(0), last_axes(c, c.in(0), kAxes), c.in(1)}));
}

template <int kAxes>
Values convert_inverse_real_transform(Call& c) {
  const auto axes = last_axes(c, parts_of(c, c.in(0)).real, kAxes);
  return {c.add(IRDFT{}, {together(c, c.in(0)), axes, c.in(1)})};
}

Values convert_from_parts(Call& c) { return {make_complex(c, c.in(0), c.in(1))}; }
Values convert_real(Call& c) { return {parts_of(c, c.in(0)).real}; }
Values convert_imaginary(Call& c) { return {parts_of(c, c.in(0)).imaginary}; }
Values convert_complex_abs(Call& c) { return {c.add(Sqrt{}, {squares(c, parts_of(c, c.in(0)))})}; }

Values convert_conjugate(Call& c) {
  const auto p = parts_of(c, c.in(0));
  return {make_complex(c, p.real, c.add(Negative{}, {p.imaginary}))};
}

}  // namespace

bool is_complex(const Graph& graph, ValueId v) {
  const auto producer = graph.producer(v);
  if (!producer.valid()) return false;
  const auto* op = graph.node(producer).op.as<Opaque>();
  return op && op->type == kComplex;
}

bool is_complex_type(std::int64_t data_type) { return data_type == 8 || data_type == 18; }

ValueId make_complex(Call& c, ValueId real, ValueId imaginary) {
  return c.add_all(Opaque{"", std::string(kComplex), "", {}}, {real, imaginary}, 1)[0];
}

std::optional<Values> convert_complex(Call& c, Converter converter) {
  const auto op = c.op();
  if (op == "Mul") return multiplied(c);
  if (op == "RealDiv") return divided(c);
  if (op == "Cast")
    return Values{c.convert(parts_of(c, c.in(0)).real, c.type_attribute("DstT", ElementType::f32))};
  if (goes_by_parts(op)) return by_parts(c, converter);
  static constexpr auto kTakes =
      std::to_array<std::string_view>({"ComplexAbs", "Conj", "FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D",
                                       "IFFT3D", "IRFFT", "IRFFT2D", "Imag", "Real"});
  if (std::find(kTakes.begin(), kTakes.end(), op) == kTakes.end()) return std::nullopt;
  return converter(c);
}

void erase_unread_complex(Graph& graph) {
  for (auto i = static_cast<std::uint32_t>(graph.node_slots()); i-- > 0;) {
    const auto& node = graph.node({i});
    if (node.erased() || node.outputs.empty()) continue;
    if (is_complex(graph, node.outputs[0]) && graph.readers(node.outputs[0]) == 0) graph.erase({i});
  }
}

void register_complex(ConverterTable& t) {
  t.add("Complex", convert_from_parts);
  t.add("ComplexAbs", convert_complex_abs);
  t.add("Conj", convert_conjugate);
  t.add("FFT", convert_transform<DFT, 1>);
  t.add("FFT2D", convert_transform<DFT, 2>);
  t.add("FFT3D", convert_transform<DFT, 3>);
  t.add("IFFT", convert_transform<IDFT, 1>);
  t.add("IFFT2D", convert_transform<IDFT, 2>);
  t.add("IFFT3D", convert_transform<IDFT, 3>);
  t.add("IRFFT", convert_inverse_real_transform<1>);
  t.add("IRFFT2D", convert_inverse_real_transform<2>);
  t.add("Imag", convert_imaginary);
  t.add("RFFT", convert_real_transform<1>);
  t.add("RFFT2D", convert_real_transform<2>);
  t.add("Real", convert_real);
}

}  // namespace lamina::tensorflow
