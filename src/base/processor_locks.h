#pragma once
/// Locks that show which processors other processes of lamina have bound themselves to.
#include <set>
#include <string>
#include <vector>

namespace lamina {

/// A byte per processor of one file in shared memory, locked for as long as threads are bound to it. The
/// system lets go of the locks of a process that ends. Without the file (no such folder, not ours to open)
/// nothing is locked, and nothing seen as locked. Thread-safe.
class ProcessorLocks {
 public:
  explicit ProcessorLocks(std::string path = "/dev/shm/lamina-processors");
  ~ProcessorLocks();
  ProcessorLocks(const ProcessorLocks&) = delete;
  ProcessorLocks& operator=(const ProcessorLocks&) = delete;

  /// The locks of this process.
  static ProcessorLocks& here();

  /// The processors below `count` that other processes hold.
  std::set<int> taken(int count);
  /// Takes them for this process, as often as it is called; false: another one was faster with some of
  /// them.
  bool hold(const std::vector<int>& cpus);
  void release(const std::vector<int>& cpus) noexcept;
  /// To be called in a child of fork(): the locks are the parent's.
  void after_fork() noexcept;

 private:
  struct State;
  State* state_;
};

/// Processors held for as long as this lives.
class HeldProcessors {
 public:
  HeldProcessors() = default;
  explicit HeldProcessors(std::vector<int> cpus)
      : cpus_(std::move(cpus)), alone_(ProcessorLocks::here().hold(cpus_)) {}
  HeldProcessors(HeldProcessors&& other) noexcept { *this = std::move(other); }
  HeldProcessors& operator=(HeldProcessors&& other) noexcept {
    cpus_.swap(other.cpus_);
    std::swap(alone_, other.alone_);
    return *this;
  }
  ~HeldProcessors() { ProcessorLocks::here().release(cpus_); }
  /// No other process has any of them.
  bool alone() const { return alone_; }

 private:
  std::vector<int> cpus_;
  bool alone_ = true;
};

}  // namespace lamina
