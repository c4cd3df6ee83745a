#include "plan/weight_store.h"

#include "base/mapped_file.h"

namespace lamina {
namespace {

/// A view of a packing that keeps it alive.
Tensor shared(const std::shared_ptr<const Tensor>& packed) {
  return Tensor::share(packed->element_type(), packed->shape(), packed, packed->raw());
}

}  // namespace

Tensor ModelWeights::do_packed(const Tensor& source, const std::string& key, const Make& make) {
  Denormals found;
  const auto clean = [&](const Tensor& t) { return make(without_denormals(t, found)); };
  return find_or_make(source, key, clean, found);
}

Tensor ModelWeights::do_moved(const Tensor& source, const std::string& key, const Make& make) {
  return find_or_make(source, key, make, {});
}

/// `denormals` may be found by `make`.
Tensor ModelWeights::find_or_make(const Tensor& source, const std::string& key, const Make& make,
                                  const Denormals& denormals) {
  const std::pair<const void*, std::string> at{
      source.raw(), fmt::format("{} {} {}", key, name_of(source.element_type()), to_string(source.shape()))};
  {
    std::lock_guard lock(mutex_);
    if (const auto it = entries_.find(at); it != entries_.end())
      if (const auto there = it->second.packed.lock()) return shared(there);
  }
  // Outside the lock: packing may run in parallel.
  const auto kept = kept_ ? kept_->find(source, at.second) : std::nullopt;
  const auto made = std::make_shared<const Tensor>(kept ? kept->packed : make_timed(source, make));
  const bool as_it_lies = made->raw() == source.raw();
  if (!as_it_lies && !kept) drop_mapped_pages(source.raw(), source.bytes());
  Entry entry{source, as_it_lies, kept ? kept->denormals : denormals, made};
  std::lock_guard lock(mutex_);
  const auto [it, added] = entries_.try_emplace(at, entry);
  if (!added) {
    if (const auto there = it->second.packed.lock()) return shared(there);  // another was quicker
    it->second = std::move(entry);
  }
  return shared(made);
}

void ModelWeights::sweep() {
  std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const auto& e) { return e.second.packed.expired(); });
}

Tensor ModelWeights::make_timed(const Tensor& source, const Make& make) {
  {
    std::lock_guard lock(mutex_);
    if (packing_++ == 0) packing_since_ = Clock::now();
  }
  const auto end = [&](void*) {
    std::lock_guard lock(mutex_);
    if (--packing_ == 0) packed_for_ += Clock::now() - packing_since_;
  };
  const std::unique_ptr<void, decltype(end)> at_end(this, end);  // even when it throws
  return make(source);
}

Denormals ModelWeights::denormals() const {
  std::lock_guard lock(mutex_);
  Denormals sum;
  const void* counted = nullptr;  // a source may have several packings; they follow one another
  for (const auto& [at, entry] : entries_) {
    if (!entry.denormals || at.first == counted || entry.packed.expired()) continue;
    sum += entry.denormals;
    counted = at.first;
  }
  return sum;
}

double ModelWeights::packing_seconds() const {
  std::lock_guard lock(mutex_);
  return std::chrono::duration<double>(packed_for_).count();
}

void ModelWeights::forget_sources() {
  std::lock_guard lock(mutex_);
  for (auto& [key, entry] : entries_) entry.source = Tensor();
}

std::vector<Packing> ModelWeights::packings() const {
  std::lock_guard lock(mutex_);
  std::vector<Packing> out;
  for (const auto& [at, entry] : entries_)
    if (const auto packed = entry.packed.lock(); packed && entry.source.valid())
      out.push_back({entry.source, at.second, *packed, entry.denormals});
  return out;
}

std::size_t ModelWeights::bytes() const {
  std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [key, entry] : entries_)
    if (const auto packed = entry.packed.lock(); packed && !entry.as_it_lies) sum += packed->bytes();
  return sum;
}

}  // namespace lamina
