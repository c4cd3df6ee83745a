"""Models that grow in one direction, for bench/compile-times."""

import json
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class File(NamedTuple):
    """A model of another format."""

    suffix: str
    data: bytes


Model = onnx.ModelProto | File


def save(model: Model, stem: pathlib.Path) -> pathlib.Path:
    """Writes the model beside others; `stem` is its path without the suffix."""
    path = stem.with_suffix(model.suffix if isinstance(model, File) else ".onnx")
    path.write_bytes(model.data if isinstance(model, File) else model.SerializeToString())
    return path


def _floats(name: str, *shape: int) -> onnx.TensorProto:
    seed = sum(map(ord, name)) + len(name)
    return numpy_helper.from_array(np.random.default_rng(seed).uniform(0.1, 0.3, shape).astype(np.float32), name)


def _input(name: str, *shape: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _output(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


def _model(nodes, inputs, outputs, constants=(), functions=()) -> Model:
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=8)


def _chain(n: int, node: Callable[[int, str, str], list[onnx.NodeProto]], shape, constants=()) -> Model:
    nodes = []
    for i in range(n):
        nodes += node(i, f"x{i}", f"x{i + 1}")
    return _model(nodes, [_input("x0", *shape)], [_output(f"x{n}")], constants)


def elementwise(n: int) -> Model:
    kinds = ("Relu", "Sigmoid", "Tanh", "Abs", "Softplus")
    return _chain(n, lambda i, x, y: [helper.make_node(kinds[i % 5], [x], [y])], (1, 16))


def linear_layers(n: int) -> Model:
    constants = [_floats(f"w{i}", 8, 8) for i in range(n)] + [_floats(f"b{i}", 8) for i in range(n)]

    def layer(i: int, x: str, y: str) -> list[onnx.NodeProto]:
        return [
            helper.make_node("MatMul", [x, f"w{i}"], [f"m{i}"]),
            helper.make_node("Add", [f"m{i}", f"b{i}"], [f"a{i}"]),
            helper.make_node("Relu", [f"a{i}"], [y]),
        ]

    return _chain(n, layer, (1, 8), constants)


def convolutions(n: int) -> Model:
    constants = [_floats(f"w{i}", 8, 8, 3, 3) for i in range(n)]

    def layer(i: int, x: str, y: str) -> list[onnx.NodeProto]:
        return [
            helper.make_node("Conv", [x, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"c{i}"], [f"r{i}"]),
            helper.make_node("Add", [f"r{i}", x], [y]),
        ]

    return _chain(n, layer, (1, 8, 6, 6), constants)


def arithmetic(n: int) -> Model:
    """Products and sums with constants, which rules bring together."""
    constants = [_floats(f"c{i}", 16) for i in range(n)]
    return _chain(n, lambda i, x, y: [helper.make_node(("Mul", "Add")[i % 2], [x, f"c{i}"], [y])], (2, 16), constants)


def reshapes(n: int) -> Model:
    shapes = [numpy_helper.from_array(np.array(s), f"s{k}") for k, s in enumerate([[4, 6], [2, 12], [3, 8]])]
    return _chain(n, lambda i, x, y: [helper.make_node("Reshape", [x, f"s{i % 3}"], [y])], (24,), shapes)


def transposes(n: int) -> Model:
    perms = ([0, 2, 1, 3], [0, 3, 1, 2], [0, 1, 3, 2])

    def layer(i: int, x: str, y: str) -> list[onnx.NodeProto]:
        return [
            helper.make_node("Transpose", [x], [f"t{i}"], perm=perms[i % 3]),
            helper.make_node("Relu" if i % 2 else "Sigmoid", [f"t{i}"], [y]),
        ]

    return _chain(n, layer, (1, 3, 4, 5))


def outputs(n: int) -> Model:
    nodes = [helper.make_node(("Relu", "Sigmoid")[i % 2], ["x"], [f"y{i}"]) for i in range(n)]
    return _model(nodes, [_input("x", 1, 16)], [_output(f"y{i}") for i in range(n)])


def inputs(n: int) -> Model:
    nodes = [helper.make_node("Relu", [f"x{i}"], [f"r{i}"]) for i in range(n)]
    nodes.append(helper.make_node("Sum", [f"r{i}" for i in range(n)], ["y"]))
    return _model(nodes, [_input(f"x{i}", 1, 16) for i in range(n)], [_output("y")])


def constants(n: int) -> Model:
    """Constants of which everything is folded."""
    nodes = [helper.make_node("Exp", [f"c{i}"], [f"e{i}"]) for i in range(n)]
    nodes.append(helper.make_node("Concat", [f"e{i}" for i in range(n)] + ["x"], ["y"], axis=0))
    return _model(nodes, [_input("x", 4)], [_output("y")], [_floats(f"c{i}", 4) for i in range(n)])


def shared_constant(n: int) -> Model:
    nodes = [helper.make_node("MatMul", [f"x{i}", "w"], [f"x{i + 1}"]) for i in range(n)]
    return _model(nodes, [_input("x0", 1, 8)], [_output(f"x{n}")], [_floats("w", 8, 8)])


def shared_value(n: int) -> Model:
    """A value that all nodes read."""
    nodes = [helper.make_node("Add", [f"x{i}", "s"], [f"x{i + 1}"]) for i in range(n)]
    nodes.insert(0, helper.make_node("Sigmoid", ["x0"], ["s"]))
    return _model(nodes, [_input("x0", 1, 8)], [_output(f"x{n}")])


def wide_concat(n: int) -> Model:
    nodes = [helper.make_node("Relu" if i % 2 else "Sigmoid", ["x"], [f"r{i}"]) for i in range(n)]
    nodes.append(helper.make_node("Concat", [f"r{i}" for i in range(n)], ["y"], axis=1))
    return _model(nodes, [_input("x", 1, 4)], [_output("y")])


def wide_split(n: int) -> Model:
    nodes = [helper.make_node("Split", ["x"], [f"p{i}" for i in range(n)], axis=1)]
    nodes += [helper.make_node("Relu", [f"p{i}"], [f"r{i}"]) for i in range(n)]
    nodes.append(helper.make_node("Sum", [f"r{i}" for i in range(n)], ["y"]))
    return _model(nodes, [_input("x", 1, 2 * n)], [_output("y")])


def shape_arithmetic(n: int) -> Model:
    """Sizes that are asked for and used, again and again."""
    numbers = [numpy_helper.from_array(np.array([k]), f"k{k}") for k in (0, 1, -1)]

    def layer(i: int, x: str, y: str) -> list[onnx.NodeProto]:
        return [
            helper.make_node("Shape", [x], [f"s{i}"]),
            helper.make_node("Slice", [f"s{i}", "k0", "k1"], [f"b{i}"]),
            helper.make_node("Concat", [f"b{i}", "k-1"], [f"p{i}"], axis=0),
            helper.make_node("Reshape", [x, f"p{i}"], [f"r{i}"]),
            helper.make_node("Relu" if i % 2 else "Sigmoid", [f"r{i}"], [y]),
        ]

    model = _chain(n, layer, (1, 4), numbers)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    return model


def _branches(then: onnx.GraphProto, last: str, result: str) -> onnx.NodeProto:
    other = helper.make_graph([helper.make_node("Abs", [last], ["o"])], "else", [], [_output("o")])
    return helper.make_node("If", ["c"], [result], then_branch=then, else_branch=other)


def _branch(n: int) -> onnx.GraphProto:
    nodes = [helper.make_node("Relu", [f"x{i}" if i else "x"], [f"x{i + 1}"]) for i in range(n)]
    return helper.make_graph(nodes, "then", [], [_output(f"x{n}")])


def untaken_branches(n: int) -> Model:
    """A function with a branch of n nodes that is never taken, called n / 10 times."""
    no = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.array(False)))
    imports = [helper.make_opsetid("", 17)]
    function = helper.make_function("local", "f", ["x"], ["y"], [no, _branches(_branch(n), "x", "y")], imports)
    calls = max(1, n // 10)
    nodes = [helper.make_node("f", [f"v{i}"], [f"v{i + 1}"], domain="local") for i in range(calls)]
    return _model(nodes, [_input("v0", 1, 4)], [_output(f"v{calls}")], functions=[function])


def branches(n: int) -> Model:
    """Conditions that are known only when the model runs."""
    nodes = []
    for i in range(n):
        inner = helper.make_graph([helper.make_node("Exp", [f"v{i}"], ["t"])], "then", [], [_output("t")])
        nodes.append(_branches(inner, f"v{i}", f"v{i + 1}"))
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    return _model(nodes, [_input("v0", 1, 4), condition], [_output(f"v{n}")])


def function_calls(n: int) -> Model:
    body = [helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Sigmoid", ["t"], ["y"])]
    function = helper.make_function("local", "f", ["x"], ["y"], body, [helper.make_opsetid("", 17)])
    nodes = [helper.make_node("f", [f"v{i}"], [f"v{i + 1}"], domain="local") for i in range(n)]
    return _model(nodes, [_input("v0", 1, 4)], [_output(f"v{n}")], functions=[function])


def depth(n: int) -> Model:
    """Branches in branches, n deep, each with a few nodes."""
    inner = _branch(20)
    for i in range(n):
        node = _branches(inner, "x", f"r{i}")
        inner = helper.make_graph([node, *_branch(20).node], f"level{i}", [], [_output(f"r{i}")])
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    return _model(list(inner.node), [_input("x", 1, 4), condition], [_output(f"r{n - 1}")])


def long_names(n: int) -> Model:
    """200 nodes whose names have n characters."""
    nodes = [helper.make_node("Relu" if i % 2 else "Exp", [f"{'x' * n}{i}"], [f"{'x' * n}{i + 1}"]) for i in range(200)]
    for i, node in enumerate(nodes):
        node.name = f"{'n' * n}{i}"
    return _model(nodes, [_input(f"{'x' * n}0", 1, 4)], [_output(f"{'x' * n}200")])


def equal_names(n: int) -> Model:
    """Nodes of one name."""
    model = elementwise(n)
    for node in model.graph.node:
        node.name = "node"
    return model


def quantize_steps(n: int) -> Model:
    constants = [numpy_helper.from_array(np.array(0.1, np.float32), "s"), numpy_helper.from_array(np.array(0, np.int8), "z")]

    def layer(i: int, x: str, y: str) -> list[onnx.NodeProto]:
        return [
            helper.make_node("QuantizeLinear", [x, "s", "z"], [f"q{i}"]),
            helper.make_node("DequantizeLinear", [f"q{i}", "s", "z"], [f"d{i}"]),
            helper.make_node("Relu" if i % 2 else "Sigmoid", [f"d{i}"], [y]),
        ]

    return _chain(n, layer, (1, 16), constants)


def tree_of_sums(n: int) -> Model:
    """Sums of pairs of n values, of pairs of these, and so on."""
    nodes = [helper.make_node("Relu" if i % 2 else "Sigmoid", ["x"], [f"l{i}"]) for i in range(n)]
    level = [f"l{i}" for i in range(n)]
    while len(level) > 1:
        sums = [f"s{len(nodes) + i}" for i in range(len(level) // 2)]
        nodes += [helper.make_node("Add", [level[2 * i], level[2 * i + 1]], [s]) for i, s in enumerate(sums)]
        level = sums + level[2 * len(sums) :]
    return _model(nodes, [_input("x", 1, 8)], [_output(level[0])])


def readers_of_a_value(n: int) -> Model:
    """A value that n nodes read, each of which is rewritten."""
    nodes = [helper.make_node("Sigmoid", ["x"], ["s"])]
    nodes += [helper.make_node("Mul", ["s", f"c{i}"], [f"p{i}"]) for i in range(n)]
    nodes.append(helper.make_node("Sum", [f"p{i}" for i in range(n)], ["y"]))
    return _model(nodes, [_input("x", 1, 8)], [_output("y")], [_floats(f"c{i}", 8) for i in range(n)])


def split_and_joined(n: int) -> Model:
    nodes = [
        helper.make_node("Split", ["x"], [f"p{i}" for i in range(n)], axis=1),
        helper.make_node("Concat", [f"p{(i + n // 2) % n}" for i in range(n)], ["y"], axis=1),
    ]
    return _model(nodes, [_input("x", 1, n)], [_output("y")])


def chain_of_sizes(n: int) -> Model:
    """A long computation of one size."""
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    for i in range(n):
        nodes += [helper.make_node("Add", [f"s{i}", "one"], [f"a{i}"]), helper.make_node("Mul", [f"a{i}", "one"], [f"s{i + 1}"])]
    nodes.append(helper.make_node("ConstantOfShape", [f"s{n}"], ["y"]))
    model = _model(nodes, [_input("x", 1)], [_output("y")], [numpy_helper.from_array(np.array([1]), "one")])
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    return model


def loops(n: int) -> Model:
    truth = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    count = helper.make_tensor_value_info("t", TensorProto.INT64, [])
    going_on = helper.make_tensor_value_info("o", TensorProto.BOOL, [])
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "v"], ["w"]), helper.make_node("Identity", ["c"], ["o"])],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), truth, _input("v", 1, 4)],
        [going_on, _output("w")],
    )
    nodes = [helper.make_node("Loop", ["t", "", f"v{i}"], [f"v{i + 1}"], body=body) for i in range(n)]
    return _model(nodes, [_input("v0", 1, 4), count], [_output(f"v{n}")])


def nested_functions(n: int) -> Model:
    """Functions that call each other, 20 deep."""
    imports, deep = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)], 20
    functions = []
    calls = max(1, n // deep)
    for i in range(calls):
        for level in range(deep):
            last = level == deep - 1
            inner = helper.make_node("Tanh", ["t"], ["y"]) if last else helper.make_node(f"f{i}_{level + 1}", ["t"], ["y"], domain="local")
            functions.append(helper.make_function("local", f"f{i}_{level}", ["x"], ["y"], [helper.make_node("Relu", ["x"], ["t"]), inner], imports))
    nodes = [helper.make_node(f"f{i}_0", [f"v{i}"], [f"v{i + 1}"], domain="local") for i in range(calls)]
    return _model(nodes, [_input("v0", 1, 4)], [_output(f"v{calls}")], functions=functions)


def ir_layers(n: int) -> File:
    def port(index: int) -> str:
        return f'<port id="{index}" precision="FP32"><dim>1</dim><dim>8</dim></port>'

    layers = [f'<layer id="0" name="x" type="Parameter" version="opset1"><data element_type="f32" shape="1,8"/><output>{port(1)}</output></layer>']
    for i in range(1, n + 1):
        kind = "ReLU" if i % 2 else "Sigmoid"
        layers.append(f'<layer id="{i}" name="n{i}" type="{kind}" version="opset1"><input>{port(0)}</input><output>{port(1)}</output></layer>')
    layers.append(f'<layer id="{n + 1}" name="y" type="Result" version="opset1"><input>{port(0)}</input></layer>')
    edges = "".join(f'<edge from-layer="{i}" from-port="1" to-layer="{i + 1}" to-port="0"/>' for i in range(n + 1))
    return File(".xml", f'<net name="m" version="11"><layers>{"".join(layers)}</layers><edges>{edges}</edges></net>'.encode())


def tensorflow_nodes(n: int) -> File:
    out = 'node { name: "v0" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 8 } } } } }\n'
    for i in range(n):
        kind = "Relu" if i % 2 else "Sigmoid"
        out += f'node {{ name: "v{i + 1}" op: "{kind}" input: "v{i}" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}\n'
    return File(".pbtxt", out.encode())


def caffe_layers(n: int) -> File:
    out = 'name: "m"\nlayer { name: "v0" type: "Input" top: "v0" input_param { shape { dim: 1 dim: 8 } } }\n'
    for i in range(n):
        kind = "ReLU" if i % 2 else "Sigmoid"
        out += f'layer {{ name: "v{i + 1}" type: "{kind}" bottom: "v{i}" top: "v{i + 1}" }}\n'
    return File(".prototxt", out.encode())


def onednn_operations(n: int) -> File:
    def tensor(index: int) -> dict:
        return {"id": index, "dtype": "f32", "shape": [1, 8], "stride": [8, 1], "layout_type": "strided", "property_type": "undef"}

    operations = [
        {"id": i, "name": f"n{i}", "kind": "ReLU" if i % 2 else "Sigmoid", "attrs": {}, "inputs": [tensor(i)], "outputs": [tensor(i + 1)]} for i in range(n)
    ]
    return File(".json", json.dumps({"version": "3.2.0", "engine_kind": "cpu", "fpmath_mode": "strict", "graph": operations}).encode())


# name: (what makes the model, what grows, its sizes)
DOUBLINGS = (250, 500, 1000, 2000, 4000)
GROWING: dict[str, tuple[Callable[[int], Model], str, tuple[int, ...]]] = {
    "elementwise": (elementwise, "nodes", DOUBLINGS),
    "linear layers": (linear_layers, "layers", DOUBLINGS),
    "convolutions": (convolutions, "layers", DOUBLINGS[:4]),
    "arithmetic": (arithmetic, "nodes", DOUBLINGS),
    "reshapes": (reshapes, "nodes", DOUBLINGS),
    "transposes": (transposes, "nodes", DOUBLINGS),
    "shape arithmetic": (shape_arithmetic, "layers", DOUBLINGS[:4]),
    "outputs": (outputs, "outputs", (1000, 2000, 4000, 8000, 16000)),
    "inputs": (inputs, "inputs", DOUBLINGS),
    "constants": (constants, "constants", DOUBLINGS),
    "shared constant": (shared_constant, "nodes", DOUBLINGS),
    "shared value": (shared_value, "nodes", DOUBLINGS),
    "wide Concat": (wide_concat, "inputs", DOUBLINGS),
    "wide Split": (wide_split, "outputs", DOUBLINGS),
    "untaken branches": (untaken_branches, "nodes of the branch", (500, 1000, 2000, 4000, 8000)),
    "branches": (branches, "branches", (100, 200, 400, 800)),
    "function calls": (function_calls, "calls", DOUBLINGS),
    "depth": (depth, "levels", (3, 6, 12, 24)),
    "long names": (long_names, "characters", (1000, 2000, 4000, 8000)),
    "equal names": (equal_names, "nodes", DOUBLINGS),
    "quantize steps": (quantize_steps, "steps", DOUBLINGS),
    "tree of sums": (tree_of_sums, "leaves", DOUBLINGS),
    "readers of a value": (readers_of_a_value, "readers", (2000, 4000, 8000, 16000)),
    "split and joined": (split_and_joined, "parts", (4000, 8000, 16000, 32000)),
    "chain of sizes": (chain_of_sizes, "nodes", DOUBLINGS[:4]),
    "loops": (loops, "loops", DOUBLINGS),
    "nested functions": (nested_functions, "functions", (2000, 4000, 8000, 16000)),
    "IR": (ir_layers, "layers", (2500, 5000, 10000)),
    "TensorFlow": (tensorflow_nodes, "nodes", (5000, 10000, 20000)),
    "Caffe": (caffe_layers, "layers", (2500, 5000, 10000)),
    "oneDNN Graph": (onednn_operations, "operations", (2500, 5000, 10000)),
}
