"""Small networks for bench/fusions, written as OpenVINO IR: one per fusion and shape."""

import array
import math
import pathlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr


@dataclass(frozen=True)
class Value:
    """Output `port` of a layer."""

    layer: int
    port: int
    shape: tuple[int, ...]


class Net:
    """Layers and seeded weights, one after the other."""

    def __init__(self) -> None:
        rng = random.Random(1)
        self._block = array.array("f", (rng.uniform(-1, 1) for _ in range(8192)))
        self._layers: list[str] = []
        self._edges: list[str] = []
        self._data = bytearray()
        self._count = 0

    # --- words ---

    def input(self, *shape: int) -> Value:
        data = {"shape": _list(shape), "element_type": "f32"}
        return self._layer("Parameter", "opset1", data, [], [shape])[0]

    def result(self, x: Value) -> None:
        self._layer("Result", "opset1", {}, [x], [])

    def floats(self, values: Sequence[float], *shape: int) -> Value:
        return self._constant("f32", array.array("f", values).tobytes(), shape)

    def integers(self, *values: int) -> Value:
        return self._constant("i64", array.array("q", values).tobytes(), (len(values),))

    def weights(self, *shape: int, low: float | None = None, high: float = 1) -> Value:
        """Values of a fixed block again and again: between low and high, or around 0 with unit gain."""
        size = math.prod(shape)
        fan_in = max(1, size // shape[0])
        middle, half = (0.0, math.sqrt(3 / fan_in)) if low is None else ((low + high) / 2, (high - low) / 2)
        block = array.array("f", (middle + half * v for v in self._block[: min(size, len(self._block))]))
        data = block.tobytes() * math.ceil(size / len(block))
        return self._constant("f32", data[: 4 * size], shape)

    def sign_weights(self, *shape: int) -> Value:
        size = math.prod(shape)
        block = array.array("f", (1 if v > 0 else -1 for v in self._block))
        data = block.tobytes() * math.ceil(size / len(block))
        return self._constant("f32", data[: 4 * size], shape)

    def bits(self, *shape: int) -> Value:
        size = math.ceil(math.prod(shape) / 8)
        return self._constant("u1", random.Random(2).randbytes(size), shape)

    def add(
        self, kind: str, *inputs: Value, opset: int = 1, shape: tuple[int, ...] = (), **data: Any
    ) -> Value:
        """A layer of one output, by default of the first input's shape."""
        return self._layer(kind, f"opset{opset}", data, inputs, [shape or inputs[0].shape])[0]

    # --- layers of several shapes ---

    def convolution(
        self,
        x: Value,
        outputs: int,
        kernel: int,
        stride: int = 1,
        groups: int = 1,
        pad: int = -1,
        signs: bool = False,
    ) -> Value:
        """A convolution of any number of dimensions; same padding by default; weights of -1 and 1 with `signs`."""
        axes = len(x.shape) - 2
        pad = kernel // 2 if pad < 0 else pad
        inputs = x.shape[1]
        window = (kernel,) * axes
        kind, dims = "Convolution", (outputs, inputs, *window)
        if groups > 1:
            kind, dims = "GroupConvolution", (groups, outputs // groups, inputs // groups, *window)
        w = self.sign_weights(*dims) if signs else self.weights(*dims)
        shape = (x.shape[0], outputs, *((s + 2 * pad - kernel) // stride + 1 for s in x.shape[2:]))
        return self.add(kind, x, w, shape=shape, **_window(axes, stride, pad))

    def binary_convolution(self, x: Value, outputs: int, kernel: int) -> Value:
        pad = kernel // 2
        shape = (x.shape[0], outputs, *x.shape[2:])
        w = self.bits(outputs, x.shape[1], kernel, kernel)
        more: dict[str, Any] = {"mode": "xnor-popcount", "pad_value": 0}
        return self.add("BinaryConvolution", x, w, shape=shape, **_window(2, 1, pad), **more)

    def transposed(self, x: Value, outputs: int, kernel: int, stride: int, pad: int) -> Value:
        w = self.weights(x.shape[1], outputs, kernel, kernel)
        shape = (x.shape[0], outputs, *((s - 1) * stride + kernel - 2 * pad for s in x.shape[2:]))
        return self.add("ConvolutionBackpropData", x, w, shape=shape, **_window(2, stride, pad))

    def product(self, x: Value, outputs: int) -> Value:
        w = self.weights(outputs, x.shape[-1])
        data: dict[str, Any] = {"transpose_a": "false", "transpose_b": "true"}
        return self.add("MatMul", x, w, shape=(*x.shape[:-1], outputs), **data)

    def pool(self, kind: str, x: Value, kernel: int, stride: int, pad: int = 0) -> Value:
        shape = (*x.shape[:2], *((s + 2 * pad - kernel) // stride + 1 for s in x.shape[2:]))
        more: dict[str, Any] = {"exclude-pad": "true"} if kind == "AvgPool" else {}
        window = _window(2, stride, pad, dilations=False)
        return self.add(
            kind, x, shape=shape, kernel=_list((kernel, kernel)), rounding_type="floor", **window, **more
        )

    def split(self, x: Value, axis: int, parts: int) -> list[Value]:
        shape = tuple(s // parts if i == axis else s for i, s in enumerate(x.shape))
        axis_value = self._constant("i64", array.array("q", [axis]).tobytes(), ())
        return self._layer("Split", "opset1", {"num_splits": parts}, [x, axis_value], [shape] * parts)

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        size = sum(p.shape[axis] for p in parts)
        shape = tuple(size if i == axis else s for i, s in enumerate(parts[0].shape))
        return self._layer("Concat", "opset1", {"axis": axis}, parts, [shape])[0]

    # --- simple layers ---

    def per_channel(self, kind: str, x: Value, low: float = 0.5, high: float = 1.5, axis: int = 1) -> Value:
        shape = [x.shape[axis] if i == axis else 1 for i in range(len(x.shape))]
        return self.add(kind, x, self.weights(*shape, low=low, high=high), auto_broadcast="numpy")

    def binary(self, kind: str, x: Value, y: Value) -> Value:
        return self.add(kind, x, y, auto_broadcast="numpy")

    def scalar(self, kind: str, x: Value, number: float) -> Value:
        return self.binary(kind, x, self.floats([number], *([1] * len(x.shape))))

    def relu(self, x: Value) -> Value:
        return self.add("ReLU", x)

    def clamp(self, x: Value, low: float = 0, high: float = 6) -> Value:
        return self.add("Clamp", x, min=low, max=high)

    def prelu(self, x: Value, channels: int) -> Value:
        return self.add("PReLU", x, self.weights(channels, low=0.1, high=0.4))

    def quantise(self, x: Value, levels: int = 256, channels: int = 1) -> Value:
        shape = (1, channels, *([1] * (len(x.shape) - 2)))
        low, high = self.weights(*shape, low=-4, high=-3), self.weights(*shape, low=3, high=4)
        return self.add("FakeQuantize", x, low, high, low, high, levels=levels, auto_broadcast="numpy")

    def signs(self, x: Value, low: float) -> Value:
        """1 above zero, else `low`."""
        ends = [self.floats([v], 1, 1, 1, 1) for v in (0, 0, low, 1)]
        return self.add("FakeQuantize", x, *ends, levels=2, auto_broadcast="numpy")

    def pad(self, x: Value, size: int) -> Value:
        """Zeros around the last two axes."""
        sizes = self.integers(0, 0, size, size)
        shape = (*x.shape[:2], *(s + 2 * size for s in x.shape[2:]))
        return self.add(
            "Pad", x, sizes, sizes, self._constant("f32", bytes(4), ()), shape=shape, pad_mode="constant"
        )

    # --- files ---

    def save(self, folder: pathlib.Path, name: str) -> pathlib.Path:
        body = f"<layers>{''.join(self._layers)}</layers><edges>{''.join(self._edges)}</edges>"
        path = folder / f"{name}.xml"
        path.write_text(f'<?xml version="1.0"?><net name={quoteattr(name)} version="11">{body}</net>\n')
        path.with_suffix(".bin").write_bytes(self._data)
        return path

    def _constant(self, kind: str, data: bytes, shape: tuple[int, ...]) -> Value:
        self._data += bytes(-len(self._data) % 64)
        place = {"element_type": kind, "shape": _list(shape), "offset": len(self._data), "size": len(data)}
        self._data += data
        return self._layer("Const", "opset1", place, [], [shape])[0]

    def _layer(
        self,
        kind: str,
        opset: str,
        data: dict[str, Any],
        inputs: Sequence[Value],
        shapes: Sequence[tuple[int, ...]],
    ) -> list[Value]:
        at = self._count
        self._count += 1
        words = "".join(f" {key}={quoteattr(str(value))}" for key, value in data.items())
        ports = "".join(f'<port id="{i}">{_dims(v.shape)}</port>' for i, v in enumerate(inputs))
        results = "".join(
            f'<port id="{len(inputs) + i}" precision="{_precision(data)}">{_dims(s)}</port>'
            for i, s in enumerate(shapes)
        )
        self._layers.append(
            f'<layer id="{at}" name="{kind}_{at}" type="{kind}" version="{opset}"><data{words}/>'
            + (f"<input>{ports}</input>" if ports else "")
            + (f"<output>{results}</output>" if results else "")
            + "</layer>\n"
        )
        for i, v in enumerate(inputs):
            self._edges.append(
                f'<edge from-layer="{v.layer}" from-port="{v.port}" to-layer="{at}" to-port="{i}"/>\n'
            )
        return [Value(at, len(inputs) + i, tuple(s)) for i, s in enumerate(shapes)]


def _list(values: Sequence[int]) -> str:
    return ",".join(map(str, values))


def _dims(shape: Sequence[int]) -> str:
    return "".join(f"<dim>{d}</dim>" for d in shape)


def _precision(data: dict[str, Any]) -> str:
    return {"i64": "I64", "u1": "U1"}.get(str(data.get("element_type")), "FP32")


def _window(axes: int, stride: int, pad: int, dilations: bool = True) -> dict[str, Any]:
    pads, strides = _list((pad,) * axes), _list((stride,) * axes)
    out: dict[str, Any] = {
        "strides": strides,
        "pads_begin": pads,
        "pads_end": pads,
        "auto_pad": "explicit",
    }
    return out | ({"dilations": _list((1,) * axes)} if dilations else {})


Build = Callable[[Net], Value]


def network(build: Build) -> Net:
    net = Net()
    net.result(build(net))
    return net
