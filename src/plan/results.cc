#include "plan/results.h"

#include <set>

namespace lamina {
namespace {

void place_in_result(PlanTensor& tensor, std::size_t result) {
  tensor.place = Place::result;
  tensor.index = result;
}

}  // namespace

void add_results(Plan& plan, Tensors& tensors) {
  const auto& results = plan.graph.results();
  const std::set<std::size_t> later(plan.rest_results.begin(), plan.rest_results.end());
  for (std::size_t r = 0; r < results.size(); ++r)
    plan.results.push_back(later.contains(r) ? kNoTensor : tensors.of(results[r].value, Layout::plain));
  for (std::size_t r = 0; r < plan.results.size(); ++r) {
    auto& t = plan.results[r];
    if (t == kNoTensor) continue;
    const auto& tensor = plan.tensors[t];
    auto& root = plan.tensors[tensor.root];
    if (root.place == Place::arena && tensor.bytes == root.bytes && tensor.shift == 0) {
      place_in_result(root, r);
    } else {
      const auto copy = add_tensor(plan, tensor.value, Layout::plain);
      place_in_result(plan.tensors[copy], r);
      add_move(plan, PlanStep::Kind::copy, results[r].name, t, copy, 0);
      t = copy;
    }
  }
}

}  // namespace lamina
