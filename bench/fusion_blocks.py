"""Blocks of layers on which bench/fusions measures rules: attention, binary layers in a row, branches."""

import math
from collections.abc import Sequence

from fusion_cases import Case
from fusion_nets import Build, Net, Value

# --- recognise-attention ---------------------------------------------------------------------------------


def _product(n: Net, x: Value, y: Value, columns: int, transposed: bool = False) -> Value:
    shape = (*x.shape[:-1], columns)
    return n.add("MatMul", x, y, shape=shape, transpose_a="false", transpose_b=str(transposed).lower())


def _attention(heads: int, queries: int, keys: int, size: int, mask: bool = False) -> Build:
    """softmax(q * k^T / sqrt(size) + mask) * v, written out."""

    def build(n: Net) -> Value:
        q = n.input(1, heads, queries, size)
        k, v = n.input(1, heads, keys, size), n.input(1, heads, keys, size)
        y = n.scalar("Multiply", _product(n, q, k, keys, transposed=True), 1 / math.sqrt(size))
        if mask:
            y = n.binary("Add", y, n.input(1, 1, 1, keys))
        return _product(n, n.add("SoftMax", y, axis=3), v, size)

    return build


ATTENTION = (
    Case("8 heads of 64, 512 by 512", _attention(8, 512, 512, 64)),
    Case("8 heads of 64, 1024 by 1024, mask", _attention(8, 1024, 1024, 64, mask=True)),
    Case("8 heads of 40, 4096 by 77", _attention(8, 4096, 77, 40)),
    Case("12 heads of 64, 197 by 197", _attention(12, 197, 197, 64)),
    Case("12 heads of 64, 1 by 512", _attention(12, 1, 512, 64)),
)

# --- binarise-once, fuse-binary-signs --------------------------------------------------------------------


def _binary_layers(channels: int, size: int, kernel: int, layers: int) -> Build:
    """Binary convolutions in a row, each with a scale and shift per channel behind it."""

    def build(n: Net) -> Value:
        y = n.input(1, channels, size, size)
        for _ in range(layers):
            y = n.binary_convolution(n.signs(y, -1), channels, kernel)
            y = n.per_channel("Add", n.per_channel("Multiply", y), low=-1)
        return y

    return build


BINARY_LAYERS = (
    Case("3 of 3x3, 64, 56x56", _binary_layers(64, 56, 3, 3)),
    Case("3 of 3x3, 256, 14x14", _binary_layers(256, 14, 3, 3)),
    Case("3 of 1x1, 256, 28x28", _binary_layers(256, 28, 1, 3)),
)

# --- hoist-activation-over-concat -----------------------------------------------------------------------


def _branches(inputs: int, outputs: Sequence[int], size: int, kind: str) -> Build:
    """Convolutions of the same picture, joined along the channels, then an activation."""

    def build(n: Net) -> Value:
        x = n.input(1, inputs, size, size)
        kernels = (1, 3, 5, 1)
        parts = [n.convolution(x, count, kernel) for count, kernel in zip(outputs, kernels, strict=False)]
        return n.add(kind, n.concat(parts, 1))

    return build


BRANCHES = (
    Case("1x1 to 64, 3x3 to 64, of 16, 55x55, ReLU", _branches(16, (64, 64), 55, "ReLU")),
    Case("1x1 to 64, 3x3 to 128, 5x5 to 32, of 64, 28x28, Tanh", _branches(64, (64, 128, 32), 28, "Tanh")),
    Case("1x1 to 256, 3x3 to 256, of 64, 13x13, Sigmoid", _branches(64, (256, 256), 13, "Sigmoid")),
)
