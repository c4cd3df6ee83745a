#include "saved/memo.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/atomic_file.h"
#include "base/byte_stream.h"
#include "base/cancellation.h"

namespace lamina {
namespace {

constexpr std::string_view kMemoMagic = "LAMINAH1";
constexpr std::size_t kRecord = 64, kMost = 1024;

struct Record {
  FileIdentity file;
  Hash128 content;
};

std::vector<std::byte> bytes_of(const Record& r) {
  ByteWriter to;
  for (const auto n : {r.file.device, r.file.inode, r.file.size}) to.put(n);
  for (const auto n : {r.file.modified, r.file.changed}) to.put(n);
  to.hash(r.content);
  auto bytes = to.take();
  to.append(bytes.data(), bytes.size());
  to.put(hash_of(bytes).low);
  return to.take();
}

/// Reads the records that are complete.
std::vector<Record> read(const std::string& path) {
  std::vector<Record> out;
  try {
    const auto file = MappedFile::open_own(path);
    ByteReader from(file->bytes(), path);
    const auto magic = from.take(kMemoMagic.size());
    if (std::memcmp(magic.data(), kMemoMagic.data(), kMemoMagic.size()) != 0) return {};
    for (auto left = (file->size() - kMemoMagic.size()) / kRecord; left > 0 && out.size() < kMost; --left) {
      const auto bytes = from.take(kRecord);
      ByteReader one(bytes, path);
      Record r;
      for (auto* n : {&r.file.device, &r.file.inode, &r.file.size}) *n = one.get<std::uint64_t>();
      for (auto* n : {&r.file.modified, &r.file.changed}) *n = one.get<std::int64_t>();
      r.content = one.hash();
      if (one.get<std::uint64_t>() == hash_of(bytes.first(kRecord - 8)).low) out.push_back(r);
    }
  } catch (const Error&) {  // there is none yet, or it is damaged
  }
  return out;
}

void write(const std::string& path, const std::vector<Record>& records) {
  try {
    AtomicFile file(path, AtomicFile::Path::ours);
    file.write(kMemoMagic);
    for (const auto& r : records) file.write(bytes_of(r));
    file.commit();
  } catch (const Error&) {  // a folder to be read only, a full disk: who writes the entry says so
  }
}

/// A write within the same tick of the file system's clock would change nothing that is remembered.
bool old_enough(const FileIdentity& file) {
  constexpr std::int64_t kSecond = 1000000000;
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  const bool coarse = file.changed % kSecond == 0;
  return now - file.changed > (coarse ? 3 * kSecond : kSecond / 20);
}

/// Without keeping what was read in memory.
Hash128 hash_of_file(const MappedFile& file) {
  constexpr std::size_t kPiece = std::size_t{16} << 20;
  Hasher hasher;
  for (std::size_t at = 0; at < file.size(); at += kPiece) {
    const auto piece = file.bytes().subspan(at, std::min(kPiece, file.size() - at));
    hasher.bytes(piece);
    drop_mapped_pages(piece.data(), piece.size());
    stop_point();
  }
  return hasher.result();
}

}  // namespace

bool unchanged(const MappedFile& file) {
  const auto& identity = file.identity();
  if (!identity) return true;
  const auto now = identity_of(file.path());
  return !now || now->inode != identity->inode || now->device != identity->device || *now == *identity;
}

std::optional<Hash128> HashMemo::content_of(const MappedFile& file) const {
  const auto& identity = file.identity();
  if (!identity) return hash_of(file.bytes());
  if (!unchanged(file)) return std::nullopt;
  const bool rememberable = !path_.empty() && old_enough(*identity);
  auto records = rememberable ? read(path_) : std::vector<Record>();
  for (const auto& r : records)
    if (r.file == *identity) return r.content;
  const auto content = hash_of_file(file);
  if (!unchanged(file)) return std::nullopt;
  if (rememberable) {
    std::erase_if(records, [&](const Record& r) {
      return r.file.device == identity->device && r.file.inode == identity->inode;
    });
    if (records.size() >= kMost) records.erase(records.begin());
    records.push_back({*identity, content});
    write(path_, records);
  }
  return content;
}

}  // namespace lamina
