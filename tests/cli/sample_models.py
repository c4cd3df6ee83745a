"""Models for the command-line tests: made here or fetched by scripts/bootstrap, so that a clone that stands alone can run them all."""

import os
import pathlib
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

FETCHED = pathlib.Path(os.environ["LAMINA_DEPS"]) / "models"
SHARED = pathlib.Path(os.environ["LAMINA_SHARED"]) / "models" / "onnx"
_FOLDER = tempfile.TemporaryDirectory()  # removed with the process


class _Network:
    """Nodes and seeded weights, one after the other."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(1)

    def weight(self, name: str, *shape: int, scale: float = 0.1) -> str:
        values = (self.random.standard_normal(shape) * scale).astype(np.float32)
        self.weights.append(helper.make_tensor(name, TensorProto.FLOAT, shape, values.tobytes(), raw=True))
        return name

    def integers(self, name: str, *values: int) -> str:
        self.weights.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
        return name

    def add(self, operator: str, name: str, *inputs: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [f"{name}_out"], name, **attributes))
        return f"{name}_out"

    def convolution(self, name: str, x: str, outputs: int, inputs: int, kernel: int, *, stride: int = 1, groups: int = 1) -> str:
        w = self.weight(f"{name}.w", outputs, inputs // groups, kernel, kernel)
        pad = kernel // 2
        return self.add("Conv", name, x, w, self.weight(f"{name}.b", outputs), kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=groups)

    def save(self, file: str, name: str, shape: list[int | str], result: str) -> pathlib.Path:
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        outputs = [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)]
        graph = helper.make_graph(self.nodes, "sample", inputs, outputs, self.weights)
        path = pathlib.Path(_FOLDER.name) / file
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
        return path


def _digits() -> pathlib.Path:
    """A network for pictures of digits, 12 layers, one of them on constants only."""
    n = _Network()
    n.add("Reshape", "Times212_reshape1", n.weight("Parameter193", 16, 4, 4, 10), n.integers("shape1", 256, 10))
    x = "Input3"
    for conv, plus, relu, pool, outputs, inputs, size in (
        ("Convolution28", "Plus30", "ReLU32", "Pooling66", 8, 1, 2),
        ("Convolution110", "Plus112", "ReLU114", "Pooling160", 16, 8, 3),
    ):
        x = n.add("Conv", conv, x, n.weight(f"{conv}.w", outputs, inputs, 5, 5), kernel_shape=[5, 5], strides=[1, 1], dilations=[1, 1], auto_pad="SAME_UPPER")
        x = n.add("Relu", relu, n.add("Add", plus, x, n.weight(f"{plus}.b", outputs, 1, 1)))
        x = n.add("MaxPool", pool, x, kernel_shape=[size] * 2, strides=[size] * 2)
    x = n.add("Reshape", "Times212_reshape0", x, n.integers("shape0", 1, 256))
    x = n.add("MatMul", "Times212", x, "Times212_reshape1_out")
    return n.save("digits.onnx", "Input3", [1, 1, 28, 28], n.add("Add", "Plus214", x, n.weight("Parameter194", 1, 10)))


def _mobile() -> pathlib.Path:
    """Inverted bottlenecks with residuals, squeezes and gates."""
    n = _Network()
    x = n.add("Relu", "stem_act", n.convolution("stem", "input", 16, 3, 3, stride=2))
    channels = 16
    for i, (outputs, stride) in enumerate(((16, 1), (24, 2), (24, 1), (40, 2), (40, 1), (40, 1), (80, 2), (80, 1), (80, 1))):
        wide = channels * 4
        y = n.add("Relu", f"expand{i}_act", n.convolution(f"expand{i}", x, wide, channels, 1))
        y = n.add("Relu", f"depthwise{i}_act", n.convolution(f"depthwise{i}", y, wide, wide, 3, stride=stride, groups=wide))
        if i % 3 == 1:
            s = n.add("Relu", f"squeeze{i}_act", n.convolution(f"squeeze{i}", n.add("GlobalAveragePool", f"pool{i}", y), wide // 4, wide, 1))
            y = n.add("Mul", f"scale{i}", y, n.add("HardSigmoid", f"gate{i}_act", n.convolution(f"gate{i}", s, wide, wide // 4, 1)))
        y = n.convolution(f"project{i}", y, outputs, wide, 1)
        x = n.add("Add", f"sum{i}", y, x) if stride == 1 and outputs == channels else y
        channels = outputs
    x = n.add("Flatten", "flat", n.add("GlobalAveragePool", "pool", x))
    return n.save("mobile.onnx", "input", [1, 3, 224, 224], n.add("Gemm", "classes", x, n.weight("classes.w", channels, 10), n.weight("classes.b", 10)))


def _upscaler() -> pathlib.Path:
    """Pictures of any size, three times as large."""
    n = _Network()
    x = n.add("Relu", "first_act", n.convolution("first", "picture", 16, 1, 5))
    x = n.convolution("second", x, 9, 16, 3)
    return n.save("upscaler.onnx", "picture", ["batch", 1, "height", "width"], n.add("DepthToSpace", "shuffle", x, blocksize=3))


def _faded() -> pathlib.Path:
    """A convolution whose weights and biases have faded to denormal numbers, in all but its first channel."""
    n = _Network()
    weights = [n.weight("w1", 1, 3, 3, 3), n.weight("w2", 7, 3, 3, 3, scale=1e-40)]
    n.add("Concat", "weights", *weights, axis=0)
    n.add("Conv", "conv", "x", "weights_out", n.weight("b", 8, scale=1e-40), kernel_shape=[3, 3])
    return n.save("faded.onnx", "x", [1, 3, 16, 16], "conv_out")


def _flat() -> pathlib.Path:
    """One row of numbers, which does not look like a picture."""
    n = _Network()
    return n.save("flat.onnx", "x", [1, 6], n.add("Relu", "act", "x"))


def _state() -> pathlib.Path:
    """Two inputs, whose batches stand at different places."""
    shapes = {"input": ["batch", 4], "state": [2, "batch", 8]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "next")]
    nodes = [helper.make_node("Relu", ["input"], ["y"], "act"), helper.make_node("Neg", ["state"], ["next"], "turn")]
    path = pathlib.Path(_FOLDER.name) / "state.onnx"
    graph = helper.make_graph(nodes, "sample", inputs, outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def long_names(length: int) -> pathlib.Path:
    """A convolution and a rectifier whose names are that long."""
    n = _Network()
    n.nodes.append(helper.make_node("Conv", ["x", n.weight("w", 8, 3, 3, 3)], ["y"], "x" * length + "conv" + "x" * length))
    n.nodes.append(helper.make_node("Relu", ["y"], ["z"], "x" * length + "relu"))
    return n.save("long_names.onnx", "x", [1, 3, 16, 16], "z")


SMALL = _digits()
LARGE = _mobile()
DYNAMIC = _upscaler()
CONTROL_FLOW = FETCHED / "silero_vad_16k_op15.onnx"
FADED = _faded()
FLAT = _flat()
STATE = _state()
ALL = [SMALL, LARGE, DYNAMIC, CONTROL_FLOW, *sorted(SHARED.glob("*.onnx"))]


def with_inputs(model: pathlib.Path) -> list[object]:
    """The model and what says the sizes of its inputs."""
    inputs = model.with_suffix(".npz")
    if inputs.exists():
        return [model, "--inputs", inputs]
    shapes = {CONTROL_FLOW: "input=1,576", DYNAMIC: "picture=1,1,40,56"}
    return [model, "--shape", shapes[model]] if model in shapes else [model]
