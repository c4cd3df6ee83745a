"""Inputs and outputs of models."""

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

#: A size: a number, None (any), or the least and the most.
Size: TypeAlias = int | None | tuple[int | None, int | None]
Shape: TypeAlias = Sequence[Size]


class Port(NamedTuple):
    """An input, output or variable of a model."""

    name: str
    #: The type of the elements by lamina's name: "f32", "i64", "boolean", ...
    dtype: str
    #: The type of arrays for it. Packed elements (u1, i4, u4, ...) are given as their bytes, np.uint8. For bf16 and
    #: 8-bit floats these are the types of the package ml_dtypes; without it arrays have their bits (np.uint16, np.uint8).
    numpy_dtype: "np.dtype[Any]"
    #: The sizes. For a size that is known only at run time: its name, or None if it has none. None instead of a tuple
    #: means that not even the number of dimensions is known.
    shape: tuple[int | str | None, ...] | None
    #: The default of an input that need not be given; else None.
    value: "npt.NDArray[Any] | None" = None

    @property
    def ranked(self) -> bool:
        """Whether the number of dimensions is known."""
        return self.shape is not None

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.name} {self.dtype}[...]"
        return f"{self.name} {self.dtype}[{','.join('?' if d is None else str(d) for d in self.shape)}]"


def ports_of(rows: Iterable[tuple[Any, ...]]) -> tuple[Port, ...]:
    """Ports from the rows of the compiled module."""
    ports = []
    for name, dtype, numpy_dtype, ranked, sizes, names, value in rows:
        shape: tuple[int | str | None, ...] | None = None
        if ranked:
            labels = names or ("",) * len(sizes)
            shape = tuple(
                size if size >= 0 else label or None for size, label in zip(sizes, labels, strict=True)
            )
        ports.append(Port(name, dtype, numpy_dtype, shape, value))
    return tuple(ports)


def sizes_of(shape: Shape) -> list[tuple[int, int]]:
    """The least and the most of each size; -1: no bound."""
    if isinstance(shape, (str, bytes)):
        raise TypeError(f"a shape: {shape!r}, wanted sizes such as [1, 3, None, (1, 640)]")
    out = []
    for size in shape:
        if isinstance(size, tuple):
            if len(size) != 2:
                raise TypeError(f"a size: {size!r}, wanted {_SIZES}")
            wanted = "a bound that is a number from 0 on, or None"
            least, most = (None if bound is None else _number(bound, wanted) for bound in size)
            out.append((least or 0, -1 if most is None else most))
        elif size is None or (number := _number(size, _SIZES, least=-1)) == -1:
            out.append((0, -1))
        else:
            out.append((number, number))
    return out


_SIZES = "a number from 0 on, None or -1 for any, or (least, most)"


def _number(size: int, wanted: str, least: int = 0) -> int:
    try:
        number = operator.index(size)
    except TypeError:
        number = least - 1
    if isinstance(size, bool) or not least <= number < 2**63:
        raise TypeError(f"a size: {size!r}, wanted {wanted}")
    return number
