"""Element types by ONNX Runtime's names ("tensor(float)") and ONNX's numbers."""

from typing import Any

import numpy as np

#: lamina's name, ONNX Runtime's, ONNX's number (TensorProto.DataType), NumPy's or ml_dtypes' name.
_ROWS = (
    ("f32", "float", 1, "float32"),
    ("u8", "uint8", 2, "uint8"),
    ("i8", "int8", 3, "int8"),
    ("u16", "uint16", 4, "uint16"),
    ("i16", "int16", 5, "int16"),
    ("i32", "int32", 6, "int32"),
    ("i64", "int64", 7, "int64"),
    ("string", "string", 8, "object"),
    ("boolean", "bool", 9, "bool"),
    ("f16", "float16", 10, "float16"),
    ("f64", "double", 11, "float64"),
    ("u32", "uint32", 12, "uint32"),
    ("u64", "uint64", 13, "uint64"),
    ("bf16", "bfloat16", 16, "bfloat16"),
    ("f8e4m3", "float8e4m3fn", 17, "float8_e4m3fn"),
    ("f8e4m3fnuz", "float8e4m3fnuz", 18, "float8_e4m3fnuz"),
    ("f8e5m2", "float8e5m2", 19, "float8_e5m2"),
    ("f8e5m2fnuz", "float8e5m2fnuz", 20, "float8_e5m2fnuz"),
    ("u4", "uint4", 21, "uint4"),
    ("i4", "int4", 22, "int4"),
    ("f4e2m1", "float4e2m1", 23, "float4_e2m1fn"),
    ("f8e8m0", "float8e8m0", 24, "float8_e8m0fnu"),
    ("u2", "uint2", 25, "uint2"),
    ("i2", "int2", 26, "int2"),
)
_BY_LAMINA = {row[0]: row for row in _ROWS}
_BY_NUMBER = {row[2]: row for row in _ROWS}
_BY_NUMPY = {row[3]: row for row in _ROWS}


def type_of(lamina_name: str) -> str:
    """ "tensor(float)" of "f32"."""
    return f"tensor({_BY_LAMINA[lamina_name][1]})" if lamina_name in _BY_LAMINA else f"tensor({lamina_name})"


def type_of_array(dtype: "np.dtype[Any]") -> str:
    """ "tensor(float)" of np.float32."""
    name = "object" if dtype.kind in "USO" else dtype.name
    return f"tensor({_BY_NUMPY[name][1]})" if name in _BY_NUMPY else f"tensor({name})"


def type_of_number(number: int) -> str:
    """ "tensor(float)" of 1."""
    if number not in _BY_NUMBER:
        raise RuntimeError(f"{number} is no element type of ONNX")
    return f"tensor({_BY_NUMBER[number][1]})"


def number_of_array(dtype: "np.dtype[Any]") -> int:
    """1 of np.float32."""
    row = _BY_NUMPY.get("object" if dtype.kind in "USO" else dtype.name)
    if row is None:
        raise RuntimeError(f"{dtype} is no element type of ONNX")
    return row[2]


def dtype_of_number(number: int) -> "np.dtype[Any]":
    """np.float32 of 1. Types of ml_dtypes are given as that package's, or as their bits without it."""
    type_of_number(number)
    name = _BY_NUMBER[number][3]
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype
    except (ImportError, AttributeError):
        return np.dtype(np.uint16 if name == "bfloat16" else np.uint8)
