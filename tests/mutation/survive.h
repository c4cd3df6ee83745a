#pragma once
/// A model that may be damaged, from its bytes to checked results.
#include <cstdint>
#include <string>

#include "tests/mutation/tree.h"

namespace lamina::testing {

/// How far a model comes.
enum class Reached : std::uint8_t { refused, unsupported, large, compiled, failed, ran };
std::string_view name_of(Reached reached);

struct Survival {
  Reached reached = Reached::refused;
  std::string problem = {};  ///< what must not be; empty when all is well
  std::string error = {};    ///< the Error with which it ended, which is fine
};

/// Reads, infers, rewrites, plans, runs and compares with the interpreter, all that with sizes that a test
/// can afford. It is well when that ends in right results or in an Error of one line that is no
/// ErrorCode::internal.
Survival survive(TreeFormat format, const ModelFiles& files, std::uint64_t seed);

}  // namespace lamina::testing
