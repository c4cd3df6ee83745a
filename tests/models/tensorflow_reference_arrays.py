"""What TensorFlow's operators on elements, shapes and parts of tensors do, in numpy."""

import math
from collections.abc import Callable

import numpy as np

F = np.float32
OPERATORS: dict[str, Callable] = {}


def operator(*names: str) -> Callable:
    def add(function: Callable) -> Callable:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return add


def reduction(function: Callable) -> Callable:
    def reduce(a: dict, x: np.ndarray, axes: np.ndarray) -> np.ndarray:
        y = function(x, axis=tuple(np.atleast_1d(axes)), keepdims=a.get("keep_dims", False))
        return np.asarray(y).astype(x.dtype)

    return reduce


for _name, _function in {
    "Mean": np.mean, "Sum": np.sum, "Max": np.max, "Min": np.min, "Prod": np.prod, "All": np.all, "Any": np.any,
    "EuclideanNorm": lambda x, **k: np.sqrt(np.sum(np.square(x), **k)),
}.items():  # fmt: skip
    OPERATORS[_name] = reduction(_function)


@operator("StridedSlice")
def strided_slice(a: dict, x: np.ndarray, begin: np.ndarray, end: np.ndarray, step: np.ndarray) -> np.ndarray:
    index: list = []
    for i, (b, e, s) in enumerate(zip(begin.tolist(), end.tolist(), step.tolist(), strict=True)):
        has = {
            m: a.get(m, 0) >> i & 1
            for m in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
        }
        if has["ellipsis_mask"]:
            index.append(Ellipsis)
        elif has["new_axis_mask"]:
            index.append(None)
        elif has["shrink_axis_mask"]:
            index.append(b)
        else:
            index.append(slice(None if has["begin_mask"] else b, None if has["end_mask"] else e, s))
    return x[tuple(index)]


@operator("Select")
def select(a: dict, condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if condition.ndim == 1:
        condition = condition.reshape(-1, *[1] * (x.ndim - 1))
    return np.where(condition, x, y)


@operator("OneHot")
def one_hot(a: dict, indices: np.ndarray, depth: np.ndarray, on: np.ndarray, off: np.ndarray) -> np.ndarray:
    hot = np.where(indices[..., None] == np.arange(depth), on, off).astype(on.dtype)
    axis = a.get("axis", -1)
    return np.moveaxis(hot, -1, axis)


@operator("Cumsum", "Cumprod")
def running(a: dict, x: np.ndarray, axis: np.ndarray) -> np.ndarray:
    product, axis = a["_op"] == "Cumprod", int(axis)
    x = np.flip(x, axis) if a.get("reverse") else x
    y = (np.cumprod if product else np.cumsum)(x, axis).astype(x.dtype)
    if a.get("exclusive"):
        y = np.roll(y, 1, axis)
        y[tuple(0 if i == axis % x.ndim else slice(None) for i in range(x.ndim))] = product
    return np.flip(y, axis) if a.get("reverse") else y


@operator("Split")
def split(a: dict, axis: np.ndarray, x: np.ndarray) -> tuple:
    return tuple(np.split(x, a["num_split"], int(axis)))


@operator("SplitV")
def split_v(a: dict, x: np.ndarray, sizes: np.ndarray, axis: np.ndarray) -> tuple:
    sizes = np.where(sizes < 0, x.shape[int(axis)] - sizes[sizes >= 0].sum(), sizes)
    return tuple(np.split(x, np.cumsum(sizes)[:-1], int(axis)))


@operator("TopKV2")
def top_k(a: dict, x: np.ndarray, k: np.ndarray) -> tuple:
    order = np.argsort(-x, -1, kind="stable")[..., : int(k)]
    return np.take_along_axis(x, order, -1), order.astype("i4")


@operator("Slice")
def slice_(a: dict, x: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
    return x[tuple(slice(b, None if s < 0 else b + s) for b, s in zip(begin, size, strict=True))]


@operator("GatherV2", "Gather")
def gather(a: dict, x: np.ndarray, indices: np.ndarray, axis: np.ndarray | int = 0) -> np.ndarray:
    batch, axis = a.get("batch_dims", 0), int(axis) % x.ndim
    if batch == 0:
        return x.take(indices, axis)
    return np.stack([gather({"batch_dims": batch - 1}, x[i], indices[i], axis - 1) for i in range(len(x))])


@operator("GatherNd")
def gather_nd(a: dict, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return x[tuple(np.moveaxis(indices, -1, 0))]


@operator("MirrorPad")
def mirror_pad(a: dict, x: np.ndarray, pads: np.ndarray) -> np.ndarray:
    return np.pad(x, pads, mode=a["mode"].lower())


@operator("MatMul", "BatchMatMul", "BatchMatMulV2")
def matmul(a: dict, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x = np.swapaxes(x, -1, -2) if a.get("transpose_a") or a.get("adj_x") else x
    y = np.swapaxes(y, -1, -2) if a.get("transpose_b") or a.get("adj_y") else y
    return x @ y


@operator("Squeeze")
def squeeze(a: dict, x: np.ndarray) -> np.ndarray:
    axes = a.get("squeeze_dims") or [i for i, n in enumerate(x.shape) if n == 1]
    return np.squeeze(x, tuple(axes))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def kind(a: dict, name: str, otherwise: str) -> str:
    return str(a.get(name, otherwise))


_erf = np.vectorize(math.erf)
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
OPERATORS |= {
    "Identity": lambda a, x: x, "StopGradient": lambda a, x: x, "CheckNumerics": lambda a, x: x,
    "PlaceholderWithDefault": lambda a, x: x, "IdentityN": lambda a, *x: x, "Snapshot": lambda a, x: x,
    "Relu": lambda a, x: np.maximum(x, 0), "Relu6": lambda a, x: np.clip(x, 0, 6),
    "LeakyRelu": lambda a, x: np.where(x > 0, x, F(a.get("alpha", 0.2)) * x), "Elu": lambda a, x: np.where(x > 0, x, np.expm1(x)),
    "Selu": lambda a, x: (SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(x))).astype(F),
    "Sigmoid": lambda a, x: 1 / (1 + np.exp(-x)), "Tanh": lambda a, x: np.tanh(x),
    "Softplus": lambda a, x: np.log1p(np.exp(x)), "Softsign": lambda a, x: x / (1 + np.abs(x)),
    "Softmax": lambda a, x: softmax(x), "LogSoftmax": lambda a, x: np.log(softmax(x)),
    "Add": lambda a, x, y: x + y, "AddV2": lambda a, x, y: x + y, "Sub": lambda a, x, y: x - y, "Mul": lambda a, x, y: x * y,
    "RealDiv": lambda a, x, y: x / y, "Div": lambda a, x, y: np.trunc(x / y).astype(x.dtype) if x.dtype.kind == "i" else x / y,
    "FloorDiv": lambda a, x, y: np.floor_divide(x, y), "FloorMod": lambda a, x, y: np.mod(x, y), "Mod": lambda a, x, y: np.fmod(x, y),
    "DivNoNan": lambda a, x, y: np.where(y == 0, 0, x / np.where(y == 0, 1, y)).astype(x.dtype),
    "Maximum": lambda a, x, y: np.maximum(x, y), "Minimum": lambda a, x, y: np.minimum(x, y), "Pow": lambda a, x, y: x**y,
    "SquaredDifference": lambda a, x, y: (x - y) ** 2, "AddN": lambda a, *x: sum(x[1:], x[0]),
    "Rsqrt": lambda a, x: 1 / np.sqrt(x), "Sqrt": lambda a, x: np.sqrt(x), "Square": lambda a, x: x * x, "Exp": lambda a, x: np.exp(x),
    "Log": lambda a, x: np.log(x), "Log1p": lambda a, x: np.log1p(x), "Expm1": lambda a, x: np.expm1(x), "Neg": lambda a, x: -x,
    "Abs": lambda a, x: np.abs(x), "Sign": lambda a, x: np.sign(x), "Erf": lambda a, x: _erf(x).astype(F), "Sin": lambda a, x: np.sin(x),
    "Cos": lambda a, x: np.cos(x), "Floor": lambda a, x: np.floor(x), "Ceil": lambda a, x: np.ceil(x), "Round": lambda a, x: np.round(x),
    "Rint": lambda a, x: np.round(x), "Reciprocal": lambda a, x: 1 / x, "Inv": lambda a, x: 1 / x, "Tan": lambda a, x: np.tan(x),
    "Atan2": lambda a, y, x: np.arctan2(y, x), "ClipByValue": lambda a, x, low, high: np.clip(x, low, high),
    "Greater": lambda a, x, y: x > y, "GreaterEqual": lambda a, x, y: x >= y, "Less": lambda a, x, y: x < y,
    "LessEqual": lambda a, x, y: x <= y, "Equal": lambda a, x, y: x == y, "NotEqual": lambda a, x, y: x != y,
    "LogicalAnd": lambda a, x, y: x & y, "LogicalOr": lambda a, x, y: x | y, "LogicalNot": lambda a, x: ~x,
    "SelectV2": lambda a, c, x, y: np.where(c, x, y), "Cast": lambda a, x: x.astype(str(a["DstT"])),
    "ConcatV2": lambda a, *x: np.concatenate(x[:-1], int(x[-1])), "Concat": lambda a, axis, *x: np.concatenate(x, int(axis)),
    "Pack": lambda a, *x: np.stack(x, a.get("axis", 0)), "Unpack": lambda a, x: tuple(np.moveaxis(x, a.get("axis", 0), 0)),
    "Reshape": lambda a, x, s: x.reshape(s), "ExpandDims": lambda a, x, d: np.expand_dims(x, int(d)),
    "Transpose": lambda a, x, p: x.transpose(p), "Tile": lambda a, x, n: np.tile(x, n), "Fill": lambda a, s, v: np.full(s, v),
    "Pad": lambda a, x, p: np.pad(x, p), "PadV2": lambda a, x, p, v: np.pad(x, p, constant_values=v),
    "Shape": lambda a, x: np.array(x.shape, kind(a, "out_type", "int32")), "Rank": lambda a, x: np.array(x.ndim, "i4"),
    "Size": lambda a, x: np.array(x.size, kind(a, "out_type", "int32")),
    "ShapeN": lambda a, *x: tuple(np.array(v.shape, "i4") for v in x),
    "Range": lambda a, start, stop, step: np.arange(start, stop, step).astype(start.dtype),
    "ZerosLike": lambda a, x: np.zeros_like(x), "OnesLike": lambda a, x: np.ones_like(x), "BroadcastTo": lambda a, x, s: np.broadcast_to(x, s),
    "ReverseV2": lambda a, x, axes: np.flip(x, tuple(axes)), "Einsum": lambda a, *x: np.einsum(a["equation"], *x),
    "ArgMax": lambda a, x, d: x.argmax(int(d)).astype(kind(a, "output_type", "int64")),
    "ArgMin": lambda a, x, d: x.argmin(int(d)).astype(kind(a, "output_type", "int64")),
    "L2Loss": lambda a, x: F((x * x).sum() / 2), "Where": lambda a, x: np.argwhere(x),
    "InvertPermutation": lambda a, x: np.argsort(x).astype(x.dtype),
}  # fmt: skip
