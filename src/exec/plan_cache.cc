#include "exec/plan_cache.h"

#include <tbb/task_arena.h>

#include <algorithm>

namespace lamina {

PlanCache::Entries::iterator PlanCache::find(const std::string& key) {
  return std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
}

void PlanCache::touch(const std::vector<std::string>& above) {
  for (auto key = above.rbegin(); key != above.rend(); ++key)
    if (const auto it = find(*key); it != entries_.end()) entries_.splice(entries_.begin(), entries_, it);
}

/// Returns what had to go, so that it is destroyed outside the lock.
PlanCache::Entries PlanCache::keep(Entries entry, const std::vector<std::string>& above) {
  entries_.splice(entries_.begin(), entry);
  touch(above);
  std::size_t bytes = 0, count = 0;
  auto it = entries_.begin();
  for (; it != entries_.end(); ++it, ++count) {
    bytes += it->planned->bytes;
    if (count != 0 && (count >= most_plans_ || bytes > most_bytes_)) break;
  }
  Entries gone;
  gone.splice(gone.begin(), entries_, it, entries_.end());
  return gone;
}

std::shared_ptr<const Planned> PlanCache::get(const std::string& key, const std::vector<std::string>& above,
                                              const Make& make) {
  for (;;) {
    // All memory for the entry is allocated before the plan is made: storing the plan cannot fail.
    Entries entry;
    const auto own = std::make_shared<PendingPlan>();
    std::unique_lock lock(mutex_);
    if (const auto it = find(key); it != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, it);
      auto found = it->planned;
      touch(above);
      return found;
    }
    const auto other = std::find_if(pending_.begin(), pending_.end(),
                                    [&](const std::shared_ptr<PendingPlan>& p) { return p->key == key; });
    if (other == pending_.end()) {
      entry.push_back({key, nullptr});
      own->key = key;
      return make_pending(own, std::move(entry), above, make, lock);
    }
    const auto awaited = *other;
    lock.unlock();
    const ForkSafeMutex::Lock made(awaited->mutex);
    if (awaited->planned) return awaited->planned;
    lock.lock();
    pending_.remove(awaited);  // the maker's part, unless fork() has left it behind
  }
}

std::shared_ptr<const Planned> PlanCache::make_pending(const std::shared_ptr<PendingPlan>& pending,
                                                       Entries entry, const std::vector<std::string>& above,
                                                       const Make& make, std::unique_lock<std::mutex>& lock) {
  const ForkSafeMutex::Lock here(pending->mutex);
  pending_.push_back(pending);
  lock.unlock();
  Entries gone;
  try {
    tbb::this_task_arena::isolate([&] { pending->planned = make(); });
  } catch (...) {
    lock.lock();
    pending_.remove(pending);
    throw;
  }
  lock.lock();
  pending_.remove(pending);
  entry.front().planned = pending->planned;
  gone = keep(std::move(entry), above);
  lock.unlock();
  return pending->planned;
}

std::size_t PlanCache::plans() const {
  std::lock_guard lock(mutex_);
  return entries_.size();
}

std::map<std::string, std::shared_ptr<const Planned>> PlanCache::all() const {
  std::lock_guard lock(mutex_);
  std::map<std::string, std::shared_ptr<const Planned>> out;
  for (const auto& e : entries_) out[e.key] = e.planned;
  return out;
}

std::size_t PlanCache::bytes() const {
  std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& e : entries_) sum += e.planned->bytes;
  return sum;
}

}  // namespace lamina
