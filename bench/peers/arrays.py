"""Inputs for a model, and how far outputs are from the reference's."""

import math
import pathlib
from dataclasses import dataclass

import numpy as np
from peer import Array


@dataclass(frozen=True)
class Declared:
    name: str
    kind: np.dtype[np.generic]
    shape: list[int | None]  # None: not known


def declared_inputs(model: pathlib.Path) -> list[Declared]:
    if model.suffix == ".onnx":
        import onnx

        graph = onnx.load(model, load_external_data=False).graph
        weights = {i.name for i in graph.initializer}
        return [
            Declared(
                i.name,
                onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type),
                [d.dim_value or None for d in i.type.tensor_type.shape.dim],
            )
            for i in graph.input
            if i.name not in weights
        ]
    import openvino

    return [
        Declared(
            p.get_any_name(),
            np.dtype(p.element_type.to_dtype()),
            [d.get_length() if d.is_static else None for d in p.partial_shape],
        )
        for p in openvino.Core().read_model(model).inputs
    ]


def seeded(i: Declared, shape: list[int], rng: np.random.Generator) -> Array:
    if i.kind.kind == "f":
        return rng.normal(0, 1, shape).astype(i.kind)
    if i.kind.kind == "b" or "mask" in i.name:
        return np.ones(shape, i.kind)
    return rng.integers(0, 100, shape).astype(i.kind)


def write_inputs(model: pathlib.Path, target: pathlib.Path, shapes: dict[str, list[int]]) -> None:
    """From MODEL.npz beside the model (by name, or in0, in1, ... by position), else seeded."""
    sidecar, rng = model.with_suffix(".npz"), np.random.default_rng(0)
    known: dict[str, Array] = dict(np.load(sidecar)) if sidecar.exists() else {}
    feeds: dict[str, Array] = {}
    for k, i in enumerate(declared_inputs(model)):
        shape = shapes.get(i.name) or [size or 1 for size in i.shape]
        stored = known.get(i.name, known.get(f"in{k}"))
        if stored is not None and (i.name not in shapes or list(stored.shape) == shape):
            feeds[i.name] = stored
        else:
            feeds[i.name] = seeded(i, shape, rng)
    np.savez(target, **feeds)


def difference(reference: pathlib.Path, *files: pathlib.Path) -> list[float]:
    """The largest error of each file's arrays, relative to the largest magnitude of the reference's."""
    expected: dict[str, Array] = dict(np.load(reference))
    return [max((0.0, *errors(expected, dict(np.load(file))))) for file in files]


def errors(expected: dict[str, Array], got: dict[str, Array]) -> list[float]:
    by_position = list(got.values())
    found = []
    for k, (name, e) in enumerate(expected.items()):
        g = got.get(name, by_position[k] if k < len(by_position) else np.zeros(0))
        if g.size != e.size:
            found.append(math.inf)
        elif e.size:
            a, b = g.ravel().astype(np.float64), e.ravel().astype(np.float64)
            found.append(float(np.abs(a - b).max() / max(float(np.abs(b).max()), 1e-30)))
    return found
