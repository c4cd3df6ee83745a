#include "plan/weight_store.h"

#include "base/mapped_file.h"

namespace lamina {
namespace {

/// A view of a packing that keeps it alive.
Tensor shared(const std::shared_ptr<const Tensor>& packed) {
  return Tensor::share(packed->element_type(), packed->shape(), packed, packed->raw());
}

}  // namespace

Tensor ModelWeights::packed(const Tensor& source, const std::string& key,
                            const std::function<Tensor()>& make) {
  const std::pair<const void*, std::string> at{
      source.raw(), fmt::format("{} {} {}", key, name_of(source.element_type()), to_string(source.shape()))};
  {
    std::lock_guard lock(mutex_);
    if (const auto it = entries_.find(at); it != entries_.end())
      if (const auto there = it->second.packed.lock()) return shared(there);
  }
  // Outside the lock: packing may run in parallel.
  auto made = std::make_shared<const Tensor>(make_timed(make));
  drop_mapped_pages(source.raw(), source.bytes());
  std::lock_guard lock(mutex_);
  auto& entry = entries_[at];
  if (const auto there = entry.packed.lock()) return shared(there);  // another was quicker
  entry = {source, made};
  if (entries_.size() >= sweep_at_) sweep();
  return shared(made);
}

void ModelWeights::sweep() {
  std::erase_if(entries_, [](const auto& e) { return e.second.packed.expired(); });
  sweep_at_ = 2 * entries_.size() + 64;
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
  for (const auto& [key, entry] : entries_)
    if (const auto packed = entry.packed.lock()) sum += packed->bytes();
  return sum;
}

}  // namespace lamina
