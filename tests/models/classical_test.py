"""Operators of ai.onnx.ml against ONNX Runtime, many seeded random cases of each; where it has no result of its own, against ONNX's reference implementation.

classical_test.py [--only TEXT] [--seed N] [--cases N] [--show]
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import zlib

import numpy as np

try:
    import onnxruntime
    from classical_cases import GENERATORS, Case, Random
    from onnx.reference import ReferenceEvaluator
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(0)

TOOL = os.environ.get("LAMINA_TOOL", "build/release/bin/lamina")


def peer(case: Case) -> list[np.ndarray]:
    if case.oracle == "reference":
        return ReferenceEvaluator(case.model()).run(None, case.feed())
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(case.model().SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, case.feed())


def run(case: Case, reference: bool) -> tuple[str, str]:
    """-> ("passed" | "refused by the peer" | "wrong", why)"""
    try:
        wanted = dict(zip(case.outputs, peer(case), strict=True))
    except Exception as e:
        return "refused by the peer", str(e)[:300]
    with tempfile.TemporaryDirectory() as folder:
        file, feed, out = (str(pathlib.Path(folder) / name) for name in ("m.onnx", "in.npz", "out.npz"))
        pathlib.Path(file).write_bytes(case.model().SerializeToString())
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
            if not np.allclose(a, b, rtol=1e-3, atol=case.atol, equal_nan=True):
                return "wrong", f"{name} is {a[~np.isclose(a, b, rtol=1e-3, atol=case.atol, equal_nan=True)][:4]}, wanted {b[~np.isclose(a, b, rtol=1e-3, atol=case.atol, equal_nan=True)][:4]}"
    return "passed", ""


def text(case: Case) -> str:
    shapes = ", ".join(f"{a.dtype.char}{list(a.shape)}" for a in case.inputs)
    short = {k: v if len(str(v)) < 60 else f"{str(v)[:60]}..." for k, v in case.attributes.items()}
    return f"{case.op}-{case.version}({shapes}) {short}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, help="of each operator")
    parser.add_argument("--show", action="store_true", help="also what the peer refuses")
    options = parser.parse_args()
    np.seterr(all="ignore")
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
