"""Attention and state of decoders, opsets 23 to 27: seeded random cases against the ONNX package's reference.

onnx_attention_test.py [CASES OF EACH]
Half of the cases have symbols for all sizes but the number and the size of heads, some for those, too.
"""

import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

if importlib.util.find_spec("onnx") is None:
    print("onnx is not there: nothing is compared")
    sys.exit(0)

import onnx
import onnx.reference
from peers import run_lamina

Arrays = dict[str, np.ndarray]
Case = tuple[onnx.NodeProto, Arrays, int, set[str]]  # the node, inputs, operator set, symbols that are known sizes
Generator = np.random.Generator


def floats(r: Generator, *shape: int) -> np.ndarray:
    return r.standard_normal(shape).astype(np.float32)


def one_of(r: Generator, *choices: Any) -> Any:
    return choices[int(r.integers(len(choices)))]


def make(op: str, inputs: Arrays, names: list[str], outputs: list[str], attributes: dict) -> onnx.NodeProto:
    given = [n if n in inputs else "" for n in names]
    while not given[-1]:
        given.pop()
    return onnx.helper.make_node(op, given, outputs, **attributes)


def add_mask(r: Generator, inputs: Arrays, full: tuple[int, int, int, int], shorter: int) -> None:
    """Adds a mask of rank 2 to 4, with some axes of 1; booleans may hide a whole row."""
    rank = int(r.integers(2, 5))
    shape = [d if r.random() < 0.6 else 1 for d in full[4 - rank:3]] + [full[3] - shorter]
    if r.random() < 0.5:
        inputs["m"] = r.random(shape) < 0.7
    else:
        inputs["m"] = floats(r, *shape)
        inputs["m"][r.random(shape) < 0.2] = -np.inf
    if r.random() < 0.3:
        inputs["m"][..., 0, :] = False if inputs["m"].dtype == bool else -np.inf


def attention(r: Generator) -> Case:
    opset = one_of(r, 23, 24, 25)
    batch, groups, each, size, width = (int(r.integers(1, 4)) for _ in range(5))
    heads, length, keys = groups * each, int(r.integers(1, 6)), int(r.integers(1, 8))
    joined = bool(r.integers(2))
    inputs = {"q": floats(r, batch, heads, length, size), "k": floats(r, batch, groups, keys, size), "v": floats(r, batch, groups, keys, width)}
    attributes: dict[str, Any] = {"is_causal": int(r.integers(2))}
    past = int(r.integers(1, 4)) if r.random() < 0.4 else 0
    if joined:
        inputs = {n: a.transpose(0, 2, 1, 3).reshape(batch, a.shape[2], -1) for n, a in inputs.items()}
        attributes |= {"q_num_heads": heads, "kv_num_heads": groups}
    lengths = not past and opset >= 24 and r.random() < 0.5
    least = 0
    if lengths:
        inputs["n"] = r.integers(0, keys + 1, batch)
        least = int(inputs["n"].max())
    if r.random() < 0.6:
        shorter = int(r.integers(0, keys - max(least, 1) + 1)) if opset >= 24 and r.random() < 0.5 else 0
        add_mask(r, inputs, (batch, heads, length, keys + past), shorter)
    if past:
        inputs |= {"pk": floats(r, batch, groups, past, size), "pv": floats(r, batch, groups, past, width)}
    if r.random() < 0.3:
        attributes["scale"] = float(r.random())
    if r.random() < 0.3:
        attributes["softcap"] = float(1 + r.random())
    if r.random() < 0.2:
        attributes["softmax_precision"] = one_of(r, 1, 11)
    if opset == 25 and r.random() < 0.6:
        attributes |= {"left_window_size": int(r.integers(-1, 4)), "right_window_size": int(r.integers(-1, 3))}
    outputs = ["y"]
    if not lengths and r.random() < 0.6:
        outputs += ["ok", "ov"]
    if r.random() < 0.4:
        outputs += ["", "", ""][len(outputs) - 1:2] + ["qk"]
        # The reference gives capped scores for mode 0, too.
        attributes["qk_matmul_output_mode"] = int(r.integers(1 if "softcap" in attributes else 0, 4))
    return make("Attention", inputs, ["q", "k", "v", "m", "pk", "pv", "n"], outputs, attributes), inputs, opset, set()


def tensor_scatter(r: Generator) -> Case:
    rank = int(r.integers(2, 5))
    axis = int(r.integers(1, rank))
    shape = [int(r.integers(1, 4)) for _ in range(rank)]
    shape[axis] = int(r.integers(1, 7))
    update = list(shape)
    update[axis] = int(r.integers(1, shape[axis] + 1))
    inputs = {"past": floats(r, *shape), "update": floats(r, *update)}
    mode = one_of(r, "linear", "circular")
    if r.random() < 0.8:
        inputs["at"] = r.integers(0, shape[axis] + 1 - (update[axis] if mode == "linear" else 0), shape[0])
    attributes = {"mode": mode, "axis": axis - rank if r.random() < 0.5 else axis}
    return make("TensorScatter", inputs, ["past", "update", "at"], ["y"], attributes), inputs, 24, set()


def linear_attention(r: Generator) -> Case:
    rule = one_of(r, "linear", "gated", "delta", "gated_delta")
    batch, groups, each, size, width = (int(r.integers(1, 4)) for _ in range(5))
    length = one_of(r, 1, 2, 5)
    inputs = {"q": floats(r, batch, length, groups * each * size), "k": floats(r, batch, length, groups * size), "v": floats(r, batch, length, groups * width)}
    inputs["k"] /= np.sqrt(size)
    if r.random() < 0.6:
        inputs["s"] = floats(r, batch, groups, size, width)
    if "gated" in rule:
        inputs["g"] = -np.abs(floats(r, batch, length, groups * one_of(r, 1, size)))
    if "delta" in rule:
        inputs["b"] = r.random((batch, length, one_of(r, 1, groups)), np.float32)
    attributes = {"update_rule": rule, "q_num_heads": groups * each, "kv_num_heads": groups}
    if r.random() < 0.5:
        attributes["scale"] = 0.5
    return make("LinearAttention", inputs, ["q", "k", "v", "s", "g", "b"], ["y", "t"], attributes), inputs, 27, {"q_2", "k_2", "v_2", "g_2", "b_2"}


def causal_conv(r: Generator) -> Case:
    batch, channels, length, kernel = (int(r.integers(1, 5)) for _ in range(4))
    inputs = {"x": floats(r, batch, channels, length), "w": floats(r, channels, 1, kernel)}
    if r.random() < 0.5:
        inputs["b"] = floats(r, channels)
    if r.random() < 0.6:
        inputs["s"] = floats(r, batch, channels, kernel - 1)
    attributes = {"activation": one_of(r, "none", "silu", "swish")}
    return make("CausalConvWithState", inputs, ["x", "w", "b", "s"], ["y", "t"], attributes), inputs, 27, {"w_0", "w_1", "w_2"}


def model_of(case: Case, how: int) -> onnx.ModelProto:
    """how: 0: all sizes are known, 1: those of heads are, 2: none is."""
    node, inputs, opset, known = case

    def dims(name: str, a: np.ndarray) -> list[int | str]:
        def is_known(axis: int) -> bool:
            heads = axis in (a.ndim - 1, a.ndim - 3) if a.ndim == 4 else axis == 2
            return how == 0 or f"{name}_{axis}" in known or (how == 1 and heads and not name.startswith("m"))
        return [d if is_known(i) else f"{name}_{i}" for i, d in enumerate(a.shape)]

    ports = [onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), dims(n, a)) for n, a in inputs.items()]
    results = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in node.output if n]
    graph = onnx.helper.make_graph([node], "g", ports, results)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=10)


def peer(proto: onnx.ModelProto, inputs: Arrays) -> list[np.ndarray]:
    """The reference applies is_causal to the rows that the mask has: it gets one for each query."""
    if "m" in inputs:
        length = inputs["q"].shape[-2]
        shape = list(inputs["m"].shape)
        shape[-2] = length
        inputs = inputs | {"m": np.ascontiguousarray(np.broadcast_to(inputs["m"], shape))}
    with np.errstate(all="ignore"):
        return list(onnx.reference.ReferenceEvaluator(proto).run(None, inputs))


def check(case: Case, how: int, extra: list[str]) -> str:
    """What is wrong; nothing when the reference agrees."""
    proto = model_of(case, how)
    wanted = peer(proto, case[1])
    problem, results = run_lamina(proto.SerializeToString(), {f"in{i}": a for i, a in enumerate(case[1].values())}, "--by-position", *extra)
    if problem:
        return problem
    for i, w in enumerate(wanted):
        got = results[f"out{i}"]
        if got.shape != w.shape or not np.allclose(got, w, rtol=1e-3, atol=1e-4, equal_nan=True):
            return f"output {i}: {list(got.shape)} {list(w.shape)} {np.nanmax(np.abs(got - w)) if got.shape == w.shape else ''}"
    return ""


KINDS: list[Callable[[Generator], Case]] = [attention, attention, attention, tensor_scatter, linear_attention, causal_conv]


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    wrong = 0
    for k, kind in enumerate(KINDS):
        for seed in range(count):
            case = kind(np.random.default_rng([k, seed]))
            how = seed % 4 if seed % 4 < 3 else 1
            why = check(case, how, ["--reference"] if seed % 3 == 2 else [])
            if why:
                wrong += 1
                print(f"{kind.__name__} {k} {seed} ({how}): {why}")
                print("   ", {n: a.shape for n, a in case[1].items()}, case[2], str(onnx.printer.to_text(case[0])).strip())
    print(f"{count * len(KINDS)} cases of {len(KINDS)} kinds, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
