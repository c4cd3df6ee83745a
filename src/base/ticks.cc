#include "base/ticks.h"

#include <cpuid.h>
#include <x86intrin.h>

#include <chrono>

namespace lamina {
namespace {

/// The counter runs at one speed, whatever the processor does (leaf 0x80000007, EDX bit 8).
bool counts_steadily() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
}
const bool steady = counts_steadily();

}  // namespace

std::uint64_t ticks() noexcept {
  if (steady) return __rdtsc();
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

}  // namespace lamina
