"""Small models, as onnx.ModelProto or OpenVINO IR."""

import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ONNX_TYPES = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "float16": TensorProto.FLOAT16,
    "int8": TensorProto.INT8,
    "int16": TensorProto.INT16,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "uint8": TensorProto.UINT8,
    "uint16": TensorProto.UINT16,
    "uint32": TensorProto.UINT32,
    "uint64": TensorProto.UINT64,
    "bool": TensorProto.BOOL,
    "bfloat16": TensorProto.BFLOAT16,
    "float8_e4m3fn": TensorProto.FLOAT8E4M3FN,
}


def graph_model(nodes, inputs, outputs, initializers=(), opset=19) -> onnx.ModelProto:
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 9
    return model


def value(name: str, shape: Sequence[int | str] | None, dtype: str = "float32"):
    return helper.make_tensor_value_info(name, ONNX_TYPES[dtype], shape)


def relu(shape: Sequence[int | str] | None = (4,)) -> onnx.ModelProto:
    return graph_model([helper.make_node("Relu", ["x"], ["y"])], [value("x", shape)], [value("y", shape)])


def two_relus() -> onnx.ModelProto:
    """As relu(): a rule takes one of the two away, which is logged on every machine."""
    nodes = [helper.make_node("Relu", ["x"], ["z"]), helper.make_node("Relu", ["z"], ["y"])]
    return graph_model(nodes, [value("x", (4,))], [value("y", (4,))])


def identity(dtype: str, shape: Sequence[int | str] | None) -> onnx.ModelProto:
    """y has the elements of x."""
    node = helper.make_node("Identity", ["x"], ["y"])
    return graph_model([node], [value("x", shape, dtype)], [value("y", shape, dtype)])


def sums(a: str = "a", b: str = "b") -> onnx.ModelProto:
    """sum = a + b, difference = a - b, of any batch."""
    return graph_model(
        [helper.make_node("Add", [a, b], ["sum"]), helper.make_node("Sub", [a, b], ["difference"])],
        [value(a, ("n", 4)), value(b, ("n", 4))],
        [value("sum", ("n", 4)), value("difference", ("n", 4))],
    )


def with_default() -> onnx.ModelProto:
    """y = x + w, where w is an input with a value."""
    w = numpy_helper.from_array(np.full(4, 10, np.float32), "w")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    return graph_model([node], [value("x", (4,)), value("w", (4,))], [value("y", (4,))], [w])


def non_zeros() -> onnx.ModelProto:
    """A result whose shape depends on values."""
    node = helper.make_node("NonZero", ["x"], ["where"])
    return graph_model([node], [value("x", (6,))], [value("where", (1, None), "int64")])


def endless(size: int = 32) -> onnx.ModelProto:
    """A loop of products that takes hours if its input `count` is large."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["last", "w"], ["product"]),
            helper.make_node("Tanh", ["product"], ["next"]),
            helper.make_node("Identity", ["go"], ["goes_on"]),
        ],
        "body",
        [value("i", (), "int64"), value("go", (), "bool"), value("last", (size, size))],
        [value("goes_on", (), "bool"), value("next", (size, size))],
    )
    weights = np.eye(size, dtype=np.float32)
    return graph_model(
        [helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)],
        [value("x", (size, size)), value("count", (), "int64")],
        [value("y", (size, size))],
        [numpy_helper.from_array(weights, "w")],
    )


def long_to_compile(layers: int = 3000, rows: int | str = 4) -> onnx.ModelProto:
    """A model whose compilation takes some seconds; with a name for `rows`, the first run of a new size does, too."""
    nodes, weights = [], []
    rng = np.random.default_rng(1)
    last = "x"
    for i in range(layers):
        w = rng.random((8 + i % 5 * 0, 8), np.float32)
        weights.append(numpy_helper.from_array(w, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"p{i}"]))
        nodes.append(helper.make_node("Sigmoid" if i % 2 else "Tanh", [f"p{i}"], [f"t{i}"]))
        last = f"t{i}"
    return graph_model(nodes, [value("x", (rows, 8))], [value(last, (rows, 8))], weights)


def long_to_quantize(layers: int = 40, size: int = 256) -> onnx.ModelProto:
    """A model whose quantisation takes some seconds."""
    rng = np.random.default_rng(1)
    nodes, weights, last = [], [], "x"
    for i in range(layers):
        w = rng.standard_normal((size, size)).astype(np.float32) / size**0.5
        weights.append(numpy_helper.from_array(w, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{i}"], [f"p{i}"]))
        nodes.append(helper.make_node("Tanh", [f"p{i}"], [f"t{i}"]))
        last = f"t{i}"
    return graph_model(nodes, [value("x", (64, size))], [value(last, (64, size))], weights)


COUNTER = """<?xml version="1.0"?>
<net name="counter" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="4" element_type="f32"/>
 <output><port id="0" precision="FP32" names="x"><dim>4</dim></port></output></layer>
<layer id="1" name="zero" type="Const" version="opset1"><data element_type="f32" shape="4" offset="0" size="16"/>
 <output><port id="0" precision="FP32"><dim>4</dim></port></output></layer>
<layer id="2" name="read" type="ReadValue" version="opset6">
 <data variable_id="total" variable_type="f32" variable_shape="4"/>
 <input><port id="0"><dim>4</dim></port></input>
 <output><port id="1" precision="FP32"><dim>4</dim></port></output></layer>
<layer id="3" name="add" type="Add" version="opset1"><data auto_broadcast="numpy"/>
 <input><port id="0"><dim>4</dim></port><port id="1"><dim>4</dim></port></input>
 <output><port id="2" precision="FP32" names="y"><dim>4</dim></port></output></layer>
<layer id="4" name="assign" type="Assign" version="opset6">
 <data variable_id="total" variable_type="f32" variable_shape="4"/>
 <input><port id="0"><dim>4</dim></port></input>
 <output><port id="1" precision="FP32"><dim>4</dim></port></output></layer>
<layer id="5" name="y" type="Result" version="opset1"><input><port id="0"><dim>4</dim></port></input></layer>
</layers><edges>
<edge from-layer="1" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="2" from-port="1" to-layer="3" to-port="0"/>
<edge from-layer="0" from-port="0" to-layer="3" to-port="1"/>
<edge from-layer="3" from-port="2" to-layer="4" to-port="0"/>
<edge from-layer="3" from-port="2" to-layer="5" to-port="0"/>
</edges></net>"""
"""An OpenVINO IR that adds its inputs up in the variable `total`; its weights are 16 bytes of zeros."""


def python(code: str, timeout: float = 300, **options) -> subprocess.CompletedProcess:
    """Runs code in a process of its own, with this folder on its path."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, **options
    )
