#pragma once
/// How much memory this process can still get: from the machine, and from its control groups.
#include <cstdint>
#include <string>

namespace lamina {

/// The tightest bound of all, as it is now.
struct MemoryLeft {
  std::uint64_t bytes = 0;
  std::string of;  ///< "this machine", "the control group /sys/fs/cgroup/a"
};

/// What can be had now: what the machine has available (MemAvailable), and what each control group of the
/// process and those above it allow (memory.max of v2, memory.limit_in_bytes of v1) less what is in use
/// there, file caches aside. What is not known bounds nothing. `root`: another machine's /proc and /sys lie
/// there.
MemoryLeft memory_left(const std::string& root = "/");
/// What there could ever be: the machine's memory, or the smallest bound of a control group.
MemoryLeft memory_in_all(const std::string& root = "/");
/// Whether there could ever be so many bytes of memory here.
bool has_memory(std::uint64_t bytes);

}  // namespace lamina
