#include "base/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/half.h"
#include "base/limits.h"
#include "base/mapped_file.h"
#include "base/numbers.h"
#include "base/small_float.h"
#include "base/work_partition.h"

static_assert(std::endian::native == std::endian::little);

namespace lamina {
namespace {

constexpr std::size_t kMaxHeader = 1 << 20;
constexpr std::string_view kMagic("\x93NUMPY", 6);

struct NpyType {
  ElementType type;
  std::string_view descr;  // without the byte order
};
/// Types that numpy lacks (ml_dtypes' floats of 8 bits and less, integers of 4 and 2 bits, bf16) come as raw
/// bytes; they are read as unsigned integers. ml_dtypes calls f8e5m2 "f1".
constexpr std::array<NpyType, 3> kRawNpyTypes{
    {{ElementType::u8, "V1"}, {ElementType::u8, "f1"}, {ElementType::u16, "V2"}}};
constexpr std::array<NpyType, 12> kNpyTypes{{{ElementType::f16, "f2"},
                                             {ElementType::f32, "f4"},
                                             {ElementType::f64, "f8"},
                                             {ElementType::i8, "i1"},
                                             {ElementType::i16, "i2"},
                                             {ElementType::i32, "i4"},
                                             {ElementType::i64, "i8"},
                                             {ElementType::u8, "u1"},
                                             {ElementType::u16, "u2"},
                                             {ElementType::u32, "u4"},
                                             {ElementType::u64, "u8"},
                                             {ElementType::boolean, "b1"}}};

struct Header {
  ElementType type = ElementType::undefined;
  bool swapped = false;
  bool fortran = false;
  Dims shape;
};

/// Reads the header: a Python dictionary of three known keys.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Header parse() {
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const auto key = quoted();
      expect(':');
      if (key == "descr" && !std::exchange(descr, true)) {
        parse_type();
      } else if (key == "fortran_order" && !std::exchange(order, true)) {
        parse_order();
      } else if (key == "shape" && !std::exchange(shape, true)) {
        parse_shape();
      } else {
        bad(fmt::format("the key '{}'", key));
      }
      if (!accept(',') && !peek('}')) bad("no comma between entries");
    }
    if (!descr || !order || !shape) bad("not all of 'descr', 'fortran_order', 'shape'");
    return std::move(header_);
  }

 private:
  [[noreturn]] void bad(std::string_view found) const {
    fail(ErrorCode::bad_file, "{}: the .npy header has {}", where_, found);
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool peek(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool accept(char c) {
    if (!peek(c)) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad(fmt::format("no '{}' at character {}", c, at_));
  }
  std::string_view quoted() {
    const char quote = peek('"') ? '"' : '\'';
    expect(quote);
    const auto end = text_.find(quote, at_);
    if (end == std::string_view::npos) bad("a string without an end");
    const auto out = text_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }
  std::string_view word() {
    skip();
    const auto begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-'))
      ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void parse_type() {
    if (peek('[')) bad("a type with named fields, wanted a number type");
    const auto descr = quoted();
    auto kind = descr;
    if (kind == "?") kind = "b1";
    if (!kind.empty() && std::string_view("<>=|").find(kind[0]) != std::string_view::npos) {
      header_.swapped = kind[0] == '>';
      kind.remove_prefix(1);
    }
    for (const auto& t : kNpyTypes)
      if (t.descr == kind) header_.type = t.type;
    for (const auto& t : kRawNpyTypes)
      if (t.descr == kind) header_.type = t.type;
    if (header_.type == ElementType::undefined)
      bad(fmt::format("the type '{}', wanted b1, i1 to i8, u1 to u8, f2, f4 or f8", descr));
  }
  void parse_order() {
    const auto value = word();
    if (value != "True" && value != "False") bad(fmt::format("fortran_order {}", value));
    header_.fortran = value == "True";
  }
  void parse_shape() {
    expect('(');
    while (!accept(')')) {
      auto number = word();
      if (number.ends_with('L')) number.remove_suffix(1);  // of Python 2
      const auto value = parse_integer<std::int64_t>(number);
      if (!value || *value < 0) bad(fmt::format("the dimension '{}'", number));
      header_.shape.push_back(*value);
      if (!accept(',') && !peek(')')) bad("no comma between dimensions");
    }
  }

  std::string_view text_, where_;
  std::size_t at_ = 0;
  Header header_;
};

/// Size of the data in bytes; throws when there can be no such array.
std::uint64_t data_bytes(const Header& header, std::string_view where) {
  const auto extent = extent_of(header.shape);
  if (!extent || header.shape.size() > Limits::kRank)
    fail(ErrorCode::bad_file, "{}: an array of shape {} is too large", where, fmt::join(header.shape, "x"));
  return element_count(header.shape) * static_cast<std::uint64_t>(bits_of(header.type)) / 8;
}

void swap_bytes(Tensor& t) {
  const auto size = static_cast<std::size_t>(bits_of(t.element_type())) / 8;
  for (std::size_t i = 0; i < t.size(); ++i) std::reverse(t.raw() + i * size, t.raw() + (i + 1) * size);
}

/// Converts column-major data, whose dimensions read backwards are those of a row-major tensor.
Tensor from_fortran(const Tensor& t) {
  if (t.rank() < 2 || t.size() == 0) return t;
  Tensor out(t.element_type(), t.shape());
  const auto size = static_cast<std::size_t>(bits_of(t.element_type())) / 8;
  Dims index(t.rank(), 0);
  std::vector<std::size_t> step(t.rank(), 1);
  for (std::size_t axis = 1; axis < t.rank(); ++axis)
    step[axis] = step[axis - 1] * static_cast<std::size_t>(t.shape()[axis - 1]);
  std::size_t from = 0;
  for (std::size_t to = 0; to < t.size(); ++to) {
    std::memcpy(out.raw() + to * size, t.raw() + from * size, size);
    for (std::size_t axis = t.rank(); axis-- > 0;) {
      from += step[axis];
      if (++index[axis] < t.shape()[axis]) break;
      from -= step[axis] * static_cast<std::size_t>(t.shape()[axis]);
      index[axis] = 0;
    }
  }
  return out;
}

class SpanSource final : public ByteSource {
 public:
  SpanSource(std::span<const std::byte> bytes, std::string_view where) : bytes_(bytes), where_(where) {}
  void read(std::span<std::byte> to) override {
    if (to.size() > bytes_.size())
      fail(ErrorCode::bad_file, "{}: ends {} bytes too early", where_, to.size() - bytes_.size());
    if (!to.empty()) std::memcpy(to.data(), bytes_.data(), to.size());
    bytes_ = bytes_.subspan(to.size());
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view where_;
};

std::string read_header(ByteSource& source, std::uint64_t& left, std::string_view where) {
  const auto take = [&](std::size_t count, std::string& to) {
    if (count > left) fail(ErrorCode::bad_file, "{}: {} bytes, too few for a .npy array", where, left);
    left -= count;
    to.resize(count);
    source.read(std::as_writable_bytes(std::span(to.data(), to.size())));
  };
  std::string magic, length, header;
  take(8, magic);
  if (!magic.starts_with(kMagic)) fail(ErrorCode::bad_file, "{}: is no .npy array", where);
  const auto version = static_cast<unsigned char>(magic[6]);
  if (version < 1 || version > 3)
    fail(ErrorCode::bad_file, "{}: version {} of .npy, wanted 1 to 3", where, version);
  take(version == 1 ? 2 : 4, length);
  std::size_t count = 0;
  for (std::size_t i = 0; i < length.size(); ++i)
    count |= static_cast<std::size_t>(static_cast<unsigned char>(length[i])) << (8 * i);
  if (count > kMaxHeader) fail(ErrorCode::bad_file, "{}: a .npy header of {} bytes", where, count);
  take(count, header);
  return header;
}

/// The same values in a type that numpy has; codes of floats of 8 and 4 bits, one to a byte.
Tensor widened(const Tensor& t) {
  const auto type = t.element_type();
  if (type == ElementType::bf16) {
    Tensor out(ElementType::f32, t.shape());
    for (std::size_t i = 0; i < t.size(); ++i) {
      bf16_t v{};
      std::memcpy(&v, t.raw() + 2 * i, 2);
      out.data<float>()[i] = to_float(v);
    }
    return out;
  }
  const auto bits = static_cast<std::size_t>(bits_of(type));
  const bool negative = is_integer(type) && is_signed(type);
  if (bits >= 8 && !is_small_float(type)) return t;
  Tensor out(negative ? ElementType::i8 : ElementType::u8, t.shape());
  for (std::size_t i = 0; i < t.size(); ++i) {
    int v = (std::to_integer<int>(t.raw()[i * bits / 8]) >> (i * bits % 8)) & ((1 << bits) - 1);
    if (negative && v >= 1 << (bits - 1)) v -= 1 << bits;
    out.raw()[i] = static_cast<std::byte>(v);
  }
  return out;
}

}  // namespace

Tensor parse_npy(ByteSource& source, std::uint64_t size, std::string_view where, const WantedArray& asked) {
  const auto text = read_header(source, size, where);
  const auto header = HeaderParser(text, where).parse();
  if (const auto wanted = data_bytes(header, where); wanted != size)
    fail(ErrorCode::bad_file, "{}: {} bytes of data, wanted {} for {}[{}]", where, size, wanted,
         name_of(header.type), fmt::join(header.shape, ","));
  if (asked && !asked(header.type, header.shape)) return {};
  Tensor t(header.type, header.shape);
  source.read({t.raw(), t.bytes()});
  if (header.swapped) swap_bytes(t);
  if (header.type == ElementType::boolean)
    for (std::size_t i = 0; i < t.size(); ++i) t.raw()[i] = std::byte{t.raw()[i] != std::byte{0}};
  return header.fortran ? from_fortran(t) : t;
}

Tensor parse_npy(std::span<const std::byte> bytes, std::string_view where) {
  SpanSource source(bytes, where);
  return parse_npy(source, bytes.size(), where);
}

Tensor as_stored(const Tensor& array, ElementType type) {
  const auto from = array.element_type();
  const bool is_bf16 = from == ElementType::u16 && type == ElementType::bf16;
  const bool is_code = (from == ElementType::u8 || from == ElementType::i8) && is_storage_type(type) &&
                       type != ElementType::undefined;
  if (!is_bf16 && !is_code) return array;
  Tensor out(type, array.shape());
  const auto bits = static_cast<std::size_t>(bits_of(type));
  if (bits >= 8) {
    if (out.bytes() != 0) std::memcpy(out.raw(), array.raw(), out.bytes());
    return out;
  }
  const int end = 1 << bits;
  for (std::size_t i = 0; i < array.size(); ++i) {
    const auto byte = std::to_integer<std::uint8_t>(array.raw()[i]);
    const int negative = static_cast<std::int8_t>(byte);  // integers may come with their sign
    const bool signs = is_integer(type) && is_signed(type) && negative < 0 && negative >= -end / 2;
    if (byte >= end && !signs)
      fail(ErrorCode::bad_input, "element {} is {}, wanted a code of {} bits", i,
           from == ElementType::i8 ? negative : int{byte}, bits);
    out.raw()[i * bits / 8] |= static_cast<std::byte>((byte & (end - 1)) << (i * bits % 8));
  }
  return out;
}

Tensor read_npy(const std::string& path) { return parse_npy(MappedFile::open(path)->bytes(), path); }

NpyParts npy_parts(const Tensor& tensor) {
  if (!tensor.valid()) fail(ErrorCode::bad_input, "an array without an element type cannot be written");
  NpyParts parts{"", widened(tensor)};
  std::string descr;
  for (const auto& t : kNpyTypes)
    if (t.type == parts.data.element_type())
      descr = fmt::format("{}{}", bits_of(t.type) == 8 ? '|' : '<', t.descr);
  const std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr,
                                       fmt::join(tensor.shape(), ", "), tensor.rank() == 1 ? "," : "");
  const std::size_t start = dict.size() + 11 > 65535 ? 12 : 10;
  const std::size_t length =
      round_up(start + dict.size() + 1, 64u) - start;  // data starts at a multiple of 64
  parts.header = kMagic;
  parts.header += start == 10 ? '\1' : '\2';
  parts.header += '\0';
  for (std::size_t i = 0; i < start - 8; ++i) parts.header += static_cast<char>((length >> (8 * i)) & 255);
  parts.header += dict;
  parts.header.append(length - dict.size() - 1, ' ');
  parts.header += '\n';
  return parts;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  const auto parts = npy_parts(tensor);
  AtomicFile file(path);
  file.write(parts.header);
  file.write({parts.data.raw(), parts.data.bytes()});
  file.commit();
}

}  // namespace lamina
