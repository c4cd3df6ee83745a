#include "base/floating_point.h"

#include <fpu_control.h>
#include <xmmintrin.h>

namespace lamina {
namespace {

constexpr std::uint32_t kFlags = 0x3f;  // of MXCSR: what has happened

std::uint16_t x87_here() noexcept {
  std::uint16_t word = 0;
  _FPU_GETCW(word);
  return word;
}

}  // namespace

FloatingPoint FloatingPoint::here() noexcept {
  FloatingPoint now;
  now.vectors_ = _mm_getcsr();
  now.x87_ = x87_here();
  return now;
}

/// Writing either word costs more than reading it.
void FloatingPoint::set_here() const noexcept {
  if (_mm_getcsr() != vectors_) _mm_setcsr(vectors_);
  if (x87_here() != x87_) _FPU_SETCW(x87_);
}

bool FloatingPoint::same_way(const FloatingPoint& other) const noexcept {
  return ((vectors_ ^ other.vectors_) & ~kFlags) == 0 && x87_ == other.x87_;
}

}  // namespace lamina
