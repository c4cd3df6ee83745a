#include "kernels/onednn_isa.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

#include "base/cpu_features.h"
#include "base/no_destructor.h"
#include "base/quiescence.h"
#include "kernels/node_view.h"
#include "kernels/onednn/onednn.h"

namespace lamina {
namespace {

Isa level_of(dnnl::cpu_isa isa) {
  const auto has = [bits = static_cast<unsigned>(isa)](dnnl::cpu_isa part) {
    return (bits & static_cast<unsigned>(part)) == static_cast<unsigned>(part);
  };
  return has(dnnl::cpu_isa::avx512_core) ? Isa::avx512 : has(dnnl::cpu_isa::avx2) ? Isa::avx2 : Isa::sse41;
}

/// The process's environment limits oneDNN to that or less already: asking for it would lift a lower limit.
bool limited_by_environment(Isa most) {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    std::string word(value);
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::toupper(c); });
    return word == "SSE41" || (most >= Isa::avx2 && (word == "AVX" || word == "AVX2"));
  }
  return false;
}

/// Whether oneDNN, which looks at the processor itself and at fewer features than we do, would run more by
/// itself. Where it would not, a lower limit of the process's own stays.
bool would_run_more(Isa most) {
  constexpr Features kAvx512{Feature::avx512f, Feature::avx512bw, Feature::avx512dq, Feature::avx512vl};
  const auto present = features_present();
  if (most == Isa::sse41) return present.has(Feature::avx) || present.has(Feature::avx2);
  const auto hidden = present.without(cpu_features());
  return most == Isa::avx2 && (present.has(kAvx512) || hidden.has(Feature::avx_vnni));
}

/// What oneDNN runs once it has been asked for no more than that. It refuses after its first primitive, and
/// finding out counts as one: the answer tells whether it has.
Isa limited(Isa most) {
  if (would_run_more(most) && !limited_by_environment(most))
    dnnl::set_max_cpu_isa(most == Isa::sse41 ? dnnl::cpu_isa::sse41 : dnnl::cpu_isa::avx2);
  return level_of(dnnl::get_effective_cpu_isa());
}

}  // namespace

Isa onednn_isa() {
  static const Isa runs = limited(effective_isa());
  return runs;
}

void limit_onednn(Isa isa) {
  if (const auto runs = limited(isa); runs > isa)
    fail(ErrorCode::bad_option, "max isa \"{}\": this process has used oneDNN before, which stays at {}",
         name_of(isa), name_of(runs));
}

const Machine& host() {
  static const ProcessLifetime machine([] {
    Machine m = this_machine();
    m.library = onednn_isa();
    dnnl::get_primitive_cache_capacity();  // makes the cache
    Quiescence::stop_at_exit();
    return m;
  });
  return *machine;
}

std::string onednn_isa_note() {
  const auto runs = onednn_isa(), ours = effective_isa();
  if (runs == ours) return "";
  if (runs < ours)
    return fmt::format("oneDNN is limited to {} in this process; other kernels use {}", name_of(runs),
                       name_of(ours));
  return fmt::format("this process has used oneDNN before, which stays at {}; other kernels use {}",
                     name_of(runs), name_of(ours));
}

}  // namespace lamina
