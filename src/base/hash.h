#pragma once
/// XXH3 of 128 bits: finds damage, and equal contents. It is no defence against those who forge.
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lamina {

struct Hash128 {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const Hash128&) const = default;
};

/// 32 hexadecimal digits.
std::string to_string(const Hash128& hash);

Hash128 hash_of(std::span<const std::byte> bytes);

/// Hash of bytes that come in pieces. text() adds lengths, too: "a", "bc" is not "ab", "c".
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  void bytes(std::span<const std::byte> bytes);
  void number(std::uint64_t value);
  void text(std::string_view text);
  void hash(const Hash128& hash) {
    number(hash.high);
    number(hash.low);
  }
  Hash128 result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lamina
