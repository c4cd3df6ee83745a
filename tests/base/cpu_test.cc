#include "base/cpu.h"

#include <gtest/gtest.h>

#include "base/cpu_features.h"

#include "base/error.h"

namespace lamina {
namespace {

TEST(Cpu, instruction_sets) {
  EXPECT_EQ(name_of(Isa::avx2), "avx2");
  EXPECT_LE(effective_isa(), native_isa());
  EXPECT_THROW(limit_isa("mmx"), Error);
  EXPECT_FALSE(processor_name().empty());
}

constexpr Features kAll = [] {
  Features all;
  for (std::uint8_t f = 0; f < static_cast<std::uint8_t>(Feature::count); ++f)
    all.add(static_cast<Feature>(f));
  return all;
}();

TEST(Cpu, levels_by_features) {
  EXPECT_EQ(highest_isa(kAll), Isa::avx512);
  EXPECT_EQ(highest_isa({}), std::nullopt);
  struct {
    Feature hidden;
    std::optional<Isa> left;
  } const rows[] = {{Feature::sse3, std::nullopt},       {Feature::ssse3, std::nullopt},
                    {Feature::sse41, std::nullopt},      {Feature::sse42, std::nullopt},
                    {Feature::popcnt, std::nullopt},     {Feature::avx, Isa::sse41},
                    {Feature::avx2, Isa::sse41},         {Feature::fma, Isa::sse41},
                    {Feature::f16c, Isa::sse41},         {Feature::bmi1, Isa::sse41},
                    {Feature::bmi2, Isa::sse41},         {Feature::avx512f, Isa::avx2},
                    {Feature::avx512bw, Isa::avx2},      {Feature::avx512cd, Isa::avx2},
                    {Feature::avx512dq, Isa::avx2},      {Feature::avx512vl, Isa::avx2},
                    {Feature::avx512_vnni, Isa::avx512}, {Feature::avx512_vpopcntdq, Isa::avx512},
                    {Feature::avx_vnni, Isa::avx512},    {Feature::amx_int8, Isa::avx512}};
  for (const auto& row : rows) {
    EXPECT_EQ(highest_isa(kAll.without({row.hidden})), row.left) << "without " << name_of(row.hidden);
    for (const auto isa : {Isa::sse41, Isa::avx2, Isa::avx512})
      EXPECT_EQ(needed_by(isa).has(row.hidden), !row.left || *row.left < isa) << name_of(row.hidden);
  }
}

/// Registers of known processors, the operating system keeping what it can.
TEST(Cpu, levels_of_processors) {
  constexpr std::uint32_t kOsxsave = 1u << 27;
  const CpuRegisters core2{.leaf1_ecx = 0x0008e3fd},                         // Penryn: SSE4.1
      nehalem{.leaf1_ecx = 0x0098e3fd},                                      // SSE4.2, POPCNT
      sandy{.leaf1_ecx = 0x1fbae3ff, .xcr0 = 7},                             // AVX
      haswell{.leaf1_ecx = 0x7ffafbff, .leaf7_ebx = 0x000037ab, .xcr0 = 7},  // AVX2, FMA, F16C, BMI
      skylake{.leaf1_ecx = 0x7ffefbff, .leaf7_ebx = 0xd39ffffb, .xcr0 = 0xe7};
  EXPECT_EQ(highest_isa(features_of(core2)), std::nullopt);
  EXPECT_EQ(highest_isa(features_of(nehalem)), Isa::sse41);
  EXPECT_EQ(highest_isa(features_of(sandy)), Isa::sse41);
  EXPECT_EQ(highest_isa(features_of(haswell)), Isa::avx2);
  EXPECT_EQ(highest_isa(features_of(skylake)), Isa::avx512);
  EXPECT_TRUE(features_of(sandy).has(Feature::avx));

  // Systems that do not keep the registers.
  auto masked = skylake;
  masked.xcr0 = 7;
  EXPECT_EQ(highest_isa(features_of(masked)), Isa::avx2);
  EXPECT_FALSE(features_of(masked).has(Feature::avx512f));
  for (const auto state : {0xa7, 0x67, 0xc7}) {  // without a part of those of AVX-512
    masked.xcr0 = static_cast<std::uint64_t>(state);
    EXPECT_EQ(highest_isa(features_of(masked)), Isa::avx2) << state;
  }
  masked.xcr0 = 3;
  EXPECT_EQ(highest_isa(features_of(masked)), Isa::sse41);
  masked.leaf1_ecx &= ~kOsxsave;
  masked.xcr0 = 0;
  EXPECT_EQ(highest_isa(features_of(masked)), Isa::sse41);
  EXPECT_FALSE(features_of(masked).has(Feature::avx2));
  EXPECT_TRUE(features_of(masked).has(Feature::bmi2));  // of the general registers
}

TEST(Cpu, this_processor) {
  EXPECT_EQ(highest_isa(cpu_features()), native_isa());
  EXPECT_EQ(features_of(cpu_registers()), features_present());
  __builtin_cpu_init();
  EXPECT_EQ(features_present().has(Feature::avx2), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(features_present().has(Feature::avx512f), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(features_present().has(Feature::fma), __builtin_cpu_supports("fma") != 0);
}

TEST(Cpu, limits_that_others_refuse_are_not_in_force) {
  const auto refuse = [](Isa) { fail(ErrorCode::bad_option, "no"); };
  EXPECT_THROW(limit_isa("native", refuse), Error);
  EXPECT_NO_THROW(limit_isa(name_of(effective_isa())));
}

TEST(Cpu, limited_to_a_level) {
  EXPECT_EQ(limited_to(Isa::avx512, kAll), kAll);
  EXPECT_EQ(limited_to(Isa::avx2, kAll), needed_by(Isa::avx2));
  EXPECT_EQ(limited_to(Isa::sse41, kAll), needed_by(Isa::sse41));
  const Features none;
  EXPECT_EQ(limited_to(Isa::avx2, none), none);
}

}  // namespace
}  // namespace lamina
