// Another engine beside that of this program, with the same library of custom layers.
#ifdef LAMINA_TEST_ENGINE
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/api/small_models.h"
#include "tests/extension/libraries.h"

namespace lamina::testing {
namespace {

/// Another engine beside that of this program, each with the library.
TEST(Engines, TwoInOneProcess) {
  IrText ir;
  ir.result({ir.layer("Table", "test.keeps", R"(step="3")", {{ir.parameter("x", "?,2")}})});
  const CompiledModel compiled(model_with(ir, {"keeps.so"}), {.streams = 1});
  const auto here = [&] {
    const auto y = compiled(floats({1, 2}, {1, 1}));
    return y.data<float>()[0] == 3 && y.data<float>()[1] == 6;
  };
  void* const handle = ::dlopen(LAMINA_TEST_ENGINE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  const auto open = reinterpret_cast<int (*)(const char*)>(::dlsym(handle, "engine_open"));
  const auto run = reinterpret_cast<int (*)(float*)>(::dlsym(handle, "engine_run"));
  const auto close = reinterpret_cast<void (*)()>(::dlsym(handle, "engine_close"));
  float got[8] = {};
  EXPECT_TRUE(here());
  ASSERT_EQ(open(library("keeps.so").c_str()), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(run(got), 0);
    EXPECT_EQ((std::vector<float>(got, got + 8)), (std::vector<float>{2, 2, 4, 4, 6, 6, 8, 8}));
    EXPECT_TRUE(here());
  }
  close();
  EXPECT_TRUE(here());
  EXPECT_EQ(::dlclose(handle), 0);
  // A plan for other shapes asks the engine for attributes: it must be this one, which is still there.
  EXPECT_EQ(values(compiled(floats({2, 2}, {1, 1, 1, 1}))), (std::vector<float>{3, 6, 3, 6}));
}

}  // namespace
}  // namespace lamina::testing
#endif
