"""What bench/fusions measures beside rules: simple layers behind a convolution, binary convolutions."""

from collections.abc import Callable
from typing import Any

from fusion_nets import Build, Net, Value

# --- chains of simple layers -----------------------------------------------------------------------------


def _unary(kind: str, opset: int = 1, **data: Any) -> Callable[[Net, Value], Value]:
    return lambda n, y: n.add(kind, y, opset=opset, **data)


def _with_number(kind: str, opset: int, number: float) -> Callable[[Net, Value], Value]:
    return lambda n, y: n.add(kind, y, n.floats([number]), opset=opset)


def _levels(y: Value) -> int:
    """Others each time: equal ones would be merged."""
    return 40 + y.layer % 97


STAGES: dict[str, Callable[[Net, Value], Value]] = {
    "ReLU": _unary("ReLU"),
    "leaky ReLU": lambda n, y: n.prelu(y, 1),
    "ELU": _unary("Elu", alpha=1),
    "Sigmoid": _unary("Sigmoid"),
    "Clamp": _unary("Clamp", min=-1, max=1),
    "Tanh": _unary("Tanh"),
    "HSwish": _unary("HSwish", 4),
    "Swish": _unary("Swish", 4),
    "Gelu (erf)": _unary("Gelu", 7, approximation_mode="ERF"),
    "Gelu (tanh)": _unary("Gelu", 7, approximation_mode="TANH"),
    "Mish": _unary("Mish", 4),
    "HSigmoid": _unary("HSigmoid", 5),
    "SoftPlus": _unary("SoftPlus", 4),
    "Abs": _unary("Abs"),
    "Sqrt": _unary("Sqrt"),
    "Round": _unary("Round", 5, mode="half_to_even"),
    "ScaleShift": lambda n, y: n.per_channel("Add", n.per_channel("Multiply", y)),
    "PReLU": lambda n, y: n.prelu(y, y.shape[1]),
    "FakeQuantize": lambda n, y: n.quantise(y, _levels(y)),
    "FakeQuantize per channel": lambda n, y: n.quantise(y, _levels(y), y.shape[1]),
}
LENGTHS = (1, 3, 10, 40)
CHAIN_SHAPE = (1, 64, 56, 56)


def chain(kind: str, length: int) -> Build:
    """A 1x1 convolution with a ReLU (so that factors do not vanish in the weights), then so many stages."""

    def build(n: Net) -> Value:
        y = n.relu(n.convolution(n.input(*CHAIN_SHAPE), CHAIN_SHAPE[1], 1))
        for _ in range(length):
            y = STAGES[kind](n, y)
        return y

    return build


# --- binary convolutions ---------------------------------------------------------------------------------


def _signs(n: Net, channels: int, size: int, low: float) -> Value:
    return n.signs(n.input(1, channels, size, size), low)


def binary_pair(channels: int, size: int, kernel: int) -> tuple[Build, Build]:
    """Convolutions of one shape in bits and in f32, each after the FakeQuantize that makes signs."""
    return (
        lambda n: n.relu(n.binary_convolution(_signs(n, channels, size, 0), channels, kernel)),
        lambda n: n.relu(n.convolution(_signs(n, channels, size, -1), channels, kernel)),
    )


BINARY = {
    f"{k}x{k}, {c} to {c}, {s}x{s}": binary_pair(c, s, k)
    for c, s, k in ((128, 28, 3), (256, 14, 3), (512, 14, 1), (512, 7, 3))
}
