#pragma once
/// The file of a compiled model: sections of bytes behind a header, every byte under a checksum.
///
///   0   8  "LAMINA\r\n"               80    4  sections
///   8   4  version of this format     84   12  zeros
///  12   4  zeros                      96  144  what made it (saved/engine.h), zeros behind
///  16   8  bytes of the file         240   16  XXH3-128 of bytes 0 to 239 and of the table
///  24  16  key of the model          256       the table, 40 bytes a section: kind (4), number (4),
///  40  40  instruction set, zeros              offset (8), length (8), XXH3-128 (16)
///
/// This page and the table are the same in each version of the format; what sections hold is not. Sections
/// follow in the table's order, each at the next multiple of 64, and so does the end of the file;
/// what is between them is zero. Numbers are little-endian. The same content gives the same bytes.
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/cpu.h"
#include "base/hash.h"
#include "base/mapped_file.h"

namespace lamina {

/// model: as it was read, with its large constants. compiled: what was made of it, with plans and the weights
/// that these need. about: what it is, for people.
enum class SectionKind : std::uint32_t { model = 1, constant, compiled, plan, weights, about };

struct SectionEntry {
  SectionKind kind;
  std::uint32_t number = 0;  ///< among those of its kind
  std::uint64_t offset = 0, length = 0;
  Hash128 hash;
};
/// "model", "constant 3"
std::string to_string(const SectionEntry& section);

/// What the header says beside the table.
struct FileHeader {
  std::string engine;
  Isa needs = Isa::sse41;  ///< the instruction set that it was made for
  Hash128 key;
};

/// A compiled model's file, open. Thread-safe.
class CompiledFile {
 public:
  static bool is_one(std::span<const std::byte> bytes);
  /// Checks header and table. Throws Error(bad_file): "x.lamina: truncated: 4711 bytes, wanted 8128", and
  /// Error(unsupported) for an undamaged header of another version of the format.
  explicit CompiledFile(std::shared_ptr<const MappedFile> file);

  const std::string& path() const { return file_->path(); }
  std::size_t size() const { return file_->size(); }
  std::span<const std::byte> bytes() const { return file_->bytes(); }
  const FileHeader& header() const { return header_; }
  const std::vector<SectionEntry>& sections() const { return sections_; }
  /// Index of a section; nothing when there is none.
  std::optional<std::size_t> find(SectionKind kind, std::uint32_t number = 0) const;
  /// Throws Error(unsupported) when this lamina cannot use what another one made: "x.lamina: made by lamina
  /// ...".
  void require_this_engine() const;

  /// The bytes of a section, which are checked at the first call. Throws Error(bad_file): "x.lamina: damaged:
  /// section weights 3".
  std::span<const std::byte> section(std::size_t index) const;
  /// Bytes that nobody has checked yet: not to be looked at before check().
  std::span<const std::byte> unchecked(std::size_t index) const;
  /// Checks all sections of a kind, in parallel; all of them without one.
  void check(std::optional<SectionKind> kind = {}) const;
  /// Keeps the bytes mapped.
  const std::shared_ptr<const MappedFile>& file() const { return file_; }

 private:
  void read_header();
  void read_table(std::uint32_t count);

  std::shared_ptr<const MappedFile> file_;
  FileHeader header_;
  std::vector<SectionEntry> sections_;
  std::unique_ptr<std::atomic<bool>[]> checked_;
};

/// Collects sections and writes them.
class CompiledFileWriter {
 public:
  /// `bytes` stay as they are until the file is written; `owner` keeps them.
  std::uint32_t add(SectionKind kind, std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                    const Hash128& hash);
  std::uint32_t add(SectionKind kind, std::vector<std::byte> bytes);
  /// Size of the file.
  std::uint64_t size() const;
  /// Complete or not at all, and on the disk. Throws Error(bad_file).
  void write(const std::string& path, const FileHeader& header,
             AtomicFile::Path whose = AtomicFile::Path::of_user) const;

 private:
  struct Part {
    SectionKind kind;
    std::uint32_t number;
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
    Hash128 hash;
  };
  std::vector<SectionEntry> table() const;
  std::vector<std::byte> header_bytes(const FileHeader& header, std::span<const std::byte> table) const;
  std::vector<Part> parts_;
};

}  // namespace lamina
