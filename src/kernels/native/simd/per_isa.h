#pragma once
/// Vector code of native kernels: Google Highway compiles a unit once per instruction set.
///
/// A unit NAME.simd.cc looks like this (Highway includes it again for each target):
///
///     #undef HWY_TARGET_INCLUDE
///     #define HWY_TARGET_INCLUDE "kernels/native/FAMILY/NAME.simd.cc"
///     #include <hwy/foreach_target.h>
///     #include <hwy/highway.h>
///     HWY_BEFORE_NAMESPACE();
///     namespace lamina::HWY_NAMESPACE { ... Table make_table() { ... } }
///     HWY_AFTER_NAMESPACE();
///     #if HWY_ONCE
///     namespace lamina {
///     LAMINA_TABLE(Table, table, make_table)
///     }
///     #endif
///
/// Targets are SSE4, AVX2 and AVX3, which stand for sse41, avx2 and avx512. Nothing of the standard library
/// may be instantiated between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE: raw pointers and counts only.
/// Even a function that only fills a table is code of its instruction set: what makes tables is chosen by
/// PerIsa, too, and nothing else names functions of a target (tests/kernels/isa_test.py looks at the
/// objects).
#include <array>
#include <type_traits>

#include "base/cpu.h"

/// Before a loop over a few vectors in an array: unrolled in time for the array to become registers (g++ 12
/// otherwise leaves it in memory).
#if defined(__clang__)
#define LAMINA_UNROLL _Pragma("unroll")
#else
#define LAMINA_UNROLL _Pragma("GCC unroll 16")
#endif

namespace lamina {

/// A function that is compiled for each instruction set; those above effective_isa() are never called.
template <class F>
class PerIsa {
 public:
  constexpr PerIsa(F* sse41, F* avx2, F* avx512) : list_{sse41, avx2, avx512} {}

  /// The function for effective_isa().
  F* best() const { return at(static_cast<std::size_t>(effective_isa())); }

 private:
  F* at(std::size_t i) const {
    F* function = list_[i];
    asm("" : "+r"(function));  // unknown to compilers, which else call or move such code directly
    return function;
  }

  F* list_[3];
};

/// Constant tables, one of each instruction set. To look at one runs no code of its set: plans for machines
/// that are not here do, too.
template <class Table>
class TablePerIsa {
 public:
  constexpr TablePerIsa(const Table& sse41, const Table& avx2, const Table& avx512)
      : list_{&sse41, &avx2, &avx512} {}
  const Table& at(Isa isa) const { return *list_[static_cast<std::size_t>(isa)]; }

 private:
  const Table* list_[3];
};

}  // namespace lamina

/// Where a unit is compiled last, in the namespace around HWY_NAMESPACE.
#define LAMINA_PER_ISA(NAME) \
  ::lamina::PerIsa { N_SSE4::NAME, N_AVX2::NAME, N_AVX3::NAME }

/// Declares a constant per instruction set.
#define LAMINA_CONSTANT_PER_ISA(NAME) \
  ::lamina::TablePerIsa { N_SSE4::NAME, N_AVX2::NAME, N_AVX3::NAME }

/// There, too: `const TYPE& NAME()` is what MAKE gives for effective_isa(), made once.
#define LAMINA_TABLE(TYPE, NAME, MAKE)                    \
  const TYPE& NAME() {                                    \
    static constexpr auto make_it = LAMINA_PER_ISA(MAKE); \
    static const TYPE table = make_it.best()();           \
    return table;                                         \
  }
