/// The program in C as a part of this one: the sanitizers see what it allocates and frees.
#include <gtest/gtest.h>

#define main run_program_in_c
#include "tests/c_interface/program.c"
#undef main

TEST(CProgram, works) {
  EXPECT_EQ(run_program_in_c(), 0);
  alarm(0);
}
