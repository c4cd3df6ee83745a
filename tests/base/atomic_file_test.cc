#include "base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

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

TEST(AtomicFile, PipesBehindLinksAreWrittenDirectly) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  write_file(fmt::format("/proc/self/fd/{}", ends[1]), "through");  // what /dev/stdout leads to
  char text[8] = {};
  EXPECT_EQ(::read(ends[0], text, 7), 7);
  EXPECT_STREQ(text, "through");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(AtomicFile, AProcessThatEndsLeavesNothing) {
  const test::TemporaryFolder folder;
  const int probe = ::open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (probe < 0) GTEST_SKIP() << "this file system wants names for all files";
  ::close(probe);
  write_file(folder / "old", "old");
  const auto child = ::fork();
  if (child == 0) {
    AtomicFile fresh(folder / "new"), again(folder / "old");
    fresh.write("half");
    again.write("half");
    ::_exit(0);  // as by a signal: nothing is taken back
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(folder.entries(), 1u);
  EXPECT_EQ(contents(folder / "old"), "old");
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
