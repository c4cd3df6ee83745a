#pragma once
/// Floating-point modes that a caller of lamina may be in.
#include <xmmintrin.h>

#include <cfenv>
#include <string>
#include <vector>

namespace lamina::testing {

struct FloatingPointMode {
  int rounding = FE_TONEAREST;
  bool flush_results = false, denormals_are_zero = false;  ///< FTZ, DAZ

  std::string text() const {
    const auto* direction = rounding == FE_UPWARD       ? "up"
                            : rounding == FE_DOWNWARD   ? "down"
                            : rounding == FE_TOWARDZERO ? "towards 0"
                                                        : "to nearest";
    return std::string("rounds ") + direction + (flush_results ? ", FTZ" : "") +
           (denormals_are_zero ? ", DAZ" : "");
  }
};

inline std::vector<FloatingPointMode> all_modes() {
  std::vector<FloatingPointMode> all;
  for (const int rounding : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO})
    for (const bool flush : {false, true})
      for (const bool zero : {false, true}) all.push_back({rounding, flush, zero});
  return all;
}

/// The calling thread is in the mode while it lives.
class InMode {
 public:
  explicit InMode(const FloatingPointMode& mode) : before_(_mm_getcsr()), rounding_(std::fegetround()) {
    std::fesetround(mode.rounding);
    const auto other = _mm_getcsr() & ~(kFlush | kZero);
    _mm_setcsr(other | (mode.flush_results ? kFlush : 0u) | (mode.denormals_are_zero ? kZero : 0u));
    mode_ = _mm_getcsr() & ~kFlags;
    mode_rounding_ = std::fegetround();
  }
  ~InMode() {
    std::fesetround(rounding_);
    _mm_setcsr(before_);
  }
  InMode(const InMode&) = delete;
  InMode& operator=(const InMode&) = delete;

  /// The calling thread, this one or another, computes that way.
  bool is_here() const { return (_mm_getcsr() & ~kFlags) == mode_ && std::fegetround() == mode_rounding_; }

 private:
  static constexpr unsigned kFlush = 0x8000, kZero = 0x40, kFlags = 0x3f;
  unsigned before_, mode_ = 0;
  int rounding_, mode_rounding_ = 0;
};

}  // namespace lamina::testing
