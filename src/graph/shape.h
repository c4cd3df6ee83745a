#pragma once
/// Dimensions that may be unknown, shapes that may have unknown rank, and the type of a value.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "lamina/tensor.h"

namespace lamina {

/// A known size, or an unknown one with bounds and perhaps a name. Two unknowns with the same name are equal.
class Dim {
 public:
  static constexpr std::int64_t kUnbounded = INT64_MAX;
  Dim() : Dim(0, kUnbounded) {}                        ///< any size
  Dim(std::int64_t size) : low_(size), high_(size) {}  // NOLINT: a number is a dimension
  Dim(std::int64_t low, std::int64_t high) : low_(low), high_(high) {}
  static Dim named(const std::string& name, std::int64_t low = 0, std::int64_t high = kUnbounded);

  bool known() const { return low_ == high_; }
  std::int64_t size() const { return low_; }  ///< only when known
  std::int64_t low() const { return low_; }
  std::int64_t high() const { return high_; }
  const std::string& name() const;  ///< empty when it has none
  bool is(std::int64_t size) const { return known() && low_ == size; }
  /// Provably the same size: equal numbers, or the same name.
  bool same(const Dim& other) const;
  /// Could be the same size.
  bool fits(const Dim& other) const { return low_ <= other.high_ && other.low_ <= high_; }
  bool operator==(const Dim&) const = default;  ///< the same description

 private:
  std::int64_t low_, high_;
  std::uint32_t symbol_ = 0;  // index of an interned name, 0 for none
};

/// Sizes computed from dimensions: known when both are, bounded where possible, else unknown.
Dim operator+(const Dim& a, const Dim& b);
Dim operator-(const Dim& a, const Dim& b);
Dim operator*(const Dim& a, const Dim& b);
/// floor(a / divisor), divisor > 0
Dim floor_div(const Dim& a, std::int64_t divisor);

class Shape {
 public:
  Shape() = default;                                                       ///< unknown rank
  Shape(std::vector<Dim> dims) : dims_(std::move(dims)), ranked_(true) {}  // NOLINT
  Shape(std::initializer_list<Dim> dims) : dims_(dims), ranked_(true) {}
  static Shape of(const Dims& dims) { return Shape(std::vector<Dim>(dims.begin(), dims.end())); }
  static Shape of_rank(std::size_t rank) { return Shape(std::vector<Dim>(rank)); }

  bool ranked() const { return ranked_; }
  std::size_t rank() const { return dims_.size(); }  ///< only when ranked
  /// Checked: readers and inference look at shapes of strangers' models.
  const Dim& operator[](std::size_t axis) const {
    if (axis >= dims_.size()) no_such_axis(axis);
    return dims_[axis];
  }
  Dim& operator[](std::size_t axis) {
    if (axis >= dims_.size()) no_such_axis(axis);
    return dims_[axis];
  }
  const std::vector<Dim>& dims() const { return dims_; }
  bool known() const;  ///< rank and every dimension
  Dims sizes() const;  ///< the numbers; only when known()
  /// Number of elements as a dimension (unknown when any is; overflow throws).
  Dim count() const;
  bool same(const Shape& other) const;  ///< provably equal
  bool fits(const Shape& other) const;  ///< could be equal
  bool operator==(const Shape&) const = default;

 private:
  [[noreturn]] void no_such_axis(std::size_t axis) const;

  std::vector<Dim> dims_;
  bool ranked_ = false;
};

/// "[1,3,N,?,1..8]" or "[...]" for unknown rank.
std::string to_string(const Dim& dim);
std::string to_string(const Shape& shape);
std::string to_string(const Dims& dims);

/// numpy broadcasting of two shapes; nothing when they provably do not fit.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);
/// What both say about one shape; nothing when they contradict each other.
std::optional<Shape> merge(const Shape& a, const Shape& b);

struct TensorType {
  ElementType element = ElementType::undefined;
  Shape shape;
  bool operator==(const TensorType&) const = default;
};

/// "f32[1,3,N]"
std::string to_string(const TensorType& type);

/// The tensor, a valid one, may be a value of that type. Allocates nothing.
bool fits(const TensorType& type, const Tensor& tensor);
/// Throws Error(bad_input) unless there is one that fits: `input "x": f32[2], wanted f32[3]`.
void require_fit(std::string_view what, std::string_view name, const Tensor& tensor, const TensorType& type);

/// Axis in [-rank, rank) as one in [0, rank); throws Error naming `what` otherwise.
std::size_t normalize_axis(std::int64_t axis, std::size_t rank, std::string_view what);

}  // namespace lamina
