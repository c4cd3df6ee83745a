"""What TensorFlow's operators do, in numpy: one function per operator, of its attributes and inputs."""

import itertools

import numpy as np
import tensorflow_reference_cells  # noqa: F401 - registers its operators
import tensorflow_reference_segments  # noqa: F401
from tensorflow_graph import Graph
from tensorflow_reference_arrays import OPERATORS, F, operator


def last(a: dict) -> bool:
    return not a.get("data_format", "NHWC").startswith("NC")


def channels_last(a: dict, x: np.ndarray) -> np.ndarray:
    return x if last(a) else np.moveaxis(x, 1, -1)


def back(a: dict, y: np.ndarray) -> np.ndarray:
    return y if last(a) else np.moveaxis(y, -1, 1)


def spatial(a: dict, name: str, count: int) -> list[int]:
    values = a.get(name) or [1] * (count + 2)
    return values[1:-1] if last(a) else values[2:]


def pads_of(
    a: dict, sizes: tuple, kernel: list[int], strides: list[int], rates: list[int]
) -> list[tuple[int, int]]:
    """SAME: as many windows as strides, the smaller half before."""
    if a["padding"] == "VALID":
        return [(0, 0)] * len(sizes)
    if a["padding"] == "EXPLICIT":
        p = a["explicit_paddings"]
        pairs = [(p[2 * i], p[2 * i + 1]) for i in range(len(p) // 2)]
        return pairs[1:-1] if last(a) else pairs[2:]
    pads = []
    for n, k, s, d in zip(sizes, kernel, strides, rates, strict=True):
        total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        pads.append((total // 2, total - total // 2))
    return pads


def windows(x: np.ndarray, kernel: list[int], strides: list[int], rates: list[int]):
    """Taps of the kernel with what each window has there; x is padded already."""
    out = [
        (n - (k - 1) * d - 1) // s + 1
        for n, k, s, d in zip(x.shape[1:-1], kernel, strides, rates, strict=True)
    ]
    for tap in itertools.product(*map(range, kernel)):
        where = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, rates, out, strides, strict=True)
        )
        yield tap, x[(slice(None), *where)]


def padded(x: np.ndarray, pads: list[tuple[int, int]], value: float = 0) -> np.ndarray:
    return np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=value)


@operator("Conv2D", "Conv3D")
def conv(a: dict, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    n = w.ndim - 2
    x, kernel = channels_last(a, x), list(w.shape[:n])
    strides, rates = spatial(a, "strides", n), spatial(a, "dilations", n)
    x = padded(x, pads_of(a, x.shape[1:-1], kernel, strides, rates)).astype("f8")
    groups = x.shape[-1] // w.shape[-2]
    parts = [0.0] * groups
    for tap, part in windows(x, kernel, strides, rates):
        for g, (data, weights) in enumerate(
            zip(np.split(part, groups, -1), np.split(w[tap].astype("f8"), groups, -1), strict=True)
        ):
            parts[g] = parts[g] + data @ weights
    return back(a, np.concatenate(parts, -1).astype(w.dtype))


@operator("DepthwiseConv2dNative")
def depthwise(a: dict, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    x = channels_last(a, x)
    kernel, strides, rates = list(w.shape[:2]), spatial(a, "strides", 2), spatial(a, "dilations", 2)
    x, y = padded(x, pads_of(a, x.shape[1:-1], kernel, strides, rates)), 0.0
    for tap, part in windows(x, kernel, strides, rates):
        y = y + part[..., None].astype("f8") * w[tap]
    return back(a, y.reshape(*y.shape[:-2], -1).astype(F))


@operator("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def transposed(a: dict, sizes: np.ndarray, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The gradient of the convolution that makes x of the output's size."""
    n, x = w.ndim - 2, channels_last(a, x)
    out = list(sizes)
    if len(out) == n + 2:
        out = out[1:-1] if last(a) else out[2:]
    kernel, strides, rates = list(w.shape[:n]), spatial(a, "strides", n), spatial(a, "dilations", n)
    pads = pads_of(a, tuple(out), kernel, strides, rates)
    y = np.zeros((x.shape[0], *(o + sum(p) for o, p in zip(out, pads, strict=True)), w.shape[-2]))
    for tap in itertools.product(*map(range, kernel)):
        where = tuple(
            slice(t * d, t * d + (i - 1) * s + 1, s)
            for t, d, i, s in zip(tap, rates, x.shape[1:-1], strides, strict=True)
        )
        y[(slice(None), *where)] += x.astype("f8") @ w[tap].T
    inner = tuple(slice(p[0], p[0] + o) for o, p in zip(out, pads, strict=True))
    return back(a, y[(slice(None), *inner)].astype(F))


@operator("MaxPool", "MaxPool3D", "MaxPoolV2")
def max_pool(a: dict, x: np.ndarray, *lists: np.ndarray) -> np.ndarray:
    if lists:
        a = a | {"ksize": [int(v) for v in lists[0]], "strides": [int(v) for v in lists[1]]}
    n = x.ndim - 2
    if a["ksize"][-1] > 1 and last(a):  # over channels
        return max_pool(
            a | {"ksize": [1, *a["ksize"][1:], 1], "strides": [1, *a["strides"][1:], 1]}, x[..., None]
        )[..., 0]
    x = channels_last(a, x)
    kernel, strides = spatial(a, "ksize", n), spatial(a, "strides", n)
    x = padded(x, pads_of(a, x.shape[1:-1], kernel, strides, [1] * n), -np.inf)
    return back(a, np.max([part for _, part in windows(x, kernel, strides, [1] * n)], 0))


@operator("AvgPool", "AvgPool3D")
def avg_pool(a: dict, x: np.ndarray) -> np.ndarray:
    n, x = x.ndim - 2, channels_last(a, x)
    kernel, strides = spatial(a, "ksize", n), spatial(a, "strides", n)
    pads = pads_of(a, x.shape[1:-1], kernel, strides, [1] * n)
    total = sum(part.astype("f8") for _, part in windows(padded(x, pads), kernel, strides, [1] * n))
    count = sum(part for _, part in windows(padded(np.ones_like(x), pads), kernel, strides, [1] * n))
    return back(a, (total / count).astype(F))


@operator("MaxPoolWithArgmax")
def max_pool_with_argmax(a: dict, x: np.ndarray) -> tuple:
    index = np.arange(x.size).reshape(x.shape)
    if not a.get("include_batch_in_index"):
        index = index % x[0].size
    kernel, strides = spatial(a, "ksize", 2), spatial(a, "strides", 2)
    pads = pads_of(a, x.shape[1:-1], kernel, strides, [1, 1])
    values = np.stack([part for _, part in windows(padded(x, pads, -np.inf), kernel, strides, [1, 1])])
    places = np.stack([part for _, part in windows(padded(index, pads), kernel, strides, [1, 1])])
    best = values.argmax(0)[None]
    return np.take_along_axis(values, best, 0)[0], np.take_along_axis(places, best, 0)[0].astype("i8")


@operator("BiasAdd", "BiasAddV1")
def bias_add(a: dict, x: np.ndarray, b: np.ndarray) -> np.ndarray:
    return back(a, channels_last(a, x) + b)


@operator("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(
    a: dict, x: np.ndarray, scale: np.ndarray, offset: np.ndarray, mean: np.ndarray, variance: np.ndarray
) -> tuple:
    kind, x = x.dtype, channels_last(a, x).astype("f8")
    statistics = mean, variance
    if a.get("is_training", True):
        axes = tuple(range(x.ndim - 1))
        mean, variance = x.mean(axes), x.var(axes)
        rows = x.size // x.shape[-1]
        keep = a.get("exponential_avg_factor", 1.0)
        new = mean, variance * rows / max(rows - 1, 1)
        statistics = (
            tuple(s * (1 - keep) + n * keep for s, n in zip(statistics, new, strict=True))
            if keep != 1
            else new
        )
    y = (x - mean) / np.sqrt(variance + a.get("epsilon", 1e-4)) * scale + offset
    return back(a, y.astype(kind)), *(s.astype(F) for s in statistics)


@operator("BatchNormWithGlobalNormalization")
def global_batch_norm(
    a: dict, x: np.ndarray, mean: np.ndarray, variance: np.ndarray, offset: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Inception's of 2015; the scale counts only where it says so."""
    y = (x - mean) / np.sqrt(variance + a["variance_epsilon"])
    return (y * scale if a["scale_after_normalization"] else y) + offset


@operator("LRN")
def lrn(a: dict, x: np.ndarray) -> np.ndarray:
    r, squares = a.get("depth_radius", 5), np.square(x.astype("f8"))
    c = x.shape[-1]
    total = np.stack([squares[..., max(i - r, 0) : min(i + r + 1, c)].sum(-1) for i in range(c)], -1)
    return (x / (a.get("bias", 1.0) + a.get("alpha", 1.0) * total) ** a.get("beta", 0.5)).astype(F)


def nudged(low: np.ndarray, high: np.ndarray, a: dict) -> tuple:
    low, high = np.asarray(low, F), np.asarray(high, F)
    first, top = F(bool(a.get("narrow_range"))), F(2 ** a.get("num_bits", 8) - 1)
    scale = (high - low) / (top - first)
    zero = np.clip(np.floor(first - low / scale + F(0.5)), first, top)
    return (first - zero) * scale, (top - zero) * scale, scale


@operator("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant(a: dict, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    low, high, scale = nudged(low, high, a)
    return (np.floor((np.clip(x, low, high) - low) / scale + F(0.5)) * scale + low).astype(F)


@operator("FakeQuantWithMinMaxArgs")
def fake_quant_args(a: dict, x: np.ndarray) -> np.ndarray:
    return fake_quant(a, x, a.get("min", -6.0), a.get("max", 6.0))


def places(a: dict, size: int, wanted: int) -> np.ndarray:
    at = np.arange(wanted, dtype="f8")
    if a.get("align_corners"):
        return at * ((size - 1) / (wanted - 1) if wanted > 1 else 0)
    return (at + 0.5) * size / wanted - 0.5 if a.get("half_pixel_centers") else at * size / wanted


@operator("ResizeBilinear")
def bilinear(a: dict, x: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    y = x.astype("f8")
    for axis in (1, 2):
        at = places(a, x.shape[axis], sizes[axis - 1])
        low = np.clip(np.floor(at), 0, x.shape[axis] - 1).astype(int)
        high = np.clip(np.floor(at) + 1, 0, x.shape[axis] - 1).astype(int)
        part = np.clip(at - np.floor(at), 0, 1).reshape([-1 if i == axis else 1 for i in range(4)])
        y = y.take(low, axis) * (1 - part) + y.take(high, axis) * part
    return y.astype(F)


@operator("ResizeNearestNeighbor")
def nearest(a: dict, x: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    for axis in (1, 2):
        size, at = x.shape[axis], places(a, x.shape[axis], sizes[axis - 1])
        whole = at + 0.5 if a.get("align_corners") or a.get("half_pixel_centers") else at
        x = x.take(np.clip(np.floor(whole + 1e-9), 0, size - 1).astype(int), axis)
    return x


@operator("DepthToSpace")
def depth_to_space(a: dict, x: np.ndarray) -> np.ndarray:
    x, b = channels_last(a, x), a["block_size"]
    n, h, w, c = x.shape
    y = x.reshape(n, h, w, b, b, c // b // b).transpose(0, 1, 3, 2, 4, 5)
    return back(a, y.reshape(n, h * b, w * b, -1))


@operator("SpaceToDepth")
def space_to_depth(a: dict, x: np.ndarray) -> np.ndarray:
    x, b = channels_last(a, x), a["block_size"]
    n, h, w, c = x.shape
    y = x.reshape(n, h // b, b, w // b, b, c).transpose(0, 1, 3, 2, 4, 5)
    return back(a, y.reshape(n, h // b, w // b, -1))


@operator("SpaceToBatchND")
def space_to_batch(a: dict, x: np.ndarray, block: np.ndarray, pads: np.ndarray) -> np.ndarray:
    rest = x.ndim - 1 - len(block)
    x = np.pad(x, [(0, 0), *map(tuple, pads), *[(0, 0)] * rest])
    shape = [x.shape[0]]
    for i, b in enumerate(block):
        shape += [x.shape[i + 1] // b, b]
    y = x.reshape(*shape, *x.shape[len(block) + 1 :])
    m = len(block)
    order = (
        [2 * i + 2 for i in range(m)] + [0] + [2 * i + 1 for i in range(m)] + list(range(2 * m + 1, y.ndim))
    )
    return y.transpose(order).reshape(-1, *shape[1::2], *x.shape[m + 1 :])


@operator("BatchToSpaceND")
def batch_to_space(a: dict, x: np.ndarray, block: np.ndarray, crops: np.ndarray) -> np.ndarray:
    m, n = len(block), x.shape[0] // int(np.prod(block))
    y = x.reshape(*block, n, *x.shape[1:])
    order = [m] + [i for j in range(m) for i in (m + 1 + j, j)] + list(range(2 * m + 1, y.ndim))
    y = y.transpose(order).reshape(n, *(x.shape[i + 1] * block[i] for i in range(m)), *x.shape[m + 1 :])
    return y[(slice(None), *(slice(c[0], y.shape[i + 1] - c[1]) for i, c in enumerate(crops)))]


def run(graph: Graph, feeds: dict[str, np.ndarray], wanted: list[str]) -> list[np.ndarray]:
    """Values of "name" or "name:1"."""
    values: dict[str, object] = {}

    def value(reference: str) -> np.ndarray:
        name, _, port = reference.partition(":")
        return np.asarray(values[name][int(port or 0)] if isinstance(values[name], tuple) else values[name])

    for op, name, inputs, attributes in graph.records:
        if name in feeds:
            values[name] = feeds[name]
        elif op == "Const":
            values[name] = np.asarray(attributes["value"])
        elif op != "Placeholder":
            arguments = [value(i) for i in inputs if not i.startswith("^")]
            values[name] = OPERATORS[op](attributes | {"_op": op}, *arguments)
    return [value(w) for w in wanted]
