"""A node is called after the layer that it computes, in every verb: never after its weights or what rounds its result."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sample_models import SHARED

TOOL = os.environ["LAMINA_TOOL"]
MODELS = SHARED.parent
PRODUCTS = {"Convolution", "ConvolutionDepthwise", "ConvolutionBackpropData", "BinaryConvolution", "MatMul"}
LEVELS = {"Quantize", "Dequantize", "Convert", "FakeQuantize", "DynamicQuantize"}
ROUNDING_LAYERS = {"QuantizeLinear", "DequantizeLinear", "Cast", "Convert", "Quantize", "Dequantize", "TypeCast"}


def document(*arguments: object) -> dict:
    done = subprocess.run([TOOL, *map(str, arguments), "--json", "-", "--quiet"], check=False, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: {done.stderr}")
    return json.loads(done.stdout)


def nodes_of(layers: list[dict]) -> list[dict]:
    """The nodes of the plan, each with the layer that it is listed under."""
    return [node | {"under": layer["name"]} for layer in layers for node in layer["nodes"] if node["chief"]]


def of_constants(graph: onnx.GraphProto) -> set[str]:
    """Names of layers that read weights alone."""
    known, names = {t.name for t in graph.initializer}, set()
    for node in graph.node:
        if all(name in known or not name for name in node.input):
            known.update(node.output)
            names.add(node.name or node.output[0])
    return names


def quantised(named: bool) -> onnx.ModelProto:
    """Two convolutions and a sum in 8 bits, as onnxruntime writes them, and arithmetic between quantise steps."""
    random = np.random.default_rng(1)
    nodes: list[onnx.NodeProto] = []
    constants = [
        numpy_helper.from_array(np.float32(0.02), "scale"),
        numpy_helper.from_array(np.uint8(128), "zero"),
        numpy_helper.from_array(np.float32(0.01), "scale_of_weights"),
        numpy_helper.from_array(np.int8(0), "zero_of_weights"),
        numpy_helper.from_array(np.float32(3), "three"),
    ]

    def add(operator: str, output: str, *inputs: str, has_name: bool = True, **attributes: object) -> str:
        nodes.append(helper.make_node(operator, inputs, [output], f"/{output}/" if named and has_name else "", **attributes))
        return output

    def rounded(x: str) -> str:
        nodes.append(helper.make_node("QuantizeLinear", [x, "scale", "zero"], [f"{x}_q"], f"{x}_QuantizeLinear"))
        nodes.append(helper.make_node("DequantizeLinear", [f"{x}_q", "scale", "zero"], [f"{x}_dq"], f"{x}_DequantizeLinear"))
        return f"{x}_dq"

    def convolution(output: str, x: str, channels: int) -> str:
        weights = random.integers(-9, 9, (8, channels, 3, 3)).astype(np.int8)
        constants.append(numpy_helper.from_array(weights, f"{output}_weight"))
        nodes.append(helper.make_node("DequantizeLinear", [f"{output}_weight", "scale_of_weights", "zero_of_weights"], [f"{output}_w"], f"{output}_weight_DequantizeLinear"))
        return add("Conv", output, x, f"{output}_w", pads=[1, 1, 1, 1])

    x = rounded(convolution("conv0", rounded("x"), 3))
    y = rounded(add("Relu", "relu", convolution("conv1", x, 8)))
    sum_ = rounded(add("Add", "sum", x, y))
    gate = rounded(add("Clip", "clip", rounded(add("Add", "shifted", sum_, "three")), "", "three"))
    add("Mul", "gated", sum_, gate)
    rounded("gated")
    graph = helper.make_graph(
        nodes,
        "quantised",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 12, 12])],
        [helper.make_tensor_value_info("gated_dq", TensorProto.FLOAT, None)],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


class Names(unittest.TestCase):
    def check_layers(self, layers: list[dict], weights: set[str]) -> None:
        types = {layer["name"]: layer["type"] for layer in layers}
        for node in nodes_of(layers):
            name, operators = node["node"], set(node["operators"].split("+"))
            self.assertIn(name, types, node)
            self.assertEqual(name, node["under"], "benchmark, graph and explain say the same")
            self.assertNotIn(name, weights, node)
            if not operators <= LEVELS:
                self.assertNotIn(types[name], ROUNDING_LAYERS, node)

    def test_quantised_layers(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for named in (True, False):
                path = pathlib.Path(folder) / "m.onnx"
                model = quantised(named)
                onnx.save(model, path)
                layers = document("explain", path, "--no-run")["layers"]
                with self.subTest(named=named):
                    self.check_layers(layers, of_constants(model.graph))
                    names = [node["node"] for node in nodes_of(layers) if "Convolution" in node["operators"]]
                    self.assertEqual(names, ["/conv0/", "/conv1/"] if named else ["conv0", "conv1"])
                    steps = [row["name"] for row in document("benchmark", path, "-pc", "--seconds", "0.01", "--threads", "1")["layers"]]
                    for name in names:
                        self.assertIn(name, steps)
                    self.assertFalse([name for name in steps if "weight" in name], steps)

    def test_unnamed_nodes_are_called_after_their_outputs(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.onnx"
            nodes = [helper.make_node("Exp", ["x"], ["e"]), helper.make_node("MatMul", ["e", "w"], ["m"]), helper.make_node("Softmax", ["m"], ["y"], "last")]
            weights = [numpy_helper.from_array(np.ones((4, 4), np.float32), "w")]
            graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
            layers = document("explain", path, "--no-run")["layers"]
            self.assertEqual([node["node"] for node in nodes_of(layers)], ["e", "m", "last"])

    def test_models(self) -> None:
        if not MODELS.is_dir():
            self.skipTest(f"{MODELS} is not here: no models to look at")
        models = sorted([*MODELS.glob("qdq/*.onnx"), *MODELS.glob("onnx/*.onnx"), *MODELS.glob("ir/*.xml")])
        for path in models:
            if path.name.startswith("NEGATIVE"):
                continue
            with self.subTest(model=path.name):
                layers = document("explain", path, "--no-run", "--inputs", path.with_suffix(".npz"))["layers"]
                self.check_layers(layers, of_constants(onnx.load(path).graph) if path.suffix == ".onnx" else set())
                types = {layer["name"]: layer["type"] for layer in layers}
                for node in nodes_of(layers):
                    if node["operators"].split("+")[0] in PRODUCTS:
                        self.assertRegex(types[node["node"]], "Conv|MatMul|Gemm|FullyConnected|InnerProduct|Attention|LSTM|GRU|Einsum", node)


if __name__ == "__main__":
    unittest.main()
