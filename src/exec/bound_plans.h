#pragma once
/// The plans that a stream has steps for.
#include <list>

#include "exec/bound.h"
#include "exec/plan_cache.h"

namespace lamina {

/// The bound plans used last, of all requests that run on the stream. Not thread-safe.
class BoundPlans {
 public:
  /// The plan's steps, made where there are none. Then those go whose plan is kept neither by the model nor
  /// by a request, and the least recently used of more than `most`. Valid until the next call.
  Bound& of(const std::shared_ptr<const Planned>& planned, std::size_t most);
  /// Drops a bound plan after a run of it failed.
  void drop(const Bound& bound) noexcept;

 private:
  struct Entry {
    explicit Entry(const std::shared_ptr<const Planned>& of) : kept(of), bound(of->plan) {}
    std::weak_ptr<const Planned> kept;
    Bound bound;
  };
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace lamina
