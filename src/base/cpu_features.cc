#include "base/cpu_features.h"

#include <cpuid.h>

#include <cstdlib>
#include <iterator>

#include "base/error.h"
#include "base/no_destructor.h"

namespace lamina {
namespace {

/// Bits of XCR0: XMM and YMM; these with mask registers and ZMM; tiles.
constexpr std::uint64_t kYmm = 0x6, kZmm = 0xe6, kTiles = 0x60000;

struct Row {
  std::string_view name;
  std::uint32_t CpuRegisters::*word;
  unsigned bit;
  std::uint64_t state;  ///< of XCR0
};

/// Rows in the order of the enumeration.
constexpr Row kRows[] = {
    {"sse3", &CpuRegisters::leaf1_ecx, 0, 0},
    {"ssse3", &CpuRegisters::leaf1_ecx, 9, 0},
    {"sse4_1", &CpuRegisters::leaf1_ecx, 19, 0},
    {"sse4_2", &CpuRegisters::leaf1_ecx, 20, 0},
    {"popcnt", &CpuRegisters::leaf1_ecx, 23, 0},
    {"avx", &CpuRegisters::leaf1_ecx, 28, kYmm},
    {"avx2", &CpuRegisters::leaf7_ebx, 5, kYmm},
    {"fma", &CpuRegisters::leaf1_ecx, 12, kYmm},
    {"f16c", &CpuRegisters::leaf1_ecx, 29, kYmm},
    {"bmi1", &CpuRegisters::leaf7_ebx, 3, 0},
    {"bmi2", &CpuRegisters::leaf7_ebx, 8, 0},
    {"avx_vnni", &CpuRegisters::leaf7_1_eax, 4, kYmm},
    {"avx512f", &CpuRegisters::leaf7_ebx, 16, kZmm},
    {"avx512bw", &CpuRegisters::leaf7_ebx, 30, kZmm},
    {"avx512cd", &CpuRegisters::leaf7_ebx, 28, kZmm},
    {"avx512dq", &CpuRegisters::leaf7_ebx, 17, kZmm},
    {"avx512vl", &CpuRegisters::leaf7_ebx, 31, kZmm},
    {"avx512_vnni", &CpuRegisters::leaf7_ecx, 11, kZmm},
    {"avx512_vpopcntdq", &CpuRegisters::leaf7_ecx, 14, kZmm},
    {"avx512_bf16", &CpuRegisters::leaf7_1_eax, 5, kZmm},
    {"avx512_fp16", &CpuRegisters::leaf7_edx, 23, kZmm},
    {"amx_bf16", &CpuRegisters::leaf7_edx, 22, kTiles},
    {"amx_int8", &CpuRegisters::leaf7_edx, 25, kTiles},
};
static_assert(std::size(kRows) == static_cast<std::size_t>(Feature::count));

constexpr Features kV2{Feature::sse3, Feature::ssse3, Feature::sse41, Feature::sse42, Feature::popcnt};
constexpr Features kAvx2 =
    kV2 | Features{Feature::avx, Feature::avx2, Feature::fma, Feature::f16c, Feature::bmi1, Feature::bmi2};
constexpr Features kAvx512 = kAvx2 | Features{Feature::avx512f, Feature::avx512bw, Feature::avx512cd,
                                              Feature::avx512dq, Feature::avx512vl};

std::uint64_t extended_states() {
  std::uint32_t low = 0, high = 0;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

}  // namespace

std::string_view name_of(Feature feature) { return kRows[static_cast<std::size_t>(feature)].name; }

Features needed_by(Isa isa) { return isa == Isa::avx512 ? kAvx512 : isa == Isa::avx2 ? kAvx2 : kV2; }

std::optional<Isa> highest_isa(Features features) {
  for (const auto isa : {Isa::avx512, Isa::avx2, Isa::sse41})
    if (features.has(needed_by(isa))) return isa;
  return std::nullopt;
}

Features features_of(const CpuRegisters& registers) {
  Features features;
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    const auto& row = kRows[i];
    if ((registers.*row.word >> row.bit & 1) != 0 && (registers.xcr0 & row.state) == row.state)
      features.add(static_cast<Feature>(i));
  }
  return features;
}

CpuRegisters cpu_registers() {
  constexpr std::uint32_t kOsxsave = 1u << 27;
  CpuRegisters r;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) r.leaf1_ecx = c;
  if ((r.leaf1_ecx & kOsxsave) != 0) r.xcr0 = extended_states();
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return r;
  r.leaf7_ebx = b, r.leaf7_ecx = c, r.leaf7_edx = d;
  const unsigned last = a;
  if (last >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) r.leaf7_1_eax = a;
  return r;
}

Features features_present() {
  static const ProcessLifetime features([] { return features_of(cpu_registers()); });
  return *features;
}

Features limited_to(Isa isa, Features features) {
  return isa == Isa::avx512 ? features : features.without(features.without(needed_by(isa)));
}

Features cpu_features() {
  static const ProcessLifetime features([] {
    const char* limit = std::getenv("LAMINA_MAX_ISA");
    if (limit == nullptr || *limit == '\0' || limit == kNativeIsa) return features_present();
    const auto isa = isa_named(limit);
    if (!isa)
      fail(ErrorCode::bad_option, "the environment variable LAMINA_MAX_ISA is \"{}\": wanted one of {}",
           limit, fmt::join(isa_limits(), ", "));
    return limited_to(*isa, features_present());
  });
  return *features;
}

}  // namespace lamina
