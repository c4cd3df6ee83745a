"""Seeded weights that keep every layer's values plausible.

A network's weights come as ConstantOfShape nodes or constants of one value. They are drawn anew, then each
layer is run on a seeded input and scaled so that its output has unit variance. So nothing overflows, no
denormal numbers come up and Softmax is not saturated: times and comparisons mean what they mean on trained
weights.
"""

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

Arrays = dict[str, NDArray[np.generic]]
WITH_WEIGHTS = ("Conv", "Gemm", "MatMul")
# Ranges of BatchNormalization's inputs: scale, shift, mean, variance.
BATCH_NORM = {1: (0.8, 1.2), 2: (-0.2, 0.2), 3: (-0.2, 0.2), 4: (0.8, 1.2)}
LOGITS = 3.0  # the deviation of the last layer's output: a Softmax behind it has clear winners


def run_node(node: NodeProto, values: Arrays, opset: int) -> Arrays:
    """One node by itself in ONNX Runtime."""
    feeds = {n: values[n] for n in dict.fromkeys(node.input) if n}
    names = [n for n in node.output if n]
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    graph = helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name=n) for n in names])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return dict(zip(names, session.run(None, feeds), strict=True))


def drawn(
    node: NodeProto, slot: int, shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.generic]:
    """A first guess for a weight: the node that reads it decides."""
    if node.op_type == "BatchNormalization":
        return rng.uniform(*BATCH_NORM[slot], shape).astype(np.float32)
    if node.op_type == "Mul":
        return rng.uniform(0.8, 1.2, shape).astype(np.float32)
    if len(shape) == 1 or node.op_type == "Add":
        return rng.normal(0, 0.1, shape).astype(np.float32)
    fan_in = max(1, int(np.prod(shape[1:])))
    return rng.normal(0, np.sqrt(2 / fan_in), shape).astype(np.float32)


def first_weights(
    graph: onnx.GraphProto, shapes: dict[str, tuple[int, ...]], rng: np.random.Generator
) -> Arrays:
    readers = {n: (node, i) for node in graph.node for i, n in enumerate(node.input)}
    weights: Arrays = {}
    for name, shape in shapes.items():
        node, slot = readers[name]
        while node.op_type in ("Unsqueeze", "Reshape") and node.output[0] in readers:
            node, slot = readers[node.output[0]]
        weights[name] = drawn(node, slot, shape, rng)
    return weights


def settle_batch_norm(node: NodeProto, values: Arrays, weights: Arrays) -> None:
    """Sets the statistics to those of the input, the variance with some of the guess's scatter."""
    x, axes = values[node.input[0]], (0, 2, 3)
    scatter = weights[node.input[4]]
    variance = 0.5 * x.var(axes) + 0.5 * x.var()
    for name, array in ((node.input[3], x.mean(axes)), (node.input[4], variance * scatter + 1e-3)):
        values[name] = weights[name] = array.astype(np.float32)


def run_settled(node: NodeProto, values: Arrays, weights: Arrays, opset: int, deviation: float) -> None:
    """Runs a node; its weights are scaled so that the output has that deviation."""
    if node.op_type == "BatchNormalization" and node.input[3] in weights:
        settle_batch_norm(node, values, weights)
    out = run_node(node, values, opset)
    if node.op_type in WITH_WEIGHTS and node.input[1] in weights:
        first, bias = out[node.output[0]], np.float32(0)
        if len(node.input) > 2 and node.input[2]:
            bias = values[node.input[2]].reshape((1, -1) + (1,) * (first.ndim - 2))
        factor = np.float32(deviation / max(1e-12, float((first - bias).std())))
        values[node.input[1]] = weights[node.input[1]] = weights[node.input[1]] * factor
        out = {node.output[0]: (first - bias) * factor + bias}
    values.update(out)


def input_arrays(inputs: list[onnx.ValueInfoProto], rng: np.random.Generator) -> Arrays:
    feeds: Arrays = {}
    for info in inputs:
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        if info.type.tensor_type.elem_type == TensorProto.INT64:
            feeds[info.name] = rng.integers(0, 1000, shape)
        else:
            feeds[info.name] = rng.normal(0, 1, shape).astype(np.float32)
    return feeds


def settle(model: onnx.ModelProto, seed: int) -> tuple[onnx.ModelProto, Arrays]:
    """The model with its weights, and inputs for it."""
    graph, opset = model.graph, model.opset_import[0].version
    rng = np.random.default_rng(seed)
    known: Arrays = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    shapes: dict[str, tuple[int, ...]] = {}
    nodes: list[NodeProto] = []
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in known:
            shapes[node.output[0]] = tuple(int(d) for d in known.pop(node.input[0]))
        else:
            nodes.append(node)
    weights = first_weights(graph, shapes, rng)
    read = {n for node in nodes for n in node.input}
    inputs = [i for i in graph.input if i.name in read and i.name not in weights and i.name not in known]
    feeds = input_arrays(inputs, rng)

    values: Arrays = {**known, **weights, **feeds}
    layers = [node for node in nodes if node.op_type in WITH_WEIGHTS]
    for node in nodes:
        last = bool(layers) and node is layers[-1]
        run_settled(node, values, weights, opset, LOGITS if last else 1.0)
    for output in graph.output:
        result = values[output.name]
        if not (np.isfinite(result).all() and result.std() > 0):
            raise SystemExit(f"{output.name} of the network has no useful values")
        output.CopyFrom(helper.make_tensor_value_info(output.name, TensorProto.FLOAT, result.shape))
    rebuild(model, nodes, inputs, {**known, **weights})
    return model, feeds


def rebuild(
    model: onnx.ModelProto, nodes: list[NodeProto], inputs: list[onnx.ValueInfoProto], constants: Arrays
) -> None:
    graph = model.graph
    del graph.node[:], graph.initializer[:], graph.input[:]
    graph.node.extend(nodes)
    graph.input.extend(inputs)
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    model.ir_version = max(model.ir_version, 8)
    onnx.checker.check_model(model)
