#pragma once
/// What a processor can do, by single features: levels of instruction sets are decided from these, since
/// virtual machines hide any of them.
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/cpu.h"

namespace lamina {

enum class Feature : std::uint8_t {
  sse3,
  ssse3,
  sse41,
  sse42,
  popcnt,
  avx,
  avx2,
  fma,
  f16c,
  bmi1,
  bmi2,
  avx_vnni,
  avx512f,
  avx512bw,
  avx512cd,
  avx512dq,
  avx512vl,
  avx512_vnni,
  avx512_vpopcntdq,
  avx512_bf16,
  avx512_fp16,
  amx_bf16,
  amx_int8,
  count,
};

std::string_view name_of(Feature feature);

/// A set of features.
class Features {
 public:
  constexpr Features() = default;
  constexpr Features(std::initializer_list<Feature> list) {
    for (const auto f : list) add(f);
  }
  constexpr void add(Feature f) { bits_ |= bit(f); }
  constexpr bool has(Feature f) const { return (bits_ & bit(f)) != 0; }
  constexpr bool has(Features all) const { return (bits_ & all.bits_) == all.bits_; }
  constexpr Features operator|(Features other) const { return Features(bits_ | other.bits_); }
  constexpr Features without(Features other) const { return Features(bits_ & ~other.bits_); }
  constexpr bool operator==(const Features&) const = default;

 private:
  constexpr explicit Features(std::uint64_t bits) : bits_(bits) {}
  static constexpr std::uint64_t bit(Feature f) { return std::uint64_t{1} << static_cast<unsigned>(f); }
  std::uint64_t bits_ = 0;
};

/// Every feature that code of a level uses: lamina's, as compiled (src/kernels/native/simd/per_isa.h), and
/// oneDNN's.
Features needed_by(Isa isa);
/// The highest level whose every feature is there; none: less than x86-64-v2, which all code is compiled for.
std::optional<Isa> highest_isa(Features features);

/// The registers in which a processor and its operating system say what they can do. Leaves that the
/// processor does not have are 0, and so is XCR0 without OSXSAVE.
struct CpuRegisters {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0, leaf7_ecx = 0, leaf7_edx = 0;
  std::uint32_t leaf7_1_eax = 0;
  std::uint64_t xcr0 = 0;  ///< register states that the operating system keeps
};

/// Features whose registers the operating system does not keep are not there.
Features features_of(const CpuRegisters& registers);

/// The registers of this processor.
CpuRegisters cpu_registers();

/// What this processor has.
Features features_present();

/// What this process may use: features_present(), or those of them that the level in the environment variable
/// LAMINA_MAX_ISA allows (sse41, avx2, avx512 or native). The variable is read once. Throws Error(bad_option)
/// when it holds another word.
Features cpu_features();

/// The features that remain when a process is limited to that level: AVX2 without AVX-VNNI, for instance.
Features limited_to(Isa isa, Features features);

}  // namespace lamina
