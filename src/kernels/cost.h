#pragma once
/// Estimated time on one thread of a machine, as a sum of work of known kinds; matrix products in an arena of
/// several threads count that these share the memory (gemm/product.cc). Estimates order offers; they promise
/// nothing.
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/machine.h"

namespace lamina {

/// What kind of work it is: a row of the cost table (kernels/family.h).
enum class Family : std::uint8_t;
std::string_view name_of(Family family);

/// Microseconds for a call, a unit of work (a multiply-add, an evaluation) and a byte.
struct UnitCosts {
  double call = 0, work = 0, byte = 0;
};
UnitCosts unit_costs(const Machine& machine, Family family);

/// A cost: an amount of each family. Costs are ordered by microseconds.
class Cost {
 public:
  struct Part {
    Family family;
    double calls = 0, work = 0, bytes = 0;
    double us = 0;  ///< all of it
    bool operator==(const Part&) const = default;
  };

  Cost() = default;
  explicit Cost(const Part& part) : parts_{part} {}
  double us() const;
  const std::vector<Part>& parts() const { return parts_; }  ///< each family once

  Cost& operator+=(const Cost& other);
  Cost& operator*=(double factor);
  friend Cost operator+(Cost a, const Cost& b) { return std::move(a += b); }
  friend Cost operator*(Cost a, double factor) { return std::move(a *= factor); }
  friend Cost operator-(Cost a, const Cost& b) { return std::move(a += b * -1); }
  friend bool operator<(const Cost& a, const Cost& b) { return a.us() < b.us(); }

 private:
  std::vector<Part> parts_;
};

Cost cost_of(const Machine& machine, Family family, double work, double bytes = 0, double calls = 1);
/// What is counted only.
inline Cost calls_of(const Machine& machine, Family family, double calls) {
  return cost_of(machine, family, 0, 0, calls);
}

/// Bytes moved by whole lines.
Cost move_cost(const Machine& machine, double bytes, double calls = 1);

/// The part of `bytes` beyond L2, which has other data to hold; and the part beyond all caches.
double beyond_l2(const Machine& machine, double bytes);
double beyond_caches(const Machine& machine, double bytes);

/// What a tensor of that size costs more when it is written whole before it is read: what kernels say is for
/// tensors nearby, and what does not fit into L2 is there no more by then.
Cost far_cost(const Machine& machine, double bytes);

}  // namespace lamina
