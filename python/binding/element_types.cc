#include "element_types.h"

#include <array>
#include <string_view>

namespace lamina::python {
namespace {

/// By NumPy's numbers of types; long double, complex numbers and all behind have none of ours.
ElementType builtin_type(int number) noexcept {
  switch (number) {
    case NPY_FLOAT:
      return ElementType::f32;
    case NPY_DOUBLE:
      return ElementType::f64;
    case NPY_HALF:
      return ElementType::f16;
    case NPY_BOOL:
      return ElementType::boolean;
    case NPY_BYTE:
      return ElementType::i8;
    case NPY_UBYTE:
      return ElementType::u8;
    case NPY_SHORT:
      return ElementType::i16;
    case NPY_USHORT:
      return ElementType::u16;
    case NPY_INT:
      return ElementType::i32;
    case NPY_UINT:
      return ElementType::u32;
    case NPY_LONG:
      return sizeof(long) == 8 ? ElementType::i64 : ElementType::i32;
    case NPY_ULONG:
      return sizeof(long) == 8 ? ElementType::u64 : ElementType::u32;
    case NPY_LONGLONG:
      return ElementType::i64;
    case NPY_ULONGLONG:
      return ElementType::u64;
    default:
      return ElementType::undefined;
  }
}

struct Named {
  ElementType type;
  const char* name;
};
/// Types of the package ml_dtypes whose elements are stored as ours.
constexpr std::array<Named, 6> kMlTypes{{{ElementType::bf16, "bfloat16"},
                                         {ElementType::f8e4m3, "float8_e4m3fn"},
                                         {ElementType::f8e4m3fnuz, "float8_e4m3fnuz"},
                                         {ElementType::f8e5m2, "float8_e5m2"},
                                         {ElementType::f8e5m2fnuz, "float8_e5m2fnuz"},
                                         {ElementType::f8e8m0, "float8_e8m0fnu"}}};

const char* ml_name(ElementType type) noexcept {
  for (const auto& row : kMlTypes)
    if (row.type == type) return row.name;
  return nullptr;
}

int builtin_number(ElementType type) noexcept {
  switch (type) {
    case ElementType::f32:
      return NPY_FLOAT;
    case ElementType::f64:
      return NPY_DOUBLE;
    case ElementType::f16:
      return NPY_HALF;
    case ElementType::boolean:
      return NPY_BOOL;
    case ElementType::i8:
      return NPY_INT8;
    case ElementType::u16:
    case ElementType::bf16:  // its bits
      return NPY_UINT16;
    case ElementType::i16:
      return NPY_INT16;
    case ElementType::i32:
      return NPY_INT32;
    case ElementType::u32:
      return NPY_UINT32;
    case ElementType::i64:
      return NPY_INT64;
    case ElementType::u64:
      return NPY_UINT64;
    default:  // u8, 8-bit floats and packed elements
      return NPY_UINT8;
  }
}

}  // namespace

ElementType element_type_of(PyArray_Descr* descr) {
  if (descr->type_num < NPY_USERDEF) return builtin_type(descr->type_num);
  const nb::handle scalar(reinterpret_cast<PyObject*>(descr->typeobj));
  if (!nb::str(scalar.attr("__module__")).equal(nb::str("ml_dtypes"))) return ElementType::undefined;
  const auto name = nb::cast<std::string>(scalar.attr("__name__"));
  for (const auto& row : kMlTypes)
    if (name == row.name) return row.type;
  return ElementType::undefined;
}

PyArray_Descr* descr_of(ElementType type) {
  if (const auto* name = ml_name(type)) {
    PyObject* descr = nullptr;
    try {
      const nb::object scalar = nb::module_::import_("ml_dtypes").attr(name);
      if (PyArray_DescrConverter(scalar.ptr(), reinterpret_cast<PyArray_Descr**>(&descr)) == NPY_SUCCEED)
        return reinterpret_cast<PyArray_Descr*>(descr);
      throw nb::python_error();
    } catch (nb::python_error&) {  // not installed, or without this type: its bits
    }
  }
  return PyArray_DescrFromType(builtin_number(type));
}

bool holds(ElementType given, ElementType wanted) noexcept {
  if (given == wanted) return true;
  if (is_packed(wanted)) return given == ElementType::u8;
  if (!ml_name(wanted)) return false;
  return given == (bits_of(wanted) == 16 ? ElementType::u16 : ElementType::u8);
}

std::string numpy_name(ElementType type) {
  if (const auto* name = ml_name(type)) return std::string("ml_dtypes.") + name;
  auto* descr = PyArray_DescrFromType(builtin_number(type));
  const nb::object owner = nb::steal(reinterpret_cast<PyObject*>(descr));
  return nb::cast<std::string>(owner.attr("name"));
}

}  // namespace lamina::python
