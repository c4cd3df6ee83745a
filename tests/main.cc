/// Main of all test programs: prints what it runs on, and limits the instruction set when asked.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/cpu.h"

int main(int argc, char** argv) {
  // LAMINA_TEST_ISA=avx2: as `lamina --max-isa avx2` does; `make isa` tries all.
  if (const char* isa = std::getenv("LAMINA_TEST_ISA")) {
    lamina::limit_isa(isa);
    std::printf("limited to %s\n", isa);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
