"""A convolution with its depthwise child, on which bench/fusions measures fuse-conv-depthwise."""

import math
import pathlib

from fusion_cases import L3_BYTES, Case
from fusion_nets import Build, Net, Value


def _pair(
    inputs: int,
    wide: int,
    height: int,
    width: int,
    kernel: int,
    child: int,
    stride: int,
    parts: int = 1,
    binary: bool = False,
) -> Build:
    """`parts` of them, each with an input of its own, below one another in one result. Channels are last
    outside, as inside, so that nothing but the pairs runs. `binary`: of signs, and weights of -1 and 1."""

    def pair(n: Net) -> Value:
        shape = (1, inputs, height, width)
        x = n.add("Transpose", n.input(1, height, width, inputs), n.integers(0, 3, 1, 2), shape=shape)
        x = n.signs(x, -1) if binary else x
        y = n.clamp(n.per_channel("Add", n.convolution(x, wide, kernel, signs=binary)))
        return n.clamp(n.per_channel("Add", n.convolution(y, wide, child, stride, groups=wide)))

    def build(n: Net) -> Value:
        pairs = [pair(n) for _ in range(parts)]
        y = pairs[0] if parts == 1 else n.concat(pairs, 2)
        shape = (1, *y.shape[2:], wide)
        return n.add("Transpose", y, n.integers(0, 2, 3, 1), shape=shape)

    return build


def _pair_case(
    inputs: int, wide: int, size: int, kernel: int = 1, child: int = 3, stride: int = 1, binary: bool = False
) -> Case:
    # As many rows as keep the tensor between the two below half a megabyte.
    rows = max(2 * child, min(size, 512 * 1024 // (4 * wide * size)))
    rows -= rows % 2
    parts = max(1, size // rows)
    between = 4 * wide * size * size
    return Case(
        f"{'binary ' * binary}{kernel}x{kernel}, {inputs} to {wide}, {size}x{size}; {child}x{child},"
        f" stride {stride}",
        _pair(inputs, wide, size, size, kernel, child, stride, binary=binary),
        (_pair(inputs, wide, rows, size, kernel, child, stride, parts, binary), size / (rows * parts)),
        between / 1e6,
        1.3 if kernel == 1 and wide >= 2 * inputs and between > L3_BYTES / 2 else None,
    )


def _large_pair_cases() -> tuple[Case, ...]:
    """Tensors between that exceed half of the L3 cache, where there is memory for them."""
    kinds = ((32, 192, 2), (16, 96, 2), (32, 64, 1), (64, 128, 1), (24, 144, 1), (64, 256, 1))
    memory = pathlib.Path("/proc/meminfo").read_text().partition("MemAvailable:")[2].split()
    if not memory or 1024 * int(memory[0]) < 12 * L3_BYTES:
        return ()
    sizes = (16 * math.ceil(math.sqrt(L3_BYTES / 2 / (4 * wide)) / 16 + 0.5) for _, wide, _ in kinds)
    return tuple(_pair_case(i, w, s, stride=t) for (i, w, t), s in zip(kinds, sizes, strict=True))


DEPTHWISE = (
    _pair_case(16, 96, 112, stride=2),
    _pair_case(24, 144, 56),
    _pair_case(32, 192, 28),
    _pair_case(24, 144, 56, child=5),
    _pair_case(3, 32, 224, kernel=3),
    _pair_case(64, 128, 56),
    _pair_case(64, 256, 272),
    _pair_case(64, 256, 272, stride=2),
    _pair_case(64, 256, 56, binary=True),
    _pair_case(64, 64, 112, kernel=3, binary=True),
    _pair_case(64, 256, 272, binary=True),
    *_large_pair_cases(),
)
