#pragma once
/// From arrays of Python to tensors and back. Memory is shared where type, order and byte order allow it.
#include <nanobind/ndarray.h>

#include <optional>
#include <vector>

#include "common.h"

namespace lamina::python {

/// What keeps an array's memory alive, and where it is copied from before a run.
class ArrayIn {
 public:
  ArrayIn() = default;
  /// Takes any array of the CPU: NumPy's, or one with DLPack or the buffer protocol. One that is not
  /// contiguous gets memory of its own, which refresh() fills. Throws Error(bad_input), which names the port,
  /// what was given and the line that mends it.
  ArrayIn(nb::handle array, const Port& port, const char* what);
  /// What the array has for lamina; valid as long as this object.
  Tensor tensor() const;
  bool is_set() const noexcept { return keeps_.is_valid(); }
  /// Copies again what is not contiguous. Returns the number of copies that the next run makes of it: 0 or 1.
  std::size_t refresh();

 private:
  void take_numpy(nb::handle array, const Port& port, const char* what);
  void take_other(nb::handle array, const Port& port, const char* what);

  nb::object keeps_;    // the memory's owner
  nb::object strided_;  // an array of NumPy's that is copied to keeps_ before each run; or null
  ElementType type_ = ElementType::undefined;
  Dims shape_;
  const void* data_ = nullptr;
  bool aligned_ = true;
};

using ImportedOut = nb::ndarray<nb::device::cpu>;

/// Memory for an output.
class ArrayOut {
 public:
  ArrayOut() = default;
  /// Throws Error(bad_input) for an array that is read-only, or of another type.
  ArrayOut(nb::handle array, const Port& port);
  bool is_set() const noexcept { return array_.is_valid(); }
  /// The array's memory, if results can be written into it; else no tensor.
  Tensor tensor() const;
  /// After a run: copies the result into an array whose memory could not be used. Returns the number of
  /// copies.
  std::size_t take(const Tensor& result, const Port& port) const;
  nb::handle array() const { return array_; }

 private:
  void take_imported(ImportedOut array, const Port& port, nb::handle given);
  nb::object array_, view_;  // what was given, and its memory as an array of NumPy's
  ElementType type_ = ElementType::undefined;
  Dims shape_;
  void* data_ = nullptr;  // null: results are copied
};

/// True for what arrays are taken from; false for numbers, lists, dicts and the like.
bool is_array(nb::handle object);
/// An array that owns the tensor, or keeps `owner` alive.
nb::object array_of(Tensor tensor, bool writable);
/// The type of arrays for elements of this type.
nb::object dtype_of(ElementType type);
/// A copy of an array for set_variable().
Tensor copy_of(nb::handle array, const Port& port, const char* what);

}  // namespace lamina::python
