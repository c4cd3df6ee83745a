"""Operators on pictures by themselves."""

from collections.abc import Iterator

import numpy as np
from tensorflow_cases import FLOAT, C, Case, f, single
from tensorflow_graph import Type


def convolutions() -> Iterator[Case]:
    x, w = f(2, 9, 8, 4), f(3, 3, 4, 6)
    for padding in ("SAME", "VALID"):
        for stride in (1, 2, 3):
            yield single(
                f"conv {padding} {stride}",
                "Conv2D",
                x,
                C(w),
                T=FLOAT,
                strides=[1, stride, stride, 1],
                padding=padding,
            )
        yield single(
            f"conv {padding} rate",
            "Conv2D",
            x,
            C(w),
            T=FLOAT,
            strides=[1, 1, 1, 1],
            padding=padding,
            dilations=[1, 2, 2, 1],
        )
        yield single(
            f"depthwise {padding}",
            "DepthwiseConv2dNative",
            x,
            C(f(3, 3, 4, 2)),
            T=FLOAT,
            strides=[1, 2, 2, 1],
            padding=padding,
        )
        yield single(
            f"conv 3d {padding}",
            "Conv3D",
            f(1, 5, 6, 4, 2),
            C(f(3, 2, 3, 2, 4)),
            T=FLOAT,
            strides=[1, 2, 1, 1, 1],
            padding=padding,
        )
    yield single("conv explicit", "Conv2D", x, C(w), T=FLOAT, strides=[1, 2, 1, 1], padding="EXPLICIT",
                 explicit_paddings=[0, 0, 1, 2, 0, 3, 0, 0])  # fmt: skip
    yield single(
        "conv NCHW",
        "Conv2D",
        f(2, 4, 9, 8),
        C(w),
        T=FLOAT,
        strides=[1, 1, 2, 1],
        padding="SAME",
        data_format="NCHW",
    )
    yield single(
        "conv groups",
        "Conv2D",
        x,
        C(f(3, 3, 2, 6)),
        T=FLOAT,
        strides=[1, 1, 1, 1],
        padding="SAME",
    )
    yield single("conv of computed weights", "Conv2D", x, w, T=FLOAT, strides=[1, 1, 1, 1], padding="SAME")
    yield single("depthwise rate", "DepthwiseConv2dNative", x, C(f(3, 3, 4, 1)), T=FLOAT, strides=[1, 1, 1, 1], padding="SAME",
                 dilations=[1, 2, 2, 1])  # fmt: skip
    for padding, size, stride in [
        ("SAME", 9, 2),
        ("SAME", 10, 2),
        ("SAME", 5, 1),
        ("VALID", 11, 2),
        ("VALID", 12, 2),
        ("SAME", 13, 3),
    ]:
        rows = {"SAME": -(-size // stride), "VALID": (size - 3) // stride + 1}[padding]
        yield single(f"transposed {padding} {size} {stride}", "Conv2DBackpropInput", C([2, size, size, 4]), C(f(3, 3, 4, 6)),
                     f(2, rows, rows, 6), T=FLOAT, strides=[1, stride, stride, 1], padding=padding)  # fmt: skip
    yield single("transposed even kernel", "Conv2DBackpropInput", C([1, 8, 8, 3]), C(f(4, 4, 3, 5)), f(1, 4, 4, 5), T=FLOAT,
                 strides=[1, 2, 2, 1], padding="SAME")  # fmt: skip
    yield single("transposed 3d", "Conv3DBackpropInputV2", C([1, 4, 6, 5, 2]), C(f(3, 3, 3, 2, 4)), f(1, 2, 3, 3, 4), T=FLOAT,
                 strides=[1, 2, 2, 2, 1], padding="SAME")  # fmt: skip


def poolings() -> Iterator[Case]:
    x = f(2, 9, 8, 3)
    for op in ("MaxPool", "AvgPool"):
        for padding in ("SAME", "VALID"):
            for k, s in ((2, 2), (3, 2), (3, 1)):
                yield single(
                    f"{op} {padding} {k} {s}",
                    op,
                    x,
                    T=FLOAT,
                    ksize=[1, k, k, 1],
                    strides=[1, s, s, 1],
                    padding=padding,
                )
        yield single(
            f"{op} NCHW",
            op,
            f(2, 3, 9, 8),
            T=FLOAT,
            ksize=[1, 1, 3, 2],
            strides=[1, 1, 2, 2],
            padding="SAME",
            data_format="NCHW",
        )
        yield single(
            f"{op}3D",
            op + "3D",
            f(1, 5, 6, 5, 2),
            T=FLOAT,
            ksize=[1, 2, 2, 2, 1],
            strides=[1, 2, 2, 1, 1],
            padding="SAME",
        )
    yield single("MaxPool explicit", "MaxPool", x, T=FLOAT, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="EXPLICIT",
                 explicit_paddings=[0, 0, 1, 0, 0, 1, 0, 0])  # fmt: skip
    yield single("MaxPoolV2", "MaxPoolV2", x, C([1, 2, 2, 1]), C([1, 2, 2, 1]), T=FLOAT, padding="SAME")
    yield single(
        "MaxPool over channels",
        "MaxPool",
        f(1, 3, 3, 8),
        T=FLOAT,
        ksize=[1, 1, 1, 2],
        strides=[1, 1, 1, 2],
        padding="VALID",
        openvino=False,
    )
    for batch in (False, True):
        yield single(f"MaxPoolWithArgmax {batch}", "MaxPoolWithArgmax", x, T=FLOAT, Targmax=Type("int64"), ksize=[1, 2, 2, 1],
                     strides=[1, 2, 2, 1], padding="VALID", include_batch_in_index=batch)  # fmt: skip


def normalizations() -> Iterator[Case]:
    x, vectors = f(2, 4, 5, 3), [C(f(3)), C(f(3)), C(f(3)), C(f(3, low=0.5))]
    for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        yield single(op, op, x, *vectors, T=FLOAT, U=FLOAT, is_training=False, epsilon=1e-3)
    yield single(
        "FusedBatchNorm NCHW",
        "FusedBatchNorm",
        f(2, 3, 4, 5),
        *vectors,
        T=FLOAT,
        is_training=False,
        data_format="NCHW",
    )
    yield single(
        "FusedBatchNormV3 3D",
        "FusedBatchNormV3",
        f(1, 2, 4, 5, 3),
        *vectors,
        T=FLOAT,
        U=FLOAT,
        is_training=False,
        data_format="NDHWC",
    )
    yield single("batch's own statistics", "FusedBatchNormV3", x, *vectors, T=FLOAT, U=FLOAT, epsilon=1e-3)
    yield single("statistics, no attributes", "FusedBatchNorm", x, *vectors, T=FLOAT)
    yield single("statistics NCHW", "FusedBatchNorm", f(2, 3, 4, 5), *vectors, T=FLOAT, data_format="NCHW")
    yield single("BiasAdd", "BiasAdd", x, C(f(3)), T=FLOAT)
    yield single("BiasAdd NCHW", "BiasAdd", f(2, 3, 4, 5), C(f(3)), T=FLOAT, data_format="NCHW")
    yield single("BiasAdd of a matrix", "BiasAdd", f(2, 3), C(f(3)), T=FLOAT)
    yield single("BiasAddV1", "BiasAddV1", x, C(f(3)), T=FLOAT, openvino=False)
    for scales in (False, True):
        yield single(
            f"BatchNormWithGlobalNormalization {scales}",
            "BatchNormWithGlobalNormalization",
            x,
            *(C(f(3, low=0.5)) for _ in range(4)),
            openvino=False,
            T=FLOAT,
            variance_epsilon=1e-3,
            scale_after_normalization=scales,
        )
    wide = f(1, 3, 2, 12)
    yield single("LRN", "LRN", wide, T=FLOAT, depth_radius=2, bias=1.5, alpha=0.3, beta=0.75, openvino=False)
    yield single("LRN, no attributes", "LRN", wide, T=FLOAT, openvino=False)


def pictures() -> Iterator[Case]:
    x = f(2, 4, 5, 3)
    for size in ([8, 10], [7, 9], [2, 3]):
        for options in ({}, {"align_corners": True}, {"half_pixel_centers": True}):
            yield single(f"ResizeBilinear {size} {options}", "ResizeBilinear", x, C(size), T=FLOAT, **options)
            yield single(
                f"ResizeNearest {size} {options}", "ResizeNearestNeighbor", x, C(size), T=FLOAT, **options
            )
    yield single(
        "ResizeBilinear u8",
        "ResizeBilinear",
        np.arange(36, dtype="u1").reshape(1, 4, 3, 3),
        C([6, 5]),
        T=Type("uint8"),
    )
    deep = f(1, 2, 3, 8)
    yield single("DepthToSpace", "DepthToSpace", deep, T=FLOAT, block_size=2)
    yield single("SpaceToDepth", "SpaceToDepth", f(1, 4, 6, 3), T=FLOAT, block_size=2)
    yield single(
        "DepthToSpace NCHW", "DepthToSpace", f(1, 8, 2, 3), T=FLOAT, block_size=2, data_format="NCHW"
    )
    yield single("SpaceToBatchND", "SpaceToBatchND", f(1, 5, 6, 2), C([2, 3]), C([[1, 2], [0, 3]]), T=FLOAT)
    yield single("SpaceToBatchND 1d", "SpaceToBatchND", f(2, 5, 3), C([2]), C([[1, 0]]), T=FLOAT)
    yield single("BatchToSpaceND", "BatchToSpaceND", f(6, 3, 2, 2), C([2, 3]), C([[0, 1], [1, 2]]), T=FLOAT)
    wide = f(2, 3, 4, 3, low=-8, high=8)
    for options in ({}, {"num_bits": 4}, {"narrow_range": True}):
        yield single(
            f"FakeQuantVars {options}",
            "FakeQuantWithMinMaxVars",
            wide,
            C(np.float32(-1.3)),
            C(np.float32(4.1)),
            **options,
        )
        yield single(f"FakeQuantArgs {options}", "FakeQuantWithMinMaxArgs", wide, **options)
        yield single(
            f"FakeQuantPerChannel {options}",
            "FakeQuantWithMinMaxVarsPerChannel",
            wide,
            C(f(3, low=-3, high=-1)),
            C(f(3, low=1, high=5)),
            openvino=not options.get("narrow_range"),
            **options,
        )
    yield single("FakeQuantVars computed", "FakeQuantWithMinMaxVars", wide, np.float32(-1.3), np.float32(4.1))
    yield single(
        "FakeQuantVars one side", "FakeQuantWithMinMaxVars", wide, C(np.float32(1)), C(np.float32(3))
    )
