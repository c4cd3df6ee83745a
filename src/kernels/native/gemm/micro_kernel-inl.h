// What micro-kernels of matrix products share: how far loops are unrolled, and a multiply-add that stays in
// its register. Include inside Highway units only, after hwy/highway.h.
#if defined(LAMINA_MICRO_KERNEL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef LAMINA_MICRO_KERNEL_INL
#undef LAMINA_MICRO_KERNEL_INL
#else
#define LAMINA_MICRO_KERNEL_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lamina::HWY_NAMESPACE {
namespace {

/// k per turn of a kernel's loop: fewer instructions that are not multiply-adds, which count where two
/// threads share a core.
constexpr int kUnroll = HWY_TARGET <= HWY_AVX2 ? 4 : 1;

/// sum += x * y of f32, in the register of `sum`: compilers would move sums about.
template <class V>
HWY_INLINE void multiply_add_floats(V x, V y, V& sum) {
#if HWY_TARGET <= HWY_AVX2
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(y.raw));
#else
  sum = hwy::HWY_NAMESPACE::MulAdd(x, y, sum);
#endif
}

}  // namespace
}  // namespace lamina::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
