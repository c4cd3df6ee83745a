"""What tests against ONNX Runtime and the ONNX package's reference share: seeded random cases, runs of both sides, a count of verdicts."""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

TOOL = os.environ.get("LAMINA_TOOL", "build/release/bin/lamina")
Verdict = tuple[str, str]  # "passed" | "refused by the peer" | "wrong", and why


class RandomBase:
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


def run_onnxruntime(model: bytes, feed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feed)), strict=True))


def run_lamina(model: bytes, feed: Mapping[str, np.ndarray], *more: str) -> tuple[str, dict[str, np.ndarray]]:
    """-> what was said where it failed, the outputs"""
    with tempfile.TemporaryDirectory() as folder:
        file, inputs, out = (pathlib.Path(folder) / name for name in ("m.onnx", "in.npz", "out.npz"))
        file.write_bytes(model)
        np.savez(inputs, **feed)
        words = [TOOL, "run", str(file), "--inputs", str(inputs), "--output", str(out), "--quiet", "--threads", "1", *more]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        if done.returncode:
            return f"exit {done.returncode}: {done.stderr.strip()}", {}
        with np.load(out) as results:
            return "", dict(results)


def unlike(got: np.ndarray, wanted: np.ndarray) -> str:
    """Another shape or type; empty where they can be compared."""
    if got.shape == wanted.shape and got.dtype == wanted.dtype:
        return ""
    return f"is {got.dtype}{list(got.shape)}, wanted {wanted.dtype}{list(wanted.shape)}"


def compare_cases(doc: str | None, generators: Mapping[str, tuple[Callable[[Any], Any], int]], random: Callable[[int], Any],
                  run: Callable[[Any, bool], Verdict], text: Callable[[Any], str]) -> int:
    """The command line of such a test. Each fourth case runs by the interpreter. -> 1 where something is wrong, or the peer refuses too much"""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, help="of each operator")
    parser.add_argument("--show", action="store_true", help="also what the peer refuses")
    options = parser.parse_args()
    np.seterr(all="ignore")
    cases = [generator(random(zlib.crc32(f"{name} {options.seed} {i}".encode())))
             for name, (generator, count) in generators.items() if options.only in name for i in range(options.cases or count)]
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
