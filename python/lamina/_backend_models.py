"""Variants of ONNX models for inputs that lamina's requests do not take: sequences, and values that shapes depend on."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import ModelProto, NodeProto, TypeProto, ValueInfoProto, helper, numpy_helper

Array = npt.NDArray[Any]
#: A value of the backend: a tensor, or a sequence of them.
Value = Array | list[Array]


def given_inputs(model: ModelProto) -> list[ValueInfoProto]:
    """The inputs without an initial value: those that a run is given."""
    initial = {tensor.name for tensor in model.graph.initializer}
    return [port for port in model.graph.input if port.name not in initial]


def sequence_type(kind: TypeProto) -> TypeProto.Sequence | None:
    """The type of a sequence, also of one that is optional; None for all other types."""
    if kind.HasField("optional_type"):
        kind = kind.optional_type.elem_type
    return kind.sequence_type if kind.HasField("sequence_type") else None


def has_sequences(model: ModelProto) -> bool:
    """Whether an input or output is a sequence of tensors."""
    return any(sequence_type(port.type) for port in (*given_inputs(model), *model.graph.output))


def may_be_constant(value: Array) -> bool:
    """Whether a value may be a list of axes or sizes, a number, or a flag, which most models have as constants."""
    return (value.size == 1 and value.ndim < 2) or (value.ndim == 1 and value.dtype.kind == "i" and value.size <= 8)


def could_have_constants(model: ModelProto) -> bool:
    """Whether the model has an input whose value may_be_constant(), as far as the types in the model say."""
    for port in given_inputs(model):
        tensor = port.type.tensor_type
        sizes = [size.dim_value if size.HasField("dim_value") else -1 for size in tensor.shape.dim]
        integer = tensor.elem_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
        one = len(sizes) == 0 or (len(sizes) == 1 and sizes[0] in (-1, 1))
        if one or (len(sizes) == 1 and integer and sizes[0] <= 8) or not tensor.HasField("shape"):
            return True
    return False


def with_constants(model: ModelProto, constants: Mapping[str, Array]) -> ModelProto:
    """The model with these inputs as initial values that are no inputs."""
    copy = ModelProto()
    copy.CopyFrom(model)
    kept = [port for port in copy.graph.input if port.name not in constants]
    _replace(copy.graph.input, kept)
    copy.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return copy


def with_elements(
    model: ModelProto, inputs: Mapping[str, Value], lengths: Mapping[str, int] | None
) -> tuple[ModelProto, dict[str, Array]]:
    """The model with an input for each element of a sequence, which it puts together itself; and these inputs.

    Sequences as outputs become an output for each element, "name.0" and so on, if their `lengths` are given, else one
    for the length, "name.length".
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    feed: dict[str, Array] = {}
    ports: list[ValueInfoProto] = []
    before: list[NodeProto] = []
    for port in graph.input:
        kind = sequence_type(port.type)
        value = inputs.get(port.name)
        if isinstance(value, list) and kind is not None:
            names = [f"{port.name}.{i}" for i in range(len(value))]
            feed |= dict(zip(names, value, strict=True))
            ports += [_port(name, element) for name, element in zip(names, value, strict=True)]
            before.append(_construct(names, port.name, kind))
        else:
            if value is not None:
                feed[port.name] = value if not isinstance(value, list) else np.asarray(value)
            known = port.type.HasField("optional_type") and value is not None
            ports.append(_port(port.name, feed[port.name]) if known else port)
    outputs: list[ValueInfoProto] = []
    after: list[NodeProto] = []
    for port in graph.output:
        kind = sequence_type(port.type)
        if kind is None:
            outputs.append(port)
        elif lengths is None:
            after.append(helper.make_node("SequenceLength", [port.name], [f"{port.name}.length"]))
            outputs.append(helper.make_tensor_value_info(f"{port.name}.length", onnx.TensorProto.INT64, ()))
        else:
            for i in range(lengths[port.name]):
                name = f"{port.name}.{i}"
                after.append(helper.make_node("Constant", [], [f"{name}.at"], value_int=i))
                after.append(helper.make_node("SequenceAt", [port.name, f"{name}.at"], [name]))
                outputs.append(helper.make_tensor_value_info(name, kind.elem_type.tensor_type.elem_type, None))
    _replace(graph.node, before + list(graph.node) + after)
    _replace(graph.input, ports)
    _replace(graph.output, outputs)
    return copy, feed


def model_of_node(node: NodeProto, inputs: Sequence[Value], opset: int, outputs: Iterable[ValueInfoProto]) -> ModelProto:
    """A model of one node, for these inputs; `outputs` where their types are known."""
    names = [name for name in node.input if name]
    ports = [_port(name, value) for name, value in zip(names, inputs, strict=True)]
    known = {port.name: port for port in outputs}
    results = [known.get(name, ValueInfoProto(name=name)) for name in node.output if name]
    graph = helper.make_graph([node], "node", ports, results)
    opsets = [helper.make_opsetid(node.domain, opset)]
    if node.domain:
        opsets.append(helper.make_opsetid("", onnx.defs.onnx_opset_version()))
    model = helper.make_model(graph, opset_imports=opsets)
    return model if known else onnx.shape_inference.infer_shapes(model)


def _port(name: str, value: Value) -> ValueInfoProto:
    if isinstance(value, list):
        element = value[0] if value else np.zeros(0, np.float32)
        return helper.make_tensor_sequence_value_info(name, helper.np_dtype_to_tensor_dtype(element.dtype), None)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def _construct(elements: Sequence[str], name: str, kind: TypeProto.Sequence) -> NodeProto:
    if elements:
        return helper.make_node("SequenceConstruct", elements, [name])
    return helper.make_node("SequenceEmpty", [], [name], dtype=kind.elem_type.tensor_type.elem_type)


def _replace(field: Any, items: Iterable[Any]) -> None:
    kept = list(items)
    del field[:]
    field.extend(kept)
