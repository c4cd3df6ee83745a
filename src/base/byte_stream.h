#pragma once
/// Numbers and texts as bytes, in a row: little-endian, what is read is checked. Errors are Error(bad_file)
/// and name what is being read.
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/hash.h"

namespace lamina {

class ByteWriter {
 public:
  template <class T>
  requires(std::is_arithmetic_v<T> || std::is_enum_v<T>) void put(T value) { append(&value, sizeof(value)); }
  void count(std::size_t n) { put(static_cast<std::uint64_t>(n)); }
  void text(std::string_view text) {
    count(text.size());
    append(text.data(), text.size());
  }
  void texts(const std::vector<std::string>& all) {
    list(all, [&](const std::string& one) { text(one); });
  }
  void hash(const Hash128& hash) {
    put(hash.high);
    put(hash.low);
  }
  /// Each by `one`, behind their number.
  template <class List, class F>
  void list(const List& items, const F& one) {
    count(items.size());
    for (const auto& item : items) one(item);
  }
  void append(const void* data, std::size_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + bytes);
  }
  /// Zeros up to a multiple of `alignment`.
  void align(std::size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {}

  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) T get() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  bool flag() {
    const auto value = get<std::uint8_t>();
    if (value > 1) wrong("yes or no");
    return value != 0;
  }
  /// An enumeration whose last value is `last`.
  template <class E>
  E choice(E last) {
    const auto value = get<std::underlying_type_t<E>>();
    if (value > static_cast<std::underlying_type_t<E>>(last)) wrong("a value of a list");
    return static_cast<E>(value);
  }
  /// A number of things that take at least `least` bytes each: what is left holds no more.
  std::size_t count(std::size_t least = 1) {
    const auto n = get<std::uint64_t>();
    if (n > (bytes_.size() - at_) / least) wrong("a number of things that it can hold");
    return static_cast<std::size_t>(n);
  }
  std::string text() {
    const auto bytes = take(count());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  Hash128 hash() {
    const auto high = get<std::uint64_t>();
    return {high, get<std::uint64_t>()};
  }
  template <class F>
  auto list(const F& one, std::size_t least = 1) {
    std::vector<std::decay_t<decltype(one())>> out;
    const auto n = count(least);
    out.reserve(n);
    for (std::size_t i = 0; i < n; ++i) out.push_back(one());
    return out;
  }
  std::vector<std::string> texts() {
    return list([&] { return text(); });
  }
  std::span<const std::byte> take(std::size_t bytes) {
    if (bytes > bytes_.size() - at_) wrong("more of it");
    at_ += bytes;
    return bytes_.subspan(at_ - bytes, bytes);
  }
  void align(std::size_t alignment) { take((alignment - at_ % alignment) % alignment); }
  std::size_t at() const { return at_; }
  /// Fails if bytes are left.
  void end() const {
    if (at_ != bytes_.size()) wrong("its end");
  }
  [[noreturn]] void wrong(std::string_view wanted) const {
    fail(ErrorCode::bad_file, "{}: byte {}: wanted {}", what_, at_, wanted);
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::string what_;
};

}  // namespace lamina
