/// The file of a compiled model: every byte is covered.
#include "saved/container.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/atomic_file.h"
#include "base/error.h"
#include "saved/engine.h"
#include "tests/base/temporary_folder.h"
#include "tests/saved/other_format.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;

class Container : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static std::vector<std::byte> some(std::size_t count, int seed) {
    std::vector<std::byte> out(count);
    for (std::size_t i = 0; i < count; ++i)
      out[i] = static_cast<std::byte>(i * 31 + static_cast<std::size_t>(seed));
    return out;
  }
  static FileHeader header() { return {engine_name(), Isa::avx2, {1, 2}}; }
  std::vector<std::byte> written(const std::string& name) const {
    CompiledFileWriter file;
    file.add(SectionKind::model, some(100, 1));
    file.add(SectionKind::weights, some(64, 2));
    file.add(SectionKind::weights, some(0, 0));
    file.add(SectionKind::plan, some(1, 3));
    file.write(path(name), header());
    return bytes(name);
  }
  std::vector<std::byte> bytes(const std::string& name) const {
    const auto file = MappedFile::open(path(name));
    return {file->bytes().begin(), file->bytes().end()};
  }
  /// What is wrong with it; empty: nothing, and it says what the original does.
  static std::string wrong_with(const std::vector<std::byte>& bytes) {
    try {
      const CompiledFile file(MappedFile::in_memory("x.lamina", bytes, nullptr));
      file.check();
      EXPECT_EQ(file.sections().size(), 4u);
      return "";
    } catch (const Error& e) {
      const bool other = std::string(e.what()).find("format") != std::string::npos;
      EXPECT_EQ(e.code(), other ? ErrorCode::unsupported : ErrorCode::bad_file);
      return e.what();
    }
  }

  test::TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(Container, holds_sections_at_multiples_of_64) {
  written("a.lamina");
  const CompiledFile file(MappedFile::open(path("a.lamina")));
  EXPECT_EQ(file.header().engine, engine_name());
  EXPECT_EQ(file.header().needs, Isa::avx2);
  EXPECT_EQ(file.header().key, (Hash128{1, 2}));
  ASSERT_EQ(file.sections().size(), 4u);
  for (const auto& s : file.sections()) EXPECT_EQ(s.offset % 64, 0u);
  const auto second = file.find(SectionKind::weights, 0);
  ASSERT_TRUE(second);
  const auto found = file.section(*second);
  EXPECT_EQ(std::vector<std::byte>(found.begin(), found.end()), some(64, 2));
  EXPECT_EQ(to_string(file.sections()[*second]), "weights 0");
  EXPECT_FALSE(file.find(SectionKind::weights, 2));
}

TEST_F(Container, the_same_content_is_the_same_bytes) { EXPECT_EQ(written("a"), written("b")); }

TEST_F(Container, every_flipped_bit_is_found) {
  const auto good = written("a");
  EXPECT_EQ(wrong_with(good), "");
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const int bit : {0, 7}) {
      auto bad = good;
      bad[at] ^= static_cast<std::byte>(1 << bit);
      EXPECT_NE(wrong_with(bad), "") << at;
    }
}

TEST_F(Container, truncation_is_found_anywhere) {
  const auto good = written("a");
  for (std::size_t size = 0; size < good.size(); ++size) {
    auto bad = good;
    bad.resize(size);
    EXPECT_NE(wrong_with(bad), "") << size;
  }
  auto longer = good;
  longer.resize(good.size() + 64);
  EXPECT_NE(wrong_with(longer), "");
}

TEST_F(Container, says_what_is_damaged) {
  auto bad = written("a");
  bad.back() = std::byte{1};  // padding
  EXPECT_EQ(wrong_with(bad), "x.lamina: damaged: section plan 0");
  bad.resize(bad.size() - 1);
  EXPECT_NE(wrong_with(bad).find("x.lamina: truncated: "), std::string::npos);
  bad.resize(20);
  EXPECT_NE(wrong_with(bad).find("truncated: 20 bytes, wanted a header"), std::string::npos);
  auto version = written("a");
  version[8] = std::byte{9};
  EXPECT_EQ(wrong_with(version), "x.lamina: damaged: header");
  EXPECT_EQ(wrong_with(test::of_format(written("a"), 9)),
            "x.lamina: format 9 of compiled models, wanted 1: compile the model again");
}

TEST_F(Container, another_engine_is_told) {
  CompiledFileWriter writer;
  writer.write(path("old"), {"0.0.9, build x, oneDNN 1", Isa::sse41, {}});
  const CompiledFile file(MappedFile::open(path("old")));
  try {
    file.require_this_engine();
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("made by lamina 0.0.9, build x, oneDNN 1; this is lamina "),
              std::string::npos);
  }
}

TEST_F(Container, a_file_that_cannot_be_written_leaves_none) {
  CompiledFileWriter writer;
  EXPECT_THROW(writer.write(path("no/such/folder"), header()), Error);
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace lamina
