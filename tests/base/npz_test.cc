#include "base/npz.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/atomic_file.h"
#include "base/random.h"
#include "lamina/error.h"
#include "tests/base/temporary_folder.h"

namespace lamina {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::byte kHuge[] = {std::byte{'h'}, std::byte{'u'}, std::byte{'g'}, std::byte{'e'}};

Bytes bytes_of(std::string_view text) {
  const auto* p = reinterpret_cast<const std::byte*>(text.data());
  return {p, p + text.size()};
}

Bytes file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return bytes_of(std::string(std::istreambuf_iterator<char>(in), {}));
}

std::string npy(const std::string& dictionary, const std::string& data) {
  const auto n = dictionary.size() + 1;
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(n % 256) + static_cast<char>(n / 256) +
         dictionary + "\n" + data;
}

Tensor parse(const std::string& text) { return parse_npy(bytes_of(text), "x.npy"); }

std::string error_of(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_file);
    return e.what();
  }
  return "";
}

std::string dictionary(const std::string& descr, const std::string& shape,
                       const std::string& fortran = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

const std::vector<ElementType> kNumpyTypes = {ElementType::f16, ElementType::f32, ElementType::f64,
                                              ElementType::i8,  ElementType::i16, ElementType::i32,
                                              ElementType::i64, ElementType::u8,  ElementType::u16,
                                              ElementType::u32, ElementType::u64, ElementType::boolean};

TEST(Npy, EveryTypeAndShapeComesBack) {
  const test::TemporaryFolder folder;
  for (const auto type : kNumpyTypes)
    for (const Dims& dims : {Dims{}, Dims{1}, Dims{0}, Dims{2, 3, 4}, Dims{5, 0, 2}}) {
      const auto t = seeded_tensor(type, dims, 3);
      write_npy(folder / "t.npy", t);
      EXPECT_TRUE(read_npy(folder / "t.npy").same_as(t)) << name_of(type) << dims.size();
    }
}

TEST(Npy, HeaderIsNumpys) {
  const auto parts = npy_parts(Tensor(ElementType::f32, {3}));
  EXPECT_EQ(parts.header.substr(10).substr(0, 60),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }   ");
  EXPECT_EQ(parts.header.size() % 64, 0u);
  EXPECT_EQ(parts.header.back(), '\n');
}

TEST(Npy, TypesThatNumpyLacksAreWidened) {
  const test::TemporaryFolder folder;
  const auto back = [&](const Tensor& t) {
    write_npy(folder / "t.npy", t);
    return read_npy(folder / "t.npy");
  };
  const std::vector<bf16_t> brain = {{0x3f80}, {0xc040}};
  EXPECT_TRUE(
      back(Tensor::of<bf16_t>({2}, brain)).same_as(Tensor::of<float>({2}, std::vector<float>{1, -3})));
  Tensor nibbles(ElementType::i4, {3});
  nibbles.raw()[0] = std::byte{0x8f};
  nibbles.raw()[1] = std::byte{0x07};
  EXPECT_TRUE(back(nibbles).same_as(Tensor::of<std::int8_t>({3}, std::vector<std::int8_t>{-1, -8, 7})));
  Tensor bits(ElementType::u1, {9});
  bits.raw()[0] = std::byte{0b10000001};
  bits.raw()[1] = std::byte{1};
  EXPECT_TRUE(back(bits).same_as(
      Tensor::of<std::uint8_t>({9}, std::vector<std::uint8_t>{1, 0, 0, 0, 0, 0, 0, 1, 1})));
}

TEST(Npy, OtherSpellings) {
  const auto three = Tensor::of<std::int16_t>({3}, std::vector<std::int16_t>{1, -2, 3});
  const std::string little("\1\0\xfe\xff\3\0", 6), big("\0\1\xff\xfe\0\3", 6);
  EXPECT_TRUE(parse(npy(dictionary("'<i2'", "(3,)"), little)).same_as(three));
  EXPECT_TRUE(parse(npy(dictionary("'=i2'", "(3)"), little)).same_as(three));
  EXPECT_TRUE(parse(npy(dictionary("'>i2'", "(3L,)"), big)).same_as(three));
  EXPECT_TRUE(
      parse(npy("{\"shape\":(3,),\"descr\":\"<i2\",\"fortran_order\":False}", little)).same_as(three));
  const auto flags = parse(npy(dictionary("'?'", "(2,)"), std::string("\0\7", 2)));
  EXPECT_EQ(flags.raw()[1], std::byte{1});
}

TEST(Npy, ColumnMajorOrderIsTransposed) {
  const std::string data("\0\1\2\3\4\5", 6);
  const auto t = parse(npy(dictionary("'|u1'", "(2, 3)", "True"), data));
  EXPECT_TRUE(t.same_as(Tensor::of<std::uint8_t>({2, 3}, std::vector<std::uint8_t>{0, 2, 4, 1, 3, 5})));
  std::string more;
  for (char c = 0; c < 24; ++c) more += c;
  const auto cube = parse(npy(dictionary("'|i1'", "(2, 3, 4)", "True"), more));
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k)
        EXPECT_EQ(cube.data<std::int8_t>()[static_cast<std::size_t>((i * 3 + j) * 4 + k)], i + 2 * j + 6 * k);
}

TEST(Npy, ErrorsSayWhat) {
  EXPECT_EQ(error_of(""), "x.npy: 0 bytes, too few for a .npy array");
  EXPECT_EQ(error_of("PK\3\4 and more"), "x.npy: is no .npy array");
  EXPECT_EQ(error_of(npy(dictionary("'<f4'", "(2,)"), "1234")),
            "x.npy: 4 bytes of data, wanted 8 for f32[2]");
  EXPECT_EQ(error_of(npy(dictionary("'<c8'", "(2,)"), "")),
            "x.npy: the .npy header has the type '<c8', wanted b1, i1 to i8, u1 to u8, f2, f4 or f8");
  EXPECT_EQ(error_of(npy(dictionary("[('a', '<f4')]", "(2,)"), "")),
            "x.npy: the .npy header has a type with named fields, wanted a number type");
  EXPECT_EQ(error_of(npy(dictionary("'<f4'", "(-2,)"), "")), "x.npy: the .npy header has the dimension '-2'");
  EXPECT_NE(error_of(npy(dictionary("'<f4'", "(4611686018427387904, 4)"), "")).find("too large"),
            std::string::npos);
  EXPECT_NE(error_of(npy(dictionary("'<f4'", "(99999999999999999999,)"), ""))
                .find("the dimension '99999999999999999999'"),
            std::string::npos);
  EXPECT_NE(error_of(npy("{'descr': '<f4'}", "")).find("not all of"), std::string::npos);
  EXPECT_NE(error_of(npy("{'descr': '<f4", "")).find("without an end"), std::string::npos);
  EXPECT_NE(error_of(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12)).find("header of 4294967295"),
            std::string::npos);
}

Bytes written(const NpzFile& arrays, bool deflate) {
  const test::TemporaryFolder folder;
  write_npz(folder / "a.npz", arrays, deflate);
  EXPECT_EQ(folder.entries(), 1u);
  return file_bytes(folder / "a.npz");
}

NpzFile sample() {
  return {{"in0", seeded_tensor(ElementType::f32, {2, 3, 5}, 1)},
          {"größe/x", seeded_tensor(ElementType::i64, {}, 2)},
          {"", seeded_tensor(ElementType::u8, {0, 4}, 3)},
          {"zeros", Tensor(ElementType::f16, {1000})}};
}

void expect_same(const NpzFile& a, const NpzFile& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(a[i].second.same_as(b[i].second)) << a[i].first;
  }
}

TEST(Npz, StoredAndDeflatedComeBack) {
  for (const bool deflate : {false, true})
    expect_same(parse_npz(written(sample(), deflate), "a.npz"), sample());
  EXPECT_LT(written(sample(), true).size(), written(sample(), false).size());
  EXPECT_EQ(written(sample(), true), written(sample(), true));
  expect_same(parse_npz(written({}, false), "a.npz"), {});
}

TEST(Npz, LargeArraysComeBack) {
  const NpzFile large = {{"a", seeded_tensor(ElementType::f32, {3, 1 << 20}, 1)}};
  for (const bool deflate : {false, true}) expect_same(parse_npz(written(large, deflate), "a.npz"), large);
}

TEST(Npz, NamesMustDiffer) {
  const test::TemporaryFolder folder;
  const Tensor t(ElementType::u8, {1});
  EXPECT_THROW(write_npz(folder / "a.npz", {{"a", t}, {"a", t}}), Error);
  EXPECT_EQ(folder.entries(), 0u);
}

/// As numpy writes it: sizes of local headers in zip64 fields; one entry deflated, one stored and big-endian.
TEST(Npz, Zip64FieldsOfLocalHeaders) {
  const std::string hex =
      "504b03042d0000000800000021006d590062ffffffffffffffff05001400612e6e70790100100056000000000000004a000000"
      "00"
      "0000009bec17ea1b10c9c8e0c650ad9e925a9c5ca46ea5a06e9369a4aea3a09e965f54529498179f5f94920a12774bcc294e05"
      "8a"
      "17672416a402f91ac63a9a3a0ab50a48808b91e1df7f660600504b03042d0000000000000021000c4273f9ffffffffffffffff"
      "05"
      "001400622e6e70790100100054000000000000005400000000000000934e554d5059010046007b276465736372273a20273e66"
      "34"
      "272c2027666f727472616e5f6f72646572273a2046616c73652c20277368617065273a2028292c207d20202020202020202020"
      "20"
      "2020200a3fc00000504b01022d032d0000000800000021006d5900624a00000056000000050000000000000000000000800100"
      "00"
      "0000612e6e7079504b01022d032d0000000000000021000c4273f9540000005400000005000000000000000000000080018100"
      "00"
      "00622e6e7079504b05060000000002000200660000000c0100000000";
  std::string text;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    text += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  const auto arrays = parse_npz(bytes_of(text), "a.npz");
  expect_same(arrays, {{"a", Tensor::of<std::int16_t>({3}, std::vector<std::int16_t>{1, -2, 3})},
                       {"b", Tensor::scalar(1.5f)}});
}

template <class T>
void put(Bytes& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

/// A zip64 directory as archives beyond 4 GiB have it.
TEST(Npz, Zip64Directory) {
  auto bytes = written(sample(), false);
  const auto end = bytes.size() - 22;
  std::uint32_t start = 0;
  std::memcpy(&start, bytes.data() + end + 16, 4);
  Bytes record(56 + 20);
  put(record, 0, std::uint32_t{0x06064b50});
  put(record, 32, std::uint64_t{4});
  put(record, 48, std::uint64_t{start});
  put(record, 56, std::uint32_t{0x07064b50});
  put(record, 64, std::uint64_t{end});
  put(bytes, end + 16, std::uint32_t{0xffffffff});
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(end), record.begin(), record.end());
  expect_same(parse_npz(bytes, "a.npz"), sample());
}

std::string npz_error(const Bytes& bytes) {
  try {
    parse_npz(bytes, "a.npz");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_file) << e.what();
    return e.what();
  }
  return "";
}

TEST(Npz, ErrorsSayWhat) {
  EXPECT_EQ(npz_error({}), "a.npz: 0 bytes, too few for an .npz archive");
  EXPECT_EQ(npz_error(Bytes(100)), "a.npz: is no .npz archive");
  auto bytes = written({{"a", Tensor(ElementType::u8, {4})}}, false);
  const auto data = 30 + 5 + 128 - 1;
  bytes[data] = std::byte{1};
  EXPECT_NE(npz_error(bytes), "");
  bytes = written({{"a", Tensor(ElementType::u8, {4})}}, false);
  bytes[30 + 5 + 128] = std::byte{1};
  EXPECT_NE(npz_error(bytes).find("entry \"a.npy\": checksum"), std::string::npos) << npz_error(bytes);
  bytes = written({{"a", Tensor(ElementType::u8, {4})}}, false);
  const auto central = bytes.size() - 22 - 51;
  put(bytes, central + 10, std::uint16_t{12});
  EXPECT_EQ(npz_error(bytes),
            "a.npz: entry \"a.npy\": compression method 12, wanted 0 (stored) or 8 (deflated)");
  put(bytes, central + 8, std::uint16_t{1});
  EXPECT_EQ(npz_error(bytes), "a.npz: entry \"a.npy\": is encrypted");
}

TEST(Npz, BombsAreRefused) {
  // A deflated entry that claims more than deflate can do.
  auto bytes = written({{"a", Tensor(ElementType::u8, {4})}}, true);
  const auto central = bytes.size() - 22 - 51;
  put(bytes, central + 24, std::uint32_t{0xfffffff0});
  EXPECT_NE(npz_error(bytes).find("cannot come from"), std::string::npos);
  // Two entries over the same bytes.
  bytes = written({{"a", Tensor(ElementType::u8, {4})}, {"b", Tensor(ElementType::u8, {4})}}, false);
  put(bytes, bytes.size() - 22 - 51 + 42, std::uint32_t{0});
  EXPECT_NE(npz_error(bytes).find("overlap"), std::string::npos);
}

TEST(Npz, what_is_not_wanted_is_not_unpacked) {
  const test::TemporaryFolder folder;
  const auto path = folder / "a.npz";
  write_npz(
      path,
      {{"good", seeded_tensor(ElementType::f32, {10}, 1)}, {"huge", Tensor(ElementType::u8, {1 << 20})}},
      true);
  auto bytes = file_bytes(path);
  const auto data = std::search(bytes.begin(), bytes.end(), std::begin(kHuge), std::end(kHuge));
  ASSERT_NE(data, bytes.end());
  for (int i = 200; i < 400; ++i) data[i] = std::byte{0xff};  // its data is damaged
  EXPECT_THROW(parse_npz(bytes, "x"), Error);
  std::vector<std::string> asked;
  const auto arrays =
      parse_npz(bytes, "x", [&](const std::string& name, ElementType type, const Dims& shape) {
        asked.push_back(name);
        EXPECT_EQ(type, name == "good" ? ElementType::f32 : ElementType::u8);
        EXPECT_EQ(shape, name == "good" ? Dims{10} : Dims{1 << 20});
        return name == "good";
      });
  EXPECT_EQ(asked, (std::vector<std::string>{"good", "huge"}));
  ASSERT_EQ(arrays.size(), 1u);
  EXPECT_EQ(arrays[0].first, "good");
}

TEST(Npz, DamagedFilesAreSafe) {
  SplitMix random(17);
  for (const bool deflate : {false, true}) {
    const auto good = written(sample(), deflate);
    for (std::size_t cut = 0; cut < good.size(); cut += 7)
      EXPECT_NE(npz_error(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(cut))), "");
    for (int i = 0; i < 20000; ++i) {
      auto bad = good;
      for (auto n = random.below(4) + 1; n-- > 0;) {
        // Most of it in the directory, where sizes are.
        const auto tail = std::min<std::size_t>(bad.size(), 330);
        const auto at = random.below(2) ? random.below(bad.size()) : bad.size() - tail + random.below(tail);
        bad[at] = random.below(3) ? static_cast<std::byte>(random.next()) : std::byte{0xff};
      }
      npz_error(bad);
    }
  }
}

/// As numpy writes arrays of ml_dtypes.
TEST(Npy, types_that_numpy_lacks_come_as_their_bits) {
  for (const char* descr : {"'|V1'", "'<V1'", "'<f1'"}) {
    const auto t = parse(npy(std::string("{'descr': ") + descr + ", 'fortran_order': False, 'shape': (3,), }",
                             std::string("\x38\x7f\x0f", 3)));
    EXPECT_EQ(t.element_type(), ElementType::u8) << descr;
    const auto floats = as_stored(t, ElementType::f8e4m3);
    EXPECT_EQ(floats.element_type(), ElementType::f8e4m3);
    EXPECT_EQ(std::memcmp(floats.raw(), "\x38\x7f\x0f", 3), 0);
  }
  const auto halves =
      parse(npy("{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }", std::string("\xc0\x3f", 2)));
  EXPECT_EQ(as_stored(halves, ElementType::bf16).element_type(), ElementType::bf16);
  EXPECT_EQ(as_stored(halves, ElementType::f32).element_type(), ElementType::u16);
}

TEST(Npy, packed_numbers_are_one_to_an_element) {
  const auto array = Tensor::of<std::uint8_t>({5}, std::vector<std::uint8_t>{1, 15, 0, 7, 8});
  for (const auto type : {ElementType::u4, ElementType::f4e2m1}) {
    const auto packed = as_stored(array, type);
    EXPECT_EQ(packed.bytes(), 3U);
    EXPECT_EQ(std::memcmp(packed.raw(), "\xf1\x70\x08", 3), 0);
    EXPECT_TRUE(npy_parts(packed).data.same_as(array));
  }
  const auto numbers = Tensor::of<std::int8_t>({4}, std::vector<std::int8_t>{-2, 1, -1, 0});
  const auto packed = as_stored(numbers, ElementType::i2);
  EXPECT_EQ(std::memcmp(packed.raw(), "\x36", 1), 0);
  EXPECT_TRUE(npy_parts(packed).data.same_as(numbers));
  try {
    as_stored(Tensor::of<std::uint8_t>({2}, std::vector<std::uint8_t>{3, 17}), ElementType::u4);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "element 1 is 17, wanted a code of 4 bits");
  }
}

}  // namespace
}  // namespace lamina
