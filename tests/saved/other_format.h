#pragma once
/// Compiled models of another version of the format, undamaged.
#include <cstring>
#include <span>
#include <vector>

#include "base/hash.h"

namespace lamina::test {

inline std::vector<std::byte> of_format(std::vector<std::byte> bytes, std::uint32_t format) {
  std::memcpy(&bytes[8], &format, sizeof(format));
  std::uint32_t sections = 0;
  std::memcpy(&sections, &bytes[80], sizeof(sections));
  Hasher sum;
  sum.bytes(std::span(bytes).first(240));
  sum.bytes(std::span(bytes).subspan(256, 40 * sections));
  const auto hash = sum.result();
  std::memcpy(&bytes[240], &hash.high, 8);
  std::memcpy(&bytes[248], &hash.low, 8);
  return bytes;
}

}  // namespace lamina::test
