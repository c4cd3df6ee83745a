#pragma once
/// Constants as kernels want them.
#include <functional>
#include <string>
#include <utility>

#include "base/error.h"
#include "lamina/tensor.h"

namespace lamina {

/// What a kernel will read of a packing. It is told apart from what a file holds: a packing of another type
/// or size is refused before anything reads it.
struct PackedSize {
  ElementType type = ElementType::undefined;  ///< undefined: the kernel looks itself
  std::size_t elements = 0;

  PackedSize(ElementType type_, std::int64_t count)
      : type(type_), elements(static_cast<std::size_t>(count)) {}
  static PackedSize like(const Tensor& t) { return {t.element_type(), static_cast<std::int64_t>(t.size())}; }
  /// The kernel checks what it gets: how large that is depends on the numbers.
  static PackedSize of_any() { return {ElementType::undefined, 0}; }
  bool fits(const Tensor& t) const {
    return type == ElementType::undefined || (t.element_type() == type && t.size() == elements);
  }
};

/// Packed constants, shared by all plans and requests of a model. Thread-safe.
class WeightStore {
 public:
  virtual ~WeightStore() = default;
  using Make = std::function<Tensor(const Tensor& source)>;
  /// The packing of `source` under `key` (kernel and packing format); made on first use, of the source
  /// without its denormal numbers. `make` may give back what it gets: such weights are used as they lie.
  /// Throws Error(bad_file) for a packing that was kept in a file and has not the size that is wanted.
  Tensor packed(const Tensor& source, const std::string& key, const PackedSize& size, const Make& make) {
    return checked(do_packed(source, key, make), key, size);
  }
  /// Packed constants other than weights: all their numbers are kept.
  Tensor moved(const Tensor& source, const std::string& key, const PackedSize& size, const Make& make) {
    return checked(do_moved(source, key, make), key, size);
  }

 protected:
  virtual Tensor do_packed(const Tensor& source, const std::string& key, const Make& make) = 0;
  virtual Tensor do_moved(const Tensor& source, const std::string& key, const Make& make) = 0;

 private:
  static Tensor checked(Tensor made, const std::string& key, const PackedSize& size) {
    if (!size.fits(made))
      fail(ErrorCode::bad_file, "packed weights \"{}\" are {} of {}, wanted {} of {}", key, made.size(),
           name_of(made.element_type()), size.elements, name_of(size.type));
    return made;
  }
};

}  // namespace lamina
