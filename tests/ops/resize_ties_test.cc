// Coordinates of Interpolate in exact arithmetic: every coordinate mode and rounding at scales that are no
// whole numbers, against fractions that this file computes by the definitions of ONNX.
#include <numeric>

#include "op_testing.h"
#include "ops/resize.h"

namespace lamina {
namespace {

using namespace testing;

/// Terms stay small here: 64 bits do.
struct Fraction {
  std::int64_t above, below = 1;

  Fraction(std::int64_t a, std::int64_t b = 1) {  // NOLINT: a number is a fraction
    const auto common = std::gcd(a, b) * (b < 0 ? -1 : 1);
    above = a / common;
    below = b / common;
  }
  friend Fraction operator+(Fraction a, Fraction b) {
    return {a.above * b.below + b.above * a.below, a.below * b.below};
  }
  friend Fraction operator-(Fraction a, Fraction b) { return a + Fraction{-b.above, b.below}; }
  friend Fraction operator*(Fraction a, Fraction b) { return {a.above * b.above, a.below * b.below}; }
  friend Fraction operator/(Fraction a, Fraction b) { return {a.above * b.below, a.below * b.above}; }
  friend bool operator<(Fraction a, Fraction b) { return a.above * b.below < b.above * a.below; }
  friend bool operator==(Fraction a, Fraction b) { return a.above == b.above && a.below == b.below; }

  std::int64_t floor() const { return above / below - (above % below < 0 ? 1 : 0); }
  std::int64_t ceil() const { return below == 1 ? above : floor() + 1; }
  double value() const { return static_cast<double>(above) / static_cast<double>(below); }
};

const Fraction kHalf{1, 2};
const Fraction kStart{1, 4}, kEnd{3, 4};  // the region of tf_crop_and_resize

/// As ONNX defines x_original. A scale of 1 copies.
Fraction coordinate(CoordinateMode mode, std::int64_t in, std::int64_t out, Fraction scale, std::int64_t x) {
  if (scale == Fraction(1) && mode != CoordinateMode::tf_crop_and_resize) return x;
  switch (mode) {
    case CoordinateMode::half_pixel:
      return (x + kHalf) / scale - kHalf;
    case CoordinateMode::pytorch_half_pixel:
      return out > 1 ? (x + kHalf) / scale - kHalf : Fraction(0);
    case CoordinateMode::asymmetric:
      return x / scale;
    case CoordinateMode::tf_half_pixel_for_nn:
      return (x + kHalf) / scale;
    case CoordinateMode::align_corners:
      return out > 1 ? Fraction(x * (in - 1), out - 1) : Fraction(0);
    case CoordinateMode::half_pixel_symmetric: {
      const auto adjustment = out / (scale * in);
      const auto offset = Fraction(in, 2) * (1 - adjustment);
      return offset + (x + kHalf) / scale - kHalf;
    }
    case CoordinateMode::tf_crop_and_resize:
      return out > 1 ? kStart * (in - 1) + x * (kEnd - kStart) * Fraction(in - 1, out - 1)
                     : kHalf * (kStart + kEnd) * (in - 1);
  }
  return 0;
}

std::int64_t rounded(NearestMode mode, Fraction x, bool shrinks) {
  switch (mode) {
    case NearestMode::round_prefer_floor:
      return (x - kHalf).ceil();
    case NearestMode::round_prefer_ceil:
      return (x + kHalf).floor();
    case NearestMode::floor:
      return x.floor();
    case NearestMode::ceil:
      return x.ceil();
    case NearestMode::simple:
      return shrinks ? x.ceil() : x < Fraction(0) ? -((Fraction(0) - x).floor()) : x.floor();
  }
  return 0;
}

constexpr auto kCoordinates = {
    CoordinateMode::half_pixel,         CoordinateMode::pytorch_half_pixel,
    CoordinateMode::asymmetric,         CoordinateMode::tf_half_pixel_for_nn,
    CoordinateMode::align_corners,      CoordinateMode::half_pixel_symmetric,
    CoordinateMode::tf_crop_and_resize,
};
constexpr auto kRoundings = {NearestMode::round_prefer_floor, NearestMode::round_prefer_ceil,
                             NearestMode::floor, NearestMode::ceil, NearestMode::simple};

template <class E>
std::string_view spelled(E value) {
  return enum_names<E>[static_cast<std::size_t>(value)];
}

struct Case {
  std::int64_t in, out;
  Fraction scale;
  bool given = false;  // the scale, as a number of 24 bits

  std::vector<double> of(Interpolate op) const {
    op.shape_calculation_mode = given ? ShapeCalculationMode::scales : ShapeCalculationMode::sizes;
    std::vector<float> x(static_cast<std::size_t>(in));
    std::iota(x.begin(), x.end(), 0.0F);
    const auto n = floats({1, in}, x);
    const auto size = given ? floats({static_cast<float>(scale.value())}) : ints({out});
    const auto region = floats({static_cast<float>(kStart.value()), static_cast<float>(kEnd.value())});
    return to_doubles(evaluate(op, {n, size, ints({1}), region}));
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::int64_t in : {1, 2, 3, 5, 7, 10, 20, 21, 30, 64, 100, 299})
    for (const std::int64_t out : {1, 2, 3, 6, 7, 9, 10, 13, 21, 30, 57, 130, 224}) {
      all.push_back({in, out, {out, in}});
      // The number that is given stands for the quotient of the sizes where it is that, rounded. Sizes are
      // made of it in single precision, which may lose one pixel.
      const auto number = static_cast<float>(Fraction(out, in).value());
      if (in != out && static_cast<std::int64_t>(static_cast<float>(in) * number) == out)
        all.push_back({in, out, {out, in}, true});
    }
  // Where the size has been rounded down the scale is what it says.
  for (const std::int64_t in : {7, 21, 33, 50, 101})
    for (const Fraction scale :
         {Fraction{3, 10}, {7, 10}, {13, 10}, {17, 10}, {23, 10}, {9, 20}, {1, 3}, {2, 3}, {5, 4}, {11, 7}})
      if (const auto out = (in * scale).floor(); !(Fraction(out, in) == scale) && out > 0)
        all.push_back({in, out, scale, true});
  return all;
}

TEST(InterpolateTies, every_rounding_is_exact) {
  std::size_t ties = 0;
  for (const auto& c : cases())
    for (const auto mode : kCoordinates)
      for (const auto rounding : kRoundings) {
        Interpolate op;
        op.coordinate_transformation_mode = mode;
        op.nearest_mode = rounding;
        const auto found = c.of(op);
        ASSERT_EQ(std::ssize(found), c.out) << c.in << " times " << c.scale.value();
        for (std::int64_t o = 0; o < c.out; ++o) {
          const auto x = coordinate(mode, c.in, c.out, c.scale, o);
          ties += x.below == 2;
          const auto wanted =
              std::clamp<std::int64_t>(rounded(rounding, x, c.scale < Fraction(1)), 0, c.in - 1);
          EXPECT_EQ(found[static_cast<std::size_t>(o)], static_cast<double>(wanted))
              << c.in << " to " << c.out << (c.given ? " by scale " : " by size ") << c.scale.value() << ", "
              << spelled(mode) << " " << spelled(rounding) << ", position " << o << " at " << x.above << "/"
              << x.below;
        }
      }
  EXPECT_GT(ties, 1000u);
}

/// For numbers that count upwards, linear interpolation gives the coordinate itself, inside the input.
TEST(InterpolateTies, linear_coordinates_are_exact) {
  for (const auto& c : cases())
    for (const auto mode : kCoordinates) {
      Interpolate op;
      op.mode = InterpolateMode::linear_onnx;
      op.coordinate_transformation_mode = mode;
      const auto found = c.of(op);
      ASSERT_EQ(std::ssize(found), c.out);
      for (std::int64_t o = 0; o < c.out; ++o) {
        const auto x = coordinate(mode, c.in, c.out, c.scale, o).value();
        EXPECT_FLOAT_EQ(static_cast<float>(found[static_cast<std::size_t>(o)]),
                        static_cast<float>(std::clamp(x, 0.0, static_cast<double>(c.in - 1))))
            << c.in << " to " << c.out << ", " << spelled(mode) << ", position " << o;
      }
    }
}

/// Keys's filter gives back straight lines where it reads no border.
TEST(InterpolateTies, cubic_coordinates_are_exact) {
  for (const auto& c : cases())
    for (const auto mode : kCoordinates) {
      Interpolate op;
      op.mode = InterpolateMode::cubic;
      op.cube_coeff = -0.5;
      op.coordinate_transformation_mode = mode;
      const auto found = c.of(op);
      ASSERT_EQ(std::ssize(found), c.out);
      for (std::int64_t o = 0; o < c.out; ++o) {
        const auto x = coordinate(mode, c.in, c.out, c.scale, o).value();
        if (x < 1 || x > static_cast<double>(c.in - 2)) continue;
        EXPECT_NEAR(found[static_cast<std::size_t>(o)], x, 1e-6 * x)
            << c.in << " to " << c.out << ", " << spelled(mode) << ", position " << o;
      }
    }
}

}  // namespace
}  // namespace lamina
