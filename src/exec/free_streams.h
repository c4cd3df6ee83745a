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
  /// Takes the lowest free stream; -1 if none is free, or if a job waits.
  int take() noexcept;
  /// Frees a stream. False if a job waits: the caller must then give it the stream under the mutex.
  bool give_back(int stream) noexcept;

  // Under the mutex:
  int take_locked() noexcept;
  void give_back_locked(int stream) noexcept;
  void somebody_waits(bool yes) noexcept;
  bool all_free() const noexcept;
  /// Marks exactly the streams as taken for which the predicate is true.
  void reset(const std::function<bool(int)>& taken);

 private:
  static constexpr int kFast = 62;  // more streams than that are counted under the mutex only
  static constexpr std::uint64_t kWaiting = std::uint64_t{1} << 63;
  int count_;
  std::atomic<std::uint64_t> taken_{0};
  std::vector<bool> many_;
};

}  // namespace lamina
