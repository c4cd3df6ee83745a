"""Operators of com.microsoft against ONNX Runtime, many seeded random cases of each.

microsoft_test.py [--only TEXT] [--seed N] [--cases N]
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable

import numpy as np

try:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(0)

TOOL = os.environ.get("LAMINA_TOOL", "build/release/bin/lamina")
TYPES = {"f": TensorProto.FLOAT, "i": TensorProto.INT32, "l": TensorProto.INT64, "B": TensorProto.UINT8}


@dataclasses.dataclass
class Case:
    """One node. A constant is an initialiser, what is None is left out."""

    op: str
    inputs: list[np.ndarray | None]
    attributes: dict
    outputs: int = 1
    constants: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()  # outputs that the node gives; empty: all of them
    dynamic: bool = False
    atol: float = 1e-4
    relevant: Callable[[int, np.ndarray], np.ndarray] = lambda i, y: y  # what of an output is defined

    def model(self) -> onnx.ModelProto:
        names = [f"x{i}" if a is not None else "" for i, a in enumerate(self.inputs)]
        while not names[-1]:
            names.pop()
        wanted = self.wanted or tuple(range(self.outputs))
        outputs = [f"y{i}" if i in wanted else "" for i in range(self.outputs)]
        given = [(n, a) for n, a in zip(names, self.inputs, strict=False) if a is not None]
        graph = helper.make_graph(
            [helper.make_node(self.op, names, outputs, domain="com.microsoft", **self.attributes)], "g",
            [helper.make_tensor_value_info(n, TYPES[a.dtype.char], [f"{n}_{d}" for d in range(a.ndim)] if self.dynamic else a.shape)
             for n, a in given if int(n[1:]) not in self.constants],
            [helper.make_value_info(o, helper.make_tensor_type_proto(TensorProto.FLOAT, None)) for o in outputs if o],
            [numpy_helper.from_array(a, n) for n, a in given if int(n[1:]) in self.constants])
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])

    def feed(self) -> dict[str, np.ndarray]:
        return {f"x{i}": a for i, a in enumerate(self.inputs) if a is not None and i not in self.constants}


MASKED = 2e-3  # a row that sees nothing has scores of -10000, whose roundings are large


class Random:
    """What cases are made of."""

    def __init__(self, seed: int):
        self.g = np.random.default_rng(seed)

    def pick(self, *values):
        return values[self.g.integers(len(values))]

    def size(self, low: int, high: int) -> int:
        return int(self.g.integers(low, high + 1))

    def flag(self, share: float = 0.5) -> bool:
        return bool(self.g.random() < share)

    def floats(self, *shape: int) -> np.ndarray:
        return self.g.standard_normal(shape).astype(np.float32)

    def ints(self, low: int, high: int, *shape: int, dtype: type = np.int32) -> np.ndarray:
        return self.g.integers(low, high + 1, shape).astype(dtype)


def key_mask(r: Random, n: int, rows: int, columns: int, *kinds: str) -> np.ndarray | None:
    kind = r.pick(*kinds)
    if kind == "lengths":
        return r.ints(1, columns, n)
    if kind == "spans":
        return np.concatenate([r.ints(columns // 2 + 1, columns, n), r.ints(0, columns // 2, n)])
    if kind == "2d":
        return r.ints(0, 1, n, columns)
    if kind == "3d":
        return r.ints(0, 1, n, rows, columns)
    return None


def attention(r: Random) -> Case:
    n, rows, heads, size, past = r.size(1, 3), r.size(1, 9), r.pick(1, 2, 4), r.pick(4, 8), r.pick(0, 0, 3)
    value = size if past or r.flag() else r.pick(4, 8, 12)
    width, depth = heads * size, r.pick(8, 24)
    columns = 2 * width + heads * value
    attributes = {"num_heads": heads, "unidirectional": int(r.flag(0.4))}
    if value != size or r.flag(0.2):
        attributes["qkv_hidden_sizes"] = [width, width, heads * value]
    if r.flag(0.2):
        attributes["scale"] = 0.3
    if r.flag(0.3):
        attributes["mask_filter_value"] = float(r.pick(-3.0, -3.4028234663852886e38))
    constant = r.flag(0.8)
    dynamic = constant and r.flag(0.3)
    # The peer reads a bias even where there is none, and dies.
    inputs = [r.floats(n, rows, depth), r.floats(depth, columns) / 3, r.floats(columns),
              key_mask(r, n, rows, rows + past, "none", "lengths", "2d", "3d", *([] if dynamic else ["spans"])),
              r.floats(2, n, heads, past, size) if past else None,
              r.floats(r.pick(1, n), r.pick(1, heads), rows, rows + past) if not past and r.flag(0.3) else None]
    outputs = 2 if past or (value == size and r.flag(0.2)) else 1
    return Case("Attention", inputs, attributes, outputs, constants=(1, 2) if constant else (), dynamic=dynamic, atol=MASKED)


def multi_head_attention(r: Random) -> Case:
    n, rows, heads, size = r.size(1, 3), r.size(1, 9), r.pick(1, 2, 4), r.pick(4, 8)
    width = heads * size
    form = r.pick("plain", "plain", "past", "cross")
    columns = rows if form == "past" else r.size(1, 9)
    past = r.size(1, 4) if form == "past" else 0
    value = r.pick(size, 12) if form == "plain" else size
    attributes = {"num_heads": heads}
    if columns <= rows and r.flag():  # with more columns the peer's last row sees them all
        attributes["unidirectional"] = 1
    if r.flag(0.2):
        attributes["scale"] = 0.3
    if r.flag(0.3):
        attributes["mask_filter_value"] = float(r.pick(-3.0, -3.4028234663852886e38))
    inputs: list[np.ndarray | None] = [r.floats(n, rows, width)]
    if form == "cross":
        inputs += [r.floats(n, heads, columns, size), r.floats(n, heads, columns, size)]
    else:
        inputs += [r.floats(n, columns, width), r.floats(n, columns, heads * value)]
    bias = form in ("plain", "past") and r.flag()
    inputs.append(r.floats(2 * width + heads * value) if bias else None)
    inputs.append(key_mask(r, n, rows, columns + past, "none", "lengths", "2d", "3d"))
    inputs.append(r.floats(r.pick(1, n), r.pick(1, heads), rows, columns + past) if r.flag(0.3) else None)
    if past:
        inputs += [r.floats(n, heads, past, size), r.floats(n, heads, past, size)]
    return Case("MultiHeadAttention", inputs, attributes, 3 if past else 1, constants=(3,) if r.flag() else (), atol=MASKED)


def rotary_embedding(r: Random) -> Case:
    n, rows, heads, half = r.size(1, 3), r.size(1, 7), r.pick(1, 2, 3), r.pick(2, 4, 8)
    attributes: dict = {"interleaved": int(r.flag())}
    size = 2 * half
    partial = r.flag(0.3)
    if partial:
        size += 4
        attributes |= {"rotary_embedding_dim": 2 * half, "num_heads": heads}
    x = r.floats(n, heads, rows, size) if r.flag(0.4) else r.floats(n, rows, heads * size)
    longest = 16
    positions = np.array([r.size(0, 5)], np.int64) if r.flag(0.4) else r.ints(0, longest - 1, n, rows, dtype=np.int64)
    return Case("RotaryEmbedding", [x, positions, r.floats(longest, half), r.floats(longest, half)], attributes, constants=(2, 3))


def group_query_attention(r: Random) -> Case:
    groups, share, size = r.pick(1, 2), r.pick(1, 2, 3), r.pick(16, 32)
    heads, longest = groups * share, 24
    form = r.pick("prompt", "prompt_room", "token", "token_room", "several")
    n = 1 if form == "several" else r.size(1, 3)
    rows = 1 if form.startswith("token") else r.size(2, 7)
    past = {"prompt": 0, "prompt_room": longest, "token": 5, "token_room": longest, "several": r.pick(5, longest)}[form]
    if form.startswith("prompt"):
        totals = r.ints(1, rows, n)
        totals[r.size(0, n - 1)] = rows
    else:
        totals = r.ints(rows + 1, rows + 5, n)
        if past != longest:
            totals[r.size(0, n - 1)] = rows + past
    total = int(totals.max())
    attributes: dict = {"num_heads": heads, "kv_num_heads": groups}
    for name, value, chance in (("scale", 0.2, 0.2), ("local_window_size", r.size(1, 4), 0.3), ("softcap", 2.0, 0.2), ("smooth_softmax", 1, 0.15)):
        if r.flag(chance):
            attributes[name] = value
    inputs: list[np.ndarray | None] = []
    if r.flag(0.3):
        inputs = [r.floats(n, rows, (heads + 2 * groups) * size), None, None]
    else:
        inputs = [r.floats(n, rows, heads * size), r.floats(n, rows, groups * size), r.floats(n, rows, groups * size)]
    inputs += [r.floats(n, groups, past, size), r.floats(n, groups, past, size)] if past else [None, None]
    inputs += [totals - 1, np.array([total], np.int32)]
    if r.flag():
        attributes |= {"do_rotary": 1, "rotary_interleaved": int(r.flag())}
        inputs += [r.floats(longest, size // 2), r.floats(longest, size // 2)]
    else:
        inputs += [None, None]
    inputs.append(None)
    inputs.append(r.floats(r.pick(1, n), r.pick(1, heads), rows, total) if r.flag(0.2) else None)
    if r.flag(0.15) and "smooth_softmax" not in attributes:
        inputs.append(r.floats(heads))

    def relevant(output: int, y: np.ndarray) -> np.ndarray:
        y = y.copy()
        for i, t in enumerate(totals):
            if output == 0:
                y[i, t:] = 0
            else:
                y[i, :, t:] = 0
        return y

    return Case("GroupQueryAttention", inputs, attributes, 3, constants=(6, 7, 8) if r.flag() else (7, 8), relevant=relevant)


GENERATORS: dict[str, tuple[Callable[[Random], Case], int]] = {
    "Attention": (attention, 150),
    "MultiHeadAttention": (multi_head_attention, 150),
    "RotaryEmbedding": (rotary_embedding, 60),
    "GroupQueryAttention": (group_query_attention, 150),
}


def peer(case: Case, model: bytes) -> dict[str, np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, case.feed()), strict=True))


def run(case: Case, reference: bool) -> tuple[str, str]:
    """-> ("passed" | "refused by the peer" | "wrong", why)"""
    model = case.model().SerializeToString()
    try:
        wanted = peer(case, model)
    except Exception as e:
        return "refused by the peer", str(e)[:300]
    with tempfile.TemporaryDirectory() as folder:
        file, feed, out = (str(pathlib.Path(folder) / name) for name in ("m.onnx", "in.npz", "out.npz"))
        pathlib.Path(file).write_bytes(model)
        np.savez(feed, **case.feed())
        done = subprocess.run([TOOL, "run", file, "--inputs", feed, "--output", out, "--quiet", "--threads", "1", *(["--reference"] if reference else [])],
                              capture_output=True, text=True, timeout=60)
        if done.returncode:
            return "wrong", f"exit {done.returncode}: {done.stderr.strip()}"
        results = np.load(out)
        for name, b in wanted.items():
            a = results[name]
            if a.shape != b.shape or a.dtype != b.dtype:
                return "wrong", f"{name} is {a.dtype}{list(a.shape)}, wanted {b.dtype}{list(b.shape)}"
            a, b = (case.relevant(int(name[1:]), y) for y in (a, b))
            if not np.allclose(a, b, rtol=1e-3, atol=case.atol, equal_nan=True):
                return "wrong", f"{name} is off by {np.abs(a - b).max():.3g}"
    return "passed", ""


def text(case: Case) -> str:
    shapes = ", ".join("-" if a is None else f"{a.dtype.char}{list(a.shape)}" for a in case.inputs)
    return f"{case.op}({shapes}) {case.attributes}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, help="of each operator")
    parser.add_argument("--show", action="store_true", help="also what the peer refuses")
    options = parser.parse_args()
    cases = [generator(Random(zlib.crc32(f"{name} {options.seed} {i}".encode())))
             for name, (generator, count) in GENERATORS.items() if options.only in name for i in range(options.cases or count)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(pool.map(run, cases, [i % 4 == 3 for i in range(len(cases))]))
    counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for case, (verdict, why) in zip(cases, verdicts, strict=True):
        counts[case.op][verdict] += 1
        if verdict == "wrong" or (options.show and verdict != "passed"):
            print(f"{verdict}: {text(case)}: {why}")
    for op, c in counts.items():
        print(f"{op}: " + ", ".join(f"{c[v]} {v}" for v in ("passed", "refused by the peer", "wrong")))
    return 1 if any(c["wrong"] or c["passed"] < sum(c.values()) * 0.6 for c in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
