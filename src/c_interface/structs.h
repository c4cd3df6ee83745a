#pragma once
/// Structs whose size says which of their members the caller's header has.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "c_interface/call.h"

namespace lamina::c_interface {

/// What a struct of any version may have at most: a larger size has not been set.
constexpr std::size_t kMostStruct = 4096;

/// The first member of a struct. Throws Error(bad_input) if it cannot be a size.
inline std::size_t size_in(const void* from, const char* what, std::size_t ours) {
  std::size_t size = 0;
  std::memcpy(&size, &argument(static_cast<const std::byte*>(from), what), sizeof size);
  if (size < sizeof size || size > kMostStruct)
    fail(ErrorCode::bad_input, "{}: its size is {}, wanted sizeof, which is {} here", what, size, ours);
  return size;
}

/// The caller's struct as this library knows it: what it does not have is zero.
template <class T>
T taken(const T* from, const char* what) {
  const auto size = size_in(from, what, sizeof(T));
  T out{};
  std::memcpy(&out, from, std::min(size, sizeof(T)));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
  if (size > sizeof(T) && std::any_of(bytes + sizeof(T), bytes + size, [](auto byte) { return byte != 0; }))
    fail(ErrorCode::unsupported, "{}: members behind byte {} are set, which this library does not know", what,
         sizeof(T));
  return out;
}

/// Element `index` of an array whose elements are as far apart as the first one is large.
template <class T>
T taken_from(const T* array, std::size_t index, const char* what) {
  const auto stride = size_in(array, what, sizeof(T));
  return taken(reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(array) + index * stride), what);
}

/// Checks a result's struct before the work for it.
template <class T>
void check_result(const T* to, const char* what) {
  size_in(to, what, sizeof(T));
}

/// Writes as much as the caller's struct has.
template <class T>
void give(T* to, T value, const char* what) {
  const auto size = size_in(to, what, sizeof(T));
  value.size = size;
  std::memcpy(to, &value, std::min(size, sizeof(T)));
  if (size > sizeof(T)) std::memset(reinterpret_cast<std::byte*>(to) + sizeof(T), 0, size - sizeof(T));
}

}  // namespace lamina::c_interface
