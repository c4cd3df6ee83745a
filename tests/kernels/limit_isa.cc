/// LAMINA_TEST_ISA=sse41|avx2|avx512 limits the kernels of this program.
#include <cstdlib>

#include "base/cpu.h"

namespace lamina::testing {

[[maybe_unused]] static const bool limited = [] {
  if (const char* isa = std::getenv("LAMINA_TEST_ISA")) limit_isa(isa);
  return true;
}();

}  // namespace lamina::testing
