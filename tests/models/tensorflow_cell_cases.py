"""TensorFlow graphs of one cell of a recurrent network, and of one operator on boxes."""

from collections.abc import Iterator

import numpy as np
from tensorflow_cases import FLOAT, C, Case, f, single

STEPS, BATCH, INPUTS, HIDDEN = 5, 2, 3, 4


def weights(scale: float = 0.8) -> tuple[C, ...]:
    vectors = [C(f(HIDDEN, low=-scale, high=scale)) for _ in range(3)]
    return (
        C(f(INPUTS + HIDDEN, 4 * HIDDEN, low=-scale, high=scale)),
        *vectors,
        C(f(4 * HIDDEN, low=-scale, high=scale)),
    )


def cells() -> Iterator[Case]:
    state = (f(BATCH, HIDDEN), f(BATCH, HIDDEN))
    for options in ({}, {"use_peephole": True, "cell_clip": 0.7, "forget_bias": 0.3}, {"cell_clip": -1.0}):
        yield single(
            f"LSTMBlockCell {options}",
            "LSTMBlockCell",
            f(BATCH, INPUTS),
            *state,
            *weights(),
            openvino=False,
            **({"T": FLOAT, "forget_bias": 1.0, "cell_clip": 3.0, "use_peephole": False} | options),
        )
    for op, defaults in (
        ("BlockLSTM", {"forget_bias": 1.0, "cell_clip": 3.0}),
        ("BlockLSTMV2", {"cell_clip": 0.0}),
    ):
        for most, options in ((STEPS, {}), (STEPS - 2, {"use_peephole": True, "cell_clip": 0.9})):
            case = single(
                f"{op} {most} {options}",
                op,
                C(np.int64(most), "int64"),
                f(STEPS, BATCH, INPUTS),
                *state,
                *weights(),
                openvino=False,
                **({"T": FLOAT, "use_peephole": False} | defaults | options),
            )
            for port in (1, 6):  # TensorFlow leaves what it likes behind the last step of the others
                case.graph.node("Identity", f"y:{port}", f"y{port}", T=FLOAT)
            yield case
    yield single(
        "GRUBlockCell",
        "GRUBlockCell",
        f(BATCH, INPUTS),
        state[1],
        C(f(INPUTS + HIDDEN, 2 * HIDDEN)),
        C(f(INPUTS + HIDDEN, HIDDEN)),
        C(f(2 * HIDDEN)),
        C(f(HIDDEN)),
        T=FLOAT,
        openvino=False,
    )


def corners(*counts: int) -> np.ndarray:
    begin = f(*counts, 2, low=0, high=0.7)
    return np.concatenate([begin, begin + f(*counts, 2, low=0.2, high=0.5)], -1)


def boxes() -> Iterator[Case]:
    places = np.array([[0, 0, 1, 1], [0.2, 0.3, 0.7, 0.9], [-0.1, 0.5, 1.2, 0.4], [0.9, 0.8, 0.1, 0.2]], "f4")
    for size in ((5, 6), (1, 3), (14, 14)):
        for method, outside in (("bilinear", 0.0), ("bilinear", 1.5), ("nearest", 0.5)):
            yield single(
                f"CropAndResize {size} {method} {outside}",
                "CropAndResize",
                f(2, 7, 9, 3),
                places,
                C(np.array([0, 1, 1, 0], "i4")),
                C(np.array(size, "i4")),
                T=FLOAT,
                method=method,
                extrapolation_value=outside,
                openvino=False,
            )
    for own, options in ((1, {}), (3, {}), (3, {"pad_per_class": True}), (1, {"clip_boxes": False})):
        for total in (6, 100):
            yield single(
                f"CombinedNonMaxSuppression {own} {total} {options}",
                "CombinedNonMaxSuppression",
                corners(2, 12, own),
                f(2, 12, 3, low=0, high=1),
                C(np.int32(4)),
                C(np.int32(total)),
                C(np.float32(0.4)),
                C(np.float32(0.3)),
                openvino=False,
                **({"pad_per_class": False, "clip_boxes": True} | options),
            )
    for op, more in (("NonMaxSuppressionV4", ()), ("NonMaxSuppressionV5", (C(np.float32(0)),))):
        yield single(
            f"{op} padded",
            op,
            corners(12),
            f(12, low=0, high=1),
            C(np.int32(9)),
            C(np.float32(0.4)),
            C(np.float32(0.3)),
            *more,
            T=FLOAT,
            pad_to_max_output_size=True,
            openvino=False,
            **({} if more else {"T_threshold": FLOAT}),
        )
