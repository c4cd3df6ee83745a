"""Elements below a byte: lamina takes and gives them packed, NumPy (with ml_dtypes) has a byte for each."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

#: Names of lamina's types, bits of an element and its type in ml_dtypes.
PACKED = {
    "u1": (1, "uint1"),
    "u2": (2, "uint2"),
    "i2": (2, "int2"),
    "u4": (4, "uint4"),
    "i4": (4, "int4"),
    "f4e2m1": (4, "float4_e2m1fn"),
}


def pack(values: "npt.NDArray[Any]", dtype: str) -> "npt.NDArray[np.uint8]":
    """The bytes of elements of lamina's type `dtype`, the first in the lowest bits."""
    bits, _ = PACKED[dtype]
    codes = values.view(np.uint8) if dtype.startswith("f") else values.astype(np.int8).view(np.uint8)
    codes = codes.reshape(-1) & np.uint8((1 << bits) - 1)
    each = 8 // bits
    rows = np.pad(codes, (0, -codes.size % each)).reshape(-1, each)
    shifts = np.arange(each, dtype=np.uint8) * np.uint8(bits)
    packed: npt.NDArray[np.uint8] = np.bitwise_or.reduce(rows << shifts, axis=1, dtype=np.uint8)
    return packed


def unpack(packed: "npt.NDArray[np.uint8]", dtype: str, shape: Sequence[int]) -> "npt.NDArray[Any]":
    """Elements of a type of ml_dtypes from bytes of lamina's type `dtype`. It raises ImportError without ml_dtypes."""
    import ml_dtypes

    bits, name = PACKED[dtype]
    each = 8 // bits
    shifts = np.arange(each, dtype=np.uint8) * np.uint8(bits)
    mask = np.uint8((1 << bits) - 1)
    codes = ((packed.reshape(-1, 1) >> shifts) & mask).reshape(-1)[: int(np.prod(shape, dtype=np.int64))]
    values: npt.NDArray[Any]
    if dtype == "u1":
        values = codes.astype(np.bool_)
    elif dtype.startswith("f"):
        values = codes.view(np.dtype(getattr(ml_dtypes, name)))
    else:
        sign = 1 << (bits - 1)
        numbers = (codes.astype(np.int8) ^ sign) - sign if dtype.startswith("i") else codes
        values = numbers.astype(np.dtype(getattr(ml_dtypes, name)))
    return values.reshape(tuple(shape))
