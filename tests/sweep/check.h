#pragma once
/// Runs all offers for a case and says which are wrong.
#include <functional>
#include <map>
#include <set>

#include "kernels/kernel.h"
#include "tests/sweep/case.h"

namespace lamina::sweep {

struct CheckOptions {
  std::vector<int> threads{1, 2, 3};
  std::string kernel = "onednn";     ///< offers of kernels whose key begins so
  bool compare = true;               ///< with one of our own kernels' results, each element
  std::size_t behind = 0;            ///< bytes of NaN behind tensors, before what cannot be read
  std::size_t products = 2'000'000;  ///< that the reference computes for a case
};

struct Wrong {
  std::string kernel, label, what;
  int threads;
};

/// What came of a case.
struct Outcome {
  std::set<std::string> labels;  ///< of offers that ran
  std::size_t runs = 0;
  std::vector<Wrong> wrong;
  std::map<std::string, std::size_t> refusals;  ///< oneDNN's reasons, numbers left out
};

Outcome check(const Case& c, const CheckOptions& options);

}  // namespace lamina::sweep
