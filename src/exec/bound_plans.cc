#include "exec/bound_plans.h"

#include <algorithm>

namespace lamina {

Bound& BoundPlans::of(const std::shared_ptr<const Planned>& planned, std::size_t most) {
  const auto it = std::find_if(entries_.begin(), entries_.end(),
                               [&](const Entry& e) { return e.bound.plan() == planned->plan; });
  if (it != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, it);
    return it->bound;
  }
  std::erase_if(entries_, [](const Entry& e) { return e.kept.expired(); });
  while (entries_.size() >= std::max<std::size_t>(most, 1)) entries_.pop_back();
  return entries_.emplace_front(planned).bound;
}

void BoundPlans::drop(const Bound& bound) noexcept {
  std::erase_if(entries_, [&](const Entry& e) { return &e.bound == &bound; });
}

}  // namespace lamina
