#pragma once
/// The machine that plans are made for: this one, or one that a file describes.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/cpu_features.h"
#include "base/error.h"

namespace lamina {

/// How fast one core does each kind of work, as multiples of the machine whose times the table of costs holds
/// (kernels/cost.cc).
struct Rates {
  double products = 1;  ///< multiply-adds of convolutions and matrix products, oneDNN's
  double native = 1;    ///< rate of our kernels, likewise
  double light = 1;     ///< vector code of a few instructions per element
  double math = 1;      ///< vector code with exp, log, erf, ...
  double memory = 1;    ///< bytes read and written
  double calls = 1;     ///< what is not vector code: calls, plain loops
};

/// Rates of a family of processors ("zen4", "haswell", ...), with the vectors of that level; null: not known.
const Rates* known_rates(std::string_view processor, Isa level);
/// The name of the family that `vendor`, `family` and `model`, as CPUID has them, belong to; empty: not
/// known.
std::string_view processor_family(std::string_view vendor, unsigned family, unsigned model);

struct Machine {
  /// Cores of one kind.
  struct Cores {
    std::string kind;  ///< "core", or "performance", "efficient"
    int count = 1;     ///< cores, not threads
    int threads_per_core = 1;
    double speed = 1;  ///< against the fastest kind
  };

  std::string name;          ///< of the processor
  std::string processor;     ///< the family by which known_rates() are found; may be empty
  Features features;         ///< features that kernels may use
  Isa library = Isa::sse41;  ///< the level of oneDNN's code, which others in the process may have limited
  /// Bytes of a core's caches for data; of the last one, what a group of cores shares, or 0.
  std::size_t l1 = 48 << 10, l2 = 2 << 20, l3 = 32 << 20;
  std::vector<Cores> cores{{"core", 1, 1, 1}};
  int numa_nodes = 1;
  Rates rates;
  bool rates_known = false;  ///< else they are those of the table of costs
  bool here = true;          ///< false: plans for it are to be looked at, they cannot run

  /// The level of our code: the highest whose features are all there.
  Isa isa() const;
  /// The bytes of the last cache that one core may count on: other cores use it, too.
  std::size_t last_cache() const;
  /// Cores of all kinds.
  int core_count() const;
};

/// Whether kernels multiply bf16 numbers there; else a reason: "avx2 has no bf16 instructions". Emulation is
/// three times as slow as f32, and never wanted.
Verdict multiplies_bf16(const Machine& machine);

/// The machine without features above those of `most`, with the rates of that level.
Machine limited(Machine machine, Isa most);

/// Reads the machine below a root folder: caches, cores, nodes; what is missing there keeps its default.
/// Features and names are this processor's.
Machine read_machine(const std::string& root = "/");

/// This machine as our kernels may use it: limited to effective_isa(), which reading fixes. Read once, but
/// for cores and nodes: there may be hundreds, and plans here do not depend on them.
const Machine& this_machine();
/// This machine with its cores and nodes.
Machine whole_machine();

}  // namespace lamina
