#define LAMINA_HAS_NUMPY_TABLE
#include "arrays.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "element_types.h"
#include "errors.h"

namespace lamina::python {
namespace {

PyArrayObject* as_array(nb::handle of) { return reinterpret_cast<PyArrayObject*>(of.ptr()); }

std::string called(const char* what, const Port& port) {
  return std::string(what) + " \"" + port.name + "\": ";
}

std::string wanted(const Port& port) {
  auto shown = port;
  shown.value = {};
  return to_string(shown);
}

/// "np.float32", "ml_dtypes.bfloat16", "bool"
std::string code_of(ElementType type) {
  const auto name = numpy_name(type);
  return name.starts_with("ml_dtypes.") || name == "bool" ? name : "np." + name;
}

[[noreturn]] void refuse(const std::string& found, const Port& port, const char* what,
                         const std::string& fix) {
  fail(ErrorCode::bad_input,
       called(what, port) + found + " given, wanted " + wanted(port) + (fix.empty() ? "" : ": " + fix));
}

[[noreturn]] void refuse_type(const std::string& found, const Port& port, const char* what) {
  refuse(found, port, what,
         is_packed(port.type) ? "give its packed bytes as np.uint8" : "x.astype(" + code_of(port.type) + ")");
}

/// Numbers, lists and the like have no element type of their own.
[[noreturn]] void refuse_object(nb::handle object, const Port& port, const char* what) {
  const auto name = class_name(object);
  if (PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr()))
    refuse("a " + name, port, what, "text is no array");
  refuse(object.is_none() ? "None" : "a " + name, port, what, "np.asarray(x, " + code_of(port.type) + ")");
}

/// Elements of DLPack.
ElementType dlpack_type(nb::dlpack::dtype type) noexcept {
  if (type.lanes != 1) return ElementType::undefined;
  const auto any = [&](ElementType of8, ElementType of16, ElementType of32, ElementType of64) {
    return type.bits == 8    ? of8
           : type.bits == 16 ? of16
           : type.bits == 32 ? of32
           : type.bits == 64 ? of64
                             : ElementType::undefined;
  };
  using enum ElementType;
  switch (type.code) {
    case 0:
      return any(i8, i16, i32, i64);
    case 1:
      return any(u8, u16, u32, u64);
    case 2:
      return any(undefined, f16, f32, f64);
    case 4:
      return any(undefined, bf16, undefined, undefined);
    case 6:
      return any(boolean, undefined, undefined, undefined);
    case 10:
      return any(f8e4m3, undefined, undefined, undefined);
    case 11:
      return any(f8e4m3fnuz, undefined, undefined, undefined);
    case 12:
      return any(f8e5m2, undefined, undefined, undefined);
    case 13:
      return any(f8e5m2fnuz, undefined, undefined, undefined);
    case 14:
      return any(f8e8m0, undefined, undefined, undefined);
    default:
      return undefined;
  }
}

/// Checks an array of NumPy's for a port. Returns the type of its elements.
ElementType check_numpy(PyArrayObject* array, const Port& port, const char* what) {
  auto* descr = PyArray_DESCR(array);
  const auto type = element_type_of(descr);
  if (holds(type, port.type)) {
    if (!PyArray_ISNOTSWAPPED(array))
      refuse(
          "bytes in the other order (" + nb::cast<std::string>(nb::str(nb::handle((PyObject*)descr))) + ")",
          port, what, "x.astype(x.dtype.newbyteorder(\"=\"))");
    return type;
  }
  const auto name = nb::cast<std::string>(nb::handle(reinterpret_cast<PyObject*>(descr)).attr("name"));
  switch (descr->kind) {
    case 'U':
    case 'S':
    case 'T':
      refuse("strings (" + name + ")", port, what, "lamina has no tensors of strings");
    case 'O':
      refuse("Python objects", port, what, "np.asarray(x, " + code_of(port.type) + ")");
    default:
      refuse_type(name, port, what);
  }
}

/// Packed elements come as their bytes: the port must say how many elements they are.
Dims shape_for(const Port& port, const char* what, std::size_t bytes, Dims shape) {
  if (!is_packed(port.type)) return shape;
  if (!port.ranked || std::any_of(port.shape.begin(), port.shape.end(), [](auto d) { return d < 0; }))
    fail(ErrorCode::unsupported,
         called(what, port) + "packed elements of a shape that the model leaves open, " + wanted(port));
  const auto count = element_count(port.shape);
  const auto want = (count * static_cast<std::size_t>(bits_of(port.type)) + 7) / 8;
  if (bytes != want)
    fail(ErrorCode::bad_input, called(what, port) + std::to_string(bytes) + " bytes given, wanted " +
                                   std::to_string(want) + " for " + wanted(port));
  return port.shape;
}

Dims dims_of(PyArrayObject* array) {
  const auto* dims = PyArray_DIMS(array);
  return {dims, dims + PyArray_NDIM(array)};
}

using Imported = nb::ndarray<nb::ro, nb::device::cpu>;

/// An array of NumPy's that shares the memory of an object with the buffer protocol, or has the one element
/// of a number of NumPy's.
nb::object from_buffer(nb::handle object) {
  nb::object array;
  if (PyArray_CheckScalar(object.ptr())) {
    array = nb::steal(PyArray_FromScalar(object.ptr(), nullptr));
  } else {
    const nb::object view = nb::steal(PyMemoryView_FromObject(object.ptr()));
    if (view.is_valid()) array = nb::steal(PyArray_FromAny(view.ptr(), nullptr, 0, 0, 0, nullptr));
  }
  if (!array.is_valid()) throw nb::python_error();
  return array;
}

/// Why an object that has DLPack could not be taken.
std::string why_not(nb::handle object) {
  if (!nb::hasattr(object, "__dlpack__")) return "";
  try {
    if (nb::hasattr(object, "__dlpack_device__")) {
      const nb::tuple device(object.attr("__dlpack_device__")());
      if (const auto kind = nb::cast<int>(device[0]); kind != 1)
        return "it is not in the CPU's memory (DLPack's device " + std::to_string(kind) + ")";
    }
    object.attr("__dlpack__")();
  } catch (nb::python_error& error) {
    return nb::cast<std::string>(nb::str(error.value()));
  }
  return "";
}

void delete_imported(PyObject* capsule) {
  delete static_cast<Imported*>(PyCapsule_GetPointer(capsule, nullptr));
}
void delete_imported_out(PyObject* capsule) {
  delete static_cast<ImportedOut*>(PyCapsule_GetPointer(capsule, nullptr));
}

/// An array of NumPy's that shows the memory of another library's, and keeps it.
template <class Array>
nb::object as_numpy(Array&& array, ElementType type, bool writable, PyCapsule_Destructor destroy) {
  const auto rank = static_cast<int>(array.ndim());
  std::vector<npy_intp> shape, strides;
  auto* descr = descr_of(type);
  for (int i = 0; i < rank; ++i) {
    const auto axis = static_cast<std::size_t>(i);
    shape.push_back(static_cast<npy_intp>(array.shape(axis)));
    strides.push_back(array.stride(axis) * PyDataType_ELSIZE(descr));
  }
  void* data = const_cast<void*>(static_cast<const void*>(array.data()));
  static char nothing;  // where there are no elements
  nb::object keeps =
      nb::steal(PyCapsule_New(new std::remove_cvref_t<Array>(std::forward<Array>(array)), nullptr, destroy));
  nb::object out =
      nb::steal(PyArray_NewFromDescr(&PyArray_Type, descr, rank, shape.data(), strides.data(),
                                     data ? data : &nothing, writable ? NPY_ARRAY_WRITEABLE : 0, nullptr));
  if (!out.is_valid() || PyArray_SetBaseObject(as_array(out), keeps.release().ptr()) != 0)
    throw nb::python_error();
  PyArray_UpdateFlags(as_array(out), NPY_ARRAY_UPDATE_ALL);
  return out;
}

}  // namespace

bool is_array(nb::handle object) {
  auto* p = object.ptr();
  if (PyArray_Check(p)) return true;
  if (PyDict_Check(p) || PyList_Check(p) || PyTuple_Check(p) || PyUnicode_Check(p) || p == Py_None ||
      PyLong_Check(p) || PyFloat_Check(p))
    return false;
  return nb::hasattr(object, "__dlpack__") || nb::ndarray_check(object) || PyArray_CheckScalar(p);
}

ArrayIn::ArrayIn(nb::handle array, const Port& port, const char* what) {
  if (PyArray_Check(array.ptr()))
    take_numpy(array, port, what);
  else
    take_other(array, port, what);
}

void ArrayIn::take_numpy(nb::handle given, const Port& port, const char* what) {
  auto* array = as_array(given);
  check_numpy(array, port, what);
  type_ = port.type;
  const auto bytes = static_cast<std::size_t>(PyArray_NBYTES(array));
  shape_ = shape_for(port, what, bytes, dims_of(array));
  if (PyArray_IS_C_CONTIGUOUS(array)) {
    keeps_ = nb::borrow(given);
  } else {
    keeps_ = nb::steal(PyArray_NewLikeArray(array, NPY_CORDER, nullptr, 0));
    if (!keeps_.is_valid()) throw nb::python_error();
    strided_ = nb::borrow(given);
  }
  data_ = PyArray_DATA(as_array(keeps_));
  aligned_ = (PyArray_FLAGS(as_array(keeps_)) & NPY_ARRAY_ALIGNED) != 0;
}

void ArrayIn::take_other(nb::handle given, const Port& port, const char* what) {
  if (!is_array(given)) refuse_object(given, port, what);
  if (!nb::hasattr(given, "__dlpack__")) return take_numpy(from_buffer(given), port, what);
  Imported array;
  if (!nb::try_cast(given, array, false))
    refuse("a " + class_name(given) + " that cannot be read as an array", port, what, why_not(given));
  const auto type = dlpack_type(array.dtype());
  if (!holds(type, port.type))
    refuse(std::string(type == ElementType::undefined ? "elements of another type" : name_of(type)) +
               " in a " + class_name(given),
           port, what, "convert it, as in np.asarray(x).astype(" + code_of(port.type) + ") or x.to(...)");
  take_numpy(as_numpy(std::move(array), port.type, false, delete_imported), port, what);
}

Tensor ArrayIn::tensor() const { return Tensor::wrap(type_, shape_, data_); }

std::size_t ArrayIn::refresh() {
  if (!strided_.is_valid()) return aligned_ ? 0 : 1;
  if (PyArray_CopyInto(as_array(keeps_), as_array(strided_)) != 0) throw nb::python_error();
  return 1;
}

ArrayOut::ArrayOut(nb::handle given, const Port& port) : array_(nb::borrow(given)) {
  if (PyArray_Check(given.ptr())) {
    view_ = array_;
  } else {
    ImportedOut array;
    if (!is_array(given)) refuse_object(given, port, "output");
    if (!nb::hasattr(given, "__dlpack__")) {
      view_ = from_buffer(given);
    } else if (!nb::try_cast(given, array, false)) {
      refuse("a " + class_name(given) + " that cannot be written as an array", port, "output",
             why_not(given));
    } else {
      take_imported(std::move(array), port, given);
    }
  }
  auto* array = as_array(view_);
  check_numpy(array, port, "output");
  if (!PyArray_ISWRITEABLE(array)) refuse("memory that is only to be read", port, "output", "x.copy()");
  type_ = port.type;
  const auto bytes = static_cast<std::size_t>(PyArray_NBYTES(array));
  shape_ = shape_for(port, "output", bytes, dims_of(array));
  // Not PyArray_ISALIGNED: that is true for all arrays without elements, at whatever address they are.
  const auto address = reinterpret_cast<std::uintptr_t>(PyArray_DATA(array));
  const auto aligned = address % static_cast<std::size_t>(PyArray_ITEMSIZE(array)) == 0;
  if (PyArray_IS_C_CONTIGUOUS(array) && aligned) data_ = PyArray_DATA(array);
}

void ArrayOut::take_imported(ImportedOut array, const Port& port, nb::handle given) {
  const auto type = dlpack_type(array.dtype());
  if (!holds(type, port.type))
    refuse_type(std::string(name_of(type)) + " in a " + class_name(given), port, "output");
  view_ = as_numpy(std::move(array), port.type, true, delete_imported_out);
}

Tensor ArrayOut::tensor() const { return data_ ? Tensor::wrap(type_, shape_, data_) : Tensor(); }

std::size_t ArrayOut::take(const Tensor& result, const Port& port) const {
  if (data_) return 0;
  if (result.shape() != shape_) {
    auto shown = port;
    shown.shape = shape_;
    auto found = port;
    found.shape = result.shape();
    shown.dimension_names = found.dimension_names = {};
    fail(ErrorCode::bad_input,
         "output \"" + port.name + "\": " + to_string(shown) + " given, wanted " + to_string(found));
  }
  const auto source = array_of(Tensor::wrap(type_, shape_, static_cast<const void*>(result.raw())), false);
  if (PyArray_CopyInto(as_array(view_), as_array(source)) != 0) throw nb::python_error();
  return 1;
}

nb::object array_of(Tensor tensor, bool writable) {
  const auto type = tensor.element_type();
  npy_intp dims[64];
  int rank = 0;
  if (is_packed(type)) {
    dims[rank++] = static_cast<npy_intp>(tensor.bytes());
  } else {
    for (const auto d : tensor.shape()) dims[rank++] = static_cast<npy_intp>(d);
  }
  static char nothing;  // where there are no elements
  auto* const data = tensor.raw() ? static_cast<void*>(tensor.raw()) : &nothing;
  const int flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | (writable ? NPY_ARRAY_WRITEABLE : 0);
  auto owner = std::make_unique<Tensor>(std::move(tensor));
  nb::object keeps = nb::steal(PyCapsule_New(owner.get(), nullptr, [](PyObject* capsule) {
    delete static_cast<Tensor*>(PyCapsule_GetPointer(capsule, nullptr));
  }));
  if (!keeps.is_valid()) throw nb::python_error();
  (void)owner.release();
  nb::object out = nb::steal(
      PyArray_NewFromDescr(&PyArray_Type, descr_of(type), rank, dims, nullptr, data, flags, nullptr));
  if (!out.is_valid() || PyArray_SetBaseObject(as_array(out), keeps.release().ptr()) != 0)
    throw nb::python_error();
  return out;
}

nb::object dtype_of(ElementType type) { return nb::steal(reinterpret_cast<PyObject*>(descr_of(type))); }

Tensor copy_of(nb::handle array, const Port& port, const char* what) {
  ArrayIn in(array, port, what);
  in.refresh();
  return in.tensor().clone();
}

void bind_arrays(nb::module_& m) {
  if (_import_array() < 0) throw nb::python_error();
  m.def(
      "empty",
      [](const nb::tuple& shape, nb::handle dtype) {
        PyArray_Descr* descr = nullptr;
        if (PyArray_DescrConverter(dtype.ptr(), &descr) != NPY_SUCCEED) throw nb::python_error();
        const nb::object owner = nb::steal(reinterpret_cast<PyObject*>(descr));
        const auto type = element_type_of(descr);
        if (type == ElementType::undefined)
          fail(ErrorCode::bad_input,
               "elements of type " + nb::cast<std::string>(nb::str(owner)) + ", which lamina does not have");
        Dims dims;
        for (const auto d : shape) dims.push_back(nb::cast<std::int64_t>(d));
        return array_of(Tensor(type, std::move(dims)), true);
      },
      nb::sig("def empty(shape: tuple[int, ...], dtype: object) -> numpy.typing.NDArray[typing.Any]"),
      nb::arg("shape"), nb::arg("dtype"), "An array whose memory is aligned to 64 bytes.");
}

}  // namespace lamina::python
