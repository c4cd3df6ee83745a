"""Who says what a TensorFlow graph gives: lamina, OpenVINO's own reader, and TensorFlow where it is installed."""

import importlib.util
import inspect
import os
import pathlib
import subprocess

import numpy as np
from tensorflow_graph import Graph, Shape, Type

TOOL = os.environ.get("LAMINA_TOOL", "build/release/bin/lamina")


def run_lamina(
    model: pathlib.Path, feeds: dict[str, np.ndarray], folder: pathlib.Path, *options: str
) -> dict[str, np.ndarray] | str:
    """Results by name, or what it says is wrong."""
    out = folder / "out.npz"
    arguments = [TOOL, "run", str(model), "--output", str(out), "--quiet", *options]
    for i, (name, value) in enumerate(feeds.items()):
        np.save(folder / f"{i}.npy", value)
        arguments += ["--input", f"{name}={folder / f'{i}.npy'}"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    if done.returncode:
        return done.stderr.strip() or f"exit status {done.returncode}"
    with np.load(out) as results:
        return dict(results)


def run_openvino(core, model: pathlib.Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    import openvino

    read = core.read_model(model)
    by_name = {p.get_node().get_friendly_name().removesuffix(":0"): p for p in read.inputs}
    read.reshape({by_name[n]: openvino.PartialShape(list(v.shape)) for n, v in feeds.items() if n in by_name})
    request = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    request.infer({p.any_name: feeds[n] for n, p in by_name.items()})
    return [np.array(request.get_output_tensor(i).data) for i in range(len(read.outputs))]


def has_tensorflow() -> bool:
    return importlib.util.find_spec("tensorflow") is not None


def run_tensorflow(graph: Graph, feeds: dict[str, np.ndarray], wanted: list[str]) -> list[np.ndarray]:
    """Each node by TensorFlow's own operator, at once; nothing where it has none for this processor."""
    import tensorflow as tf
    from tensorflow.python.framework import op_def_registry

    values: dict[str, list] = {}

    def value(reference: str) -> object:
        name, _, port = reference.partition(":")
        return values[name][int(port or 0)]

    def attribute(a: object) -> object:
        if isinstance(a, list):
            return [attribute(v) for v in a]
        return tf.dtypes.as_dtype(str(a)) if isinstance(a, Type) else list(a) if isinstance(a, Shape) else a

    for op, name, inputs, attributes in graph.records:
        if name in feeds:
            values[name] = [tf.constant(feeds[name])]
        elif op == "Const":
            values[name] = [tf.constant(attributes["value"])]
        elif op != "Placeholder":
            definition, function = op_def_registry.get(op), getattr(tf.raw_ops, op)
            parameters = set(inspect.signature(function).parameters)
            data = [value(i) for i in inputs if not i.startswith("^")]
            arguments = {
                a: attribute(v) for a, v in attributes.items() if renamed(a, parameters) in parameters
            }
            for at, argument in enumerate(definition.input_arg):
                behind = len(definition.input_arg) - at - 1
                if argument.number_attr or argument.type_list_attr:
                    count = attributes.get(argument.number_attr, len(data) - behind)
                    arguments[argument.name], data = data[:count], data[count:]
                else:
                    arguments[argument.name], *data = data
            try:
                result = function(**{renamed(a, parameters): v for a, v in arguments.items()})
            except (tf.errors.NotFoundError, tf.errors.UnimplementedError):
                return []
            values[name] = list(result) if isinstance(result, (tuple, list)) else [result]
    return [np.asarray(value(w)) for w in wanted]


def renamed(argument: str, parameters: set[str]) -> str:
    """TensorFlow's functions call some arguments by other names than its files do."""
    names = {
        "reduction_indices": "axis",
        "squeeze_dims": "axis",
        "dim": "axis",
        "split_dim": "axis",
        "concat_dim": "axis",
    }
    names |= {"t": "x", "e": "y", "input": "condition"}
    return argument if argument in parameters else names.get(argument, argument)


def difference(got: np.ndarray, wanted: np.ndarray, tolerance: float) -> str:
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{got.dtype}{list(got.shape)}, wanted {wanted.dtype}{list(wanted.shape)}"
    near = np.isclose(
        got.astype("f8"), wanted.astype("f8"), rtol=tolerance, atol=tolerance / 10, equal_nan=True
    )
    if not near.all():
        at = np.flatnonzero(~near.ravel())
        return f"element {at[0]} and {len(at) - 1} more of {got.size}: {got.ravel()[at[0]]}, wanted {wanted.ravel()[at[0]]}"
    return ""
