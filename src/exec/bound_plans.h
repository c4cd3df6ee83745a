#pragma once
/// The bound plans of a stream.
#include <list>

#include "exec/bound.h"
#include "exec/plan_cache.h"

namespace lamina {

/// The bound plans used last, of all requests that run on the stream. Not thread-safe.
class BoundPlans {
 public:
  /// The plan's bound steps, made at the first call. Then bound plans are dropped whose plan neither the
  /// model nor a request keeps, and the least recently used beyond `most`. Valid until the next call.
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
