"""The results of a call."""

from typing import Any, SupportsIndex, overload

import numpy.typing as npt


class Outputs(tuple["npt.NDArray[Any]", ...]):
    """The outputs of one inference, in the model's order: always a tuple, however many there are.

    `(y,) = m(x)`, `m(x)[0]` and `m(x)["scores"]` give arrays. Each array owns its memory.
    """

    _index: dict[str, int]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the outputs, in the model's order."""
        by_index = sorted((i, name) for name, i in self._index.items())
        return tuple(name for _, name in by_index)

    @overload
    def __getitem__(self, key: SupportsIndex | str, /) -> "npt.NDArray[Any]": ...

    @overload
    def __getitem__(self, key: slice, /) -> "tuple[npt.NDArray[Any], ...]": ...

    def __getitem__(self, key: Any, /) -> Any:
        if isinstance(key, str):
            try:
                key = self._index[key]
            except KeyError:
                names = ", ".join(f'"{name}"' for name in self.names)
                raise KeyError(f'there is no output "{key}", there are: {names}') from None
        return tuple.__getitem__(self, key)

    def asdict(self) -> "dict[str, npt.NDArray[Any]]":
        """The outputs by name."""
        return {name: self[i] for name, i in self._index.items()}
