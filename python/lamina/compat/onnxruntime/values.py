"""Tensors: OrtValue, and devices, of which there is one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lamina.compat.onnxruntime.errors import unavailable
from lamina.compat.onnxruntime.types import dtype_of_number, number_of_array, type_of_number
from lamina.memory import empty

Array = npt.NDArray[Any]


def check_device(device_type: str) -> None:
    """RuntimeError for another device than the CPU."""
    if str(device_type).lower() != "cpu":
        raise RuntimeError(f'device "{device_type}": lamina has only "cpu"')


class OrtDevice:
    """The CPU."""

    def __init__(self, device_type: str = "cpu", device_id: int = 0) -> None:
        """Raises RuntimeError for another device."""
        check_device(device_type)
        self._id = device_id

    @staticmethod
    def make(device_type: str, device_id: int = 0, vendor_id: int = -1) -> "OrtDevice":
        """The CPU; RuntimeError for another device."""
        return OrtDevice(device_type, device_id)

    @staticmethod
    def cpu() -> int:
        """The number of this type of device."""
        return 0

    @staticmethod
    def default_memory() -> int:
        """The number of the only type of memory."""
        return 0

    def device_id(self) -> int:
        """The number that was given."""
        return self._id

    def device_type(self) -> int:
        """0, the CPU."""
        return 0

    def device_vendor_id(self) -> int:
        """0: none."""
        return 0

    def device_mem_type(self) -> int:
        """0, the only type of memory."""
        return 0


class OrtValue:
    """A tensor, which shares the memory of the array it was made of."""

    def __init__(self, value: "OrtValue | Array", element_type: int | None = None) -> None:
        """Of an array, or of another OrtValue."""
        self._array: Array = value._array if isinstance(value, OrtValue) else value
        if element_type is None:
            element_type = value._number if isinstance(value, OrtValue) else number_of_array(value.dtype)
        self._number: int = element_type

    @property
    def _ortvalue(self) -> "OrtValue":
        """What ONNX Runtime's own class wraps; some packages reach for it."""
        return self

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: Array, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> "OrtValue":
        """A tensor that shares the array's memory if that is contiguous, else of a copy."""
        check_device(device_type)
        return cls(np.ascontiguousarray(numpy_obj).reshape(np.shape(numpy_obj)))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Array, /, onnx_element_type: int) -> "OrtValue":
        """A tensor whose elements have the bits of the array's: for types that NumPy lacks."""
        dtype = dtype_of_number(onnx_element_type)
        if dtype.itemsize != data.dtype.itemsize:
            raise RuntimeError(f"elements of {data.dtype.itemsize} bytes given, wanted {dtype.itemsize} for {dtype}")
        return cls(np.ascontiguousarray(data).reshape(data.shape).view(dtype), onnx_element_type)

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: object = None,
    ) -> "OrtValue":
        """A tensor of new memory. element_type: NumPy's type, or ONNX's number."""
        check_device(device_type)
        number = element_type if isinstance(element_type, int) else None
        dtype = np.dtype(element_type) if number is None else dtype_of_number(number)
        return cls(empty(tuple(int(size) for size in shape), dtype), number)

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: object) -> "OrtValue":
        """Not available."""
        raise unavailable("a sparse tensor", "lamina's inputs are dense arrays")

    @classmethod
    def from_dlpack(cls, data: Any, /, is_bool_tensor: bool = False) -> "OrtValue":
        """A tensor that shares the memory of another package's (torch's, ...), or of a capsule's."""
        source: Any = data if hasattr(data, "__dlpack__") else _Capsule(data)
        array: Array = np.from_dlpack(source)
        return cls(array.view(np.bool_) if is_bool_tensor else array)

    def to_dlpack(self) -> Any:
        """A capsule of DLPack."""
        return self._array.__dlpack__()

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is None:
            return np.asarray(self._array, dtype=dtype)
        return np.array(self._array, dtype=dtype, copy=copy)

    def numpy(self) -> Array:
        """The array; it shares the tensor's memory."""
        return self._array

    def update_inplace(self, data: Any) -> None:
        """Copies an array of the same type and shape into the tensor."""
        array = np.asarray(data)
        if array.dtype != self._array.dtype or array.shape != self._array.shape:
            raise RuntimeError(f"{array.dtype}{list(array.shape)} given, wanted {self._array.dtype}{list(self.shape())}")
        self._array[...] = array

    def as_sparse_tensor(self) -> object:
        """Not available."""
        raise unavailable("a sparse tensor", "lamina's outputs are dense arrays")

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self._array.ctypes.data)

    def device_name(self) -> str:
        """ "cpu"."""
        return "cpu"

    def shape(self) -> list[int]:
        """The sizes."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """ "tensor(float)" and so on."""
        return type_of_number(self._number)

    def element_type(self) -> int:
        """The number of the type in ONNX's TensorProto.DataType."""
        return self._number

    def tensor_size_in_bytes(self) -> int:
        """The bytes of all elements."""
        return int(self._array.nbytes)

    def has_value(self) -> bool:
        """True: absent optionals are not among lamina's values."""
        return True

    def is_tensor(self) -> bool:
        """True."""
        return True

    def is_sparse_tensor(self) -> bool:
        """False."""
        return False

    def is_tensor_sequence(self) -> bool:
        """False."""
        return False


class OrtValueVector(list[OrtValue]):
    """A list of tensors."""

    def dlpack_at(self, index: int) -> Any:
        """A capsule of DLPack of one of them."""
        return self[index].to_dlpack()

    def element_type_at(self, index: int) -> int:
        """The number of the type of one of them."""
        return self[index].element_type()

    def bool_tensor_indices(self) -> list[int]:
        """Those of type bool, which capsules of DLPack may have as bytes."""
        return [i for i, value in enumerate(self) if value.element_type() == number_of_array(np.dtype(np.bool_))]


class SparseTensor:
    """Not available: lamina's tensors are dense."""

    def __init__(self, sparse_tensor: object = None) -> None:
        """Not available."""
        raise unavailable("SparseTensor", "lamina's tensors are dense: scipy.sparse's toarray() makes one")

    @classmethod
    def sparse_coo_from_numpy(cls, *args: object, **named: object) -> "SparseTensor":
        """Not available."""
        return cls()

    @classmethod
    def sparse_csr_from_numpy(cls, *args: object, **named: object) -> "SparseTensor":
        """Not available."""
        return cls()


class _Capsule:
    """What np.from_dlpack takes, of a capsule."""

    def __init__(self, capsule: object) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def array_of(value: Any, name: str, dtype: "np.dtype[Any]") -> Any:
    """What lamina takes for a value that ONNX Runtime takes: arrays, lists (of the input's type) and OrtValues."""
    if isinstance(value, OrtValue):
        return value._array
    if isinstance(value, np.ndarray):
        return value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))
    if isinstance(value, list):
        return np.asarray(value, dtype)
    if isinstance(value, tuple) and value and isinstance(value[0], np.ndarray):
        raise RuntimeError(f"Iterable of {type(value[0])} should be given as array for input '{name}'.")
    if isinstance(value, (tuple, dict)):
        raise RuntimeError(f"Input must be a list of dictionaries or a single numpy array for input '{name}'.")
    if hasattr(value, "__dlpack__"):
        return value
    raise RuntimeError(f"Unable to handle object of type {type(value)}")
