"""What ONNX Runtime checks, and its words for what is wrong: inputs and providers."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina._packed import PACKED
from lamina.compat.onnxruntime import errors
from lamina.compat.onnxruntime.types import type_of, type_of_array
from lamina.ports import Port

PROVIDERS = ("LaminaExecutionProvider", "CPUExecutionProvider")
Providers = Sequence[str | tuple[str, dict[Any, Any]]]


def check_input(array: "np.ndarray[Any, Any]", port: Port) -> None:
    """The exceptions of ONNX Runtime for a wrong type, rank or size."""
    same_size = array.dtype.kind == "u" and array.itemsize == port.numpy_dtype.itemsize
    has_its_bits = same_size and port.dtype.startswith(("bf16", "f8"))
    if array.dtype != port.numpy_dtype and not has_its_bits:
        actual, wanted = type_of_array(array.dtype), type_of(port.dtype)
        raise errors.InvalidArgument.of(f"Unexpected input data type. Actual: ({actual}) , expected: ({wanted})")
    if port.shape is None or port.dtype in PACKED:
        return
    mend = "Please fix either the inputs/outputs or the model."
    if array.ndim != len(port.shape):
        raise errors.InvalidArgument.of(
            f"Invalid rank for input: {port.name} Got: {array.ndim} Expected: {len(port.shape)} {mend}"
        )
    wrong = [
        f" index: {i} Got: {got} Expected: {size}\n"
        for i, (got, size) in enumerate(zip(array.shape, port.shape, strict=True))
        if isinstance(size, int) and size != got
    ]
    if wrong:
        raise errors.InvalidArgument.of(
            f"Got invalid dimensions for input: {port.name} for the following indices\n{''.join(wrong)} {mend}"
        )


def provider_rows(
    providers: Providers, provider_options: Sequence[dict[Any, Any]] | None
) -> list[tuple[str, dict[str, str]]]:
    """Names and options, checked as ONNX Runtime checks them."""
    if isinstance(providers, str) or not isinstance(providers, Sequence):
        raise ValueError("'providers' should be a sequence.")
    if provider_options is not None:
        if len(providers) != len(provider_options):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        providers = list(zip(providers, provider_options, strict=True))  # type: ignore[arg-type]
    rows: dict[str, dict[str, str]] = {}
    for one in providers:
        pair = (one, {}) if isinstance(one, str) else one
        if not isinstance(pair, tuple) or [type(part) for part in pair] != [str, dict]:
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        name, options = pair
        if name not in PROVIDERS:
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names."
                f"Available providers: '{', '.join(PROVIDERS)}'",
                stacklevel=4,
            )
        rows.setdefault(name, {str(key): str(value) for key, value in options.items()})
    return list(rows.items())
