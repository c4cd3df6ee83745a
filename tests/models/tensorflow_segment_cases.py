"""TensorFlow graphs of segments, sparse tensors, spectra, and resizing whose weights follow from the sizes."""

from collections.abc import Iterator

import numpy as np
from tensorflow_cases import FLOAT, C, Case, f, i, single
from tensorflow_graph import Type

INT32, INT64 = Type("int32"), Type("int64")


def segments() -> Iterator[Case]:
    data, ids = f(5, 3), np.array([1, 0, 1, -1, 3], "i4")
    for op in ("Sum", "Max", "Min", "Prod"):
        for name, x, numbers in (
            ("rows", data, ids),
            ("all", f(2, 3), np.array([[0, 1, 1], [2, 0, 1]], "i4")),
        ):
            yield single(
                f"UnsortedSegment{op} {name}",
                f"UnsortedSegment{op}",
                x,
                numbers,
                C(np.int32(4)),
                T=FLOAT,
                Tindices=INT32,
                Tnumsegments=INT32,
                openvino=False,
            )
    rising = np.array([0, 0, 1, 3, 3], "i4")
    for op in ("SegmentSum", "SegmentMean"):
        yield single(op, op, data, rising, T=FLOAT, Tindices=INT32, openvino=False)
    for op in ("SparseSegmentSum", "SparseSegmentMean"):
        yield single(
            op,
            op,
            data,
            np.array([4, 0, 2], "i4"),
            np.array([0, 0, 2], "i4"),
            T=FLOAT,
            Tidx=INT32,
            openvino=False,
        )
    for weights in (np.zeros(0, "f4"), f(7)):
        yield single(
            "DenseBincount",
            "DenseBincount",
            i(7, low=0, high=5),
            C(np.int32(4)),
            C(weights),
            T=FLOAT,
            Tidx=INT32,
            openvino=False,
        )
    parts = [[3, 0], [2], [1, 4, 5]]
    case = Case("DynamicStitch", openvino=False)
    places = [case.graph.constant(np.array(p, "i4"), "at") for p in parts]
    case.graph.node("DynamicStitch", [*places, *(case.input(f(len(p), 2)) for p in parts)], "y", N=3, T=FLOAT)
    yield case
    case = Case("DynamicStitch computed", openvino=False)
    places = [case.input(np.array(p, "i4")) for p in parts]
    case.graph.node("DynamicStitch", [*places, *(case.input(f(len(p), 2)) for p in parts)], "y", N=3, T=FLOAT)
    yield case
    yield single(
        "DynamicPartition",
        "DynamicPartition",
        data,
        np.array([1, 0, 2, 1, 0], "i4"),
        T=FLOAT,
        num_partitions=3,
        openvino=False,
    )
    for name, where in (("rank 2", [[0, 1], [2, 3]]), ("rank 1", [1, 4]), ("rank 0", 2)):
        shape = [3, 4] if name == "rank 2" else [6]
        values = f(*np.shape(where)[:1])
        yield single(f"SparseToDense {name}", "SparseToDense", np.array(where, "i4"), C(np.array(shape, "i4")), values,
                     C(np.float32(0.5)), T=FLOAT, Tindices=INT32, openvino=False)  # fmt: skip
    for options in ({}, {"merge_repeated": True}, {"blank_index": 0}):
        yield single(f"CTCGreedyDecoder {options}", "CTCGreedyDecoder", f(6, 2, 4), np.array([6, 4], "i4"), T=FLOAT,
                     openvino=False, **({"merge_repeated": False} | options))  # fmt: skip
    labels = np.array([2, 0, 4], "i4")
    yield single("InTopKV2", "InTopKV2", f(3, 5), labels, C(np.int32(2)), T=INT32, openvino=False)
    yield single("SparseSoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits", f(3, 5), labels, T=FLOAT,
                 Tlabels=INT32, openvino=False)  # fmt: skip
    yield single(
        "SoftmaxCrossEntropyWithLogits",
        "SoftmaxCrossEntropyWithLogits",
        f(3, 5),
        f(3, 5, low=0, high=1),
        T=FLOAT,
        openvino=False,
    )
    yield single("Erfc", "Erfc", f(3, 5), T=FLOAT, openvino=False)


def spectra() -> Iterator[Case]:
    """Complex numbers come and go within the graph."""
    x = f(2, 16)
    for length in (16, 12):
        case = Case(f"RFFT {length}", openvino=False)
        y = case.graph.node("RFFT", [case.input(x), case.graph.constant([length])], "fft", Treal=FLOAT)
        for op in ("ComplexAbs", "Real", "Imag"):
            case.graph.node(op, y, op, T=Type("complex64"), Tout=FLOAT)
        yield case
    case = Case("IRFFT", openvino=False)
    g, kind = case.graph, {"T": Type("complex64")}
    y = g.node("RFFT", [case.input(x), g.constant([16])], "fft", Treal=FLOAT)
    factor = g.node("Complex", [g.constant(np.float32(0.5)), g.constant(np.float32(-0.3))], "factor", T=FLOAT)
    y = g.node("AddV2", [g.node("Mul", [y, factor], "mul", **kind), y], "sum", **kind)
    y = g.node("Conj", g.node("RealDiv", [y, factor], "div", **kind), "conj", **kind)
    y = g.node("Reshape", [y, g.constant([1, 2, 9])], "reshape", **kind)
    g.node("IRFFT", [y, g.constant([16])], "y", Treal=FLOAT)
    yield case
    for op in ("FFT", "FFT2D", "IFFT", "IFFT2D"):
        case = Case(op, openvino=False)
        y = case.graph.node("Cast", case.input(f(2, 4, 8)), "cast", SrcT=FLOAT, DstT=Type("complex64"))
        y = case.graph.node(op, y, "fft", Tcomplex=Type("complex64"))
        case.graph.node("Imag", y, "imaginary", T=Type("complex64"), Tout=FLOAT)
        case.graph.node("Real", y, "y", T=Type("complex64"), Tout=FLOAT)
        yield case


def resampled() -> Iterator[Case]:
    x = f(2, 6, 7, 3)
    for size in ([9, 13], [3, 5], [6, 30], [1, 1]):
        for align in (False, True):
            yield single(
                f"ResizeArea {size} {align}",
                "ResizeArea",
                x,
                C(np.array(size, "i4")),
                T=FLOAT,
                align_corners=align,
                openvino=False,
            )
        for options in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
            yield single(f"ResizeBicubic {size} {options}", "ResizeBicubic", x, C(np.array(size, "i4")), T=FLOAT,
                         openvino=False, **({"align_corners": False, "half_pixel_centers": False} | options))  # fmt: skip
    for kernel in (
        "lanczos1",
        "lanczos3",
        "lanczos5",
        "gaussian",
        "box",
        "triangle",
        "keyscubic",
        "mitchellcubic",
    ):
        for antialias in (False, True):
            yield single(
                f"ScaleAndTranslate {kernel} {antialias}",
                "ScaleAndTranslate",
                x,
                C(np.array([9, 4], "i4")),
                C(np.array([1.5, 0.4], "f4")),
                C(np.array([0.3, 0.8], "f4")),
                T=FLOAT,
                kernel_type=kernel,
                antialias=antialias,
                openvino=False,
            )
