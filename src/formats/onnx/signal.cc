/// Windows and Fourier transforms.
#include <numbers>

#include "formats/onnx/build.h"
#include "formats/onnx/convert.h"
#include "ops/elementwise.h"
#include "ops/generation.h"
#include "ops/movement.h"

namespace lamina::onnx {
namespace {

/// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N) for n in 0 .. size - 1; N is the size, or one less when not
/// periodic.
Values window(Call& c, double a0, double a1, double a2) {
  const auto type = c.element_attribute("output_datatype", ElementType::f32);
  const auto size = to_scalar(c, convert(c, c.in(0), ElementType::i64));
  const auto n = convert(c, c.add(Range{ElementType::i64}, {c.int_constant(0), size, c.int_constant(1)}),
                         ElementType::f64);
  auto length = convert(c, size, ElementType::f64);
  if (!c.flag("periodic", true)) length = subtract(c, length, c.number_like(1, length));
  const auto turn = divide(c, multiply(c, n, c.number_like(2 * std::numbers::pi, n)), length);
  const auto first = multiply(c, c.add(Cos{}, {turn}), c.number_like(a1, turn));
  auto y = subtract(c, c.number_like(a0, turn), first);
  if (a2 != 0) {
    const auto twice = c.add(Cos{}, {multiply(c, turn, c.number_like(2, turn))});
    y = add(c, y, multiply(c, twice, c.number_like(a2, turn)));
  }
  return {convert(c, y, type)};
}

Values convert_hann(Call& c) { return window(c, 0.5, 0.5, 0); }
Values convert_hamming(Call& c) { return window(c, 25.0 / 46, 21.0 / 46, 0); }
Values convert_blackman(Call& c) { return window(c, 0.42, 0.5, 0.08); }

/// The last axis holds one number (real) or two (complex). Opset 17 has the axis as an attribute.
Values convert_dft(Call& c) {
  const auto rank = c.known_rank(c.in(0));
  if (rank < 2) c.fail("input has rank {}, wanted 2 or more", rank);
  auto axis = c.version() < 20 ? c.i("axis", 1) : -2;
  if (c.version() >= 20 && c.has(2)) {
    const auto given = c.known_ints(c.in(2));
    if (!given || given->size() != 1) c.unsupported("an axis that is computed");
    axis = (*given)[0];
  }
  const auto at = static_cast<std::int64_t>(c.axis(axis, rank));
  if (at + 1 == static_cast<std::int64_t>(rank))
    c.fail("axis {} is the one of real and imaginary parts", axis);
  const bool inverse = c.flag("inverse"), onesided = c.flag("onesided");
  const auto& last = c.type(c.in(0)).shape[rank - 1];
  if (!last.known()) c.unsupported("an unknown number of parts");
  if (inverse && onesided) c.unsupported("an inverse from one side");
  auto x = c.in(0);
  if (last.is(1)) x = concat(c, {x, multiply(c, x, c.number_like(0, x))}, -1);
  Values inputs{x, c.ints_constant({at})};
  if (c.has(1)) inputs.push_back(to_vector(c, c.in(1)));
  const auto y = inverse ? c.add(IDFT{}, std::move(inputs)) : c.add(DFT{}, std::move(inputs));
  if (!onesided) return {y};
  const auto half = add(c, divide(c, size_of(c, y, at), c.int_constant(2)), c.int_constant(1));
  return {c.add(Slice{},
                {y, c.ints_constant({0}), to_vector(c, half), c.ints_constant({1}), c.ints_constant({at})})};
}

}  // namespace

void register_signal(ConverterTable& t) {
  t.add("BlackmanWindow", convert_blackman);
  t.add("DFT", convert_dft);
  t.add("HammingWindow", convert_hamming);
  t.add("HannWindow", convert_hann);
}

}  // namespace lamina::onnx
