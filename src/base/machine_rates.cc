/// Rates of processors beside the machine that the costs were fitted on: an Intel Xeon of the Sapphire Rapids
/// family. Zen 5's were measured (bench/fit_costs.py says by which factor estimates are off); the others
/// follow from the width of multiply-adds per cycle and the usual clock.
#include <array>

#include "base/machine.h"

namespace lamina {
namespace {

struct Known {
  std::string_view processor;
  Rates sse41, avx2, avx512;
};

//                            products native light math memory calls
constexpr Known kKnown[] = {
    {"zen5",
     {1.6, 1.65, 3.0, 1.7, 1.6, 1.5},
     {1.6, 1.65, 3.0, 1.7, 1.6, 1.5},
     {1.6, 1.58, 3.0, 1.6, 1.7, 1.5}},
    {"zen4",
     {1.2, 1.2, 1.3, 1.3, 1.3, 1.2},
     {1.3, 1.3, 1.3, 1.3, 1.3, 1.2},
     {0.68, 0.61, 0.8, 0.9, 1.2, 1.2}},
    {"zen3", {1.1, 1.1, 1.2, 1.2, 1.1, 1.1}, {1.1, 1.1, 1.2, 1.2, 1.1, 1.1}, {1, 1, 1, 1, 1, 1}},
    {"zen2", {0.95, 0.95, 1, 1, 0.9, 0.9}, {0.95, 0.95, 1, 1, 0.9, 0.9}, {1, 1, 1, 1, 1, 1}},
    {"sapphire_rapids", {1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}},
    {"alder_lake", {1.4, 1.4, 1.4, 1.4, 1.4, 1.4}, {1.4, 1.4, 1.4, 1.4, 1.4, 1.4}, {1, 1, 1, 1, 1, 1}},
    {"ice_lake",
     {0.9, 0.9, 0.9, 0.9, 0.9, 0.9},
     {0.9, 0.9, 0.9, 0.9, 0.9, 0.9},
     {0.9, 0.9, 0.9, 0.9, 0.9, 0.9}},
    {"skylake", {1, 1, 0.9, 0.9, 0.9, 0.9}, {1, 1, 0.9, 0.9, 0.9, 0.9}, {0.85, 0.85, 0.85, 0.85, 0.8, 0.9}},
    {"haswell", {0.9, 0.9, 0.75, 0.75, 0.7, 0.7}, {0.85, 0.85, 0.75, 0.75, 0.7, 0.7}, {1, 1, 1, 1, 1, 1}},
};

}  // namespace

const Rates* known_rates(std::string_view processor, Isa level) {
  for (const auto& k : kKnown)
    if (k.processor == processor)
      return level == Isa::avx512 ? &k.avx512 : level == Isa::avx2 ? &k.avx2 : &k.sse41;
  return nullptr;
}

std::string_view processor_family(std::string_view vendor, unsigned family, unsigned model) {
  if (vendor == "AuthenticAMD") {
    if (family == 0x1a) return "zen5";
    if (family == 0x19)  // Zen 3 and 4 share it
      return (model >= 0x10 && model <= 0x1f) || (model >= 0x60 && model <= 0x7f) || model >= 0xa0 ? "zen4"
                                                                                                   : "zen3";
    if (family == 0x17 && model >= 0x30) return "zen2";
    return "";
  }
  if (vendor != "GenuineIntel" || family != 6) return "";
  switch (model) {
    case 0x3c:
    case 0x3f:
    case 0x45:
    case 0x46:  // Haswell
    case 0x3d:
    case 0x47:
    case 0x4f:
    case 0x56:  // Broadwell
      return "haswell";
    case 0x4e:
    case 0x5e:
    case 0x55:
    case 0x8e:
    case 0x9e:
    case 0xa5:
    case 0xa6:
      return "skylake";
    case 0x6a:
    case 0x6c:
    case 0x7d:
    case 0x7e:
    case 0x8c:
    case 0x8d:
    case 0xa7:
      return "ice_lake";
    case 0x8f:
    case 0xcf:
    case 0xad:
    case 0xae:
      return "sapphire_rapids";
    case 0x97:
    case 0x9a:
    case 0xb7:
    case 0xba:
    case 0xbf:
    case 0xaa:
    case 0xac:
      return "alder_lake";
    default:
      return "";
  }
}

}  // namespace lamina
