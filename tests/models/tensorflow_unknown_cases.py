"""What is computed or not known: bounds, sizes, ranks."""

from collections.abc import Iterator

import numpy as np
from tensorflow_cases import FLOAT, C, Case, f, single
from tensorflow_graph import UNKNOWN, Type


def computed() -> Iterator[Case]:
    """Bounds, sizes and paddings that are inputs of the graph."""
    x, index = f(4, 5, 6), Type("int32")
    bounds = [np.array(v, "i4") for v in ([1, -2, 0], [3, 5, 6], [1, 1, 2])]
    yield single(
        "StridedSlice computed",
        "StridedSlice",
        x,
        *bounds,
        T=FLOAT,
        Index=index,
        shrink_axis_mask=2,
        end_mask=4,
    )
    for name, begin, masks in (
        ("first", [2], {"shrink_axis_mask": 1}),
        ("second", [0, -2, 0], {"shrink_axis_mask": 2, "begin_mask": 5, "end_mask": 5}),
        ("both", [1, 3], {"shrink_axis_mask": 3}),
        ("before the others", [-1, 0], {"shrink_axis_mask": 1, "ellipsis_mask": 2}),
        ("behind the others", [0, 3], {"shrink_axis_mask": 2, "ellipsis_mask": 1}),
        ("around the others", [1, 0, 3], {"shrink_axis_mask": 5, "ellipsis_mask": 2}),
        ("last two", [0, 3, -1], {"shrink_axis_mask": 6, "ellipsis_mask": 1}),
    ):
        where = np.array(begin, "i4")
        yield single(
            f"StridedSlice computed {name}",
            "StridedSlice",
            x,
            where,
            where + 1,
            C(np.ones(len(begin), "i4")),
            T=FLOAT,
            Index=index,
            openvino=False,  # its StridedSlice has no executor then
            **masks,
        )
    yield single(
        "Slice computed",
        "Slice",
        x,
        *(np.array(v, "i4") for v in ([1, 0, 2], [2, -1, 3])),
        T=FLOAT,
        Index=index,
    )
    yield single("Pad computed", "Pad", x, np.array([[0, 1], [2, 0], [1, 1]], "i4"), T=FLOAT, Tpaddings=index)
    yield single("Tile computed", "Tile", x, np.array([1, 2, 1], "i4"), T=FLOAT)
    yield single("Reshape computed", "Reshape", x, np.array([6, -1], "i4"), T=FLOAT, Tshape=index)
    yield single("Fill computed", "Fill", np.array([2, 3], "i4"), C(np.float32(4)), T=FLOAT, index_type=index)
    yield single("Transpose computed", "Transpose", x, np.array([2, 0, 1], "i4"), T=FLOAT)
    yield single(
        "Range computed", "Range", np.array(1, "i4"), np.array(9, "i4"), np.array(3, "i4"), Tidx=index
    )
    yield single("ResizeBilinear computed", "ResizeBilinear", f(1, 4, 4, 2), np.array([6, 7], "i4"), T=FLOAT)
    options = {"T": FLOAT, "strides": [1, 2, 2, 1]}
    for padding, rows in (("SAME", 4), ("VALID", 3)):
        yield single(
            f"transposed computed {padding}",
            "Conv2DBackpropInput",
            np.array([1, 7, 7, 3], "i4"),
            C(f(3, 3, 3, 5)),
            f(1, rows, rows, 5),
            padding=padding,
            openvino=False,
            **options,
        )


def unknown_ranks() -> Iterator[Case]:
    """Inputs without any shape."""
    window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    for name, op, value, operands, attributes in [
        ("conv", "Conv2D", f(1, 6, 5, 2), [f(3, 3, 2, 4)], {"strides": [1, 1, 1, 1], "padding": "SAME"}),
        ("pool", "MaxPool", f(1, 6, 5, 2), [], window),
        ("bias", "BiasAdd", f(2, 6, 5, 2), [f(2)], {}),
        ("softmax", "Softmax", f(2, 3, 4), [], {}),
        ("mean", "Mean", f(2, 3, 4), [np.array([0, 2], "i4")], {"Tidx": Type("int32")}),
        ("concat", "ConcatV2", f(2, 3), [f(2, 4), np.array(1, "i4")], {"N": 2, "Tidx": Type("int32")}),
        ("squeeze", "Squeeze", f(2, 1, 3), [], {"squeeze_dims": [1]}),
        ("rank", "Rank", f(2, 1, 3), [], {}),
        ("zeros", "ZerosLike", f(2, 1, 3), [], {}),
    ]:
        case = Case(f"unknown rank: {name}")
        x = case.graph.input(UNKNOWN)
        case.feeds[x] = value
        inputs = [x, *(case.graph.constant(o, f"c{i}") for i, o in enumerate(operands))]
        case.graph.node(op, inputs, "y", T=FLOAT, **attributes)
        yield case
