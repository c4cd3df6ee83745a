#include "rewrite/fold_budget.h"

#include <algorithm>

#include "graph/constants.h"

namespace lamina {
namespace {

// For each element and byte of the model's own constants: weights are converted, transposed and scaled, and
// merged with products of low rank.
constexpr std::int64_t kWorkOfElement = 256, kBytesOfByte = 4;
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

}  // namespace

FoldBudget::FoldBudget(const Graph& graph) {
  std::int64_t elements = 0, bytes = 0;
  for_constants(graph, [&](const Tensor& t) {
    elements = std::min(elements + static_cast<std::int64_t>(t.size()), kMostElements);
    bytes = std::min(bytes + static_cast<std::int64_t>(t.bytes()), kMostElements);
  });
  work_ += kWorkOfElement * elements;
  bytes_ += kBytesOfByte * bytes;
}

}  // namespace lamina
