"""Networks built node by node; weights are named by their shapes and settled later (network_weights.py)."""

import math

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

OPSET = 17


class Net:
    """Nodes and constants, one after the other."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._count = 0

    @property
    def count(self) -> int:
        return self._count

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        self._count += 1
        out = f"{kind.lower()}_{self._count}"
        self._nodes.append(helper.make_node(kind, list(inputs), [out], name=out, **attributes))
        return out

    def constant(self, value: object) -> str:
        self._count += 1
        name = f"const_{self._count}"
        self._constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def number(self, value: float) -> str:
        return self.constant(np.float32(value))

    def sizes(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def weight(self, *shape: int) -> str:
        return self.op("ConstantOfShape", self.sizes(*shape))

    def conv(
        self, x: str, channels: tuple[int, int], k: int = 1, stride: int = 1, groups: int = 1, act: str = ""
    ) -> str:
        c, out = channels
        y = self.op(
            "Conv",
            x,
            self.weight(out, c // groups, k, k),
            self.weight(out),
            group=groups,
            kernel_shape=[k, k],
            strides=[stride] * 2,
            pads=[k // 2] * 4,
        )
        if act == "relu6":
            return self.op("Clip", y, self.number(0), self.number(6))
        return self.op("Mul", y, self.op("Sigmoid", y)) if act == "silu" else y

    def model(self, name: str, kind: int, shape: list[int], output: str) -> onnx.ModelProto:
        inputs = [helper.make_tensor_value_info(name, kind, shape)]
        outputs = [onnx.ValueInfoProto(name=output)]
        graph = helper.make_graph(self._nodes, "net", inputs, outputs, self._constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def mobilenet_v2() -> onnx.ModelProto:
    """Inverted bottlenecks: expand, depthwise, project; 224x224."""
    n = Net()
    x, c = n.conv("image", (3, 32), 3, 2, act="relu6"), 32
    stages = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2)]
    for expand, out, repeat, first_stride in [*stages, (6, 320, 1, 1)]:
        for i in range(repeat):
            stride, wide = (first_stride if i == 0 else 1), c * expand
            y = n.conv(x, (c, wide), act="relu6") if expand > 1 else x
            y = n.conv(n.conv(y, (wide, wide), 3, stride, wide, "relu6"), (wide, out))
            x = n.op("Add", x, y) if stride == 1 and c == out else y
            c = out
    pooled = n.op("Flatten", n.op("GlobalAveragePool", n.conv(x, (c, 1280), act="relu6")))
    logits = n.op("Gemm", pooled, n.weight(1000, 1280), n.weight(1000), transB=1)
    return n.model("image", TensorProto.FLOAT, [1, 3, 224, 224], n.op("Softmax", logits, axis=1))


def cross_stage(n: Net, x: str, channels: tuple[int, int], depth: int) -> str:
    """Two halves, one through residual blocks, joined again."""
    c, out = channels
    half = out // 2
    a, b = n.conv(x, (c, half), act="silu"), n.conv(x, (c, half), act="silu")
    for _ in range(depth):
        inner = n.conv(a, (half, half), act="silu")
        a = n.op("Add", a, n.conv(inner, (half, half), 3, act="silu"))
    return n.conv(n.op("Concat", a, b, axis=1), (out, out), act="silu")


def enlarged(n: Net, x: str) -> str:
    scales = n.constant(np.array([1, 1, 2, 2], np.float32))
    mode = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return n.op("Resize", x, "", scales, **mode)


def yolo(size: int = 320, w: int = 24) -> onnx.ModelProto:
    """A one-stage detector with SiLU, pyramid pooling and three heads; 320x320."""
    n = Net()
    x = n.conv(n.conv("image", (3, w), 3, 2, act="silu"), (w, 2 * w), 3, 2, act="silu")
    x = cross_stage(n, x, (2 * w, 2 * w), 1)
    p3 = cross_stage(n, n.conv(x, (2 * w, 4 * w), 3, 2, act="silu"), (4 * w, 4 * w), 2)
    p4 = cross_stage(n, n.conv(p3, (4 * w, 8 * w), 3, 2, act="silu"), (8 * w, 8 * w), 2)
    p5 = cross_stage(n, n.conv(p4, (8 * w, 16 * w), 3, 2, act="silu"), (16 * w, 16 * w), 1)
    pools = [n.conv(p5, (16 * w, 8 * w), act="silu")]
    for _ in range(3):
        pools.append(n.op("MaxPool", pools[-1], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    p5 = n.conv(n.op("Concat", *pools, axis=1), (32 * w, 8 * w), act="silu")
    t4 = cross_stage(n, n.op("Concat", enlarged(n, p5), p4, axis=1), (16 * w, 4 * w), 1)
    t3 = cross_stage(n, n.op("Concat", enlarged(n, t4), p3, axis=1), (8 * w, 4 * w), 1)
    heads = [
        n.op("Reshape", n.conv(t, (c, 85)), n.sizes(1, 85, -1))
        for t, c in ((t3, 4 * w), (t4, 4 * w), (p5, 8 * w))
    ]
    rows = n.op("Transpose", n.op("Concat", *heads, axis=2), perm=[0, 2, 1])
    return n.model("image", TensorProto.FLOAT, [1, 3, size, size], n.op("Sigmoid", rows))


class Encoder:
    """Layers of a transformer on rows of `hidden` numbers."""

    def __init__(self, n: Net, hidden: int, heads: int, tokens: int) -> None:
        self.n, self.hidden, self.heads = n, hidden, heads
        self.ones, self.zeros = (
            n.constant(np.ones(hidden, np.float32)),
            n.constant(np.zeros(hidden, np.float32)),
        )
        self.split = n.sizes(1, tokens, heads, hidden // heads)
        self.merge = n.sizes(1, tokens, hidden)

    def linear(self, x: str, c: int, out: int) -> str:
        return self.n.op("Add", self.n.op("MatMul", x, self.n.weight(c, out)), self.n.weight(out))

    def norm(self, x: str) -> str:
        return self.n.op("LayerNormalization", x, self.ones, self.zeros, axis=-1)

    def gelu(self, x: str) -> str:
        n = self.n
        erf = n.op("Erf", n.op("Div", x, n.number(math.sqrt(2))))
        return n.op("Mul", n.op("Mul", x, n.op("Add", erf, n.number(1))), n.number(0.5))

    def attention(self, x: str, mask: str = "") -> str:
        n, h = self.n, self.hidden
        q, k, v = (n.op("Reshape", self.linear(x, h, h), self.split) for _ in range(3))
        rows, columns = n.op("Transpose", q, perm=[0, 2, 1, 3]), n.op("Transpose", k, perm=[0, 2, 3, 1])
        scores = n.op("Div", n.op("MatMul", rows, columns), n.number(math.sqrt(h // self.heads)))
        scores = n.op("Add", scores, mask) if mask else scores
        mixed = n.op("MatMul", n.op("Softmax", scores, axis=-1), n.op("Transpose", v, perm=[0, 2, 1, 3]))
        joined = n.op("Reshape", n.op("Transpose", mixed, perm=[0, 2, 1, 3]), self.merge)
        return self.linear(joined, h, h)

    def mlp(self, x: str) -> str:
        inner = self.gelu(self.linear(x, self.hidden, 4 * self.hidden))
        return self.linear(inner, 4 * self.hidden, self.hidden)

    def layer(self, x: str) -> str:
        """Normalises behind each part, as BERT does."""
        x = self.norm(self.n.op("Add", x, self.attention(x)))
        return self.norm(self.n.op("Add", x, self.mlp(x)))

    def layer_normed_first(self, x: str, mask: str = "") -> str:
        """Normalises in front of each part, as GPT-2 and vision transformers do."""
        x = self.n.op("Add", x, self.attention(self.norm(x), mask))
        return self.n.op("Add", x, self.mlp(self.norm(x)))


def bert_mini(
    layers: int = 4, hidden: int = 256, heads: int = 4, tokens: int = 128, words: int = 8192
) -> onnx.ModelProto:
    """A text encoder: 4 layers on 128 tokens."""
    n = Net()
    encoder = Encoder(n, hidden, heads, tokens)
    embedded = n.op("Gather", n.weight(words, hidden), "ids")
    x = encoder.norm(n.op("Add", embedded, n.weight(1, tokens, hidden)))
    for _ in range(layers):
        x = encoder.layer(x)
    return n.model("ids", TensorProto.INT64, [1, tokens], x)


def minilm() -> onnx.ModelProto:
    """A sentence encoder of MiniLM's sizes: 6 layers of 384 numbers on 64 tokens."""
    return bert_mini(6, 384, 12, 64, 30522)


def vit_tiny(layers: int = 12, hidden: int = 192, heads: int = 3) -> onnx.ModelProto:
    """A vision transformer: 196 patches of 16x16 pixels and a class token; 224x224."""
    n, tokens = Net(), 197
    encoder = Encoder(n, hidden, heads, tokens)
    patches = n.op("Conv", "image", n.weight(hidden, 3, 16, 16), n.weight(hidden), strides=[16, 16])
    rows = n.op("Transpose", n.op("Reshape", patches, n.sizes(1, hidden, -1)), perm=[0, 2, 1])
    x = n.op("Add", n.op("Concat", n.weight(1, 1, hidden), rows, axis=1), n.weight(1, tokens, hidden))
    for _ in range(layers):
        x = encoder.layer_normed_first(x)
    first = n.op("Gather", encoder.norm(x), n.constant(np.int64(0)), axis=1)
    logits = n.op("Gemm", first, n.weight(1000, hidden), n.weight(1000), transB=1)
    return n.model("image", TensorProto.FLOAT, [1, 3, 224, 224], n.op("Softmax", logits, axis=1))


def gpt_mini(
    layers: int = 4, hidden: int = 256, heads: int = 4, tokens: int = 64, words: int = 8192
) -> onnx.ModelProto:
    """A language model reading a prompt: 4 causal layers on 64 tokens, scores of 8192 words for each."""
    n = Net()
    encoder = Encoder(n, hidden, heads, tokens)
    mask = n.constant(np.triu(np.full((1, 1, tokens, tokens), -1e9, np.float32), 1))
    x = n.op("Add", n.op("Gather", n.weight(words, hidden), "ids"), n.weight(1, tokens, hidden))
    for _ in range(layers):
        x = encoder.layer_normed_first(x, mask)
    scores = n.op("MatMul", encoder.norm(x), n.weight(hidden, words))
    return n.model("ids", TensorProto.INT64, [1, tokens], scores)


def chain100(length: int = 100) -> onnx.ModelProto:
    """Tiny operators in a row that no engine folds into one another: what a node costs beyond its work."""
    n, x = Net(), "x"
    while n.count < length - 1:
        x = n.op("Transpose", n.op("Softmax", x, axis=-1), perm=[0, 2, 1])
        x = n.op("Mul", x, "x")
    return n.model("x", TensorProto.FLOAT, [1, 16, 16], n.op("Softmax", x, axis=-1))
