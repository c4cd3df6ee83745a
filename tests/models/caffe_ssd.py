"""The head of an SSD in Caffe, and the same in numpy: priors, decoding, suppression."""

import numpy as np
from caffe_networks import Network, Value

CLASSES, KEEP, THRESHOLD, OVERLAP = 4, 20, 0.05, 0.45
VARIANCE = (0.1, 0.1, 0.2, 0.2)


def priors(
    shape: tuple[int, ...], image: int, smallest: float, largest: float, ratios: list[float], step: float
) -> np.ndarray:
    sizes = [(smallest, smallest), ((smallest * largest) ** 0.5,) * 2]
    for r in ratios:
        for ratio in (r, 1 / r):
            sizes.append((smallest * ratio**0.5, smallest / ratio**0.5))
    rows = []
    for y in range(shape[2]):
        for x in range(shape[3]):
            cx, cy = (x + 0.5) * step, (y + 0.5) * step
            rows += [
                ((cx - w / 2) / image, (cy - h / 2) / image, (cx + w / 2) / image, (cy + h / 2) / image)
                for w, h in sizes
            ]
    return np.array(rows)


def ssd(image: int = 48, seed: int = 6) -> tuple[Network, list[Value], np.ndarray]:
    """The values that the head needs: locations and confidences of each scale, in ONNX; and the priors."""
    n = Network(seed, "SSD")
    data = n.input("data", 1, 3, image, image)
    first = n.conv_bn_relu("conv1", data, 16, 3, stride=4, pad=1)
    scale = np.array([5], np.float32)
    n.layer(
        "Normalize",
        "norm",
        [first],
        ["norm"],
        "norm_param { across_spatial: false channel_shared: true }",
        [scale],
    )
    length = n.node("ReduceL2", [first.name], axes=[1])
    normal = Value(
        "norm", n.node("Mul", [n.node("Div", [first.name, length]), n.constant(scale)]), first.shape
    )
    second = n.conv_bn_relu("conv2", first, 24, 3, stride=2, pad=1)
    heads, boxes = [], []
    for i, (x, smallest, largest, ratios) in enumerate(
        [(normal, 8.0, 16.0, [2.0]), (second, 16.0, 30.0, [2.0, 3.0])]
    ):
        count = 2 + 2 * len(ratios)
        step = image / x.shape[2]
        for kind, outputs in (("loc", 4), ("conf", CLASSES)):
            y = n.conv(f"{kind}{i}", x, count * outputs, 3, pad=1, bias=True)
            perm = Value(f"{kind}{i}_perm", n.node("Transpose", [y.name], perm=[0, 2, 3, 1]), y.shape)
            n.layer(
                "Permute", perm.top, [y], [perm.top], "permute_param { order: 0 order: 2 order: 3 order: 1 }"
            )
            n.layer("Flatten", f"{kind}{i}_flat", [perm], [f"{kind}{i}_flat"], "flatten_param { axis: 1 }")
            size = int(np.prod(y.shape))
            heads.append(Value(f"{kind}{i}_flat", n.node("Flatten", [perm.name]), (1, size)))
        param = f"min_size: {smallest} max_size: {largest} flip: true clip: false step: {step} offset: 0.5"
        param += "".join(f" aspect_ratio: {r}" for r in ratios) + "".join(f" variance: {v}" for v in VARIANCE)
        n.layer("PriorBox", f"prior{i}", [x, data], [f"prior{i}"], f"prior_box_param {{ {param} }}")
        boxes.append(priors(x.shape, image, smallest, largest, ratios, step))
    loc, conf = (n.concat(kind, [heads[i], heads[i + 2]]) for i, kind in enumerate(("mbox_loc", "mbox_conf")))
    n.text.append(
        'layer { name: "mbox_priorbox" type: "Concat" bottom: "prior0" bottom: "prior1" top: "mbox_priorbox" concat_param { axis: 2 } }'
        f'layer {{ name: "reshape" type: "Reshape" bottom: "mbox_conf" top: "reshape" reshape_param {{ shape {{ dim: 0 dim: -1 dim: {CLASSES} }} }} }}'
        'layer { name: "softmax" type: "Softmax" bottom: "reshape" top: "softmax" softmax_param { axis: 2 } }'
        'layer { name: "flatten" type: "Flatten" bottom: "softmax" top: "flatten" flatten_param { axis: 1 } }'
        'layer { name: "detection_out" type: "DetectionOutput" bottom: "mbox_loc" bottom: "flatten" bottom: "mbox_priorbox" '
        f'top: "detection_out" include {{ phase: TEST }} detection_output_param {{ num_classes: {CLASSES} share_location: true '
        f"background_label_id: 0 nms_param {{ nms_threshold: {OVERLAP} top_k: 100 }} code_type: CENTER_SIZE keep_top_k: {KEEP} "
        f"confidence_threshold: {THRESHOLD} }} }}"
    )
    return n, [loc, conf], np.concatenate(boxes)


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    both = np.prod(np.maximum(high - low, 0))
    return float(both / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - both))


def detections(loc: np.ndarray, conf: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Rows of (label, score, box), best first."""
    loc = loc.reshape(-1, 4) * VARIANCE
    scores = np.exp(conf.reshape(-1, CLASSES))
    scores /= scores.sum(1, keepdims=True)
    size, centre = boxes[:, 2:] - boxes[:, :2], (boxes[:, 2:] + boxes[:, :2]) / 2
    centre, size = centre + loc[:, :2] * size, size * np.exp(loc[:, 2:])
    decoded = np.concatenate([centre - size / 2, centre + size / 2], 1)
    found = []
    for label in range(1, CLASSES):
        order = [i for i in np.argsort(-scores[:, label], kind="stable") if scores[i, label] > THRESHOLD][
            :100
        ]
        kept: list[int] = []
        for i in order:
            if all(overlap(decoded[i], decoded[k]) <= OVERLAP for k in kept):
                kept.append(i)
        found += [(label, scores[i, label], *decoded[i]) for i in kept]
    return np.array(sorted(found, key=lambda row: -row[1])[:KEEP])
