#include "base/opened_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/mapped_file.h"
#include "tests/base/temporary_folder.h"

namespace lamina::test {
namespace {

namespace fs = std::filesystem;

class Beneath : public ::testing::TestWithParam<lamina::Beneath> {
 protected:
  Beneath() {
    fs::create_directories(folder_ / "model/parts");
    put("model/w.bin");
    put("model/parts/w.bin");
    put("secret");
    fs::create_symlink("../secret", folder_ / "model/link");
    fs::create_symlink("w.bin", folder_ / "model/near");
    fs::create_directory_symlink("parts", folder_ / "model/others");
    fs::create_directory_symlink("model", folder_ / "by_link");
  }
  void put(const std::string& name) const { std::ofstream(folder_ / name) << "text"; }
  /// 0, or why not.
  int open(const std::string& name, const std::string& below = "model") const {
    errno = 0;
    return open_beneath(folder_ / below, name, GetParam()) ? 0 : errno;
  }
  TemporaryFolder folder_;
};

TEST_P(Beneath, files_of_the_folder_and_below_it) {
  EXPECT_EQ(open("w.bin"), 0);
  EXPECT_EQ(open("parts/w.bin"), 0);
  EXPECT_EQ(open("./parts//w.bin"), 0);
  EXPECT_EQ(open("w.bin", "by_link"), 0);  // the folder's own path is the user's
  EXPECT_EQ(open("none"), ENOENT);
}

TEST_P(Beneath, no_link_is_followed) {
  EXPECT_EQ(open("link"), ELOOP);
  EXPECT_EQ(open("near"), ELOOP);
  EXPECT_EQ(open("others/w.bin"), ELOOP);
}

TEST_P(Beneath, nothing_leads_outside) {
  EXPECT_NE(open("../secret"), 0);
  EXPECT_NE(open("parts/../../secret"), 0);
  EXPECT_NE(open("/etc/passwd"), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, Beneath,
                         ::testing::Values(lamina::Beneath::at_once, lamina::Beneath::by_part));

std::string refused(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(OwnFiles, are_not_those_that_others_may_write) {
  const TemporaryFolder folder;
  std::ofstream(folder / "f") << "text";
  ::chmod((folder / "f").c_str(), 0600);
  EXPECT_EQ(MappedFile::open_own(folder / "f")->text(), "text");
  ::chmod((folder / "f").c_str(), 0620);
  EXPECT_NE(refused([&] { MappedFile::open_own(folder / "f"); }).find("may be written by others (mode 0620)"),
            std::string::npos);
  fs::create_symlink("f", folder / "link");
  EXPECT_NE(refused([&] { MappedFile::open_own(folder / "link"); }).find("symbolic link"), std::string::npos);
  if (::geteuid() != 0) return;
  ::chmod((folder / "f").c_str(), 0600);
  ASSERT_EQ(::chown((folder / "f").c_str(), 12345, 12345), 0);
  EXPECT_NE(refused([&] { MappedFile::open_own(folder / "f"); }).find("belongs to user 12345"),
            std::string::npos);
}

TEST(OwnFiles, a_folder_that_is_made_is_this_users_alone) {
  const TemporaryFolder folder;
  for (const auto* name : {"a/b", "c/", "d"}) {
    make_private_folder(folder / name);
    EXPECT_EQ(fs::status(folder / name).permissions(), fs::perms::owner_all) << name;
    EXPECT_EQ(written_by_others(folder / name), "");
  }
  ::chmod((folder / "d").c_str(), 0777);
  make_private_folder(folder / "d");
  EXPECT_EQ(written_by_others(folder / "d"), "may be written by others (mode 0777)");
}

TEST(MappedFile, takes_regular_files_only) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(refused([&] { MappedFile::open_beneath(folder.path(), "pipe"); }).find("not a regular file"),
            std::string::npos);
  EXPECT_NE(refused([&] { MappedFile::open_beneath("/dev", "null"); }).find("not a regular file"),
            std::string::npos);
  EXPECT_EQ(MappedFile::open_beneath("/proc/self", "exe"), nullptr);  // a link
}

}  // namespace
}  // namespace lamina::test
