#include "base/memory_left.h"

#include "tests/base/fake_machine.h"

namespace lamina::test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

TEST(MemoryLeft, is_what_the_machine_has_available) {
  FakeMachine machine;
  machine.put("proc/meminfo", "MemTotal:       8192 kB\nMemFree: 1 kB\nMemAvailable:   4096 kB\n");
  EXPECT_EQ(memory_left(machine.root()).bytes, 4 * kMiB);
  EXPECT_EQ(memory_left(machine.root()).of, "this machine");
  EXPECT_EQ(memory_in_all(machine.root()).bytes, 8 * kMiB);
}

TEST(MemoryLeft, is_the_least_of_all_groups_above_v2) {
  FakeMachine machine;
  machine.put("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 1048576 kB\n")
      .put("proc/self/cgroup", "0::/a/b\n")
      .put("sys/fs/cgroup/a/b/memory.max", "max\n")
      .put("sys/fs/cgroup/a/b/memory.current", "1000\n")
      .put("sys/fs/cgroup/a/memory.max", std::to_string(100 * kMiB) + "\n")
      .put("sys/fs/cgroup/a/memory.current", std::to_string(80 * kMiB) + "\n")
      .put("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file " + std::to_string(30 * kMiB) +
                                              "\nactive_file " + std::to_string(10 * kMiB) + "\n");
  EXPECT_EQ(memory_left(machine.root()).bytes, 60 * kMiB);  // caches can be given back
  EXPECT_NE(memory_left(machine.root()).of.find("cgroup/a"), std::string::npos);
  EXPECT_EQ(memory_in_all(machine.root()).bytes, 100 * kMiB);
}

TEST(MemoryLeft, is_the_least_of_all_groups_above_v1) {
  FakeMachine machine;
  machine.put("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 1048576 kB\n")
      .put("proc/self/cgroup", "4:memory:/docker/x\n0::/\n")
      .put("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", std::to_string(50 * kMiB) + "\n")
      .put("sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes", std::to_string(60 * kMiB) + "\n")
      .put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(memory_left(machine.root()).bytes, 0u);
  EXPECT_EQ(memory_in_all(machine.root()).bytes, 50 * kMiB);
}

TEST(MemoryLeft, what_is_not_known_bounds_nothing) {
  FakeMachine machine;
  machine.put("proc/meminfo", "nonsense\n").put("sys/fs/cgroup/memory.max", "x\n");
  EXPECT_GT(memory_left(machine.root()).bytes, std::uint64_t{1} << 50);
}

}  // namespace
}  // namespace lamina::test
