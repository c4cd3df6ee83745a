"""Networks of the time as frozen TensorFlow graphs: small, with seeded weights, spelled as their exporters spelled them."""

from collections.abc import Iterator

import numpy as np
from tensorflow_cases import FLOAT, Case
from tensorflow_graph import Type

I32 = Type("int32")


class Network(Case):
    """A case with words to build networks with; pictures are NHWC."""

    def __init__(
        self, name: str, *shape: int, unknown: tuple[int, ...] = (0,), openvino: bool = True
    ) -> None:
        super().__init__(name, seed=11, openvino=openvino, tolerance=2e-4)
        self.x = self.input(self.uniform(*shape, low=-1, high=1), unknown)

    def op(self, op: str, *inputs: str, name: str = "", **attributes: object) -> str:
        return self.graph.node(op, list(inputs), name, **{"T": FLOAT} | attributes)

    def constant(self, value: object, name: str = "const") -> str:
        return self.graph.constant(value, name)

    def vector(self, size: int, name: str, low: float, high: float) -> str:
        return self.graph.node(
            "Identity", self.constant(self.uniform(size, low=low, high=high), name), name + "/read", T=FLOAT
        )

    def conv(self, x: str, inputs: int, outputs: int, kernel: int | tuple[int, int], stride: int = 1, padding: str = "SAME",
             name: str = "conv", **attributes: object) -> str:  # fmt: skip
        height, width = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        w = self.graph.weights(height, width, inputs, outputs, name=name + "/weights")
        return self.op(
            "Conv2D", x, w, name=name, strides=[1, stride, stride, 1], padding=padding, **attributes
        )

    def depthwise(
        self, x: str, channels: int, stride: int = 1, name: str = "depthwise", **attributes: object
    ) -> str:
        w = self.graph.weights(3, 3, channels, 1, name=name + "/weights", scale=0.3)
        return self.op(
            "DepthwiseConv2dNative",
            x,
            w,
            name=name,
            strides=[1, stride, stride, 1],
            padding="SAME",
            **attributes,
        )

    def bias(self, x: str, channels: int, name: str = "bias") -> str:
        return self.op(
            "BiasAdd", x, self.vector(channels, name + "/biases", -0.2, 0.2), name=name, data_format="NHWC"
        )

    def batch_norm(self, x: str, channels: int, name: str = "bn", op: str = "FusedBatchNormV3") -> str:
        scale, offset = (
            self.vector(channels, name + "/gamma", 0.7, 1.3),
            self.vector(channels, name + "/beta", -0.2, 0.2),
        )
        mean, variance = (
            self.vector(channels, name + "/moving_mean", -0.2, 0.2),
            self.vector(channels, name + "/moving_variance", 0.5, 1.5),
        )
        types = {} if op == "FusedBatchNorm" else {"U": FLOAT}
        return self.op(
            op, x, scale, offset, mean, variance, name=name, epsilon=1e-3, is_training=False, **types
        )

    def spelled_batch_norm(self, x: str, channels: int, name: str = "bn") -> str:
        """As tf.nn.batch_normalization writes it."""
        variance = self.op(
            "AddV2",
            self.vector(channels, name + "/variance", 0.5, 1.5),
            self.constant(np.float32(1e-3), name + "/eps"),
        )
        scale = self.op("Mul", self.op("Rsqrt", variance), self.vector(channels, name + "/gamma", 0.7, 1.3))
        shift = self.op(
            "Sub",
            self.vector(channels, name + "/beta", -0.2, 0.2),
            self.op("Mul", self.vector(channels, name + "/mean", -0.2, 0.2), scale),
        )
        return self.op("AddV2", self.op("Mul", x, scale, name=name + "/mul_1"), shift, name=name + "/add_1")

    def pool(self, op: str, x: str, kernel: int, stride: int, padding: str = "SAME") -> str:
        return self.op(op, x, ksize=[1, kernel, kernel, 1], strides=[1, stride, stride, 1], padding=padding)

    def concat(self, *parts: str, axis: int = 3) -> str:
        return self.op("ConcatV2", *parts, self.constant(np.int32(axis), "axis"), N=len(parts), Tidx=I32)

    def mean(self, x: str, keep: bool) -> str:
        return self.op("Mean", x, self.constant([1, 2], "axes"), keep_dims=keep, Tidx=I32)

    def batch_of(self, x: str) -> str:
        shape = self.op("Shape", x, out_type=I32)
        bounds = [self.constant([v], "bound") for v in (0, 1, 1)]
        return self.op("StridedSlice", shape, *bounds, T=I32, Index=I32, shrink_axis_mask=1)

    def reshape_behind_batch(self, x: str, *sizes: int) -> str:
        """With the batch from Shape, StridedSlice and Pack, as Keras does."""
        parts = [self.constant(np.int32(s), "size") for s in sizes]
        shape = self.op("Pack", self.batch_of(x), *parts, T=I32, N=1 + len(parts))
        return self.op("Reshape", x, shape, Tshape=I32)

    def dense(self, x: str, inputs: int, outputs: int, name: str = "dense") -> str:
        product = self.op(
            "MatMul", x, self.graph.weights(inputs, outputs, name=name + "/kernel"), name=name + "/MatMul"
        )
        return self.op(
            "BiasAdd", product, self.vector(outputs, name + "/bias", -0.1, 0.1), name=name + "/BiasAdd"
        )


def resnet50_front() -> Network:
    """Keras: Pad before VALID, the stride on the 1x1 of a block, a bias before batch normalisation."""
    n = Network("resnet50", 2, 40, 40, 3)
    pads = n.constant([[0, 0], [3, 3], [3, 3], [0, 0]], "paddings")
    x = n.conv(n.op("Pad", n.x, pads, Tpaddings=I32), 3, 16, 7, 2, "VALID", "conv1")
    x = n.op("Relu", n.batch_norm(n.bias(x, 16), 16))
    x = n.pool(
        "MaxPool",
        n.op("Pad", x, n.constant([[0, 0], [1, 1], [1, 1], [0, 0]], "paddings"), Tpaddings=I32),
        3,
        2,
        "VALID",
    )
    channels = 16
    for stage, (width, stride) in enumerate([(8, 1), (16, 2), (24, 2)]):
        for block in range(2):
            step, name = (stride if block == 0 else 1), f"conv{stage + 2}_block{block + 1}"
            short = x
            if block == 0:
                short = n.batch_norm(
                    n.bias(n.conv(x, channels, 4 * width, 1, step, "VALID", name + "_0"), 4 * width),
                    4 * width,
                )
            y = n.op(
                "Relu",
                n.batch_norm(n.bias(n.conv(x, channels, width, 1, step, "VALID", name + "_1"), width), width),
            )
            y = n.op("Relu", n.batch_norm(n.bias(n.conv(y, width, width, 3, name=name + "_2"), width), width))
            y = n.batch_norm(
                n.bias(n.conv(y, width, 4 * width, 1, 1, "VALID", name + "_3"), 4 * width), 4 * width
            )
            channels = 4 * width
            x = n.op("Relu", n.op("AddV2", short, y, name=name + "_add"), name=name + "_out")
    n.op("Softmax", n.dense(n.mean(x, False), channels, 10), name="probs")
    return n


def inception_stem() -> Network:
    """Inception v4's stem and one block, batch normalisation spelled out."""
    n = Network("inception", 1, 49, 49, 3)

    def unit(x: str, i: int, o: int, kernel: object, stride: int = 1, padding: str = "SAME") -> str:
        return n.op("Relu", n.spelled_batch_norm(n.conv(x, i, o, kernel, stride, padding), o))

    x = unit(n.x, 3, 8, 3, 2, "VALID")
    x = unit(unit(x, 8, 8, 3, 1, "VALID"), 8, 16, 3)
    x = n.concat(n.pool("MaxPool", x, 3, 2, "VALID"), unit(x, 16, 24, 3, 2, "VALID"))
    left = unit(unit(x, 40, 16, 1), 16, 24, 3, 1, "VALID")
    right = unit(unit(unit(unit(x, 40, 16, 1), 16, 16, (1, 7)), 16, 16, (7, 1)), 16, 24, 3, 1, "VALID")
    x = n.concat(left, right)
    x = n.concat(unit(x, 48, 48, 3, 2, "VALID"), n.pool("MaxPool", x, 3, 2, "VALID"))
    pooled = unit(n.pool("AvgPool", x, 3, 1), 96, 16, 1)
    x = n.concat(pooled, unit(x, 96, 16, 1), unit(unit(x, 96, 16, 1), 16, 24, 3))
    x = n.pool("AvgPool", x, 3, 1, "VALID")
    x = n.op(
        "Squeeze",
        n.bias(n.conv(x, 56, 7, 1, 1, "VALID", "logits"), 7),
        name="SpatialSqueeze",
        squeeze_dims=[1, 2],
    )
    n.op("Reshape", n.op("Softmax", x), n.op("Shape", x, out_type=I32), name="predictions", Tshape=I32)
    return n


def mobilenet_v1() -> Network:
    n = Network("mobilenet v1", 1, 32, 32, 3)
    x, channels = n.op("Relu6", n.batch_norm(n.conv(n.x, 3, 8, 3, 2), 8, op="FusedBatchNorm")), 8
    for i, (width, stride) in enumerate([(16, 1), (24, 2), (24, 1), (32, 2)]):
        x = n.op(
            "Relu6",
            n.batch_norm(n.depthwise(x, channels, stride, f"dw{i}"), channels, f"dw{i}/bn", "FusedBatchNorm"),
        )
        x = n.op(
            "Relu6",
            n.batch_norm(n.conv(x, channels, width, 1, name=f"pw{i}"), width, f"pw{i}/bn", "FusedBatchNorm"),
        )
        channels = width
    x = n.bias(n.conv(n.pool("AvgPool", x, 4, 2, "VALID"), channels, 9, 1, name="logits"), 9)
    x = n.op("Squeeze", x, squeeze_dims=[1, 2])
    n.op(
        "Softmax",
        n.op("Reshape", x, n.constant([-1, 9], "shape"), Tshape=I32),
        name="MobilenetV1/Predictions/Reshape_1",
    )
    return n


def mobilenet_v2() -> Network:
    n = Network("mobilenet v2", 2, 32, 32, 3)
    x, channels = n.op("Relu6", n.batch_norm(n.conv(n.x, 3, 8, 3, 2), 8)), 8
    for i, (width, stride) in enumerate([(8, 1), (12, 2), (12, 1), (16, 2), (16, 1)]):
        y = n.op("Relu6", n.batch_norm(n.conv(x, channels, 4 * channels, 1, name=f"expand{i}"), 4 * channels))
        y = n.op("Relu6", n.batch_norm(n.depthwise(y, 4 * channels, stride, f"depthwise{i}"), 4 * channels))
        y = n.batch_norm(n.conv(y, 4 * channels, width, 1, name=f"project{i}"), width)
        x = n.op("AddV2", x, y) if channels == width and stride == 1 else y
        channels = width
    n.op("Identity", n.dense(n.mean(x, False), channels, 6), name="output")
    return n


def ssd_front() -> Network:
    """Feature maps of two sizes, heads that are flattened with the batch from Shape, and joined."""
    n = Network("ssd", 2, 32, 32, 3)
    x = n.op("Relu6", n.batch_norm(n.conv(n.x, 3, 8, 3, 2), 8))
    maps = [n.op("Relu6", n.batch_norm(n.conv(x, 8, 12, 3, 2), 12))]
    maps.append(n.op("Relu6", n.batch_norm(n.conv(maps[0], 12, 16, 3, 2), 16)))
    boxes, scores = [], []
    for i, (feature, channels) in enumerate(zip(maps, (12, 16), strict=True)):
        box = n.bias(n.conv(feature, channels, 3 * 4, 1, name=f"box{i}"), 12)
        boxes.append(n.reshape_behind_batch(box, -1, 1, 4))
        scores.append(
            n.reshape_behind_batch(n.bias(n.conv(feature, channels, 3 * 5, 3, name=f"class{i}"), 15), -1, 5)
        )
    n.op("Squeeze", n.concat(*boxes, axis=1), name="raw_boxes", squeeze_dims=[2])
    n.op("Sigmoid", n.concat(*scores, axis=1), name="raw_scores")
    return n


def unet() -> Network:
    """Down and up: a transposed convolution whose size comes from Shape, a resize to another's size, joins."""
    n = Network("unet", 1, 16, 20, 3)
    a = n.op("LeakyRelu", n.bias(n.conv(n.x, 3, 8, 3), 8), alpha=0.1)
    b = n.op("Relu", n.bias(n.conv(n.pool("MaxPool", a, 2, 2), 8, 12, 3), 12))
    shape = n.op("Shape", a, out_type=I32)
    sides = [
        n.op(
            "StridedSlice",
            shape,
            *(n.constant([v], "bound") for v in (i, i + 1, 1)),
            T=I32,
            Index=I32,
            shrink_axis_mask=1,
        )
        for i in (1, 2)
    ]
    sizes = n.op("Pack", n.batch_of(b), *sides, n.constant(np.int32(8), "channels"), T=I32, N=4)
    up = n.op(
        "Conv2DBackpropInput",
        sizes,
        n.graph.weights(2, 2, 8, 12),
        b,
        strides=[1, 2, 2, 1],
        padding="SAME",
        name="up",
    )
    large = n.op("ResizeBilinear", b, n.op("Pack", *sides, T=I32, N=2), half_pixel_centers=True)
    x = n.concat(a, n.bias(up, 8), large)
    n.op(
        "ArgMax",
        n.conv(x, 28, 5, 1, name="logits"),
        n.constant(np.int32(3), "dimension"),
        Tidx=I32,
        name="classes",
    )
    n.op("Softmax", "logits", name="probabilities")
    return n


def atrous() -> Network:
    """tf.nn.atrous_conv2d: space to batch around a VALID convolution; and around a SAME one, which is no dilated one."""
    n = Network("atrous", 1, 14, 14, 4, unknown=(), openvino=False)
    outputs = []
    for padding, pads, crops in (
        ("VALID", [[2, 2], [2, 2]], [[0, 0], [0, 0]]),
        ("SAME", [[0, 0], [0, 0]], [[0, 0], [0, 0]]),
    ):
        block = n.constant([2, 2], "block_shape")
        x = n.op("SpaceToBatchND", n.x, block, n.constant(pads, "paddings"), Tblock_shape=I32, Tpaddings=I32)
        x = n.conv(x, 4, 6, 3, 1, padding, "conv_" + padding)
        outputs.append(
            n.op("BatchToSpaceND", x, block, n.constant(crops, "crops"), Tblock_shape=I32, Tcrops=I32)
        )
    n.op("AddV2", *outputs, name="sum")
    return n


def grouped() -> Network:
    """Split, a convolution of each part, and a join, in order and out of it."""
    n = Network("grouped", 1, 10, 10, 8, unknown=(), openvino=False)
    n.op("Split", n.constant(np.int32(3), "split_dim"), n.x, name="split", num_split=2)
    first, second = (n.conv(part, 4, 6, 3, name=f"part{i}") for i, part in enumerate(("split", "split:1")))
    n.op("AddV2", n.concat(first, second), n.concat(second, first), name="sum")
    return n


def quantised() -> Network:
    n = Network("quantised", 1, 12, 12, 3)

    def fake(x: str, low: float, high: float, narrow: bool = False) -> str:
        return n.graph.node(
            "FakeQuantWithMinMaxVars",
            [x, n.constant(np.float32(low), "min"), n.constant(np.float32(high), "max")],
            narrow_range=narrow,
        )

    w = fake(n.graph.weights(3, 3, 3, 8), -0.9, 0.9, narrow=True)
    x = n.op("Conv2D", fake(n.x, -1, 1), w, strides=[1, 2, 2, 1], padding="SAME")
    x = fake(n.op("Relu6", n.bias(x, 8)), 0, 6)
    low, high = n.vector(8, "low", -1.2, -0.4), n.vector(8, "high", 0.4, 1.2)
    w = n.graph.node(
        "FakeQuantWithMinMaxVarsPerChannel", [n.graph.weights(3, 3, 8, 8), low, high], narrow_range=True
    )
    x = n.op("Conv2D", x, w, strides=[1, 1, 1, 1], padding="SAME")
    n.op("Mean", fake(n.bias(x, 8), -4, 4), n.constant([1, 2], "axes"), keep_dims=False, Tidx=I32, name="out")
    return n


def all_networks() -> Iterator[Network]:
    for build in (
        resnet50_front,
        inception_stem,
        mobilenet_v1,
        mobilenet_v2,
        ssd_front,
        unet,
        atrous,
        grouped,
        quantised,
    ):
        yield build()
