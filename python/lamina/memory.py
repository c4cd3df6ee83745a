"""Memory for arrays."""

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from lamina import _lamina


def empty(shape: SupportsIndex | Sequence[SupportsIndex], dtype: npt.DTypeLike = np.float32) -> "npt.NDArray[Any]":
    """An array of zeros whose memory is aligned to 64 bytes, which suits vector instructions best.

    NumPy's own memory is aligned to 16 bytes. Raises BadInput for types that lamina does not have, and OutOfMemory.
    """
    sizes = shape if isinstance(shape, Sequence) else (shape,)
    return _lamina.empty(tuple(int(size) for size in sizes), np.dtype(dtype))
