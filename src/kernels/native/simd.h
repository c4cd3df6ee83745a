#pragma once
/// Vector code of native kernels: Google Highway compiles a unit once per instruction set.
///
/// A unit NAME.cc looks like this (Highway includes it again for each target):
///
///     #undef HWY_TARGET_INCLUDE
///     #define HWY_TARGET_INCLUDE "kernels/native/NAME.cc"
///     #include <hwy/foreach_target.h>
///     #include <hwy/highway.h>
///     HWY_BEFORE_NAMESPACE();
///     namespace lamina::HWY_NAMESPACE { ... Table make_table() { ... } }
///     HWY_AFTER_NAMESPACE();
///     #if HWY_ONCE
///     namespace lamina {
///     HWY_EXPORT(make_table);
///     const Table& table() {
///       static const Table t = (use_effective_isa(), HWY_DYNAMIC_DISPATCH(make_table)());
///       return t;
///     }
///     }
///     #endif
///
/// Targets are SSE4, AVX2 and AVX3, which stand for sse41, avx2 and avx512. Nothing of the standard library
/// may be instantiated between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE: raw pointers and counts only.

/// Before a loop over a few vectors in an array: unrolled in time for the array to become registers (g++ 12
/// otherwise leaves it in memory).
#if defined(__clang__)
#define LAMINA_UNROLL _Pragma("unroll")
#else
#define LAMINA_UNROLL _Pragma("GCC unroll 16")
#endif

namespace lamina {

/// Limits Highway's choice to effective_isa(); call before the first dispatch of a unit.
void use_effective_isa();

}  // namespace lamina
