#pragma once
#include <string>
#include <vector>

#include "base/denormals.h"

namespace lamina {

/// What users of a rewritten model are told, whether it was rewritten now or comes from a file.
struct RewritingFacts {
  std::vector<std::string> widened;   ///< half-precision tensors that are computed in f32: sentences, or none
  std::vector<std::string> warnings;  ///< others
  Denormals denormals;                ///< of operands; those of weights are known when they are packed
};

}  // namespace lamina
