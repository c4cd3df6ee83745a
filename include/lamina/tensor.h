#pragma once
/// Element types and tensors: n-dimensional arrays in row-major order.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/export.h"

namespace lamina {

/// Types of a tensor's elements, named as in OpenVINO.
enum class ElementType : std::uint8_t {
  f32,
  f16,
  bf16,
  f64,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,  ///< one byte, 0 or 1
  u1,
  i4,
  u4,         ///< packed, low bits first; ceil(count * bits / 8) bytes
  undefined,  ///< not known
};

LAMINA_API std::string_view name_of(ElementType type);
/// The type with that name ("f32", "boolean", ...); nothing when there is none.
LAMINA_API std::optional<ElementType> element_type_named(std::string_view name);
LAMINA_API int bits_of(ElementType type);
LAMINA_API bool is_float(ElementType type);
LAMINA_API bool is_integer(ElementType type);  ///< signed or unsigned, not boolean
LAMINA_API bool is_signed(ElementType type);

/// Half precision numbers, kept as bits.
struct f16_t {
  std::uint16_t bits;
};
struct bf16_t {
  std::uint16_t bits;
};

template <class T>
inline constexpr ElementType element_type_of = ElementType::undefined;
template <>
inline constexpr ElementType element_type_of<float> = ElementType::f32;
template <>
inline constexpr ElementType element_type_of<double> = ElementType::f64;
template <>
inline constexpr ElementType element_type_of<f16_t> = ElementType::f16;
template <>
inline constexpr ElementType element_type_of<bf16_t> = ElementType::bf16;
template <>
inline constexpr ElementType element_type_of<std::int64_t> = ElementType::i64;
template <>
inline constexpr ElementType element_type_of<std::int32_t> = ElementType::i32;
template <>
inline constexpr ElementType element_type_of<std::int16_t> = ElementType::i16;
template <>
inline constexpr ElementType element_type_of<std::int8_t> = ElementType::i8;
template <>
inline constexpr ElementType element_type_of<std::uint64_t> = ElementType::u64;
template <>
inline constexpr ElementType element_type_of<std::uint32_t> = ElementType::u32;
template <>
inline constexpr ElementType element_type_of<std::uint16_t> = ElementType::u16;
template <>
inline constexpr ElementType element_type_of<std::uint8_t> = ElementType::u8;
template <>
inline constexpr ElementType element_type_of<bool> = ElementType::boolean;

using Dims = std::vector<std::int64_t>;

/// An array with an element type and a shape, row-major and dense. Copies share the data (like a shared
/// pointer); clone() makes a separate one. Reading from several threads is safe, writing is not.
class LAMINA_API Tensor {
 public:
  Tensor() = default;  ///< no tensor: valid() is false
  Tensor(ElementType type,
         Dims shape);  ///< owned memory, 64-byte aligned, zeroed. Throws on impossible shapes
  /// Uses the caller's memory, which must outlive every copy of the tensor. Nothing is copied.
  static Tensor wrap(ElementType type, Dims shape, void* data);
  template <class T>
  static Tensor wrap(Dims shape, T* data) {
    return wrap(element_type_of<T>, std::move(shape), data);
  }
  /// Shares memory that `owner` keeps alive; read-only by agreement (constants of mapped files).
  static Tensor share(ElementType type, Dims shape, std::shared_ptr<const void> owner, const void* data);
  /// Copies values into an owned tensor.
  template <class T>
  static Tensor of(Dims shape, std::span<const T> values) {
    Tensor t(element_type_of<T>, std::move(shape));
    t.fill_from(values.data(), values.size_bytes());
    return t;
  }
  template <class T>
  static Tensor of(Dims shape, const std::vector<T>& values) {
    return of(std::move(shape), std::span<const T>(values));
  }
  template <class T>
  static Tensor scalar(T value) {
    return of(Dims{}, std::span<const T>(&value, 1));
  }

  bool valid() const { return type_ != ElementType::undefined; }
  ElementType element_type() const { return type_; }
  const Dims& shape() const { return shape_; }
  std::size_t rank() const { return shape_.size(); }
  std::size_t size() const { return size_; }  ///< number of elements
  std::size_t bytes() const;                  ///< ceil(size * bits / 8)

  const std::byte* raw() const { return data_; }
  std::byte* raw() { return data_; }
  /// True when the address suits the element type (constants of files need not be aligned).
  bool aligned() const;
  /// This tensor when aligned, else an aligned copy.
  Tensor to_aligned() const;
  /// Typed views; throw when T is not the element type or the data is not aligned.
  template <class T>
  std::span<const T> data() const {
    check_view(element_type_of<T>);
    return {reinterpret_cast<const T*>(data_), size_};
  }
  template <class T>
  std::span<T> data() {
    check_view(element_type_of<T>);
    return {reinterpret_cast<T*>(data_), size_};
  }

  Tensor clone() const;
  /// The same data under another shape of equal size.
  Tensor reshaped(Dims shape) const;
  /// Same type, shape and bytes.
  bool same_as(const Tensor& other) const;

 private:
  void check_view(ElementType wanted) const;
  void fill_from(const void* from, std::size_t bytes);

  ElementType type_ = ElementType::undefined;
  Dims shape_;
  std::size_t size_ = 0;
  std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

/// Number of elements of a shape; throws when a dimension is negative or the product overflows.
LAMINA_API std::size_t element_count(std::span<const std::int64_t> shape);

}  // namespace lamina
