#include "kernels/cost.h"

namespace lamina {
namespace {

/// Peak multiply-adds per microsecond of one thread, f32.
double peak(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return 60000;
    case Isa::avx2:
      return 45000;
    case Isa::sse41:
      return 12000;
  }
  return 12000;
}

constexpr double kBytesPerMicrosecond = 8000;
constexpr double kCall = 0.2;
constexpr double kReferencePerMicrosecond = 50;

}  // namespace

double move_cost(double bytes) { return kCall + bytes / kBytesPerMicrosecond; }
double compute_cost(double multiply_adds, double share_of_peak) {
  return kCall + multiply_adds / (peak(effective_isa()) * share_of_peak);
}
double reference_cost(double operations) { return 5 + operations / kReferencePerMicrosecond; }

}  // namespace lamina
