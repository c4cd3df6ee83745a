"""The shapes on which bench/fusions measures each rule."""

import pathlib
from collections.abc import Callable
from dataclasses import dataclass

from fusion_nets import Build, Net, Value


@dataclass(frozen=True)
class Case:
    """A network on which a rule fires. `bound`: the same with what lies between small enough for the cache,
    and how many of those make one of these. `between`: MB of what lies between; `target`: how many times as
    fast the rule should make it."""

    name: str
    build: Build
    bound: tuple[Build, float] | None = None
    between: float | None = None
    target: float | None = None


def _l3_bytes() -> int:
    """Size of the machine's largest cache, or 32 MiB if it is unknown."""
    file = pathlib.Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    try:
        return int(file.read_text().strip().removesuffix("K")) * 1024
    except (OSError, ValueError):
        return 32 << 20


L3_BYTES = _l3_bytes()


# --- fuse-linear, fuse-conv-simple, fuse-fc-activation -------------------------------------------------------


def _convolution(
    shape: tuple[int, ...],
    outputs: int,
    kernel: int,
    then: Callable[[Net, Value], Value],
    stride: int = 1,
    groups: int = 1,
) -> Build:
    return lambda n: then(n, n.convolution(n.input(*shape), outputs, kernel, stride, groups))


def _bias(n: Net, y: Value) -> Value:
    return n.per_channel("Add", y)


def _relu(n: Net, y: Value) -> Value:
    return n.relu(y)


def _scale_shift_prelu(n: Net, y: Value) -> Value:
    y = n.per_channel("Add", n.per_channel("Multiply", n.relu(y)))
    return n.prelu(y, y.shape[1])


def _swish(n: Net, y: Value) -> Value:
    return n.add("Swish", y, opset=4)


def _hswish_quantised(n: Net, y: Value) -> Value:
    return n.quantise(n.add("HSwish", y, opset=4), channels=y.shape[1])


def _transposed(n: Net) -> Value:
    return n.relu(n.transposed(n.input(1, 64, 56, 56), 32, 4, 2, 1))


BIAS = (
    Case("3x3, 64 to 64, 56x56, shift behind", _convolution((1, 64, 56, 56), 64, 3, _bias)),
    Case("1x1, 64 to 256, 56x56, shift behind", _convolution((1, 64, 56, 56), 256, 1, _bias)),
    Case("3x3 depthwise, 96, 112x112, shift behind", _convolution((1, 96, 112, 112), 96, 3, _bias, groups=96)),
)
SIMPLE = (
    Case("3x3, 64 to 64, 56x56, ReLU", _convolution((1, 64, 56, 56), 64, 3, _relu)),
    Case("1x1, 64 to 256, 56x56, ReLU", _convolution((1, 64, 56, 56), 256, 1, _relu)),
    Case("1x1, 128 to 128, 28x28, Swish", _convolution((1, 128, 28, 28), 128, 1, _swish)),
    Case(
        "3x3 depthwise, 96, 112x112, ReLU, ScaleShift, PReLU",
        _convolution((1, 96, 112, 112), 96, 3, _scale_shift_prelu, groups=96),
    ),
    Case(
        "3x3 stride 2, 3 to 32, 224x224, HSwish, FakeQuantize per channel",
        _convolution((1, 3, 224, 224), 32, 3, _hswish_quantised, stride=2),
    ),
    Case("transposed 4x4 stride 2, 64 to 32, 56x56, ReLU", _transposed),
    Case("1D, 5, 128 to 128, 400, ReLU", _convolution((1, 128, 400), 128, 5, _relu)),
    Case("3D, 3x3x3, 32 to 32, 8x28x28, ReLU", _convolution((1, 32, 8, 28, 28), 32, 3, _relu)),
)


def _product(shape: tuple[int, ...], outputs: int, then: Callable[[Net, Value], Value]) -> Build:
    def build(n: Net) -> Value:
        y = n.product(n.input(*shape), outputs)
        return then(n, n.per_channel("Add", y, axis=len(y.shape) - 1))

    return build


def _gelu(n: Net, y: Value) -> Value:
    return n.add("Gelu", y, opset=7, approximation_mode="ERF")


FC = (
    Case("1x1024 to 1000, Sigmoid", _product((1, 1024), 1000, lambda n, y: n.add("Sigmoid", y))),
    Case("128x256 to 1024, Gelu", _product((1, 128, 256), 1024, _gelu)),
    Case("196x512 to 512, ReLU", _product((196, 512), 512, _relu)),
)

# --- fuse-conv-sum ---------------------------------------------------------------------------------------


def _residual(channels: int, size: int, kernel: int, wide: int) -> Build:
    """relu(x + conv(relu(conv(x))))"""

    def build(n: Net) -> Value:
        x = n.input(1, channels, size, size)
        y = n.relu(n.convolution(x, wide, 1))
        return n.relu(n.binary("Add", n.convolution(y, channels, kernel), x))

    return build


def _darknet(n: Net) -> Value:
    x = n.input(1, 128, 52, 52)
    y = n.prelu(n.convolution(n.prelu(n.convolution(x, 64, 1), 1), 128, 3), 1)
    return n.binary("Add", x, y)


def _two_convolutions(n: Net) -> Value:
    x = n.input(1, 64, 56, 56)
    return n.relu(n.binary("Add", n.convolution(x, 256, 1), n.convolution(n.relu(x), 256, 1)))


SUM = (
    Case("x + 3x3, 64, 56x56, ReLU", _residual(64, 56, 3, 64)),
    Case("x + 1x1, 64 to 256, 56x56, ReLU", _residual(256, 56, 1, 64)),
    Case("x + 1x1, 256 to 1024, 14x14, ReLU", _residual(1024, 14, 1, 256)),
    Case("x + leaky(3x3), 64 to 128, 52x52", _darknet),
    Case("1x1 + 1x1, 64 to 256, 56x56, ReLU", _two_convolutions),
)

# --- fuse-pooling-fakequantize ---------------------------------------------------------------------------


def _pool(
    kind: str, channels: int, size: int, kernel: int, stride: int, levels: int, per_channel: bool
) -> Build:
    def build(n: Net) -> Value:
        y = n.pool(
            kind, n.input(1, channels, size, size), kernel, stride, kernel // 2 if stride < kernel else 0
        )
        return n.quantise(y, levels, channels if per_channel else 1)

    return build


def _pool_activation(channels: int, size: int) -> Build:
    def build(n: Net) -> Value:
        y = n.convolution(n.input(1, channels, size, size), channels, 3)
        return n.add("Tanh", n.pool("MaxPool", y, 2, 2))

    return build


POOLING = (
    Case("average 3x3, 64, 56x56, 256 levels", _pool("AvgPool", 64, 56, 3, 1, 256, False)),
    Case("average 2x2, 128, 112x112, per channel", _pool("AvgPool", 128, 112, 2, 2, 256, True)),
    Case("average 7x7, 2048, 7x7, 256 levels", _pool("AvgPool", 2048, 7, 7, 7, 256, False)),
    Case("maximum 3x3 stride 2, 64, 112x112, 16 levels", _pool("MaxPool", 64, 112, 3, 2, 16, False)),
    Case("3x3, 64, 56x56, then maximum 2x2, Tanh", _pool_activation(64, 56)),
    Case("3x3, 16, 64x64, then maximum 2x2, Tanh", _pool_activation(16, 64)),
)

# --- hoist-activation -----------------------------------------------------------------------------------


def _head(inputs: int, outputs: int, size: int, kind: str) -> Build:
    """A detector's head: a convolution whose pixels become rows, then an activation."""

    def build(n: Net) -> Value:
        y = n.convolution(n.input(1, inputs, size, size), outputs, 3)
        order = n.integers(0, 2, 3, 1)
        y = n.add("Transpose", y, order, shape=(1, size, size, outputs))
        rows = size * size
        y = n.add("Reshape", y, n.integers(1, -1, outputs), shape=(1, rows, outputs), special_zero="false")
        return n.scalar("Multiply", n.add(kind, y), 2)

    return build


HOISTED = (
    Case("head of 3x3, 64 to 80, 40x40, Sigmoid", _head(64, 80, 40, "Sigmoid")),
    Case("head of 3x3, 96 to 16, 20x20, Sigmoid", _head(96, 16, 20, "Sigmoid")),
    Case("head of 3x3, 32 to 32, 80x80, ReLU", _head(32, 32, 80, "ReLU")),
)

# --- fuse-group-conv -------------------------------------------------------------------------------------


def _groups(channels: int, size: int, groups: int, kernel: int) -> Build:
    def build(n: Net) -> Value:
        parts = n.split(n.input(1, channels, size, size), 1, groups)
        return n.relu(n.concat([n.convolution(p, channels // groups, kernel) for p in parts], 1))

    return build


GROUPS = (
    Case("2 of 3x3, 48 to 48, 27x27", _groups(96, 27, 2, 3)),
    Case("4 of 3x3, 32 to 32, 28x28", _groups(128, 28, 4, 3)),
    Case("8 of 1x1, 16 to 16, 56x56", _groups(128, 56, 8, 1)),
    Case("32 of 3x3, 4 to 4, 56x56", _groups(128, 56, 32, 3)),
)

# --- identities, scales, chains --------------------------------------------------------------------------


def _identities(channels: int, size: int) -> Build:
    """Softmax is no place to fuse into."""

    def build(n: Net) -> Value:
        y = n.add("SoftMax", n.input(1, channels, size, size), axis=1)
        y = n.scalar("Add", n.scalar("Multiply", y, 1), 0)
        return n.add("SoftMax", n.scalar("Power", y, 1), axis=1)

    return build


IDENTITY = tuple(
    Case(f"x * 1 + 0, then to the power of 1, {c}x{s}x{s}", _identities(c, s))
    for c, s in ((64, 56), (256, 14), (16, 112))
)


def _scaled_after(channels: int, size: int, kernel: int) -> Build:
    def build(n: Net) -> Value:
        y = n.convolution(n.input(1, channels, size, size), channels, kernel)
        return n.relu(n.per_channel("Add", n.per_channel("Multiply", y)))

    return build


def _scaled_before(channels: int, size: int, kernel: int) -> Build:
    def build(n: Net) -> Value:
        return n.relu(
            n.convolution(n.per_channel("Multiply", n.input(1, channels, size, size)), channels, kernel)
        )

    return build


_SHAPES = ((64, 56, 1), (64, 56, 3), (256, 14, 1))
AFTER = tuple(Case(f"{k}x{k}, {c}, {s}x{s}, factor behind", _scaled_after(c, s, k)) for c, s, k in _SHAPES)
BEFORE = tuple(Case(f"{k}x{k}, {c}, {s}x{s}, factor in front", _scaled_before(c, s, k)) for c, s, k in _SHAPES)


def _elementwise(shape: tuple[int, ...], times: int) -> Build:
    def build(n: Net) -> Value:
        x = n.input(*shape)
        y = x
        for _ in range(times):
            y = n.add("Tanh", n.scalar("Add", n.scalar("Multiply", y, 1.5), 0.25))
        return n.binary("Multiply", n.add("Sigmoid", y), x)

    return build


CHAINS = (
    Case("5 operators on 1x64x56x56", _elementwise((1, 64, 56, 56), 1)),
    Case("14 operators on 1x64x56x56", _elementwise((1, 64, 56, 56), 4)),
    Case("5 operators on 1x64x272x272", _elementwise((1, 64, 272, 272), 1)),
    Case("14 operators on 1x1000", _elementwise((1, 1000), 4)),
)


def _norm(rows: int, width: int) -> Build:
    """(x - mean) / sqrt(variance + 1e-5) * scale + shift, as exporters write it."""

    def build(n: Net) -> Value:
        x = n.input(1, rows, width)
        axes, mean = n.integers(2), (1, rows, 1)
        centred = n.binary("Subtract", x, n.add("ReduceMean", x, axes, shape=mean, keep_dims="true"))
        square = n.scalar("Power", centred, 2)
        variance = n.add("ReduceMean", square, axes, shape=mean, keep_dims="true")
        y = n.binary("Divide", centred, n.add("Sqrt", n.scalar("Add", variance, 1e-5)))
        return n.per_channel("Add", n.per_channel("Multiply", y, axis=2), axis=2)

    return build


NORMS = tuple(Case(f"{r} rows of {w}", _norm(r, w)) for r, w in ((128, 256), (197, 768), (16, 1024)))


def _fc_residual(rows: int, width: int, wide: int) -> Build:
    """x + gelu(x * W1) * W2, both with a bias"""

    def build(n: Net) -> Value:
        x = n.input(1, rows, width)
        y = _gelu(n, n.per_channel("Add", n.product(x, wide), axis=2))
        return n.binary("Add", n.per_channel("Add", n.product(y, width), axis=2), x)

    return build


FC_SUM = tuple(
    Case(f"{r} rows of {w}, through {d}", _fc_residual(r, w, d))
    for r, w, d in ((128, 256, 1024), (197, 384, 1536), (16, 768, 768))
)


def _padded(kind: str, channels: int, size: int, stride: int) -> Build:
    def build(n: Net) -> Value:
        y = n.pad(n.input(1, channels, size, size), 1)
        if kind == "Convolution":
            return n.relu(n.convolution(y, channels, 3, stride, pad=0))
        return n.pool(kind, y, 3, stride)

    return build


PADS = tuple(
    Case(f"1 around, 3x3 stride {t}, {c}, {s}x{s}", _padded("Convolution", c, s, t))
    for c, s, t in ((64, 56, 1), (32, 112, 2), (256, 14, 1))
)
POOL_PADS = tuple(
    Case(f"1 around, average 3x3 stride {t}, {c}, {s}x{s}", _padded("AvgPool", c, s, t))
    for c, s, t in ((64, 56, 1), (32, 112, 2), (256, 14, 1))
)


def _sign_weights(channels: int, size: int, kernel: int, stride: int = 1, groups: int = 1) -> Build:
    """A convolution in f32 of -1 and 1 by -1 and 1."""

    def build(n: Net) -> Value:
        x = n.signs(n.input(1, channels, size, size), -1)
        return n.relu(n.convolution(x, channels, kernel, stride, groups, signs=True))

    return build


SIGNS = tuple(
    Case(f"{k}x{k}, {c} to {c}, {s}x{s}", _sign_weights(c, s, k))
    for c, s, k in ((128, 28, 3), (256, 14, 3), (512, 14, 1))
) + tuple(
    Case(f"{k}x{k} depthwise stride {t}, {c}, {s}x{s}", _sign_weights(c, s, k, t, c))
    for c, s, k, t in ((32, 112, 3, 2), (64, 28, 3, 2), (128, 56, 3, 2), (128, 56, 3, 1), (64, 56, 5, 1))
)
