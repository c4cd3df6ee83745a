"""What TensorFlow's cells of recurrent networks and its operators on boxes do, in numpy."""

import numpy as np
from tensorflow_reference_arrays import F, operator


def sigmoid(x: np.ndarray) -> np.ndarray:
    return (1 / (1 + np.exp(-x))).astype(F)


@operator("LSTMBlockCell")
def lstm_cell(a: dict, x: np.ndarray, cs: np.ndarray, h: np.ndarray, w: np.ndarray, wci: np.ndarray, wcf: np.ndarray,
              wco: np.ndarray, b: np.ndarray) -> tuple:  # fmt: skip
    first, second, third, last = np.split(np.concatenate([x, h], 1) @ w + b, 4, 1)
    old = a["_op"] != "BlockLSTMV2"
    (given, forget), bias = ((second, third) if old else (third, second)), a.get("forget_bias", float(old))
    peep = float(a.get("use_peephole", False))
    i, f = sigmoid(first + peep * wci * cs), sigmoid(forget + bias + peep * wcf * cs)
    ci = np.tanh(given)
    cs = ci * i + cs * f
    if (clip := a.get("cell_clip", 3.0 if old else 0.0)) > 0:
        cs = np.clip(cs, -clip, clip)
    o, co = sigmoid(last + peep * wco * cs), np.tanh(cs)
    return tuple(v.astype(F) for v in (i, cs, f, o, ci, co, co * o))


@operator("BlockLSTM", "BlockLSTMV2")
def lstm(
    a: dict, most: np.ndarray, x: np.ndarray, cs: np.ndarray, h: np.ndarray, *weights: np.ndarray
) -> tuple:
    steps = [np.zeros((len(x), *cs.shape), F) for _ in range(7)]
    for t in range(min(len(x), int(most))):
        made = lstm_cell(a, x[t], cs, h, *weights)
        cs, h = made[1], made[6]
        for all_steps, value in zip(steps, made, strict=True):
            all_steps[t] = value
    return tuple(steps)


@operator("GRUBlockCell")
def gru_cell(a: dict, x: np.ndarray, h: np.ndarray, w_ru: np.ndarray, w_c: np.ndarray, b_ru: np.ndarray,
             b_c: np.ndarray) -> tuple:  # fmt: skip
    r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ w_ru + b_ru), 2, 1)
    c = np.tanh(np.concatenate([x, h * r], 1) @ w_c + b_c)
    return r, u, c, u * h + (1 - u) * c


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    (ay, ax, by, bx), (cy, cx, dy, dx) = (
        (*np.minimum(v[:2], v[2:]), *np.maximum(v[:2], v[2:])) for v in (a, b)
    )
    common = max(min(by, dy) - max(ay, cy), 0) * max(min(bx, dx) - max(ax, cx), 0)
    return common / ((by - ay) * (bx - ax) + (dy - cy) * (dx - cx) - common)


def kept(boxes: np.ndarray, scores: np.ndarray, most: int, limit: float, least: float) -> list[int]:
    chosen: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        if (
            scores[i] > least
            and len(chosen) < most
            and all(overlap(boxes[i], boxes[j]) <= limit for j in chosen)
        ):
            chosen.append(int(i))
    return chosen


@operator("NonMaxSuppressionV4", "NonMaxSuppressionV5")
def suppression(a: dict, boxes: np.ndarray, scores: np.ndarray, most: np.ndarray, limit: np.ndarray, least: np.ndarray,
                *sigma: np.ndarray) -> tuple:  # fmt: skip
    chosen = kept(boxes, scores, int(most), float(limit), float(least))
    padding = int(most) - len(chosen) if a.get("pad_to_max_output_size") else 0
    indices, values = np.pad(np.array(chosen, "i4"), (0, padding)), np.pad(scores[chosen], (0, padding))
    count = np.int32(len(chosen))
    return (indices, values, count) if a["_op"].endswith("5") else (indices, count)


@operator("CombinedNonMaxSuppression")
def combined(a: dict, boxes: np.ndarray, scores: np.ndarray, each: np.ndarray, total: np.ndarray, limit: np.ndarray,
             least: np.ndarray) -> tuple:  # fmt: skip
    classes, total = scores.shape[2], int(total)
    if a.get("pad_per_class"):
        total = min(total, int(each) * classes)
    out = [
        np.zeros((len(boxes), total, 4), F),
        np.zeros((len(boxes), total), F),
        np.zeros((len(boxes), total), F),
    ]
    count = np.zeros(len(boxes), "i4")
    for n in range(len(boxes)):
        found = []
        for c in range(classes):
            mine = boxes[n, :, min(c, boxes.shape[2] - 1)]
            found += [
                (scores[n, i, c], c, mine[i]) for i in kept(mine, scores[n, :, c], int(each), limit, least)
            ]
        found = sorted(found, key=lambda f: -f[0])[:total]
        count[n] = len(found)
        for i, (score, c, box) in enumerate(found):
            out[0][n, i] = np.clip(box, 0, 1) if a.get("clip_boxes", True) else box
            out[1][n, i], out[2][n, i] = score, c
    return (*out, count)


@operator("CropAndResize")
def crop_and_resize(
    a: dict, x: np.ndarray, boxes: np.ndarray, of: np.ndarray, size: np.ndarray
) -> np.ndarray:
    outside = F(a.get("extrapolation_value", 0.0))
    y = np.full((len(boxes), *size, x.shape[3]), outside, F)

    def places(begin: float, end: float, count: int, extent: int) -> np.ndarray:
        if count == 1:
            return np.array([F(0.5) * (begin + end) * F(extent - 1)])
        return begin * F(extent - 1) + np.arange(count, dtype=F) * (
            (end - begin) * F(extent - 1) / F(count - 1)
        )

    for n, (top, left, bottom, right) in enumerate(boxes):
        for i, v in enumerate(places(top, bottom, int(size[0]), x.shape[1])):
            for j, u in enumerate(places(left, right, int(size[1]), x.shape[2])):
                if not (0 <= v <= x.shape[1] - 1 and 0 <= u <= x.shape[2] - 1):
                    continue
                image = x[of[n]].astype(F)
                if a.get("method") == "nearest":
                    y[n, i, j] = image[int(v + F(0.5)), int(u + F(0.5))]
                    continue
                v0, u0, dv, du = int(v), int(u), v - int(v), u - int(u)
                v1, u1 = int(np.ceil(v)), int(np.ceil(u))
                upper = image[v0, u0] + (image[v0, u1] - image[v0, u0]) * du
                lower = image[v1, u0] + (image[v1, u1] - image[v1, u0]) * du
                y[n, i, j] = upper + (lower - upper) * dv
    return y
