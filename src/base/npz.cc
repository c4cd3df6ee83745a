#include "base/npz.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/mapped_file.h"

namespace lamina {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50;
constexpr std::uint64_t kLimit32 = 0xffffffffu;

/// Little-endian numbers at checked places.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view where) : bytes_(bytes), where_(where) {}

  std::span<const std::byte> at(std::uint64_t offset, std::uint64_t count) const {
    if (offset > bytes_.size() || count > bytes_.size() - offset)
      fail(ErrorCode::bad_file, "{}: damaged archive: {} bytes at {} of {}", where_, count, offset,
           bytes_.size());
    return bytes_.subspan(offset, count);
  }
  template <class T>
  T number(std::uint64_t offset) const {
    T v{};
    std::memcpy(&v, at(offset, sizeof(T)).data(), sizeof(T));
    return v;
  }
  std::uint16_t u16(std::uint64_t offset) const { return number<std::uint16_t>(offset); }
  std::uint32_t u32(std::uint64_t offset) const { return number<std::uint32_t>(offset); }
  std::uint64_t u64(std::uint64_t offset) const { return number<std::uint64_t>(offset); }
  std::uint64_t size() const { return bytes_.size(); }
  std::string_view where() const { return where_; }

 private:
  std::span<const std::byte> bytes_;
  std::string_view where_;
};

struct Entry {
  std::string name;
  std::uint16_t flags = 0, method = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed = 0, size = 0, local = 0;
  std::uint64_t data = 0;  // where the packed bytes start
};

struct Directory {
  std::uint64_t offset = 0, count = 0;
};

Directory find_directory(const Reader& file) {
  if (file.size() < 22)
    fail(ErrorCode::bad_file, "{}: {} bytes, too few for an .npz archive", file.where(), file.size());
  const std::uint64_t first = file.size() > 22 + 65535 ? file.size() - 22 - 65535 : 0;
  for (std::uint64_t end = file.size() - 22;; --end) {
    if (file.u32(end) == kEnd && end + 22 + file.u16(end + 20) == file.size()) {
      Directory d{file.u32(end + 16), file.u16(end + 10)};
      const bool large = d.offset == kLimit32 || d.count == 0xffff || file.u32(end + 12) == kLimit32;
      if (large && end >= 20 && file.u32(end - 20) == kLocator64) {
        const auto record = file.u64(end - 12);
        if (file.u32(record) != kEnd64)
          fail(ErrorCode::bad_file, "{}: damaged archive: no zip64 directory at {}", file.where(), record);
        d = {file.u64(record + 48), file.u64(record + 32)};
      }
      return d;
    }
    if (end == first) break;
  }
  fail(ErrorCode::bad_file, "{}: is no .npz archive", file.where());
}

/// Sizes beyond 32 bits are in an extra field; those that are needed come in this order.
void read_extra64(const Reader& file, std::uint64_t at, std::uint64_t length, Entry& e) {
  const auto end = at + length;
  for (; at + 4 <= end; at += 4u + file.u16(at + 2)) {
    if (file.u16(at) != 1) continue;
    std::uint64_t field = at + 4;
    for (auto* value : {&e.size, &e.packed, &e.local})
      if (*value == kLimit32 && field + 8 <= at + 4 + file.u16(at + 2)) {
        *value = file.u64(field);
        field += 8;
      }
    return;
  }
}

std::vector<Entry> read_directory(const Reader& file) {
  const auto directory = find_directory(file);
  std::vector<Entry> entries;
  auto at = directory.offset;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    if (file.u32(at) != kCentral)
      fail(ErrorCode::bad_file, "{}: damaged archive: no entry {} at {}", file.where(), i, at);
    Entry e;
    e.flags = file.u16(at + 8);
    e.method = file.u16(at + 10);
    e.crc = file.u32(at + 16);
    e.packed = file.u32(at + 20);
    e.size = file.u32(at + 24);
    e.local = file.u32(at + 42);
    const std::uint64_t name = file.u16(at + 28), extra = file.u16(at + 30), comment = file.u16(at + 32);
    const auto text = file.at(at + 46, name);
    e.name.assign(reinterpret_cast<const char*>(text.data()), text.size());
    file.at(at + 46 + name, extra);
    read_extra64(file, at + 46 + name, extra, e);
    at += 46 + name + extra + comment;
    if (file.u32(e.local) != kLocal)
      fail(ErrorCode::bad_file, "{}: damaged archive: \"{}\" is not at {}", file.where(), e.name, e.local);
    e.data = e.local + 30 + file.u16(e.local + 26) + file.u16(e.local + 28);
    file.at(e.data, e.packed);
    entries.push_back(std::move(e));
  }
  return entries;
}

/// Entries that share bytes would let a small file say a lot.
void check_overlap(const std::vector<Entry>& entries, std::string_view where) {
  std::vector<const Entry*> sorted;
  for (const auto& e : entries) sorted.push_back(&e);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->local < b->local; });
  for (std::size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i]->local < sorted[i - 1]->data + sorted[i - 1]->packed)
      fail(ErrorCode::bad_file, "{}: damaged archive: \"{}\" and \"{}\" overlap", where, sorted[i - 1]->name,
           sorted[i]->name);
}

std::uint32_t checksum(std::uint32_t so_far, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      ::crc32_z(so_far, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

class StoredSource final : public ByteSource {
 public:
  StoredSource(std::span<const std::byte> bytes, std::string_view where) : bytes_(bytes), where_(where) {}
  void read(std::span<std::byte> to) override {
    if (to.size() > bytes_.size()) fail(ErrorCode::bad_file, "{}: ends too early", where_);
    if (!to.empty()) std::memcpy(to.data(), bytes_.data(), to.size());
    bytes_ = bytes_.subspan(to.size());
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view where_;
};

class DeflatedSource final : public ByteSource {
 public:
  DeflatedSource(std::span<const std::byte> bytes, std::string_view where) : bytes_(bytes), where_(where) {
    if (::inflateInit2(&stream_, -MAX_WBITS) != Z_OK)
      fail(ErrorCode::out_of_memory, "{}: no memory to unpack it", where_);
  }
  ~DeflatedSource() override { ::inflateEnd(&stream_); }
  DeflatedSource(const DeflatedSource&) = delete;
  DeflatedSource& operator=(const DeflatedSource&) = delete;

  void read(std::span<std::byte> to) override {
    while (!to.empty()) {
      if (const auto count = some(to); count != 0)
        to = to.subspan(count);
      else
        fail(ErrorCode::bad_file, "{}: compressed data ends too early", where_);
    }
  }
  /// No byte may be left.
  void finish() {
    std::byte extra[1];
    if (some(extra) != 0) fail(ErrorCode::bad_file, "{}: more data than declared", where_);
  }

 private:
  /// Fills some of `to`; 0 at the end.
  std::size_t some(std::span<std::byte> to) {
    constexpr std::size_t kPiece = 1 << 30;  // zlib counts in 32 bits
    const std::size_t wanted = std::min(to.size(), kPiece);
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = static_cast<uInt>(wanted);
    while (!ended_ && stream_.avail_out == wanted) {
      const std::size_t given = std::min(bytes_.size(), kPiece);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes_.data()));
      stream_.avail_in = static_cast<uInt>(given);
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      const std::size_t eaten = given - stream_.avail_in;
      bytes_ = bytes_.subspan(eaten);
      ended_ = status == Z_STREAM_END;
      if (status == Z_MEM_ERROR) fail(ErrorCode::out_of_memory, "{}: no memory to unpack it", where_);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        fail(ErrorCode::bad_file, "{}: compressed data is damaged ({})", where_,
             stream_.msg ? stream_.msg : "zlib says no more");
      if (eaten == 0 && stream_.avail_out == wanted) break;
    }
    return wanted - stream_.avail_out;
  }

  std::span<const std::byte> bytes_;
  std::string_view where_;
  z_stream stream_{};
  bool ended_ = false;
};

/// Passes bytes through and sums them up.
class CheckedSource final : public ByteSource {
 public:
  explicit CheckedSource(ByteSource& from) : from_(from) {}
  void read(std::span<std::byte> to) override {
    from_.read(to);
    crc_ = checksum(crc_, to);
  }
  std::uint32_t crc() const { return crc_; }

 private:
  ByteSource& from_;
  std::uint32_t crc_ = 0;
};

/// An invalid tensor where it is not wanted.
Tensor read_entry(const Reader& file, const Entry& e, const WantedArray& wanted) {
  const std::string where = fmt::format("{}: entry \"{}\"", file.where(), e.name);
  if (e.flags & 1) fail(ErrorCode::bad_file, "{}: is encrypted", where);
  const auto packed = file.at(e.data, e.packed);
  Tensor tensor;
  std::uint32_t crc = 0;
  if (e.method == 0) {
    if (e.size != e.packed) fail(ErrorCode::bad_file, "{}: {} bytes stored as {}", where, e.size, e.packed);
    StoredSource stored(packed, where);
    CheckedSource source(stored);
    tensor = parse_npy(source, e.size, where, wanted);
    crc = source.crc();
  } else if (e.method == 8) {
    if (e.size / 1032 > e.packed)  // the best that deflate can do
      fail(ErrorCode::bad_file, "{}: {} bytes cannot come from {} compressed ones", where, e.size, e.packed);
    DeflatedSource deflated(packed, where);
    CheckedSource source(deflated);
    tensor = parse_npy(source, e.size, where, wanted);
    if (!tensor.valid()) return tensor;
    deflated.finish();
    crc = source.crc();
  } else {
    fail(ErrorCode::bad_file, "{}: compression method {}, wanted 0 (stored) or 8 (deflated)", where,
         e.method);
  }
  if (tensor.valid() && crc != e.crc)
    fail(ErrorCode::bad_file, "{}: checksum {:08x}, wanted {:08x}", where, crc, e.crc);
  return tensor;
}

std::string compressed(std::string_view header, std::span<const std::byte> data) {
  z_stream stream{};
  if (::deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    fail(ErrorCode::internal, "zlib does not start");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, ::deflateEnd);
  std::string out;
  std::vector<char> buffer(1 << 18);
  const auto feed = [&](const void* from, std::size_t count, int flush) {
    stream.next_in = static_cast<Bytef*>(const_cast<void*>(from));
    stream.avail_in = static_cast<uInt>(count);  // arrays are below 4 GiB
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      ::deflate(&stream, flush);
      out.append(buffer.data(), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  feed(header.data(), header.size(), Z_NO_FLUSH);
  feed(data.data(), data.size(), Z_FINISH);
  return out;
}

template <class... T>
std::string little(T... numbers) {
  std::string out;
  ((out.append(reinterpret_cast<const char*>(&numbers), sizeof(T))), ...);
  return out;
}

using U16 = std::uint16_t;
using U32 = std::uint32_t;

/// The fields that local and central headers share.
std::string common_fields(const Entry& e) {
  constexpr U16 kTime = 0, kDate = 0x21;  // 1980-01-01: the same bytes whenever written
  return little(U16{20}, e.flags, e.method, kTime, kDate, e.crc, static_cast<U32>(e.packed),
                static_cast<U32>(e.size), static_cast<U16>(e.name.size()), U16{0});
}

Entry write_entry(AtomicFile& file, const std::string& name, const Tensor& tensor, bool deflate) {
  const auto parts = npy_parts(tensor);
  const std::span<const std::byte> data(parts.data.raw(), parts.data.bytes());
  Entry e;
  e.name = name + ".npy";
  if (e.name.size() > 65535) fail(ErrorCode::bad_input, "an array's name has {} bytes", name.size());
  e.flags = std::any_of(name.begin(), name.end(), [](char c) { return c & 0x80; }) ? 0x800 : 0;  // UTF-8
  e.method = deflate ? 8 : 0;
  e.local = file.written();
  e.size = e.packed = parts.header.size() + data.size();
  if (e.size + e.local + e.size / 1000 + 65536 >= kLimit32)
    fail(ErrorCode::bad_input, "array \"{}\" of {} bytes would end beyond 4 GiB of an .npz", name, e.size);
  e.crc = checksum(checksum(0, std::as_bytes(std::span(parts.header.data(), parts.header.size()))), data);
  std::string packed;
  if (deflate) {
    packed = compressed(parts.header, data);
    e.packed = packed.size();
  }
  file.write(little(kLocal) + common_fields(e) + e.name);
  if (deflate) {
    file.write(packed);
  } else {
    file.write(parts.header);
    file.write(data);
  }
  return e;
}

}  // namespace

NpzFile parse_npz(std::span<const std::byte> bytes, std::string_view where, const WantedOfNpz& wanted) {
  const Reader file(bytes, where);
  const auto entries = read_directory(file);
  check_overlap(entries, where);
  NpzFile out;
  std::set<std::string_view> seen;
  for (const auto& e : entries) {
    if (e.name.ends_with('/')) continue;
    if (!e.name.ends_with(".npy"))
      fail(ErrorCode::bad_file, "{}: entry \"{}\" is no .npy array", where, e.name);
    if (!seen.insert(e.name).second) fail(ErrorCode::bad_file, "{}: two entries \"{}\"", where, e.name);
    auto name = e.name.substr(0, e.name.size() - 4);
    const auto asked = [&](ElementType type, const Dims& shape) { return wanted(name, type, shape); };
    if (auto tensor = read_entry(file, e, wanted ? WantedArray(asked) : WantedArray()); tensor.valid())
      out.emplace_back(std::move(name), std::move(tensor));
  }
  return out;
}

NpzFile read_npz(const std::string& path, const WantedOfNpz& wanted) {
  return parse_npz(MappedFile::open(path)->bytes(), path, wanted);
}

void write_npz(const std::string& path, const NpzFile& arrays, bool deflate) {
  if (arrays.size() > 65534)
    fail(ErrorCode::bad_input, "{}: {} arrays, at most 65534 fit", path, arrays.size());
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : arrays)
    if (!names.insert(name).second) fail(ErrorCode::bad_input, "{}: two arrays \"{}\"", path, name);
  AtomicFile file(path);
  std::string directory;
  for (const auto& [name, tensor] : arrays) {
    const auto e = write_entry(file, name, tensor, deflate);
    directory += little(kCentral, U16{20}) + common_fields(e) +
                 little(U16{0}, U16{0}, U16{0}, U32{0}, static_cast<U32>(e.local)) + e.name;
  }
  const auto start = file.written();
  const auto count = static_cast<U16>(arrays.size());
  if (start + directory.size() >= kLimit32)
    fail(ErrorCode::bad_input, "{}: would be larger than 4 GiB", path);
  file.write(directory);
  file.write(little(kEnd, U16{0}, U16{0}, count, count, static_cast<U32>(directory.size()),
                    static_cast<U32>(start), U16{0}));
  file.commit();
}

}  // namespace lamina
