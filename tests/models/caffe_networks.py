"""Caffe networks of small descriptions, with seeded weights: prototxt, caffemodel, and the same network in ONNX.

Neither Caffe nor protobuf is needed: `message` and its kin write the wire format.
"""

import struct
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def blob(values: np.ndarray) -> bytes:
    dims = b"".join(varint(d) for d in values.shape)
    return message(7, message(1, dims)) + message(5, values.astype("<f4").tobytes())


def old_blob(values: np.ndarray) -> bytes:
    """Four dimensions, and each value by itself."""
    dims = (1,) * (4 - values.ndim) + values.shape
    sizes = b"".join(varint(i + 1 << 3) + varint(d) for i, d in enumerate(dims))
    return sizes + b"".join(b"\x2d" + struct.pack("<f", v) for v in values.ravel())


@dataclass
class Value:
    """A blob of Caffe, and what it is called in ONNX at this place."""

    top: str
    name: str
    shape: tuple[int, ...]


@dataclass
class Network:
    """Grows by its methods; `old` writes V1."""

    seed: int
    name: str = "net"
    old: bool = False
    text: list[str] = field(default_factory=list)
    weights: list[bytes] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    macs: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    # Files.

    def prototxt(self) -> str:
        return f'name: "{self.name}"\n' + "\n".join(self.text) + "\n"

    def caffemodel(self) -> bytes:
        return message(1, self.name.encode()) + b"".join(self.weights)

    def onnx_model(self, *outputs: Value) -> bytes:
        info = onnx.helper.make_tensor_value_info
        kind = onnx.TensorProto.FLOAT
        graph = onnx.helper.make_graph(
            self.nodes,
            self.name,
            [info(v.name, kind, v.shape) for v in self.inputs],
            [info(v.name, kind, v.shape) for v in outputs],
            self.constants,
        )
        opsets = [onnx.helper.make_opsetid("", 17)]
        return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()

    # Pieces.

    def floats(self, *shape: int, scale: float = 1) -> np.ndarray:
        return (self.random.standard_normal(shape) * scale).astype(np.float32)

    def input(self, top: str, *shape: int) -> Value:
        dims = " ".join(f"dim: {d}" for d in shape)
        self.text.append(f'input: "{top}"\ninput_shape {{ {dims} }}')
        self.inputs.append(Value(top, top, shape))
        return self.inputs[-1]

    def layer(
        self,
        kind: str,
        name: str,
        bottoms: list[Value],
        tops: list[str],
        param: str = "",
        blobs: list[np.ndarray] | None = None,
    ) -> None:
        lines = "".join(f' bottom: "{b.top}"' for b in bottoms) + "".join(f' top: "{t}"' for t in tops)
        if self.old:
            self.text.append(f'layers {{ name: "{name}" type: {kind}{lines} {param} }}')
        else:
            self.text.append(f'layer {{ name: "{name}" type: "{kind}"{lines} {param} }}')
        if blobs and self.old:
            self.weights.append(
                message(2, message(4, name.encode()) + b"".join(message(6, old_blob(b)) for b in blobs))
            )
        elif blobs:
            self.weights.append(
                message(100, message(1, name.encode()) + b"".join(message(7, blob(b)) for b in blobs))
            )

    def constant(self, values: np.ndarray) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(values, name))
        return name

    def node(self, kind: str, inputs: list[str], **attributes) -> str:
        name = f"value_{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    # Layers.

    def conv(
        self,
        name: str,
        x: Value,
        outputs: int,
        kernel: int | tuple[int, int],
        stride: int = 1,
        pad: int | tuple[int, int] = 0,
        group: int = 1,
        bias: bool = False,
        dilation: int = 1,
    ) -> Value:
        kh, kw = (kernel, kernel) if isinstance(kernel, int) else kernel
        ph, pw = (pad, pad) if isinstance(pad, int) else pad
        per_group = x.shape[1] // group
        w = self.floats(outputs, per_group, kh, kw, scale=(2 / (per_group * kh * kw)) ** 0.5)
        blobs = [w] + ([self.floats(outputs, scale=0.1)] if bias else [])
        param = f"convolution_param {{ num_output: {outputs} kernel_h: {kh} kernel_w: {kw} stride: {stride} pad_h: {ph} pad_w: {pw}"
        param += f" group: {group} dilation: {dilation} bias_term: {str(bias).lower()} }}"
        if self.old:
            param = param.replace(f" dilation: {dilation}", "")
        self.layer("CONVOLUTION" if self.old else "Convolution", name, [x], [name], param, blobs)
        y = self.node(
            "Conv",
            [x.name, *(self.constant(b) for b in blobs)],
            strides=[stride] * 2,
            pads=[ph, pw, ph, pw],
            group=group,
            dilations=[dilation] * 2,
        )
        size = [
            (n + 2 * p - dilation * (k - 1) - 1) // stride + 1
            for n, p, k in zip(x.shape[2:], (ph, pw), (kh, kw), strict=True)
        ]
        shape = (x.shape[0], outputs, size[0], size[1])
        self.macs += int(np.prod(shape)) * per_group * kh * kw
        return Value(name, y, shape)

    def bn(self, name: str, x: Value, scale_name: str = "", gain: float = 1) -> Value:
        """BatchNorm and Scale, both in place."""
        channels = x.shape[1]
        factor = np.array([self.random.uniform(0.5, 2)], np.float32)
        mean, variance = (
            self.floats(channels, scale=0.1),
            self.random.uniform(0.5, 1.5, channels).astype(np.float32),
        )
        gamma, beta = (
            (gain * self.random.uniform(0.6, 1.2, channels)).astype(np.float32),
            self.floats(channels, scale=0.1),
        )
        self.layer(
            "BatchNorm",
            name,
            [x],
            [x.top],
            "batch_norm_param { use_global_stats: true }",
            [mean * factor, variance * factor, factor],
        )
        self.layer(
            "Scale",
            scale_name or "scale_" + name,
            [x],
            [x.top],
            "scale_param { bias_term: true }",
            [gamma, beta],
        )
        y = self.node(
            "BatchNormalization",
            [x.name, *(self.constant(v) for v in (gamma, beta, mean, variance))],
            epsilon=1e-5,
        )
        return Value(x.top, y, x.shape)

    def relu(self, name: str, x: Value) -> Value:
        self.layer("RELU" if self.old else "ReLU", name, [x], [x.top])
        return Value(x.top, self.node("Relu", [x.name]), x.shape)

    def max_pool(self, name: str, x: Value, kernel: int, stride: int, pad: int = 0) -> Value:
        self.layer(
            "POOLING" if self.old else "Pooling",
            name,
            [x],
            [name],
            f"pooling_param {{ pool: MAX kernel_size: {kernel} stride: {stride} pad: {pad} }}",
        )
        sizes, ends = [], []
        for n in x.shape[2:]:
            count = -(-(n + 2 * pad - kernel) // stride) + 1
            if pad and (count - 1) * stride >= n + pad:
                count -= 1
            sizes.append(count)
            ends.append(max((count - 1) * stride + kernel - n - pad, 0))
        low = self.constant(np.array(np.finfo(np.float32).min, np.float32))
        pads = self.constant(np.array([0, 0, pad, pad, 0, 0, *ends], np.int64))
        padded = self.node("Pad", [x.name, pads, low])
        y = self.node("MaxPool", [padded], kernel_shape=[kernel] * 2, strides=[stride] * 2)
        return Value(name, y, (*x.shape[:2], *sizes))

    def global_average(self, name: str, x: Value) -> Value:
        self.layer(
            "POOLING" if self.old else "Pooling",
            name,
            [x],
            [name],
            f"pooling_param {{ pool: AVE kernel_size: {x.shape[2]} stride: 1 }}",
        )
        return Value(name, self.node("GlobalAveragePool", [x.name]), (*x.shape[:2], 1, 1))

    def fc(self, name: str, x: Value, outputs: int) -> Value:
        depth = int(np.prod(x.shape[1:]))
        w, b = self.floats(outputs, depth, scale=depth**-0.5), self.floats(outputs, scale=0.1)
        self.layer(
            "INNER_PRODUCT" if self.old else "InnerProduct",
            name,
            [x],
            [name],
            f"inner_product_param {{ num_output: {outputs} }}",
            [w, b],
        )
        y = self.node("Gemm", [self.node("Flatten", [x.name]), self.constant(w), self.constant(b)], transB=1)
        return Value(name, y, (x.shape[0], outputs))

    def add(self, name: str, a: Value, b: Value) -> Value:
        self.layer("Eltwise", name, [a, b], [name])
        return Value(name, self.node("Add", [a.name, b.name]), a.shape)

    def concat(self, name: str, values: list[Value], axis: int = 1) -> Value:
        self.layer(
            "CONCAT" if self.old else "Concat",
            name,
            values,
            [name],
            "" if self.old else f"concat_param {{ axis: {axis} }}",
        )
        shape = list(values[0].shape)
        shape[axis] = sum(v.shape[axis] for v in values)
        return Value(name, self.node("Concat", [v.name for v in values], axis=axis), tuple(shape))

    def lrn(self, name: str, x: Value) -> Value:
        self.layer("LRN", name, [x], [name], "lrn_param { local_size: 5 alpha: 0.5 beta: 0.75 }")
        return Value(name, self.node("LRN", [x.name], size=5, alpha=0.5, beta=0.75), x.shape)

    def dropout(self, name: str, x: Value) -> Value:
        self.layer(
            "DROPOUT" if self.old else "Dropout", name, [x], [x.top], "dropout_param { dropout_ratio: 0.4 }"
        )
        return x

    def softmax(self, name: str, x: Value) -> Value:
        self.layer("SOFTMAX" if self.old else "Softmax", name, [x], [name])
        return Value(name, self.node("Softmax", [x.name], axis=1), x.shape)

    def conv_bn_relu(
        self, name: str, x: Value, outputs: int, kernel: int | tuple[int, int], relu: bool = True, **options
    ) -> Value:
        gain = 1 if relu else 0.3  # sums of many branches stay small
        y = self.bn("bn_" + name, self.conv(name, x, outputs, kernel, **options), "scale_" + name, gain)
        return self.relu(name + "_relu", y) if relu else y


def bottleneck(n: Network, name: str, x: Value, width: int, stride: int = 1, project: bool = False) -> Value:
    """Caffe's: the stride is on the first 1x1."""
    shortcut = (
        n.conv_bn_relu(f"res{name}_branch1", x, 4 * width, 1, relu=False, stride=stride) if project else x
    )
    y = n.conv_bn_relu(f"res{name}_branch2a", x, width, 1, stride=stride)
    y = n.conv_bn_relu(f"res{name}_branch2b", y, width, 3, pad=1)
    y = n.conv_bn_relu(f"res{name}_branch2c", y, 4 * width, 1, relu=False)
    return n.relu(f"res{name}_relu", n.add(f"res{name}", shortcut, y))


def resnet(
    blocks: tuple[int, ...], width: int, size: int, seed: int = 1, classes: int = 10
) -> tuple[Network, Value]:
    n = Network(seed, f"ResNet-{3 * sum(blocks) + 2}")
    y = n.conv_bn_relu("conv1", n.input("data", 1, 3, size, size), width, 7, stride=2, pad=3)
    y = n.max_pool("pool1", y, 3, 2)
    for stage, count in enumerate(blocks):
        for i in range(count):
            label = f"{stage + 2}{'abc'[i] if count <= 3 else 'a' if i == 0 else f'b{i}'}"
            y = bottleneck(n, label, y, width << stage, 2 if i == 0 and stage > 0 else 1, i == 0)
    y = n.global_average("pool5", y)
    return n, n.softmax("prob", n.fc("fc1000", y, classes))


def preactivated(seed: int = 2) -> tuple[Network, Value]:
    """As in ResNet-269: BatchNorm, Scale and ReLU before the convolutions, the sum stays as it is."""
    n = Network(seed, "ResNet-269-block")
    y = n.conv("conv1", n.input("data", 1, 3, 20, 20), 16, 3, pad=1)
    for i in range(3):
        branch = y
        for k, (width, kernel) in enumerate([(8, 1), (8, 3), (16, 1)]):
            name = f"b{i}_{k}"
            m = n.floats(branch.shape[1], scale=0.1)
            v = n.random.uniform(0.5, 1.5, branch.shape[1]).astype(np.float32)
            one = np.array([1], np.float32)
            n.layer("BatchNorm", name + "_bn", [branch], [name + "_bn"], "", [m, v, one])
            gamma, beta = n.floats(branch.shape[1]), n.floats(branch.shape[1])
            bn = Value(name + "_bn", "", branch.shape)
            n.layer(
                "Scale", name + "_scale", [bn], [bn.top], "scale_param { bias_term: true }", [gamma, beta]
            )
            bn.name = n.node(
                "BatchNormalization",
                [branch.name, *(n.constant(c) for c in (gamma, beta, m, v))],
                epsilon=1e-5,
            )
            branch = n.conv(name + "_conv", n.relu(name + "_relu", bn), width, kernel, pad=kernel // 2)
        y = n.add(f"sum{i}", y, branch)
    return n, y


def inception_stem(seed: int = 3) -> tuple[Network, Value]:
    """The beginning of Inception-v4: joins of pooling and convolutions, 1x7 and 7x1."""
    n = Network(seed, "Inception-stem")
    y = n.conv_bn_relu("conv1_3x3_s2", n.input("data", 1, 3, 75, 75), 8, 3, stride=2)
    y = n.conv_bn_relu("conv2_3x3_s1", y, 8, 3)
    y = n.conv_bn_relu("conv3_3x3_s1", y, 16, 3, pad=1)
    y = n.concat(
        "stem1", [n.max_pool("pool1_3x3_s2", y, 3, 2), n.conv_bn_relu("stem1_3x3_s2", y, 24, 3, stride=2)]
    )
    a = n.conv_bn_relu("a1", n.conv_bn_relu("a0", y, 16, 1), 24, 3)
    b = n.conv_bn_relu("b1", n.conv_bn_relu("b0", y, 16, 1), 16, (7, 1), pad=(3, 0))
    b = n.conv_bn_relu("b3", n.conv_bn_relu("b2", b, 16, (1, 7), pad=(0, 3)), 24, 3)
    y = n.concat("stem2", [a, b])
    return n, n.concat("stem3", [n.conv_bn_relu("c", y, 16, 3, stride=2), n.max_pool("pool2", y, 3, 2)])


def googlenet(seed: int = 4) -> tuple[Network, Value]:
    """V1: `layers` with words for types, blobs of four dimensions."""
    n = Network(seed, "GoogLeNet", old=True)
    y = n.relu("relu1", n.conv("conv1", n.input("data", 1, 3, 56, 56), 16, 7, stride=2, pad=3, bias=True))
    y = n.lrn("norm1", n.max_pool("pool1", y, 3, 2))
    parts = [n.relu("r1", n.conv("i1", y, 8, 1, bias=True))]
    parts.append(
        n.relu("r3", n.conv("i3", n.relu("r3r", n.conv("i3r", y, 8, 1, bias=True)), 12, 3, pad=1, bias=True))
    )
    parts.append(
        n.relu("r5", n.conv("i5", n.relu("r5r", n.conv("i5r", y, 4, 1, bias=True)), 8, 5, pad=2, bias=True))
    )
    parts.append(n.relu("rp", n.conv("ip", n.max_pool("pool", y, 3, 1, 1), 8, 1, bias=True)))
    y = n.dropout("drop", n.global_average("pool5", n.concat("output", parts)))
    return n, n.softmax("prob", n.fc("classifier", y, 10))


def mobilenet(seed: int = 5) -> tuple[Network, Value]:
    n = Network(seed, "MobileNet")
    y = n.conv_bn_relu("conv1", n.input("data", 1, 3, 64, 64), 8, 3, stride=2, pad=1)
    for i, (width, stride) in enumerate([(16, 1), (32, 2), (32, 1), (64, 2), (64, 1)]):
        y = n.conv_bn_relu(f"conv{i + 2}/dw", y, y.shape[1], 3, stride=stride, pad=1, group=y.shape[1])
        y = n.conv_bn_relu(f"conv{i + 2}/sep", y, width, 1)
    y = n.conv("fc7", n.global_average("pool6", y), 10, 1, bias=True)
    return n, n.softmax("prob", y)
