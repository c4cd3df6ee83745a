#include "base/cpu.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "tests/base/temporary_folder.h"

namespace lamina {
namespace {

void put(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(Cpu, threads_of_a_container) {
  const int all = available_threads("/nonexistent/");
  EXPECT_GE(all, 1);
  const test::TemporaryFolder folder;
  const std::string root = folder.path().string() + "/";
  put(root + "proc/self/cgroup", "0::/a/b\n");
  put(root + "sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(available_threads(root), all);
  put(root + "sys/fs/cgroup/a/cpu.max", "100000 100000\n");  // the group above is tighter
  EXPECT_EQ(available_threads(root), 1);
  put(root + "sys/fs/cgroup/a/cpu.max", "nonsense\n");
  EXPECT_EQ(available_threads(root), all);
}

TEST(Cpu, threads_of_an_old_container) {
  const test::TemporaryFolder folder;
  const std::string root = folder.path().string() + "/";
  put(root + "proc/self/cgroup", "3:cpu,cpuacct:/x\n2:memory:/x\n");
  put(root + "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "50000\n");
  put(root + "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(available_threads(root), 1);  // half a processor: one thread
}

TEST(Cpu, instruction_sets) {
  EXPECT_EQ(name_of(Isa::avx2), "avx2");
  EXPECT_LE(effective_isa(), native_isa());
  EXPECT_THROW(limit_isa("mmx"), Error);
  EXPECT_FALSE(processor_name().empty());
}

}  // namespace
}  // namespace lamina
