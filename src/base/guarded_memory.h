#pragma once
/// Memory that detects accesses beside it, for trials of libraries' kernels (base/subprocess.h).
#include <cstddef>
#include <span>
#include <string>

namespace lamina {

/// Has inaccessible pages on both sides; fault() checks the bytes between the memory and these pages. The
/// memory is not initialised.
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
  friend void describe_touch(const void* address, std::span<char> text);
  std::string name_;
  std::byte canary_;  ///< another one than its neighbours': copies from beside one to beside another show
  std::size_t bytes_, mapped_ = 0;
  std::byte *begin_ = nullptr, *data_ = nullptr;
};

/// Writes a sentence about an access to a forbidden address, which names the guarded memory of this thread
/// beside which it is; ends it with a 0. Allocates nothing, so that a signal handler can call it.
void describe_touch(const void* address, std::span<char> text);

/// Bytes that malloc() has given out; 0 where that is not known.
std::size_t heap_in_use();

}  // namespace lamina
