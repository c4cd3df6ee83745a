/// A folder of compiled models: pruning, and remembered hashes.
#include "saved/folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "saved/engine.h"
#include "tests/base/temporary_folder.h"
#include "tests/saved/other_format.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Folder : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string name_of(std::uint64_t key) { return to_string(Hash128{0, key}) + ".lamina"; }
  /// An entry of about so many bytes that was used so long ago.
  void entry(std::uint64_t key, std::size_t bytes, std::chrono::seconds ago) const {
    writer(bytes).write(path(name_of(key)), {engine_name(), Isa::sse41, {0, key}});
    age(name_of(key), ago);
  }
  void age(const std::string& name, std::chrono::seconds ago) const {
    fs::last_write_time(path(name), fs::file_time_type::clock::now() - ago);
  }
  static CompiledFileWriter writer(std::size_t bytes) {
    CompiledFileWriter file;
    file.add(SectionKind::weights, std::vector<std::byte>(bytes));
    return file;
  }
  void put(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& f : fs::directory_iterator(folder_)) out.push_back(f.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }
  bool there(const std::string& name) const { return fs::exists(path(name)); }

  test::TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(Folder, what_was_used_longest_ago_goes_first) {
  entry(1, 1000, 30s);
  entry(2, 1000, 10s);
  entry(3, 1000, 20s);
  const auto all = cache_entries(folder_.string());
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, name_of(1));
  EXPECT_EQ(all[2].name, name_of(2));
  const auto gone = prune_entries(folder_.string(), 2 * all[0].bytes).gone;
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].name, name_of(1));
  EXPECT_EQ(names(), (std::vector<std::string>{name_of(2), name_of(3)}));
}

TEST_F(Folder, only_files_of_ours_go) {
  put("notes.txt", "x");
  put("model.lamina", "LAMINA\r\n");
  put(name_of(7), "not ours, though it is called so");
  entry(1, 1000, 10s);
  put(name_of(1) + ".12.0.tmp", "half");
  put(name_of(2) + ".13.0.tmp", "half");
  age(name_of(2) + ".13.0.tmp", 2h);
  put("other.tmp", "x");
  age("other.tmp", 2h);
  prune_entries(folder_.string(), 0);
  std::vector<std::string> left{"model.lamina", name_of(7), name_of(1) + ".12.0.tmp", "notes.txt",
                                "other.tmp"};
  std::sort(left.begin(), left.end());
  EXPECT_EQ(names(), left);
}

TEST_F(Folder, entries_that_go_away_meanwhile_are_no_damage) {
  constexpr std::uint64_t kEntries = 200;
  for (int round = 0; round < 5; ++round) {
    for (std::uint64_t key = 0; key < kEntries; ++key) entry(key, 100, 1s);
    std::thread remover([&] {
      for (std::uint64_t key = kEntries; key-- > 0;) fs::remove(path(name_of(key)));
    });
    for (const auto& e : verified_entries(folder_.string()))
      EXPECT_EQ(e.state, CacheEntry::State::good) << e.name << ": " << e.wrong;
    remover.join();
  }
}

TEST_F(Folder, other_versions_are_no_damage) {
  entry(1, 100, 40s);
  entry(2, 100, 30s);
  writer(100).write(path(name_of(3)), {"0.0.9, build x, oneDNN 1", Isa::sse41, {0, 3}});
  put(name_of(4), "LAMINA\r\n");
  const auto file = MappedFile::open(path(name_of(2)));
  const auto other = test::of_format({file->bytes().begin(), file->bytes().end()}, 7);
  std::ofstream(path(name_of(2)), std::ios::binary)
      .write(reinterpret_cast<const char*>(other.data()), static_cast<std::streamsize>(other.size()));
  for (const bool whole : {false, true}) {
    std::map<std::string, CacheEntry> found;
    for (auto& e : whole ? verified_entries(folder_.string()) : cache_entries(folder_.string()))
      found[e.name] = e;
    EXPECT_EQ(found.at(name_of(1)).state, CacheEntry::State::good);
    EXPECT_EQ(found.at(name_of(2)).state, CacheEntry::State::other_version);
    EXPECT_NE(found.at(name_of(2)).wrong.find("format 7"), std::string::npos);
    EXPECT_EQ(found.at(name_of(3)).state, CacheEntry::State::other_version);
    EXPECT_EQ(found.at(name_of(3)).engine, "0.0.9, build x, oneDNN 1");
    EXPECT_EQ(found.at(name_of(4)).state, CacheEntry::State::damaged);
  }
}

TEST_F(Folder, what_is_damaged_behind_the_header_is_found_by_looking_at_all) {
  entry(1, 1000, 10s);
  std::fstream file(path(name_of(1)), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(500).put(1);
  file.close();
  EXPECT_EQ(cache_entries(folder_.string()).at(0).state, CacheEntry::State::good);
  EXPECT_NE(verified_entries(folder_.string()).at(0).wrong.find("section weights 0"), std::string::npos);
}

TEST_F(Folder, makes_room_before_it_writes) {
  const Logger none;
  const auto size = writer(1000).size();
  entry(1, 1000, 30s);
  entry(2, 1000, 20s);
  CacheFolder(folder_.string(), 2 * size, none).store(writer(1000), {engine_name(), Isa::sse41, {0, 3}});
  EXPECT_EQ(names(), (std::vector<std::string>{name_of(2), name_of(3)}));
  CacheFolder(folder_.string(), size - 1, none).store(writer(1000), {engine_name(), Isa::sse41, {0, 4}});
  EXPECT_FALSE(there(name_of(4)));  // larger than all may be: nothing has to go for it
  EXPECT_TRUE(there(name_of(3)));
}

TEST_F(Folder, one_that_is_replaced_makes_no_room_twice) {
  const auto size = writer(1000).size();
  entry(3, 1000, 30s);
  entry(1, 1000, 20s);
  entry(2, 1000, 10s);
  CacheFolder(folder_.string(), 3 * size, Logger())
      .store(writer(1000 + size), {engine_name(), Isa::sse41, {0, 3}});
  EXPECT_EQ(names(), (std::vector<std::string>{name_of(2), name_of(3)}));
}

TEST_F(Folder, an_entry_that_is_used_becomes_the_last_to_go) {
  entry(1, 10, 30s);
  entry(2, 10, 20s);
  CacheFolder cache(folder_.string(), 1 << 20, Logger());
  int used = 0;
  EXPECT_EQ(cache.open({0, 1}, [&](const auto&) { ++used; }), "");
  EXPECT_EQ(cache.open({0, 9}, [&](const auto&) { ++used; }),
            "there is no entry 00000000000000000000000000000009");
  EXPECT_EQ(used, 1);
  EXPECT_EQ(cache_entries(folder_.string())[0].name, name_of(2));
}

TEST_F(Folder, trouble_is_one_warning) {
  std::vector<std::string> lines;
  const Logger log([&](LogLevel level, std::string_view line) {
    EXPECT_EQ(level, LogLevel::warning);
    lines.emplace_back(line);
  });
  put("file", "x");
  fs::create_symlink("loop", path("loop"));
  for (const auto& name : {std::string("file"), std::string("loop"), std::string(300, 'a')}) {
    CacheFolder cache(path(name), 1 << 20, log);
    EXPECT_NE(cache.open({0, 1}, [](const auto&) {}), "");
    cache.store(writer(10), {engine_name(), Isa::sse41, {0, 1}});
    ASSERT_EQ(lines.size(), 1u) << name;
    EXPECT_NE(lines[0].find("is no folder"), std::string::npos);
    lines.clear();
  }

  entry(1, 10, 1s);
  fs::rename(path(name_of(1)), path(name_of(2)));
  CacheFolder other(folder_.string(), 1 << 20, log);
  EXPECT_NE(other.open({0, 2}, [](const auto&) {}), "");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("rebuilt: "), std::string::npos);
  EXPECT_NE(lines[0].find("is of another model"), std::string::npos);
}

TEST_F(Folder, a_folder_that_is_gone_is_made_again) {
  CacheFolder cache(path("a/b"), 1 << 20, Logger());
  EXPECT_TRUE(there("a/b"));
  fs::remove_all(path("a"));
  cache.store(writer(10), {engine_name(), Isa::sse41, {0, 1}});
  EXPECT_TRUE(there("a/b/" + name_of(1)));
}

/// Whether the memo has something for the file: then it does not look at the content.
TEST_F(Folder, hashes_are_remembered_by_what_a_file_is) {
  put("model", "one");
  std::this_thread::sleep_for(100ms);
  const HashMemo memo(path("memo"));
  const auto first = memo.content_of(*MappedFile::open(path("model")));
  ASSERT_TRUE(first);
  ASSERT_TRUE(there("memo"));
  EXPECT_EQ(memo.content_of(*MappedFile::open(path("model"))), first);
  EXPECT_EQ(fs::file_size(path("memo")), 8u + 64u);

  // A file of the same size and date with other content.
  const auto date = fs::last_write_time(path("model"));
  put("model", "two");
  fs::last_write_time(path("model"), date);
  std::this_thread::sleep_for(100ms);
  const auto second = memo.content_of(*MappedFile::open(path("model")));
  ASSERT_TRUE(second);
  EXPECT_NE(*second, *first);
  EXPECT_EQ(*second, hash_of(MappedFile::open(path("model"))->bytes()));
  EXPECT_EQ(fs::file_size(path("memo")), 8u + 64u);  // in the place of the one before
}

TEST_F(Folder, a_file_that_is_too_new_is_not_remembered) {
  put("model", "one");
  const HashMemo memo(path("memo"));
  EXPECT_TRUE(memo.content_of(*MappedFile::open(path("model"))));
  EXPECT_FALSE(there("memo"));
}

TEST_F(Folder, a_file_that_changes_under_us_has_no_hash) {
  put("model", "one");
  const auto file = MappedFile::open(path("model"));
  std::this_thread::sleep_for(20ms);
  put("model", "two");
  EXPECT_FALSE(HashMemo(path("memo")).content_of(*file));
}

TEST_F(Folder, a_damaged_memo_is_no_memo) {
  put("model", "one");
  std::this_thread::sleep_for(100ms);
  const HashMemo memo(path("memo"));
  const auto good = memo.content_of(*MappedFile::open(path("model")));
  const auto size = fs::file_size(path("memo"));
  for (std::size_t at = 0; at < size; ++at) {
    std::fstream file(path("memo"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put('\x5a');
    file.close();
    EXPECT_EQ(memo.content_of(*MappedFile::open(path("model"))), good) << at;
  }
}

}  // namespace
}  // namespace lamina
