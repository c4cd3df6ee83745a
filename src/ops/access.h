#pragma once
/// Small checks that operators with indices and scalar parameters share.
#include <optional>
#include <span>
#include <string_view>

#include "ops/eval.h"

namespace lamina::access {

/// Bytes of one element; packed types are refused.
inline std::size_t element_bytes(ElementType type) {
  if (bits_of(type) < 8)
    fail(ErrorCode::unsupported, "elements of type {} are packed, wanted whole bytes", name_of(type));
  return static_cast<std::size_t>(bits_of(type)) / 8;
}

inline void require_integer(const InferContext& c, std::size_t i, std::string_view what) {
  const auto e = c.element(i);
  c.require(e == ElementType::undefined || is_integer(e) || e == ElementType::boolean,
            "{} has type {}, wanted an integer type", what, name_of(e));
}

inline void require_rank(const InferContext& c, std::size_t i, std::size_t rank, std::string_view what) {
  const auto& s = c.shape(i);
  c.require(!s.ranked() || s.rank() == rank, "{} has shape {}, wanted rank {}", what, to_string(s), rank);
}

inline void require_one_element(const InferContext& c, std::size_t i, std::string_view what) {
  const auto& s = c.shape(i);
  if (!s.ranked()) return;
  for (const auto& d : s.dims())
    c.require(d.fits(1), "{} has shape {}, wanted one element", what, to_string(s));
}

/// The value of an integer input with one element, when it is known.
inline std::optional<std::int64_t> known_int(const InferContext& c, std::size_t i, std::string_view what) {
  require_integer(c, i, what);
  require_one_element(c, i, what);
  const auto v = c.ints(i);
  if (!v) return std::nullopt;
  c.require(v->size() == 1, "{} has {} elements, wanted one", what, v->size());
  return v->front();
}

/// The value of an input of any type with one element, when it is known.
inline std::optional<double> known_number(const InferContext& c, std::size_t i, std::string_view what) {
  require_one_element(c, i, what);
  if (const auto t = c.constant(i)) {
    c.require(t->size() == 1, "{} has {} elements, wanted one", what, t->size());
    return to_doubles(*t).front();
  }
  const auto v = c.ints(i);
  if (!v || v->size() != 1) return std::nullopt;
  return static_cast<double>(v->front());
}

/// Elements of the dimensions [from, to).
inline std::int64_t volume(std::span<const std::int64_t> dims, std::size_t from, std::size_t to) {
  std::uint64_t n = 1;  // may wrap where another dimension is 0, so that nothing is done with it
  for (auto i = from; i < to; ++i) n *= static_cast<std::uint64_t>(dims[i]);
  return static_cast<std::int64_t>(n);
}
inline std::int64_t volume(std::span<const std::int64_t> dims) { return volume(dims, 0, dims.size()); }

/// Row-major strides in elements.
inline Dims strides_of(const Dims& dims) {
  Dims out(dims.size(), 1);
  for (auto i = dims.size(); i-- > 1;) out[i - 1] = volume(dims, i, dims.size());
  return out;
}

/// An index into [0, size); negative ones count from the end.
inline std::int64_t checked_index(std::int64_t index, std::int64_t size) {
  if (index < -size || index >= size)
    fail(ErrorCode::bad_input, "index {} is outside of an axis with {} elements", index, size);
  return index < 0 ? index + size : index;
}

/// Advances a row-major position; false after the last one.
inline bool next_position(Dims& position, const Dims& dims) {
  for (auto i = dims.size(); i-- > 0;) {
    if (++position[i] < dims[i]) return true;
    position[i] = 0;
  }
  return false;
}

}  // namespace lamina::access
