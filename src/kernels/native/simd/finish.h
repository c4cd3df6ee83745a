#pragma once
/// What kernels do with a result while it is in registers.
#include <cstdint>
#include <limits>

namespace lamina {

/// What happens to a sum before it is stored. NaN passes through all of them.
struct Finish {
  enum class Kind : std::uint8_t { none, clamp, leaky } kind = Kind::none;
  float low = 0, high = 0;  ///< clamp
  float slope = 0;          ///< leaky: x * slope below 0
};

/// What happens to a sum of integers (i32) of channel c before it is stored, each step rounded by itself:
///
///     v = f32(sum) * scale[c] + shift[c]
///     v = (round_half_even(v / levels.step, within its bounds) + levels.zero) * levels.scale, where there
///     are v = v + added            added: of a second tensor, (byte - added_zero) * added_scale, or of a row
///     v = the same by `joined`, where there are such levels
///     v = finish(v)
///     v = v * slope[c] where it is below 0                                          where there are slopes
///     v = v * post_scale[c] + post_shift[c]                                            where there are any
///     v = round_half_even(v / step) + zero_point, within the type; NaN gives 0      bytes only
///
/// With Stored::sums nothing does: i32 is stored. How kernels use it: integer_finish-inl.h.
struct IntegerFinish {
  enum class Stored : std::uint8_t { sums, floats, bytes };
  /// `rows`: one of a few rows of floats; of each point one byte says which.
  enum class Added : std::uint8_t { none, floats, unsigned_bytes, signed_bytes, rows };
  static constexpr float kMost = std::numeric_limits<float>::infinity();

  Stored stored = Stored::sums;
  Added added = Added::none;
  bool nan = false;              ///< v may be NaN
  const float* scale = nullptr;  ///< of each channel; vectors that begin at a channel may be read whole
  const float* shift = nullptr;
  /// What is divided by, and 1 / step as a sum of two f32; {0, 0} where only a division is exact.
  struct Step {
    float step = 1, inverse = 0, inverse_rest = 0;
  };
  /// A quantise step in the midst, and back to floats. Bounds are of v / step, which is not NaN.
  struct Levels {
    bool any = false;
    Step step;
    float low = 0, high = 0, zero = 0, scale = 1;
  } levels, joined;
  float added_scale = 1, added_zero = 0;
  const float* rows = nullptr;  ///< as `scale`, `row` floats from one to the next
  std::int64_t row = 0;
  Finish finish;
  bool slopes = false;
  const float* slope = nullptr;       ///< as `scale`
  bool has_post = false;              ///< there are the next two
  const float* post_scale = nullptr;  ///< as `scale`
  const float* post_shift = nullptr;
  Step step;
  /// Bounds of v / step; of v where that is the result. Those of a clamp are in them where bytes are stored.
  float low = -kMost, high = kMost;
  std::int32_t zero_point = 0;
  /// How saturating packs make bytes of whole numbers: unsigned ones, of which `turned` makes the type's.
  struct Packs {
    bool bounds_last = false;  ///< may be: simple(), and v fits i32 whatever the sums are
    std::int16_t zero_point = 0;
    std::uint8_t low = 0, high = 255, turned = 0;  ///< turned: 0x80 for i8, whose zero is 128
  } packs;

  /// Bytes of an element that is stored, and of one that is added; 0 for rows, since a point has one number.
  std::int64_t stored_bytes() const { return stored == Stored::bytes ? 1 : 4; }
  std::int64_t added_bytes() const {
    if (added == Added::none || added == Added::rows) return 0;
    return added == Added::floats ? 4 : 1;
  }
  /// Nothing but scale, shift, bounds and zero point.
  bool simple() const {
    return scaled_only() && step.step == 1 && !has_post && (stored == Stored::floats || !nan);
  }
  /// True without a second tensor, slopes, levels or a finish; a second scale and shift, and a step, may be.
  bool scaled_only() const { return nothing_joins() && finish.kind == Finish::Kind::none && !levels.any; }
  /// True without a second tensor, joined levels or slopes.
  bool nothing_joins() const { return added == Added::none && !joined.any && !slopes; }
};

}  // namespace lamina
