#include "kernels/native/simd.h"

#include <hwy/highway.h>

#include "base/cpu.h"

namespace lamina {

void use_effective_isa() {
  static const bool done = [] {
    switch (effective_isa()) {
      case Isa::sse41:
        hwy::DisableTargets(HWY_AVX2 | HWY_AVX3);
        break;
      case Isa::avx2:
        hwy::DisableTargets(HWY_AVX3);
        break;
      case Isa::avx512:
        break;
    }
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace lamina
