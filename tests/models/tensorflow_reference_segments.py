"""What TensorFlow's segments, sparse tensors, spectra and weighted resizing do, in numpy."""

import numpy as np
from tensorflow_reference_arrays import F, operator

JOIN = {"Sum": (np.add, 0.0), "Prod": (np.multiply, 1.0), "Max": (np.maximum, -np.finfo(F).max), "Min": (np.minimum, np.finfo(F).max)}  # fmt: skip


@operator(*(f"UnsortedSegment{name}" for name in JOIN))
def unsorted(a: dict, x: np.ndarray, ids: np.ndarray, count: np.ndarray) -> np.ndarray:
    function, start = JOIN[a["_op"].removeprefix("UnsortedSegment")]
    y = np.full((int(count), *x.shape[ids.ndim :]), start, x.dtype)
    for at in np.ndindex(ids.shape):
        if ids[at] >= 0:
            y[ids[at]] = function(y[ids[at]], x[at])
    return y


@operator("SegmentSum", "SegmentMean")
def segments(a: dict, x: np.ndarray, ids: np.ndarray) -> np.ndarray:
    y = np.zeros((int(ids[-1]) + 1, *x.shape[1:]), x.dtype)
    np.add.at(y, ids, x)
    if a["_op"].endswith("Mean"):
        y /= np.maximum(np.bincount(ids, minlength=len(y)), 1).astype(F).reshape(-1, *[1] * (x.ndim - 1))
    return y


@operator("SparseSegmentSum", "SparseSegmentMean")
def sparse_segments(a: dict, x: np.ndarray, indices: np.ndarray, ids: np.ndarray) -> np.ndarray:
    return segments(a, x[indices], ids)


@operator("DenseBincount")
def bincount(a: dict, x: np.ndarray, size: np.ndarray, weights: np.ndarray) -> np.ndarray:
    keep = x < size
    return np.bincount(x[keep], weights[keep] if weights.size else None, int(size)).astype(weights.dtype)


@operator("DynamicStitch")
def stitch(a: dict, *inputs: np.ndarray) -> np.ndarray:
    places, data = inputs[: len(inputs) // 2], inputs[len(inputs) // 2 :]
    y = np.zeros((max(int(p.max()) for p in places) + 1, *data[0].shape[1:]), data[0].dtype)
    for place, rows in zip(places, data, strict=True):
        y[place] = rows
    return y


@operator("DynamicPartition")
def partition(a: dict, x: np.ndarray, numbers: np.ndarray) -> tuple:
    return tuple(x[numbers == n] for n in range(a["num_partitions"]))


@operator("SparseToDense")
def dense(a: dict, where: np.ndarray, shape: np.ndarray, values: np.ndarray, other: np.ndarray) -> np.ndarray:
    y = np.full(shape, other)
    y[tuple(where.T) if where.ndim == 2 else where] = values
    return y


@operator("CTCGreedyDecoder")
def ctc(a: dict, x: np.ndarray, lengths: np.ndarray) -> tuple:
    blank = a.get("blank_index", -1) % x.shape[2]
    rows, places, best = [], [], np.zeros((x.shape[1], 1), F)
    for n, length in enumerate(lengths):
        path = x[:length, n].argmax(-1)
        best[n] = -x[:length, n].max(-1).sum()
        merged = a.get("merge_repeated", False)
        row = [c for t, c in enumerate(path) if c != blank and not (merged and t and path[t - 1] == c)]
        rows += row
        places += [(n, t) for t in range(len(row))]
    longest = max(t + 1 for _, t in places)
    return (np.array(places, "i8"), np.array(rows, "i8"), np.array([x.shape[1], longest], "i8"), best)


@operator("InTopKV2")
def in_top_k(a: dict, x: np.ndarray, targets: np.ndarray, k: np.ndarray) -> np.ndarray:
    return (x > np.take_along_axis(x, targets[:, None], 1)).sum(1) < k


@operator("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits")
def cross_entropy(a: dict, x: np.ndarray, labels: np.ndarray) -> tuple:
    if a["_op"].startswith("Sparse"):
        labels = np.eye(x.shape[1], dtype=F)[labels]
    share = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    return -(labels * np.log(share)).sum(1).astype(F), (share - labels).astype(F)


@operator("Erfc")
def erfc(a: dict, x: np.ndarray) -> np.ndarray:
    import math

    return np.vectorize(math.erfc)(x).astype(F)


@operator("RFFT")
def rfft(a: dict, x: np.ndarray, length: np.ndarray) -> np.ndarray:
    return np.fft.rfft(x, int(length[0])).astype("complex64")


@operator("IRFFT")
def irfft(a: dict, x: np.ndarray, length: np.ndarray) -> np.ndarray:
    return np.fft.irfft(x, int(length[0])).astype(F)


@operator("FFT", "FFT2D", "IFFT", "IFFT2D")
def fft(a: dict, x: np.ndarray) -> np.ndarray:
    function = np.fft.ifftn if a["_op"].startswith("I") else np.fft.fftn
    return function(x, axes=(-2, -1) if a["_op"].endswith("2D") else (-1,)).astype("complex64")


@operator("Complex")
def complex_(a: dict, real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    return (real + 1j * imaginary).astype("complex64")


@operator("ComplexAbs", "Real", "Imag", "Conj")
def parts(a: dict, x: np.ndarray) -> np.ndarray:
    return {"ComplexAbs": np.abs, "Real": np.real, "Imag": np.imag, "Conj": np.conj}[a["_op"]](x)


def apply(x: np.ndarray, matrices: list[np.ndarray]) -> np.ndarray:
    return np.einsum("oh,pw,nhwc->nopc", *matrices, x).astype(F)


def scale_of(a: dict, size: int, wanted: int) -> np.float32:
    if a.get("align_corners") and wanted > 1:
        return F(size - 1) / F(wanted - 1)
    return F(size) / F(wanted)


@operator("ResizeArea")
def area(a: dict, x: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    matrices = []
    for size, wanted in zip(x.shape[1:3], sizes, strict=True):
        m, scale = np.zeros((wanted, size), F), scale_of(a, size, wanted)
        for o in range(wanted):
            begin, end = F(o) * scale, F(o + 1) * scale
            for p in range(int(np.floor(begin)), int(np.ceil(end))):
                m[o, min(p, size - 1)] += (min(end, F(p + 1)) - max(begin, F(p))) / scale
        matrices.append(m)
    return apply(x, matrices)


@operator("ResizeBicubic")
def bicubic(a: dict, x: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    half = a.get("half_pixel_centers", False)
    k = -0.5 if half else -0.75
    matrices = []
    for size, wanted in zip(x.shape[1:3], sizes, strict=True):
        m, scale = np.zeros((wanted, size), F), scale_of(a, size, wanted)
        for o in range(wanted):
            at = (F(o) + F(0.5)) * scale - F(0.5) if half else F(o) * scale
            first = int(np.floor(at))
            step = np.rint((at - F(first)) * 1024) / 1024
            for tap in range(-1, 3):
                d = abs(step - tap)
                w = (
                    ((k + 2) * d - (k + 3)) * d * d + 1
                    if d <= 1
                    else ((k * d - 5 * k) * d + 8 * k) * d - 4 * k
                )
                if not half or 0 <= first + tap < size:
                    m[o, np.clip(first + tap, 0, size - 1)] += w
        matrices.append(m / m.sum(1, keepdims=True) if half else m)
    return apply(x, matrices)


def lanczos(radius: int) -> tuple:
    return radius, lambda d: np.where(d < radius, np.sinc(d) * np.sinc(d / radius), 0)


def cubic(d: np.ndarray, near: tuple, far: tuple) -> np.ndarray:
    return np.where(d < 1, np.polyval(near, d), np.where(d < 2, np.polyval(far, d), 0))


KERNELS = {
    "lanczos1": lanczos(1),
    "lanczos3": lanczos(3),
    "lanczos5": lanczos(5),
    "gaussian": (1.5, lambda d: np.where(d < 1.5, np.exp(-2 * d * d), 0)),
    "box": (0.5, lambda d: np.where(d < 0.5, 1, np.where(d == 0.5, 0.5, 0))),
    "triangle": (1, lambda d: np.maximum(1 - d, 0)),
    "keyscubic": (2, lambda d: cubic(d, (1.5, -2.5, 0, 1), (-0.5, 2.5, -4, 2))),
    "mitchellcubic": (2, lambda d: cubic(d, (7 / 6, -2, 0, 8 / 9), (-7 / 18, 2, -10 / 3, 16 / 9))),
}


@operator("ScaleAndTranslate")
def scaled(a: dict, x: np.ndarray, sizes: np.ndarray, scales: np.ndarray, moves: np.ndarray) -> np.ndarray:
    radius, kernel = KERNELS[a["kernel_type"]]
    matrices = []
    for size, wanted, scale, move in zip(x.shape[1:3], sizes, scales, moves, strict=True):
        m, inverse = np.zeros((wanted, size), F), F(1) / scale
        wide = max(inverse, F(1)) if a["antialias"] else F(1)
        for o in range(wanted):
            at = (F(o) + F(0.5)) * inverse - inverse * move
            if 0 <= at <= size:
                first = max(int(np.ceil(at - radius * wide - F(0.5))), 0)
                last = min(int(np.floor(at + radius * wide - F(0.5))), size - 1)
                w = kernel(np.abs((np.arange(first, last + 1) + F(0.5) - at) / wide))
                m[o, first : last + 1] = w / w.sum() if w.sum() else w
        matrices.append(m)
    return apply(x, matrices)
