#include "base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "lamina/error.h"
#include "tests/base/temporary_folder.h"

namespace lamina {
namespace {

std::string contents(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

TEST(AtomicFile, ReplacesOnCommit) {
  const test::TemporaryFolder folder;
  const auto path = folder / "a.txt";
  write_file(path, "old");
  {
    AtomicFile file(path);
    file.write("ne");
    file.write("w");
    EXPECT_EQ(file.written(), 3u);
    EXPECT_EQ(contents(path), "old");
    file.commit();
    EXPECT_THROW(file.write("more"), Error);
  }
  EXPECT_EQ(contents(path), "new");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const test::TemporaryFolder folder;
  const auto path = folder / "a.txt";
  { AtomicFile(path).write("half"); }
  EXPECT_EQ(folder.entries(), 0u);
  write_file(path, "old");
  { AtomicFile(path).write("half"); }
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, FollowsLinksAndKeepsPermissions) {
  const test::TemporaryFolder folder;
  write_file(folder / "real", "old");
  std::filesystem::permissions(folder / "real", std::filesystem::perms(0640));
  std::filesystem::create_symlink("real", folder / "link");
  write_file(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(contents(folder / "real"), "new");
  EXPECT_EQ(std::filesystem::status(folder / "real").permissions(), std::filesystem::perms(0640));
}

TEST(AtomicFile, DevicesAreWrittenDirectly) {
  write_file("/dev/null", "gone");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

/// A process that is killed can clean nothing up.
TEST(AtomicFile, HasNoNameUntilItIsWhole) {
  const test::TemporaryFolder folder;
  const int probe = ::open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (probe < 0) GTEST_SKIP() << "the file system has no files without names";
  ::close(probe);
  AtomicFile fresh(folder / "fresh"), second(folder / "fresh");
  fresh.write("first");
  second.write("second");
  EXPECT_EQ(folder.entries(), 0u);
  fresh.commit();
  EXPECT_EQ(contents(folder / "fresh"), "first");
  EXPECT_EQ(folder.entries(), 1u);
  second.commit();
  EXPECT_EQ(contents(folder / "fresh"), "second");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, NamesOfDescriptorsAreWrittenWhereTheseAre) {
  const test::TemporaryFolder folder;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  write_file(fmt::format("/dev/fd/{}", ends[1]), "through");
  char got[8] = {};
  EXPECT_EQ(::read(ends[0], got, sizeof got), 7);
  EXPECT_STREQ(got, "through");
  for (const int end : ends) ::close(end);

  // As a shell's ">> log" does.
  const int log = ::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ASSERT_EQ(::write(log, "old,", 4), 4);
  const auto name = fmt::format("/proc/self/fd/{}", log);
  std::filesystem::create_symlink(name, folder / "link");
  write_file(folder / "link", "new,");
  write_file(name, "newer");
  EXPECT_EQ(contents(folder / "log"), "old,new,newer");
  std::filesystem::remove(folder / "log");
  write_file(name, "to nobody");
  EXPECT_EQ(folder.entries(), 1u);  // the link
  ::close(log);
  EXPECT_THROW(write_file(name, "closed"), Error);
}

/// Names of temporary files are noted while they stand; threads must not look at names that others free.
TEST(AtomicFile, ThreadsReplaceFilesBesideEachOther) {
  const test::TemporaryFolder folder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto path = folder / fmt::format("{}.txt", t);
      for (int i = 0; i < 300; ++i) write_file(path, fmt::format("{}", i));
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(folder.entries(), 4u);
  for (int t = 0; t < 4; ++t) EXPECT_EQ(contents(folder / fmt::format("{}.txt", t)), "299");
}

TEST(AtomicFile, ErrorsNameThePath) {
  const test::TemporaryFolder folder;
  try {
    write_file(folder / "missing/a", "x");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_file);
    EXPECT_NE(std::string(e.what()).find("missing/a: cannot be written"), std::string::npos) << e.what();
  }
  EXPECT_THROW(write_file(folder.path().string(), "x"), Error);
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_THROW(write_file("/dev/full", "x"), Error);
  }
}

}  // namespace
}  // namespace lamina
