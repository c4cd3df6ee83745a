#include "base/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/base/temporary_folder.h"

namespace lamina {
namespace {

void put(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

void put_cache(const std::string& root, int index, const char* level, const char* type, const char* size) {
  const auto folder = root + "sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
  put(folder + "level", level);
  put(folder + "type", type);
  put(folder + "size", size);
}

void put_threads(const std::string& root, int cpu, const char* siblings) {
  put(root + "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", siblings);
}

TEST(Machine, reads_caches_cores_and_nodes) {
  const test::TemporaryFolder folder;
  const std::string root = folder.path().string() + "/", cpus = root + "sys/devices/system/cpu/";
  put_cache(root, 0, "1", "Data", "48K");
  put_cache(root, 1, "1", "Instruction", "32K");
  put_cache(root, 2, "2", "Unified", "1280K");
  put_cache(root, 3, "3", "Unified", "18M");
  put(cpus + "online", "0-5\n");
  for (const int cpu : {0, 1}) put_threads(root, cpu, "0-1");
  for (const int cpu : {2, 3}) put_threads(root, cpu, "2-3");
  put_threads(root, 4, "4");
  put_threads(root, 5, "5");
  put(root + "sys/devices/cpu_atom/cpus", "4-5\n");
  put(root + "sys/devices/system/node/online", "0-1\n");
  const auto m = read_machine(root);
  EXPECT_EQ(m.l1, 48u << 10);
  EXPECT_EQ(m.l2, 1280u << 10);
  EXPECT_EQ(m.l3, 18u << 20);
  ASSERT_EQ(m.cores.size(), 2u);
  EXPECT_EQ(m.cores[0].kind, "performance");
  EXPECT_EQ(m.cores[0].count, 2);
  EXPECT_EQ(m.cores[0].threads_per_core, 2);
  EXPECT_EQ(m.cores[1].count, 2);
  EXPECT_LT(m.cores[1].speed, 1);
  EXPECT_EQ(m.core_count(), 4);
  EXPECT_EQ(m.numa_nodes, 2);
  EXPECT_TRUE(m.here);
}

TEST(Machine, missing_and_broken_files_leave_what_is_usual) {
  const Machine usual;
  const test::TemporaryFolder folder;
  const std::string root = folder.path().string() + "/";
  EXPECT_EQ(read_machine(root).l2, usual.l2);
  EXPECT_EQ(read_machine(root).core_count(), 1);
  put_cache(root, 0, "2", "Unified", "-1K");
  put_cache(root, 1, "1", "Data", "lots");
  put(root + "sys/devices/system/cpu/online", "5-2,x");
  put(root + "sys/devices/system/node/online", "");
  const auto m = read_machine(root);
  EXPECT_EQ(m.l1, usual.l1);
  EXPECT_EQ(m.l2, usual.l2);
  EXPECT_EQ(m.core_count(), 1);
  EXPECT_EQ(m.numa_nodes, 1);
}

TEST(Machine, limits_take_features_and_rates) {
  Machine m;
  m.processor = "zen4";
  m.features = needed_by(Isa::avx512) | Features{Feature::avx512_vnni, Feature::avx_vnni};
  m.library = Isa::avx512;
  EXPECT_EQ(m.isa(), Isa::avx512);
  const auto two = limited(m, Isa::avx2), one = limited(m, Isa::sse41);
  EXPECT_EQ(two.isa(), Isa::avx2);
  EXPECT_TRUE(two.features.has(Feature::avx_vnni));
  EXPECT_FALSE(two.features.has(Feature::avx512_vnni));
  EXPECT_EQ(two.rates.products, known_rates("zen4", Isa::avx2)->products);
  EXPECT_EQ(one.isa(), Isa::sse41);
  EXPECT_FALSE(one.features.has(Feature::fma));
  EXPECT_EQ(one.library, Isa::sse41);
  EXPECT_EQ(limited(one, Isa::avx512).isa(), Isa::sse41);
}

TEST(Machine, families_of_processors) {
  EXPECT_EQ(processor_family("AuthenticAMD", 0x17, 0x31), "zen2");
  EXPECT_EQ(processor_family("AuthenticAMD", 0x17, 0x01), "");
  EXPECT_EQ(processor_family("AuthenticAMD", 0x19, 0x01), "zen3");
  EXPECT_EQ(processor_family("AuthenticAMD", 0x19, 0x11), "zen4");
  EXPECT_EQ(processor_family("AuthenticAMD", 0x19, 0x61), "zen4");
  EXPECT_EQ(processor_family("AuthenticAMD", 0x1a, 0x02), "zen5");
  EXPECT_EQ(processor_family("GenuineIntel", 6, 0x3c), "haswell");
  EXPECT_EQ(processor_family("GenuineIntel", 6, 0x8f), "sapphire_rapids");
  EXPECT_EQ(processor_family("GenuineIntel", 15, 0x8f), "");
  EXPECT_EQ(processor_family("HygonGenuine", 0x18, 0), "");
  EXPECT_EQ(known_rates("", Isa::avx2), nullptr);
  EXPECT_EQ(known_rates("zen5", Isa::avx2)->memory, known_rates("zen5", Isa::avx2)->memory);
}

}  // namespace
}  // namespace lamina
