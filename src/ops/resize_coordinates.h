#pragma once
/// Where the positions of a resized axis lie in the input, in exact arithmetic: on a tie, which pixel is the
/// nearest one must not depend on how a quotient was rounded.
#include <cstdint>

#include "ops/resize.h"

namespace lamina {

/// Output pixels per input pixel: above / below, both positive.
struct ResizeScale {
  std::int64_t above = 1, below = 1;

  /// The scale between two sizes.
  static ResizeScale of_sizes(std::int64_t in, std::int64_t out) { return {out, in}; }
  /// The scale of a given number, positive and finite. Files have numbers of 24 bits where quotients are
  /// meant: the scale is out / in if that rounds to the number, else the fraction with the smallest terms
  /// that does, so that 0.3 is 3/10 and not 0.300000012.
  static ResizeScale of_number(float scale, std::int64_t in, std::int64_t out);

  double value() const { return static_cast<double>(above) / static_cast<double>(below); }
  bool shrinks() const { return above < below; }
};

/// One resized axis: `in` positions become `out`. The region is for tf_crop_and_resize only.
class ResizeCoordinates {
 public:
  ResizeCoordinates(CoordinateMode mode, std::int64_t in, std::int64_t out, ResizeScale scale,
                    float region_start = 0, float region_end = 1);

  /// The coordinate in the input, to the nearest f64; NaN where the region is not finite.
  double at(std::int64_t position) const;
  /// The nearest input position; it may lie outside of the input. 0 where the region is not finite.
  std::int64_t nearest(NearestMode mode, std::int64_t position) const;
  /// tf_crop_and_resize shows what lies outside of the input there.
  bool outside(std::int64_t position) const;

 private:
  __extension__ using Wide = __int128;
  struct Quotient {
    Wide above, below;  // below > 0
  };
  Quotient exact(std::int64_t position) const;
  Quotient in_region(Wide position) const;
  static Wide floor(const Quotient& q);

  CoordinateMode mode_;
  Wide in_, out_;
  ResizeScale scale_;
  double start_, end_;
  bool finite_;
};

}  // namespace lamina
