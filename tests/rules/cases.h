#pragma once
/// Rule tests as text. A file names one rule; each case is a graph and what the rule makes of it.
///
///   rule fuse-linear
///   tolerance 1e-4                          # optional; 1e-5 of the largest value otherwise
///   for_file                                # optional: as where the graph is written to a file
///
///   case one value per channel
///   graph (x: f32[1,3,8,8]) -> (y) { ... }
///   becomes
///   graph (x: f32[1,3,8,8]) -> (y) { ... }  # float constants count by type and shape only
///
///   case the result is read twice
///   graph ...
///   stays "is also read by 'other'"         # a part of the refusal; `stays` alone: nothing is said
#include <ostream>
#include <string>
#include <vector>

namespace lamina::testing {

struct RuleCase {
  std::string file, rule, name;
  double tolerance = 1e-5;
  bool for_file = false;
  std::string before, after;  ///< text of graphs; after is empty when the graph stays
  std::string refusal;        ///< part of the reason; empty: none is expected
};
inline void PrintTo(const RuleCase& c, std::ostream* out) { *out << c.file << ": " << c.name; }

/// All cases of all *.test files of a folder. Throws std::runtime_error with file and line.
std::vector<RuleCase> read_cases(const std::string& folder);

}  // namespace lamina::testing
