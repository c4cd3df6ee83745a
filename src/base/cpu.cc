#include "base/cpu.h"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include "base/cpu_features.h"
#include "base/error.h"
#include "base/no_destructor.h"

namespace lamina {
namespace {

struct Limit {
  std::mutex mutex;
  std::optional<Isa> limit;
  bool fixed = false;
};

Limit& the_limit() {
  static Limit limit;
  return limit;
}

/// Names of the instruction sets, by their number.
constexpr std::array<std::string_view, 3> kIsas{"sse41", "avx2", "avx512"};

/// What x86-64-v2 has and this does not: "sse4_2, popcnt".
std::string lacking(Features features) {
  std::string out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Feature::count); ++i)
    if (const auto f = static_cast<Feature>(i); needed_by(Isa::sse41).without(features).has(f))
      out += (out.empty() ? "" : ", ") + std::string(name_of(f));
  return out;
}

}  // namespace

std::string_view name_of(Isa isa) { return kIsas.at(static_cast<std::size_t>(isa)); }

std::optional<Isa> isa_named(std::string_view name) {
  const auto at = std::find(kIsas.begin(), kIsas.end(), name) - kIsas.begin();
  return at < std::ssize(kIsas) ? std::optional(static_cast<Isa>(at)) : std::nullopt;
}

const std::vector<std::string>& isa_limits() {
  static const ProcessLifetime all([] {
    std::vector<std::string> words(kIsas.begin(), kIsas.end());
    words.emplace_back(kNativeIsa);
    return words;
  });
  return *all;
}

Isa native_isa() {
  const auto features = cpu_features();
  const auto isa = highest_isa(features);
  if (!isa) fail(ErrorCode::unsupported, "this processor lacks {}: wanted x86-64-v2", lacking(features));
  return *isa;
}

Isa effective_isa() {
  auto& l = the_limit();
  std::lock_guard lock(l.mutex);
  l.fixed = true;
  return l.limit ? std::min(*l.limit, native_isa()) : native_isa();
}

void limit_isa(std::string_view name, const std::function<void(Isa)>& before) {
  const auto isa = name == kNativeIsa ? std::optional(native_isa()) : isa_named(name);
  if (!isa)
    fail(ErrorCode::bad_option, "max isa \"{}\": wanted one of {}", name, fmt::join(isa_limits(), ", "));
  auto& l = the_limit();
  std::lock_guard lock(l.mutex);
  const Isa now = l.limit ? std::min(*l.limit, native_isa()) : native_isa();
  if (l.fixed && std::min(*isa, native_isa()) != now)
    fail(ErrorCode::bad_option, "max isa \"{}\": this process already compiled a model for {}", name,
         name_of(now));
  if (before) before(std::min(*isa, native_isa()));
  l.limit = *isa;
}

std::string processor_name() {
  unsigned words[12] = {};
  unsigned highest = __get_cpuid_max(0x80000000u, nullptr);
  if (highest < 0x80000004u) return "unknown processor";
  for (unsigned i = 0; i < 3; ++i)
    __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
  std::string name(reinterpret_cast<const char*>(words), sizeof(words));
  name = name.substr(0, name.find('\0'));
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(' ') + 1);
  return name;
}

std::string processor_features() {
  std::string out;
  for (const auto f : {Feature::avx512_vnni, Feature::amx_bf16, Feature::amx_int8, Feature::avx512_fp16,
                       Feature::avx512_bf16, Feature::avx_vnni})
    if (cpu_features().has(f)) out += (out.empty() ? "" : " ") + std::string(name_of(f));
  return out;
}

}  // namespace lamina
