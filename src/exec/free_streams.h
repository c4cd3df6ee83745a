#pragma once
/// Counts the streams of a model that are free.
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace lamina {

/// The set of free streams: a word that run() changes without the mutex, as long as no job waits.
class FreeStreams {
 public:
  explicit FreeStreams(int count);
  /// The lowest free one, or -1; also -1 where somebody waits.
  int take() noexcept;
  /// False where somebody waits, who is to be looked after under the mutex.
  bool give_back(int stream) noexcept;

  // Under the mutex:
  int take_locked() noexcept;
  void give_back_locked(int stream) noexcept;
  void somebody_waits(bool yes) noexcept;
  bool all_free() const noexcept;
  /// Only those that the predicate says are taken.
  void reset(const std::function<bool(int)>& taken);

 private:
  static constexpr int kFast = 62;  // more streams than that are counted under the mutex only
  static constexpr std::uint64_t kWaiting = std::uint64_t{1} << 63;
  int count_;
  std::atomic<std::uint64_t> taken_{0};
  std::vector<bool> many_;
};

}  // namespace lamina
