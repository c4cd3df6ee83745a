#pragma once
/// Element types of lamina and of NumPy.
#include "numpy.h"

namespace lamina::python {

/// lamina's type of NumPy's elements; undefined if it has none.
ElementType element_type_of(PyArray_Descr* descr);
/// NumPy's type (a new reference): those of ml_dtypes for bf16 and 8-bit floats where that package is
/// installed, else their bits as unsigned numbers; bytes for packed elements.
PyArray_Descr* descr_of(ElementType type);
/// True if arrays of elements `given` hold elements of type `wanted`: the same type, or its bits as
/// documented.
bool holds(ElementType given, ElementType wanted) noexcept;
/// Several elements share a byte: arrays have their bytes.
inline bool is_packed(ElementType type) noexcept { return bits_of(type) != 0 && bits_of(type) < 8; }
/// "float32": what users write; for packed types "uint8".
std::string numpy_name(ElementType type);

}  // namespace lamina::python
