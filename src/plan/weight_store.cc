#include "plan/weight_store.h"

#include "base/mapped_file.h"

namespace lamina {

Tensor ModelWeights::packed(const Tensor& source, const std::string& key,
                            const std::function<Tensor()>& make) {
  const std::pair<const void*, std::string> at{
      source.raw(), fmt::format("{} {} {}", key, name_of(source.element_type()), to_string(source.shape()))};
  {
    std::lock_guard lock(mutex_);
    if (const auto it = entries_.find(at); it != entries_.end()) return it->second.packed;
  }
  Tensor packed = make_timed(make);  // outside the lock: packing may run in parallel
  drop_mapped_pages(source.raw(), source.bytes());
  std::lock_guard lock(mutex_);
  return entries_.try_emplace(at, Entry{source, packed}).first->second.packed;
}

Tensor ModelWeights::make_timed(const std::function<Tensor()>& make) {
  {
    std::lock_guard lock(mutex_);
    if (packing_++ == 0) packing_since_ = Clock::now();
  }
  const auto end = [&](void*) {
    std::lock_guard lock(mutex_);
    if (--packing_ == 0) packed_for_ += Clock::now() - packing_since_;
  };
  const std::unique_ptr<void, decltype(end)> at_end(this, end);  // even when it throws
  return make();
}

double ModelWeights::packing_seconds() const {
  std::lock_guard lock(mutex_);
  return std::chrono::duration<double>(packed_for_).count();
}

void ModelWeights::forget_sources() {
  std::lock_guard lock(mutex_);
  for (auto& [key, entry] : entries_) entry.source = Tensor();
}

std::size_t ModelWeights::bytes() const {
  std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [key, entry] : entries_) sum += entry.packed.bytes();
  return sum;
}

}  // namespace lamina
