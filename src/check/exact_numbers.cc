#include "check/exact_numbers.h"

#include "base/element_types.h"
#include "ops/eval.h"

namespace lamina::checking {

std::vector<Exact> exact_numbers(const Tensor& tensor) {
  std::vector<Exact> out;
  with_number_type(tensor.element_type(), [&]<class T>() {
    const auto numbers = to_numbers<T>(tensor.to_aligned());
    out.assign(numbers.begin(), numbers.end());
  });
  return out;
}

}  // namespace lamina::checking
