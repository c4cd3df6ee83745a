#pragma once
/// Runs code of libraries in a subprocess, where it can do no harm.
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace lamina {

/// Whether the machine has so many bytes of memory at all.
bool has_memory(std::size_t bytes);

/// Memory that detects accesses beside it: it has inaccessible pages on both sides, and fault() checks the
/// bytes between the memory and these pages. The memory is not initialised.
class GuardedMemory {
 public:
  /// Throws Error(out_of_memory) for more than the machine has.
  GuardedMemory(std::string name, std::size_t bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  std::byte* data() const { return data_; }  ///< 64-byte aligned
  std::size_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  /// "writes 4 bytes behind the end of output 0"; empty when nothing was written there.
  std::string fault() const;

 private:
  friend void note_touch(const void* address);
  std::string name_;
  std::byte canary_;  ///< another one than its neighbours': copies from beside one to beside another show
  std::size_t bytes_, mapped_ = 0;
  std::byte *begin_ = nullptr, *data_ = nullptr;
};

/// Bytes that malloc() has given out; 0 where that is not known.
std::size_t heap_in_use();

struct Apart {
  std::string text;              ///< what the body gave; what happened where it gave nothing
  bool ended = false;            ///< it gave its text
  bool in_time = true;           ///< it did not have to be ended
  bool started_threads = false;  ///< it tried to (only where that could be watched)
};
/// Whether this process is such a copy: it has one thread, and loops over threads run on that.
bool is_apart();

/// Runs the body in a forked subprocess, which has a copy of this thread alone, within a time limit. Only the
/// text that the body returns comes back. If the system does not allow a process, the body runs here.
Apart run_apart(const std::function<std::string()>& body, std::chrono::seconds most);

}  // namespace lamina
