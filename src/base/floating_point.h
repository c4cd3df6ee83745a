#pragma once
/// How the calling thread computes with floating-point numbers: direction of rounding, what becomes of
/// denormal numbers, which exceptions are trapped. It is a state of the processor, apart for vectors (MXCSR)
/// and for the x87 (long double, the C library's conversions of text). A new thread has that of its maker.
#include <cstdint>

namespace lamina {

class FloatingPoint {
 public:
  /// What C++ programs start with: rounds to the nearest, keeps denormal numbers, traps nothing.
  FloatingPoint() = default;
  static FloatingPoint here() noexcept;
  /// The calling thread computes that way from now on. Flags of exceptions become those that here() saw.
  void set_here() const noexcept;
  /// Flags of exceptions, which say what has happened, do not count.
  bool same_way(const FloatingPoint& other) const noexcept;

 private:
  std::uint32_t vectors_ = 0x1f80;
  std::uint16_t x87_ = 0x037f;
};

/// While it lives the calling thread computes in the standard way; then as before. All results are the same
/// in whatever mode a caller is: it stands at every entry of the public interface (InEntry, base/guard.h).
/// Threads of loops follow the thread that starts the loop (base/parallel.cc).
class StandardFloatingPoint {
 public:
  StandardFloatingPoint() noexcept : before_(FloatingPoint::here()) {
    if (!before_.same_way({})) FloatingPoint().set_here();
  }
  ~StandardFloatingPoint() { before_.set_here(); }
  StandardFloatingPoint(const StandardFloatingPoint&) = delete;
  StandardFloatingPoint& operator=(const StandardFloatingPoint&) = delete;

  const FloatingPoint& before() const { return before_; }

 private:
  FloatingPoint before_;
};

}  // namespace lamina
