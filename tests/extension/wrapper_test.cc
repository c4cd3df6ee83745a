// lamina/extension.hpp: what its declarations become, and what its members refuse.
#include <gtest/gtest.h>

#include <charconv>
#include <cstring>

#include "lamina/extension.hpp"

namespace lamina::extension {
namespace {

TEST(Wrapper, DefaultsReadBackAsTheSameNumber) {
  for (const double value : {0.1, 1e-8, -2.5, 1e300, 5e-324, 1.0 / 3}) {
    Operation op("d", "T");
    const auto* text = op.real("a", value).raw()->attribute[0].value;
    double again = 0;
    const auto* const end = text + std::strlen(text);
    EXPECT_EQ(std::from_chars(text, end, again).ptr, end) << text;
    EXPECT_EQ(again, value) << text;
  }
}

TEST(Wrapper, TensorsThatAreNotThereAreRefused) {
  const lamina_tensor* const in[] = {nullptr};
  lamina_call raw{};
  raw.struct_size = sizeof(raw);
  raw.inputs = 1;
  raw.in = in;
  const Call call(&raw);
  EXPECT_THROW((void)call.in(0), std::runtime_error);
  EXPECT_THROW((void)call.input<float>(1), std::runtime_error);
  EXPECT_THROW((void)call.output<float>(0), std::runtime_error);
}

}  // namespace
}  // namespace lamina::extension
