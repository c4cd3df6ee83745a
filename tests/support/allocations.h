#pragma once
/// Counts the allocations of this program, or lets one of them fail.
#include <cstddef>

namespace lamina::testing::allocations {

/// Under sanitizers only those of operator new are seen.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kAll = false;
#else
inline constexpr bool kAll = true;
#endif

void count(bool on);
std::size_t counted();
std::size_t counted_bytes();
void forget_counted();

enum class Shortage { once, lasting };
/// The n-th allocation from now on (1: the next one), of any thread, fails; if `lasting`, all later ones,
/// too.
void fail_at(std::size_t n, Shortage shortage = Shortage::once);
/// No more failures. True when there was one.
bool end_failures();

/// While it lives, allocations are none of those that are told off for fail_at().
class Pause {
 public:
  Pause();
  ~Pause();

 private:
  bool was_;
};

}  // namespace lamina::testing::allocations
