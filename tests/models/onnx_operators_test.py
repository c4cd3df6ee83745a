"""Operators of ONNX that are made of others, or that few models have: seeded random cases against ONNX Runtime.

onnx_operators_test.py [CASES OF EACH]
"""

import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

if any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime")):
    print("onnx or onnxruntime is not there: nothing is compared")
    sys.exit(0)

import onnx
import onnx.numpy_helper
import onnx.reference
import onnxruntime
from peers import run_lamina

Arrays = dict[str, np.ndarray]
Case = tuple[list[onnx.NodeProto], Arrays, Arrays, list[str]]  # nodes, inputs, initialisers, outputs
node = onnx.helper.make_node


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def floats(r: np.random.Generator, *shape: int) -> np.ndarray:
    return r.standard_normal(shape).astype(np.float32)


def stft(r: np.random.Generator) -> Case:
    size, parts = int(r.integers(1, 20)), int(r.integers(1, 3))
    one_sided = int(parts == 1 and r.integers(2))
    constants: Arrays = {"step": np.array(r.integers(1, 9))}
    names = ["x", "step", "", ""]
    which = r.integers(3)
    if which != 0:
        constants["window"], names[2] = floats(r, size), "window"
    if which != 1:
        constants["length"], names[3] = np.array(size), "length"
    x = floats(r, int(r.integers(1, 3)), int(size + r.integers(0, 30)), parts)
    return [node("STFT", names, ["y"], onesided=one_sided)], {"x": x}, constants, ["y"]


def mel(r: np.random.Generator) -> Case:
    low = float(r.integers(0, 1000))
    constants = {
        "m": np.array(r.integers(1, 30)),
        "n": np.array(r.integers(8, 600)),
        "rate": np.array(16000),
        "low": np.array(low, np.float32),
        "high": np.array(low + r.integers(500, 5000), np.float32),
    }
    return [node("MelWeightMatrix", list(constants), ["w"]), node("Add", ["w", "zero"], ["y"])], {"zero": np.zeros(1, np.float32)}, constants, ["y"]


def rotary(r: np.random.Generator) -> Case:
    batch, length, heads, size = (int(r.integers(1, 4)), int(r.integers(1, 6)), int(r.integers(1, 4)), 2 * int(r.integers(1, 7)))
    turned = 2 * int(r.integers(0, size // 2 + 1)) if r.integers(2) else 0
    pairs = (turned or size) // 2
    joined = bool(r.integers(2))
    x = floats(r, batch, length, heads * size) if joined else floats(r, batch, heads, length, size)
    values: Arrays = {"x": x}
    if r.integers(2):
        values |= {"c": floats(r, 11, pairs), "s": floats(r, 11, pairs), "p": r.integers(0, 11, (batch, length))}
    else:
        values |= {"c": floats(r, batch, length, pairs), "s": floats(r, batch, length, pairs)}
    attributes: dict[str, Any] = {"interleaved": int(r.integers(2)), "rotary_embedding_dim": turned}
    if joined or turned:
        attributes["num_heads"] = heads
    return [node("RotaryEmbedding", list(values), ["y"], **attributes)], values, {}, ["y"]


def col2im(r: np.random.Generator) -> Case:
    axes = int(r.integers(1, 4))
    block, strides, dilations = (r.integers(1, 4, axes) for _ in range(3))
    pads = r.integers(0, 3, 2 * axes)
    image = np.maximum(r.integers(1, 8, axes), dilations * (block - 1) + 1)
    blocks = (image + pads[:axes] + pads[axes:] - dilations * (block - 1) - 1) // strides + 1
    x = floats(r, int(r.integers(1, 3)), int(r.integers(1, 4) * block.prod()), int(blocks.prod()))
    made = node("Col2Im", ["x", "image", "block"], ["y"], strides=strides.tolist(), dilations=dilations.tolist(), pads=pads.tolist())
    return [made], {"x": x}, {"image": image, "block": block}, ["y"]


def affine_grid(r: np.random.Generator) -> Case:
    axes, batch = int(r.integers(2, 4)), int(r.integers(1, 4))
    # ONNX Runtime multiplies by infinity where corners are aligned on an axis of one pixel: at least two.
    size = ints(batch, int(r.integers(1, 4)), *(int(n) for n in r.integers(2, 6, axes)))
    values: Arrays = {"theta": floats(r, batch, axes, axes + 1)}
    constants: Arrays = {}
    (values if r.integers(2) else constants)["size"] = size
    return [node("AffineGrid", ["theta", "size"], ["y"], align_corners=int(r.integers(2)))], values, constants, ["y"]


def det(r: np.random.Generator) -> Case:
    n = int(r.integers(1, 7))
    x = floats(r, *r.integers(1, 4, int(r.integers(0, 3))), n, n)
    return [node("Det", ["x"], ["y"])], {"x": x}, {}, ["y"]


def regions(r: np.random.Generator, count: int, edge: float) -> np.ndarray:
    first = r.uniform(-1, edge - 1, (count, 2))
    return np.concatenate([first, first + r.uniform(0, edge, (count, 2))], 1).astype(np.float32)


def max_roi_pool(r: np.random.Generator) -> Case:
    images, count = int(r.integers(1, 3)), int(r.integers(1, 5))
    rois = np.concatenate([r.integers(0, images, (count, 1)).astype(np.float32), np.round(np.abs(regions(r, count, 16)))], 1).astype(np.float32)
    made = node("MaxRoiPool", ["x", "rois"], ["y"], pooled_shape=[int(r.integers(1, 4)), int(r.integers(1, 4))], spatial_scale=float(r.choice([1, 0.5, 0.25])))
    return [made], {"x": floats(r, images, 2, 9, 8), "rois": rois}, {}, ["y"]


def roi_align(r: np.random.Generator) -> Case:
    images, count = int(r.integers(1, 3)), int(r.integers(1, 5))
    values = {"x": floats(r, images, 2, 9, 8), "rois": regions(r, count, 9), "images": r.integers(0, images, count)}
    made = node(
        "RoiAlign",
        list(values),
        ["y"],
        mode="max",
        output_height=int(r.integers(1, 4)),
        output_width=int(r.integers(1, 4)),
        sampling_ratio=int(r.integers(0, 4)),
        coordinate_transformation_mode=str(r.choice(["half_pixel", "output_half_pixel"])),
    )
    return [made], values, {}, ["y"]


def sequences(r: np.random.Generator) -> Case:
    """A tensor is taken to pieces; pieces go and come; what is left is joined."""
    size = int(r.integers(2, 9))
    axis = int(r.integers(2))
    x = floats(r, *((size, 3) if axis == 0 else (3, size)))
    constants: Arrays = {}
    kind = int(r.integers(3))
    # keepdims has no meaning beside split, but ONNX Runtime gives it one for a number.
    nodes = [node("SplitToSequence", ["x"] + ([] if kind == 0 else ["split"]), ["s"], axis=axis, keepdims=int(kind != 0 or r.integers(2)))]
    if kind == 1:
        constants["split"] = np.array(r.integers(1, size + 1))
    elif kind == 2:
        cut = int(r.integers(1, size))
        constants["split"] = ints(cut, size - cut)
    length = size if kind == 0 else (2 if kind == 2 else -(-size // int(constants["split"])))
    constants["at"] = np.array(r.integers(-length, length))
    nodes.append(node("SequenceAt", ["s", "at"], ["e"]))
    nodes.append(node("Identity", ["s"], ["s1"]))
    constants["to"] = np.array(r.integers(-length, length + 1))
    nodes.append(node("SequenceInsert", ["s1", "e"] + (["to"] if r.integers(2) else []), ["s2"]))
    constants["gone"] = np.array(r.integers(-length - 1, length + 1))
    nodes.append(node("SequenceErase", ["s2"] + (["gone"] if r.integers(2) else []), ["s3"]))
    new_axis = kind == 0 and nodes[0].attribute[1].i == 0 or (kind == 0 and bool(r.integers(2)))
    nodes.append(node("ConcatFromSequence", ["s3"], ["y"], axis=0 if new_axis else axis, new_axis=int(new_axis)))
    nodes.append(node("SequenceLength", ["s2"], ["n"]))
    return nodes, {"x": x}, constants, ["y", "n"]


def model_of(case: Case) -> onnx.ModelProto:
    nodes, inputs, constants, outputs = case
    ports = [onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()]
    results = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.INT64 if n == "n" else onnx.TensorProto.FLOAT, None) for n in outputs]
    graph = onnx.helper.make_graph(nodes, "g", ports, results, [onnx.numpy_helper.from_array(a, n) for n, a in constants.items()])
    opset = 23 if nodes[0].op_type == "RotaryEmbedding" else 20  # ONNX Runtime lacks the newest of some
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10)


def peer(proto: onnx.ModelProto, inputs: Arrays) -> list[np.ndarray]:
    """ONNX Runtime; the ONNX package itself for Col2Im, where ONNX Runtime errs when strides leave a rest."""
    if proto.graph.node[0].op_type == "Col2Im":
        return list(onnx.reference.ReferenceEvaluator(proto).run(None, inputs))
    return list(onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, inputs))


def check(case: Case, extra: list[str]) -> str:
    """What is wrong; nothing when ONNX Runtime agrees."""
    proto = model_of(case)
    try:
        wanted = peer(proto, case[1])
    except Exception as problem:
        return f"ONNX Runtime: {problem}"
    problem, results = run_lamina(proto.SerializeToString(), {f"in{i}": a for i, a in enumerate(case[1].values())}, "--by-position", *extra)
    if problem:
        return problem
    for i, w in enumerate(wanted):
        got = results[f"out{i}"]
        if got.shape != w.shape or not np.allclose(got, w, rtol=1e-3, atol=1e-4):
            return f"output {i}: {list(got.shape)} {list(w.shape)} {np.abs(got - w).max() if got.shape == w.shape else ''}"
    return ""


KINDS: list[Callable[[np.random.Generator], Case]] = [stft, mel, rotary, col2im, affine_grid, det, max_roi_pool, roi_align, sequences]


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    onnxruntime.set_default_logger_severity(4)
    wrong = 0
    for kind in KINDS:
        for seed in range(count):
            why = check(kind(np.random.default_rng(seed)), ["--reference"] if seed % 3 == 2 else [])
            if why:
                wrong += 1
                print(f"{kind.__name__} {seed}: {why}")
    print(f"{count * len(KINDS)} cases of {len(KINDS)} kinds, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
