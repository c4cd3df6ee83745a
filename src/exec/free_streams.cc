#include "exec/free_streams.h"

#include <algorithm>
#include <bit>

namespace lamina {

FreeStreams::FreeStreams(int count) : count_(count) {
  if (count > kFast) many_.resize(static_cast<std::size_t>(count));
}

int FreeStreams::take() noexcept {
  if (!many_.empty()) return -1;
  auto word = taken_.load(std::memory_order_relaxed);
  for (;;) {
    const int first = std::countr_one(word);
    if ((word & kWaiting) != 0 || first >= count_) return -1;
    if (taken_.compare_exchange_weak(word, word | std::uint64_t{1} << first, std::memory_order_seq_cst))
      return first;
  }
}

bool FreeStreams::give_back(int stream) noexcept {
  if (!many_.empty()) return false;
  auto word = taken_.load(std::memory_order_relaxed);
  while ((word & kWaiting) == 0)
    if (taken_.compare_exchange_weak(word, word & ~(std::uint64_t{1} << stream), std::memory_order_seq_cst))
      return true;
  return false;
}

int FreeStreams::take_locked() noexcept {
  for (std::size_t i = 0; i < many_.size(); ++i)
    if (!many_[i]) {
      many_[i] = true;
      return static_cast<int>(i);
    }
  if (!many_.empty()) return -1;
  auto word = taken_.load(std::memory_order_seq_cst);
  for (;;) {
    const int first = std::countr_one(word);
    if (first >= count_) return -1;
    if (taken_.compare_exchange_weak(word, word | std::uint64_t{1} << first)) return first;
  }
}

void FreeStreams::give_back_locked(int stream) noexcept {
  if (many_.empty())
    taken_.fetch_and(~(std::uint64_t{1} << stream));
  else
    many_[static_cast<std::size_t>(stream)] = false;
}

void FreeStreams::somebody_waits(bool yes) noexcept {
  if (yes)
    taken_.fetch_or(kWaiting);
  else
    taken_.fetch_and(~kWaiting);
}

bool FreeStreams::all_free() const noexcept {
  return (taken_ & ~kWaiting) == 0 && std::find(many_.begin(), many_.end(), true) == many_.end();
}

void FreeStreams::reset(const std::function<bool(int)>& taken) {
  taken_ = 0;
  for (int i = 0; i < count_; ++i) {
    if (!many_.empty()) many_[static_cast<std::size_t>(i)] = taken(i);
    if (many_.empty() && taken(i)) taken_.fetch_or(std::uint64_t{1} << i);
  }
}

}  // namespace lamina
