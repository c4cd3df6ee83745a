#pragma once
/// The processor: instruction sets that kernels distinguish.
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/command_api.h"

namespace lamina {

/// Ordered: each contains those before it. What each stands for is in cpu_features.h: sse41 is x86-64-v2,
/// avx2 also has FMA, F16C, BMI1 and BMI2, avx512 means F, BW, CD, DQ and VL.
enum class Isa { sse41, avx2, avx512 };

LAMINA_COMMAND_API std::string_view name_of(Isa isa);
std::optional<Isa> isa_named(std::string_view name);
/// Words for the highest one that may be used: these, and the one for whatever there is.
LAMINA_COMMAND_API const std::vector<std::string>& isa_limits();
inline constexpr std::string_view kNativeIsa = "native";

/// The highest that this processor (and its operating system) has in full. Throws Error(unsupported) below
/// x86-64-v2.
Isa native_isa();

/// The instruction set that kernels may use: the lower of native_isa() and the limit. Reading it fixes the
/// limit.
LAMINA_COMMAND_API Isa effective_isa();

/// Limits kernels, oneDNN's included, for the whole process. `name`: one of isa_limits(). Throws
/// Error(bad_option) on another name, or when a different limit is already fixed. `before` gets the limit
/// when it is allowed and not yet in force; what it throws keeps the limit away.
void limit_isa(std::string_view name, const std::function<void(Isa)>& before = {});

/// The processor's model name, e.g. "AMD EPYC 9654".
LAMINA_COMMAND_API std::string processor_name();
/// Extra features worth showing ("avx512_vnni amx_int8"), space-separated.
std::string processor_features();

}  // namespace lamina
