#include "saved/container.h"

#include <algorithm>

#include "base/byte_stream.h"
#include "base/parallel.h"
#include "base/work_partition.h"
#include "saved/engine.h"

namespace lamina {
namespace {

constexpr std::string_view kMagic = "LAMINA\r\n";
constexpr std::uint32_t kFormat = 1;
constexpr std::size_t kHeader = 256, kNeeds = 40, kReserved = 12, kEngine = 144, kSummed = 240;
constexpr std::size_t kEntry = 40, kAlignment = 64;

std::uint64_t behind_table(std::size_t sections) { return round_up(kHeader + kEntry * sections, kAlignment); }

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::string without_zeros(std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\0'));
}

void put_padded(ByteWriter& to, std::string text, std::size_t bytes) {
  text.resize(bytes);
  to.append(text.data(), bytes);
}

Hash128 sum_of(std::span<const std::byte> header, std::span<const std::byte> table) {
  Hasher hasher;
  hasher.bytes(header.first(kSummed));
  hasher.bytes(table);
  return hasher.result();
}

}  // namespace

std::string to_string(const SectionEntry& s) {
  constexpr std::string_view kNames[] = {"model", "constant", "compiled", "plan", "weights", "about"};
  const std::string name(kNames[static_cast<std::size_t>(s.kind) - 1]);
  const bool many =
      s.kind != SectionKind::model && s.kind != SectionKind::compiled && s.kind != SectionKind::about;
  return many ? fmt::format("{} {}", name, s.number) : name;
}

bool CompiledFile::is_one(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

CompiledFile::CompiledFile(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) { read_header(); }

void CompiledFile::read_header() {
  const auto all = file_->bytes();
  if (!is_one(all)) fail(ErrorCode::bad_file, "{}: is no compiled model of lamina", path());
  if (all.size() < kHeader)
    fail(ErrorCode::bad_file, "{}: truncated: {} bytes, wanted a header of {}", path(), all.size(), kHeader);
  ByteReader from(all, path());
  from.take(kMagic.size());
  const auto format = from.get<std::uint32_t>();
  from.take(4);
  const auto size = from.get<std::uint64_t>();
  header_.key = from.hash();
  const auto needs = without_zeros(from.take(kNeeds));
  const auto count = from.get<std::uint32_t>();
  from.take(kReserved);
  header_.engine = without_zeros(from.take(kEngine));
  const auto sum = from.hash();
  if (size != all.size())
    fail(ErrorCode::bad_file, "{}: {}: {} bytes, wanted {}", path(),
         all.size() < size ? "truncated" : "damaged", all.size(), size);
  const auto damaged = [&](bool yes) {
    if (yes) fail(ErrorCode::bad_file, "{}: damaged: header", path());
  };
  damaged(count > (all.size() - kHeader) / kEntry);
  damaged(sum != sum_of(all, all.subspan(kHeader, kEntry * count)));
  if (format != kFormat)
    fail(ErrorCode::unsupported, "{}: format {} of compiled models, wanted {}: compile the model again",
         path(), format, kFormat);
  const auto isa = isa_named(needs);
  damaged(!isa || behind_table(count) > all.size());
  header_.needs = *isa;
  const auto end = kHeader + kEntry * count;
  damaged(!all_zero(all.subspan(end, behind_table(count) - end)));
  read_table(count);
}

void CompiledFile::read_table(std::uint32_t count) {
  ByteReader from(file_->bytes().subspan(kHeader, kEntry * count), path());
  auto at = behind_table(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    SectionEntry s;
    s.kind = static_cast<SectionKind>(from.get<std::uint32_t>());
    s.number = from.get<std::uint32_t>();
    s.offset = from.get<std::uint64_t>();
    s.length = from.get<std::uint64_t>();
    s.hash = from.hash();
    const bool known = s.kind >= SectionKind::model && s.kind <= SectionKind::about;
    if (!known || s.offset != at || s.length > size() - at || round_up(at + s.length, kAlignment) > size())
      fail(ErrorCode::bad_file, "{}: damaged: table of sections, line {}", path(), i);
    at = round_up(at + s.length, kAlignment);
    sections_.push_back(s);
  }
  if (at != size())
    fail(ErrorCode::bad_file, "{}: damaged: {} bytes behind the last section", path(), size() - at);
  checked_ = std::make_unique<std::atomic<bool>[]>(count);
}

void CompiledFile::require_this_engine() const {
  if (header_.engine != engine_name())
    fail(ErrorCode::unsupported, "{}: made by lamina {}; this is lamina {}: compile the model again", path(),
         header_.engine, engine_name());
}

std::optional<std::size_t> CompiledFile::find(SectionKind kind, std::uint32_t number) const {
  for (std::size_t i = 0; i < sections_.size(); ++i)
    if (sections_[i].kind == kind && sections_[i].number == number) return i;
  return std::nullopt;
}

std::span<const std::byte> CompiledFile::unchecked(std::size_t index) const {
  const auto& s = sections_.at(index);
  return file_->bytes().subspan(s.offset, s.length);
}

std::span<const std::byte> CompiledFile::section(std::size_t index) const {
  const auto bytes = unchecked(index);
  if (checked_[index].load(std::memory_order_acquire)) return bytes;
  const auto& s = sections_[index];
  const auto end = s.offset + s.length;
  if (hash_of(bytes) != s.hash || !all_zero(file_->bytes().subspan(end, round_up(end, kAlignment) - end)))
    fail(ErrorCode::bad_file, "{}: damaged: section {}", path(), to_string(s));
  checked_[index].store(true, std::memory_order_release);
  return bytes;
}

void CompiledFile::check(std::optional<SectionKind> kind) const {
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < sections_.size(); ++i)
    if (!kind || sections_[i].kind == *kind) wanted.push_back(i);
  parallel_for(static_cast<std::int64_t>(wanted.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i) section(wanted[static_cast<std::size_t>(i)]);
  });
}

std::uint32_t CompiledFileWriter::add(SectionKind kind, std::span<const std::byte> bytes,
                                      std::shared_ptr<const void> owner, const Hash128& hash) {
  const auto number = static_cast<std::uint32_t>(
      std::count_if(parts_.begin(), parts_.end(), [&](const Part& p) { return p.kind == kind; }));
  parts_.push_back({kind, number, bytes, std::move(owner), hash});
  return number;
}

std::uint32_t CompiledFileWriter::add(SectionKind kind, std::vector<std::byte> bytes) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return add(kind, std::span(*owner), owner, hash_of(*owner));
}

std::uint64_t CompiledFileWriter::size() const {
  auto at = behind_table(parts_.size());
  for (const auto& p : parts_) at = round_up(at + p.bytes.size(), kAlignment);
  return at;
}

std::vector<SectionEntry> CompiledFileWriter::table() const {
  std::vector<SectionEntry> out;
  auto at = behind_table(parts_.size());
  for (const auto& p : parts_) {
    out.push_back({p.kind, p.number, at, p.bytes.size(), p.hash});
    at = round_up(at + p.bytes.size(), kAlignment);
  }
  return out;
}

std::vector<std::byte> CompiledFileWriter::header_bytes(const FileHeader& header,
                                                        std::span<const std::byte> table) const {
  LAMINA_CHECK(header.engine.size() < kEngine, "an engine's name of {} bytes", header.engine.size());
  ByteWriter to;
  to.append(kMagic.data(), kMagic.size());
  to.put(kFormat);
  to.put(std::uint32_t{0});
  to.put(size());
  to.hash(header.key);
  put_padded(to, std::string(name_of(header.needs)), kNeeds);
  to.put(static_cast<std::uint32_t>(parts_.size()));
  put_padded(to, "", kReserved);
  put_padded(to, header.engine, kEngine);
  auto summed = to.take();
  to.hash(sum_of(summed, table));
  const auto sum = to.take();
  summed.insert(summed.end(), sum.begin(), sum.end());
  return summed;
}

void CompiledFileWriter::write(const std::string& path, const FileHeader& header,
                               AtomicFile::Path whose) const {
  ByteWriter rows;
  for (const auto& s : table()) {
    rows.put(s.kind);
    rows.put(s.number);
    rows.put(s.offset);
    rows.put(s.length);
    rows.hash(s.hash);
  }
  const auto table = rows.take();
  AtomicFile file(path, whose);
  file.reserve(size());
  const auto pad = [&] {
    static constexpr std::byte kZeros[kAlignment]{};
    file.write(std::span(kZeros).first(round_up(file.written(), kAlignment) - file.written()));
  };
  file.write(header_bytes(header, table));
  file.write(table);
  pad();
  for (const auto& p : parts_) {
    file.write(p.bytes);
    drop_mapped_pages(p.bytes.data(), p.bytes.size());
    pad();
  }
  file.commit_synced();
}

}  // namespace lamina
