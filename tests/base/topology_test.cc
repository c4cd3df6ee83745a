/// What the processors below a root folder are.
#include "base/topology.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/placement.h"
#include "tests/base/fake_machine.h"

namespace lamina {
namespace {

using test::FakeMachine;

std::vector<int> numbers(const Topology& t) {
  std::vector<int> out;
  for (const auto& c : t.cpus) out.push_back(c.number);
  return out;
}

TEST(Topology, lists) {
  EXPECT_EQ(cpu_list("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(cpu_list("5\n"), std::vector<int>{5});
  EXPECT_EQ(cpu_list(""), std::vector<int>{});
  EXPECT_EQ(cpu_list("nonsense"), std::vector<int>{});
  EXPECT_EQ(cpu_list("2,x"), std::vector<int>{2});
  EXPECT_EQ(cpu_list("0-99999999999"), std::vector<int>{});
  EXPECT_EQ(cpu_list(std::vector<int>{8, 0, 1, 2, 3}), "0-3,8");
  EXPECT_EQ(cpu_list(std::vector<int>{}), "");
}

TEST(Topology, nothing_is_known) {
  const FakeMachine machine;
  const auto t = read_topology(machine.root());
  EXPECT_EQ(numbers(t), std::vector<int>{0});
  EXPECT_FALSE(t.quota);
  EXPECT_EQ(t.limit(), 1);
}

/// What is known of the processors serves where it is not said which are online.
TEST(Topology, without_a_list_of_those_online) {
  const auto allowed = [](const FakeMachine& machine) {
    return cpu_list(numbers(read_topology(machine.root())));
  };
  FakeMachine cores;
  cores.put("sys/devices/system/cpu/cpu2/topology/core_id", "0").put("sys/devices/system/cpu/cpuidle/x", "");
  cores.put("sys/devices/system/cpu/cpu10/topology/core_id", "0");
  EXPECT_EQ(allowed(cores), "2,10");
  std::filesystem::create_directories(cores.root() + "sys/devices/system/cpu/cpu8192");  // Linux has no such
  EXPECT_EQ(allowed(cores), "2,10");
  EXPECT_EQ(allowed(cores.put("sys/fs/cgroup/cpuset.cpus.effective", "4-7\n")), "4-7");
  EXPECT_EQ(allowed(cores.put("proc/self/status", "Cpus_allowed_list:\t6-9\n")), "6-7");
}

/// Files that are none of Linux's: what they say is not known, and nothing waits or grows.
TEST(Topology, hostile_files) {
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "0-65535,";
  EXPECT_EQ(cpu_list(many).size(), 8192u);
  EXPECT_EQ(cpu_list("0-2147483647").size(), 8192u);
  FakeMachine machine;
  machine.processors(8).put("sys/fs/cgroup/cpu.max", "nan 100000\n");
  machine.put("proc/self/cgroup", "0::/a\n").put("sys/fs/cgroup/a/cpu.max", "200000 100000\n");
  EXPECT_EQ(read_topology(machine.root()).limit(), 2);
  machine.put("sys/fs/cgroup/cpu.max", "inf 100000\n").put("sys/fs/cgroup/a/cpu.max", "100000 nan\n");
  EXPECT_FALSE(read_topology(machine.root()).quota);

  std::string deep = "0::";
  for (int i = 0; i < 20000; ++i) deep += "/a";
  machine.put("proc/self/cgroup", deep + "\n").put("sys/fs/cgroup/cpuset.cpus.effective", "0-3\n");
  EXPECT_EQ(numbers(read_topology(machine.root())).size(), 4u);

  std::filesystem::remove(machine.root() + "sys/fs/cgroup/cpu.max");
  ASSERT_EQ(::mkfifo((machine.root() + "sys/fs/cgroup/cpu.max").c_str(), 0600), 0);
  std::filesystem::resize_file(machine.root() + "sys/devices/system/cpu/online", std::size_t{1} << 40);
  EXPECT_FALSE(read_topology(machine.root()).quota);
}

TEST(Topology, two_sockets_with_two_threads_a_core) {
  FakeMachine machine;
  machine.processors(32)
      .cores([](int cpu) { return std::pair(cpu / 8 % 2, cpu % 8); })
      .node(0, "0-7,16-23")
      .node(1, "8-15,24-31");
  const auto t = read_topology(machine.root());
  EXPECT_EQ(t.sockets(), 2);
  EXPECT_EQ(t.nodes(), 2);
  EXPECT_EQ(t.cores(), 16);
  EXPECT_EQ(t.cpus.size(), 32u);
  EXPECT_EQ(t.cpus[24].node, 1);
}

TEST(Topology, mask_and_cpusets) {
  FakeMachine machine;
  machine.processors(16).put("proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-11\n");
  EXPECT_EQ(cpu_list(numbers(read_topology(machine.root()))), "0-11");
  machine.put("proc/self/cgroup", "0::/a/b\n").put("sys/fs/cgroup/a/cpuset.cpus.effective", "2-15\n");
  EXPECT_EQ(cpu_list(numbers(read_topology(machine.root()))), "2-11");
  machine.put("sys/fs/cgroup/a/b/cpuset.cpus.effective", "4,5\n");
  EXPECT_EQ(cpu_list(numbers(read_topology(machine.root()))), "4-5");
}

TEST(Topology, old_cpusets) {
  FakeMachine machine;
  machine.processors(8)
      .put("proc/self/cgroup", "4:cpuset:/x/y\n3:cpu,cpuacct:/x\n")
      .put("sys/fs/cgroup/cpuset/x/cpuset.effective_cpus", "1-3\n");
  EXPECT_EQ(cpu_list(numbers(read_topology(machine.root()))), "1-3");
}

TEST(Topology, cores_are_known_without_packages_too) {
  FakeMachine machine;
  machine.processors(4);
  for (int i = 0; i < 4; ++i)
    machine.put("sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/core_id",
                std::to_string(i / 2));
  EXPECT_EQ(read_topology(machine.root()).cores(), 2);
}

TEST(Topology, quotas) {
  FakeMachine machine;
  machine.processors(8).put("proc/self/cgroup", "0::/a/b\n");
  EXPECT_EQ(read_topology(machine.root()).limit(), 8);
  machine.put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_FALSE(read_topology(machine.root()).quota);
  machine.put("sys/fs/cgroup/a/cpu.max", "350000 100000\n");  // the group above is tighter
  EXPECT_EQ(read_topology(machine.root()).limit(), 3);
  machine.put("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(read_topology(machine.root()).limit(), 1);
  machine.put("sys/fs/cgroup/a/b/cpu.max", "nonsense\n").put("sys/fs/cgroup/a/cpu.max", "");
  EXPECT_EQ(read_topology(machine.root()).limit(), 8);
  machine.put("sys/fs/cgroup/cpu.max", "200000 100000\n");  // in a container the own group is the mount
  EXPECT_EQ(read_topology(machine.root()).limit(), 2);
}

TEST(Topology, old_quotas) {
  for (const std::string mount : {"cpu", "cpu,cpuacct"}) {
    FakeMachine machine;
    machine.processors(8)
        .put("proc/self/cgroup", "3:cpu,cpuacct:/x/y\n2:memory:/x\n")
        .put("sys/fs/cgroup/" + mount + "/x/cpu.cfs_quota_us", "250000\n")
        .put("sys/fs/cgroup/" + mount + "/x/cpu.cfs_period_us", "100000\n")
        .put("sys/fs/cgroup/" + mount + "/x/y/cpu.cfs_quota_us", "-1\n")
        .put("sys/fs/cgroup/" + mount + "/x/y/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(read_topology(machine.root()).limit(), 2) << mount;
  }
}

/// In a container there may be no topology: processors are taken in the order of their numbers.
TEST(Topology, processors_without_files_are_cores_in_order) {
  FakeMachine machine;
  const auto t = read_topology(machine.processors(4).root());
  EXPECT_EQ(t.cores(), 4);
  EXPECT_EQ(place_streams(t, {}).streams.at(0).cpus, (std::vector<int>{0, 1, 2, 3}));
}

/// Linux says -1 where it does not know.
TEST(Topology, unknown_cores_are_those_without_files) {
  FakeMachine machine;
  machine.processors(8).cores([](int cpu) { return std::pair(-1, cpu < 6 ? -1 : 0); });
  const auto t = read_topology(machine.root());
  EXPECT_EQ(t.cores(), 7);
  EXPECT_EQ(t.sockets(), 1);
  EXPECT_EQ(t.cpus[0].package, 0);
  FakeMachine far;  // a number of a core is no other processor's own
  far.processors(4).put("sys/devices/system/cpu/cpu0/topology/core_id", "16777217\n");
  EXPECT_EQ(read_topology(far.root()).cores(), 4);
}

TEST(Topology, hybrid) {
  FakeMachine machine;
  machine.processors(20)
      .put("sys/devices/cpu_core/cpus", "0-11\n")
      .put("sys/devices/cpu_atom/cpus", "12-19\n");
  const auto t = read_topology(machine.root());
  EXPECT_FALSE(t.cpus[11].efficient);
  EXPECT_TRUE(t.cpus[12].efficient);
}

TEST(Topology, this_machine) {
  EXPECT_FALSE(read_topology().cpus.empty());
  EXPECT_LE(read_topology().cpus.size(), affinity_here().size());
}

}  // namespace
}  // namespace lamina
