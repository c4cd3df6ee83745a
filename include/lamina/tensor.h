#pragma once
/// Element types and tensors: n-dimensional arrays in row-major order.
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
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
  u4,  ///< packed, low bits first; ceil(count * bits / 8) bytes
  i2,
  u2,          ///< packed in the same way
  f8e4m3,      ///< ONNX's float8e4m3fn: no infinities, at most 448
  f8e4m3fnuz,  ///< without infinities and -0, at most 240
  f8e5m2,      ///< with infinities, at most 57344
  f8e5m2fnuz,  ///< without infinities and -0, at most 57344
  f8e8m0,      ///< powers of two from 2^-127 to 2^127, and NaN; no sign, no zero
  f4e2m1,      ///< 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; packed as u4
  nf4,         ///< the 16 levels of NormalFloat from -1 to 1; packed as u4
  undefined,   ///< not known
};

LAMINA_API std::string_view name_of(ElementType type) noexcept;
/// The type with that name ("f32", "boolean", ...); nothing when there is none.
LAMINA_API std::optional<ElementType> element_type_named(std::string_view name) noexcept;
LAMINA_API int bits_of(ElementType type) noexcept;  ///< bits of one element; 0 for `undefined`
LAMINA_API bool is_float(ElementType type) noexcept;
LAMINA_API bool is_integer(ElementType type) noexcept;  ///< signed or unsigned, packed ones too; not boolean
LAMINA_API bool is_signed(ElementType type) noexcept;   ///< true for floats, too
/// "f32"
LAMINA_API std::ostream& operator<<(std::ostream& out, ElementType type);

/// Half precision numbers, kept as bits.
struct f16_t {
  std::uint16_t bits;
};
struct bf16_t {
  std::uint16_t bits;
};

namespace detail {
template <class T, class... Of>
inline constexpr bool one_of = (std::is_same_v<T, Of> || ...);

template <class T>
constexpr ElementType element_type() {
  if constexpr (one_of<T, float>) return ElementType::f32;
  if constexpr (one_of<T, double>) return ElementType::f64;
  if constexpr (one_of<T, f16_t>) return ElementType::f16;
  if constexpr (one_of<T, bf16_t>) return ElementType::bf16;
  if constexpr (one_of<T, bool>) return ElementType::boolean;
  if constexpr (one_of<T, signed char>) return ElementType::i8;
  if constexpr (one_of<T, unsigned char>) return ElementType::u8;
  if constexpr (one_of<T, short, int, long, long long>)
    return sizeof(T) == 2 ? ElementType::i16 : sizeof(T) == 4 ? ElementType::i32 : ElementType::i64;
  if constexpr (one_of<T, unsigned short, unsigned, unsigned long, unsigned long long>)
    return sizeof(T) == 2 ? ElementType::u16 : sizeof(T) == 4 ? ElementType::u32 : ElementType::u64;
  return ElementType::undefined;
}
}  // namespace detail

/// The element type of the C++ type T; undefined if there is none (char, which may be signed or not;
/// pointers). The size of an integer decides: both long and long long are i64.
template <class T>
inline constexpr ElementType element_type_of = detail::element_type<std::remove_cv_t<T>>();
/// The C++ types that elements of a tensor can have.
template <class T>
concept Element = element_type_of<T>
!= ElementType::undefined;

using Dims = std::vector<std::int64_t>;

/// An array with an element type and a shape, row-major and dense. Copies share the data (like a shared
/// pointer); clone() copies the data; a tensor that was moved from is not valid. Reading from several
/// threads is safe, writing is not.
/// Functions throw Error(bad_input) for types, shapes and pointers that do not fit, Error(out_of_memory) when
/// there is no memory.
class Tensor {
 public:
  Tensor() = default;  ///< no tensor: valid() is false
  /// Owned memory, 64-byte aligned, zeroed.
  LAMINA_API Tensor(ElementType type, Dims shape);
  LAMINA_API Tensor(const Tensor& other);
  LAMINA_API Tensor& operator=(const Tensor& other);
  Tensor(Tensor&& other) noexcept
      : type_(std::exchange(other.type_, ElementType::undefined)),
        read_only_(std::exchange(other.read_only_, false)),
        shape_(std::exchange(other.shape_, {})),
        size_(std::exchange(other.size_, 0)),
        data_(std::exchange(other.data_, nullptr)),
        owner_(std::move(other.owner_)) {}
  Tensor& operator=(Tensor&& other) noexcept {
    Tensor taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~Tensor() = default;

  /// Uses the caller's memory of bytes() bytes, which must outlive every copy of the tensor. Nothing is
  /// copied. `data` may be null only for shapes without elements.
  LAMINA_API static Tensor wrap(ElementType type, Dims shape, void* data);
  template <Element T>
  static Tensor wrap(Dims shape, T* data) {
    return wrap(element_type_of<T>, std::move(shape), data);
  }
  /// Wraps memory that may only be read: it can be an input, but is refused as memory for an output.
  LAMINA_API static Tensor wrap(ElementType type, Dims shape, const void* data);
  template <Element T>
  static Tensor wrap(Dims shape, const T* data) {
    return wrap(element_type_of<T>, std::move(shape), static_cast<const void*>(data));
  }
  /// Shares memory that `owner` keeps alive, read-only as above.
  LAMINA_API static Tensor share(ElementType type, Dims shape, std::shared_ptr<const void> owner,
                                 const void* data);
  /// Shares memory that `owner` keeps alive and that may be written: an output's, too.
  LAMINA_API static Tensor wrap(ElementType type, Dims shape, void* data, std::shared_ptr<const void> owner);
  /// Copies values into an owned tensor.
  template <Element T>
  static Tensor of(Dims shape, std::span<const T> values) {  // NOLINT(performance-unnecessary-value-param)
    return copied(element_type_of<T>, std::move(shape), values.data(), values.size());
  }
  template <Element T>
  static Tensor of(Dims shape, const std::vector<T>& values) {
    return of(std::move(shape), std::span<const T>(values));
  }
  template <Element T>
  static Tensor scalar(T value) {
    return of(Dims{}, std::span<const T>(&value, 1));
  }

  bool valid() const noexcept { return type_ != ElementType::undefined; }
  ElementType element_type() const noexcept { return type_; }
  const Dims& shape() const noexcept { return shape_; }
  std::size_t rank() const noexcept { return shape_.size(); }
  std::size_t size() const noexcept { return size_; }  ///< number of elements
  LAMINA_API std::size_t bytes() const noexcept;       ///< ceil(size * bits / 8)
  /// True if the tensor wraps const memory or was made by share(): its data must not be written.
  bool read_only() const noexcept { return read_only_; }

  const std::byte* raw() const noexcept { return data_; }
  std::byte* raw() noexcept { return data_; }
  /// True when the address is aligned for the element type (a constant that is read in place from a file may
  /// not be).
  LAMINA_API bool aligned() const noexcept;
  /// This tensor when aligned, else an aligned copy.
  LAMINA_API Tensor to_aligned() const;
  /// Typed views; throw when T is not the element type or the data is not aligned.
  template <Element T>
  std::span<const T> data() const {
    check_view(element_type_of<T>);
    return {reinterpret_cast<const T*>(data_), size_};
  }
  template <Element T>
  std::span<T> data() {
    check_view(element_type_of<T>);
    return {reinterpret_cast<T*>(data_), size_};
  }

  LAMINA_API Tensor clone() const;
  /// A tensor of another shape with the same number of elements that shares this tensor's memory.
  LAMINA_API Tensor reshaped(Dims shape) const;
  /// True if type, shape and bytes are the same.
  LAMINA_API bool same_as(const Tensor& other) const noexcept;

 private:
  friend Tensor shape_only(ElementType type, Dims shape);  // internal
  LAMINA_API static Tensor copied(ElementType type, Dims shape, const void* values, std::size_t count);
  LAMINA_API void check_view(ElementType wanted) const;
  void swap(Tensor& other) noexcept {
    std::swap(type_, other.type_);
    std::swap(read_only_, other.read_only_);
    shape_.swap(other.shape_);
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
    owner_.swap(other.owner_);
  }

  ElementType type_ = ElementType::undefined;
  bool read_only_ = false;
  Dims shape_;
  std::size_t size_ = 0;
  std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

/// Prints "f32[2,3] {0, 0.5, 1, 1.5, 2, 2.5}", of many values only the first; "no tensor" if not valid.
LAMINA_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

/// Number of elements of a shape; throws Error(bad_input) when a dimension is negative or the product
/// overflows.
LAMINA_API std::size_t element_count(std::span<const std::int64_t> shape);

}  // namespace lamina
