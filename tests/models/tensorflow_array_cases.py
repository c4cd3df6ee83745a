"""Operators on single elements, shapes and parts of tensors, by themselves."""

from collections.abc import Iterator

import numpy as np
from tensorflow_cases import FLOAT, C, Case, f, i, single, t
from tensorflow_graph import Type

UNARY = "Relu Relu6 LeakyRelu Elu Selu Sigmoid Tanh Softplus Softsign Square Exp Expm1 Neg Abs Sign Erf Sin Cos Tan Floor Ceil Round Rint"
POSITIVE = "Rsqrt Sqrt Log Log1p Reciprocal Inv"
BINARY = "Add AddV2 Sub Mul RealDiv Div Maximum Minimum SquaredDifference FloorDiv FloorMod Mod Atan2"
COMPARISONS = "Greater GreaterEqual Less LessEqual Equal NotEqual"


def elementwise() -> Iterator[Case]:
    for op in UNARY.split():
        yield single(op, op, f(2, 3, 4), T=FLOAT)
    for op in POSITIVE.split():
        yield single(op, op, f(2, 3, 4, low=0.2), T=FLOAT)
    for op in BINARY.split():
        yield single(op, op, f(2, 3, 4), f(4), T=FLOAT)
    for op in "Add Sub Mul Maximum Div FloorDiv FloorMod Mod".split():
        yield single(
            f"{op} i32",
            op,
            i(3, 4),
            i(1, 4, low=1, high=4) * np.array([1, -1, 1, -1], "i4"),
            T=Type("int32"),
            openvino=op != "Div",
        )
    yield single("Pow", "Pow", f(2, 3, low=0.1), f(2, 3), T=FLOAT)
    yield single("DivNoNan", "DivNoNan", f(4), C(np.array([0, 1, 2, 0], "f4")), T=FLOAT)
    yield single("Relu i32", "Relu", i(3, 4), T=Type("int32"))
    yield single("LeakyRelu alpha", "LeakyRelu", f(2, 3), T=FLOAT, alpha=0.01)
    for op in COMPARISONS.split():
        yield single(op, op, i(3, 4, low=0, high=3), i(4, low=0, high=3), T=Type("int32"))
    yes, no = f(3, 4) > 0, f(3, 4) > 0
    yield single("LogicalAnd", "LogicalAnd", yes, no)
    yield single("LogicalOr", "LogicalOr", yes, no)
    yield single("LogicalNot", "LogicalNot", yes)
    yield single("AddN", "AddN", f(2, 3), f(2, 3), f(2, 3), T=FLOAT, N=3)
    yield single("ClipByValue", "ClipByValue", f(3, 4), C(np.float32(-0.5)), C(np.float32(1)), T=FLOAT)
    yield single(
        "ClipByValue tensors",
        "ClipByValue",
        f(3, 4),
        C(np.full((3, 4), -0.5, "f4")),
        C(f(3, 4, low=0)),
        T=FLOAT,
    )
    yield single("Select", "Select", f(3, 4) > 0, f(3, 4), f(3, 4), T=FLOAT)
    yield single("Select rows", "Select", np.array([True, False, True]), f(3, 4), f(3, 4), T=FLOAT)
    yield single("Select scalar", "Select", np.array(True), f(3, 4), f(3, 4), T=FLOAT)
    yield single("SelectV2", "SelectV2", f(4) > 0, f(3, 4), f(3, 1), T=FLOAT)
    for to in ("int32", "int64", "bool", "float16", "float64", "uint8"):
        source = f(3, 4, low=0, high=9) if to in ("uint8", "bool") else f(3, 4, low=-9, high=9)
        yield single(f"Cast {to}", "Cast", source, SrcT=FLOAT, DstT=Type(to))


def reductions() -> Iterator[Case]:
    x = f(2, 3, 4, 5)
    for op in ("Mean", "Sum", "Max", "Min", "Prod"):
        for keep in (False, True):
            yield single(f"{op} {keep}", op, x, C([1, 2]), T=FLOAT, Tidx=Type("int32"), keep_dims=keep)
        yield single(f"{op} -1", op, x, C(np.int32(-1)), T=FLOAT, Tidx=Type("int32"))
        yield single(
            f"{op} of nothing", op, x, C(np.zeros(0, "i4")), T=FLOAT, Tidx=Type("int32"), openvino=False
        )
    for op in ("All", "Any"):
        yield single(op, op, x > 0, C([1, 3]), Tidx=Type("int32"))
    yield single("L2Loss", "L2Loss", f(3, 4), T=FLOAT)
    yield single("Softmax", "Softmax", f(2, 3, 5), T=FLOAT)
    yield single("LogSoftmax", "LogSoftmax", f(3, 5), T=FLOAT)
    for axis in (0, 1, -1):
        yield single(f"ArgMax {axis}", "ArgMax", f(3, 4, 5), C(np.int32(axis)), T=FLOAT, Tidx=Type("int32"))
    yield single("ArgMax ties", "ArgMax", C(np.array([[1, 3, 3], [2, 2, 1]], "f4")), C(np.int32(1)), T=FLOAT)
    yield single("ArgMin i32", "ArgMin", i(3, 4), C(np.int32(1)), T=Type("int32"), output_type=Type("int32"))
    yield single("Cumsum", "Cumsum", f(3, 4), C(np.int32(1)), T=FLOAT, exclusive=True, reverse=True)
    yield single("Cumsum plain", "Cumsum", f(3, 4), C(np.int32(-1)), T=FLOAT)
    yield single("Cumprod", "Cumprod", f(3, 4), C(np.int32(0)), T=FLOAT, reverse=True, openvino=False)
    yield single("TopKV2", "TopKV2", f(3, 7), C(np.int32(3)), T=FLOAT, sorted=True)
    yield single("MatMul", "MatMul", f(3, 4), C(f(4, 5)), T=FLOAT)
    yield single(
        "MatMul transposed", "MatMul", f(4, 3), C(f(5, 4)), T=FLOAT, transpose_a=True, transpose_b=True
    )
    yield single("BatchMatMul", "BatchMatMul", f(2, 3, 4), f(2, 5, 4), T=FLOAT, adj_y=True)
    yield single("BatchMatMulV2", "BatchMatMulV2", f(2, 1, 4, 3), f(3, 4, 5), T=FLOAT, adj_x=True)
    yield single("Einsum", "Einsum", f(2, 3, 4), f(4, 5, 2), T=FLOAT, N=2, equation="bij,jkb->bik")


def shapes() -> Iterator[Case]:
    x = f(2, 3, 4, 5)
    yield single("Reshape", "Reshape", x, C([2, -1, 10]), T=FLOAT, Tshape=Type("int32"))
    yield single("Squeeze", "Squeeze", f(2, 1, 3, 1), T=FLOAT)
    yield single("Squeeze -1", "Squeeze", f(2, 1, 3, 1), T=FLOAT, squeeze_dims=[-1])
    yield single("ExpandDims", "ExpandDims", f(2, 3), C(np.int32(1)), T=FLOAT)
    yield single("ExpandDims -1", "ExpandDims", f(2, 3), C(np.int32(-1)), T=FLOAT)
    yield single("Transpose", "Transpose", x, C([0, 3, 1, 2]), T=FLOAT)
    yield single("Shape", "Shape", x, T=FLOAT)
    yield single("Shape i64", "Shape", x, T=FLOAT, out_type=Type("int64"))
    yield single("Rank", "Rank", x, T=FLOAT)
    yield single("Size", "Size", x, T=FLOAT)
    yield single("Fill", "Fill", C([2, 3]), f(), T=FLOAT, index_type=Type("int32"))
    yield single("Range", "Range", C(np.int32(3)), C(np.int32(18)), C(np.int32(4)), Tidx=Type("int32"))
    yield single("Tile", "Tile", f(2, 3), C([2, 3]), T=FLOAT)
    yield single("BroadcastTo", "BroadcastTo", f(2, 1), C([3, 2, 4]), T=FLOAT, Tidx=Type("int32"))
    yield single("ZerosLike", "ZerosLike", f(2, 3), T=FLOAT)
    yield single("OnesLike", "OnesLike", i(2, 3), T=Type("int32"))
    yield single(
        "OneHot",
        "OneHot",
        i(2, 3, low=-1, high=5),
        C(np.int32(4)),
        C(np.float32(2)),
        C(np.float32(-1)),
        T=FLOAT,
    )
    yield single(
        "OneHot 0",
        "OneHot",
        i(2, 3, low=0, high=4),
        C(np.int32(4)),
        C(np.float32(1)),
        C(np.float32(0)),
        T=FLOAT,
        axis=0,
    )
    yield single("Where", "Where", f(3, 4) > 0, T=Type("bool"))


def arrays() -> Iterator[Case]:
    x, y = f(2, 3, 4, 5), f(2, 3, 4, 2)
    yield single("ConcatV2", "ConcatV2", x, y, C(np.int32(-1)), T=FLOAT, N=2)
    yield single("Concat", "Concat", C(np.int32(3)), x, y, T=FLOAT, N=2)
    yield single("Pack", "Pack", f(2, 3), f(2, 3), T=FLOAT, N=2, axis=1)
    yield single("Pack -1", "Pack", f(2, 3), f(2, 3), T=FLOAT, N=2, axis=-1)
    yield single("Unpack", "Unpack", f(2, 3, 4), T=FLOAT, num=3, axis=1)
    yield single("Split", "Split", C(np.int32(-1)), f(2, 6), T=FLOAT, num_split=3)
    yield single("SplitV", "SplitV", f(2, 6), C([1, -1, 2]), C(np.int32(1)), T=FLOAT, num_split=3)
    pads = C([[0, 0], [1, 2], [0, 1], [0, 0]])
    yield single("Pad", "Pad", x, pads, T=FLOAT, Tpaddings=Type("int32"))
    yield single("PadV2", "PadV2", x, pads, C(np.float32(3)), T=FLOAT)
    for mode in ("REFLECT", "SYMMETRIC"):
        yield single(f"MirrorPad {mode}", "MirrorPad", x, pads, T=FLOAT, mode=mode)
    yield single(
        "Gather",
        "Gather",
        f(5, 3),
        C(np.array([[4, 0], [1, 1]], "i4")),
        Tparams=FLOAT,
        Tindices=Type("int32"),
    )
    yield single(
        "GatherV2",
        "GatherV2",
        f(2, 5, 3),
        C(np.array([4, 0, 1], "i4")),
        C(np.int32(1)),
        Tparams=FLOAT,
        Tindices=Type("int32"),
    )
    yield single(
        "GatherV2 batch",
        "GatherV2",
        f(2, 5, 3),
        C(np.array([[4, 0], [1, 2]], "i4")),
        C(np.int32(1)),
        Tparams=FLOAT,
        batch_dims=1,
    )
    yield single(
        "GatherNd",
        "GatherNd",
        f(3, 4, 2),
        C(np.array([[0, 1], [2, 3]], "i4")),
        Tparams=FLOAT,
        Tindices=Type("int32"),
    )
    yield single("Slice", "Slice", x, C([0, 1, 0, 2]), C([2, 2, -1, 3]), T=FLOAT, Index=Type("int32"))
    yield single("ReverseV2", "ReverseV2", f(2, 3, 4), C([1]), T=FLOAT, Tidx=Type("int32"))
    yield single(
        "ReverseV2 twice", "ReverseV2", f(2, 3, 4), C([0, -1]), T=FLOAT, Tidx=Type("int32"), openvino=False
    )
    yield single("IdentityN", "IdentityN", f(2), i(3), T=[FLOAT, Type("int32")])


def strided_slices() -> Iterator[Case]:
    def cut(name: str, x: np.ndarray, begin: list, end: list, step: list, **masks: int) -> Case:
        return single(
            f"StridedSlice {name}",
            "StridedSlice",
            x,
            C(begin),
            C(end),
            C(step),
            T=t(x),
            Index=Type("int32"),
            **masks,
        )

    x = f(4, 5, 6)
    yield cut("plain", x, [1, 0, 2], [3, 4, 6], [1, 2, 3])
    yield cut("fewer", x, [1], [3], [1])
    yield cut("negative", x, [-1, -2], [-4, -5], [-1, -2])
    yield cut("masks", x, [1, 1, 1], [2, 2, 2], [1, 1, 1], begin_mask=1, end_mask=4)
    yield cut("backwards", x, [0, 0], [0, 0], [-1, 1], begin_mask=3, end_mask=3)
    yield cut("shrink", x, [1, -1], [2, 0], [1, 1], shrink_axis_mask=3)
    yield cut(
        "shrink and begin_mask", x, [2, 1], [3, 2], [1, 1], shrink_axis_mask=2, begin_mask=1, end_mask=1
    )
    yield cut("new axis", x, [0, 1, 0], [0, 3, 0], [1, 1, 1], new_axis_mask=5)
    yield cut("ellipsis", x, [0, 1], [0, 3], [1, 1], ellipsis_mask=1)
    yield cut("ellipsis, shrink", x, [1, 0, 2], [2, 0, 3], [1, 1, 1], ellipsis_mask=2, shrink_axis_mask=5)
    yield cut(
        "ellipsis, new axis", x, [0, 0, 0, 1], [0, 0, 0, 4], [1, 1, 1, 2], ellipsis_mask=1, new_axis_mask=6
    )
    yield cut("new axis wins", x, [1, 1], [2, 2], [1, 1], new_axis_mask=1, shrink_axis_mask=1)
    yield cut("of a vector", i(5), [2], [3], [1], shrink_axis_mask=1)
    yield cut("beyond", x, [-9, 3], [9, 99], [1, 1])
    # OpenVINO gives the first row; NumPy and TensorFlow nothing.
    yield cut("backwards from before", x, [-9], [0], [-1], end_mask=1, openvino=False)
