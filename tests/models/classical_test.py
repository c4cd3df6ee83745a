"""Operators of ai.onnx.ml against ONNX Runtime, many seeded random cases of each; where it has no result of its own, against ONNX's reference implementation.

classical_test.py [--only TEXT] [--seed N] [--cases N] [--show]
"""

import sys

import numpy as np

try:
    import onnxruntime  # noqa: F401
    from classical_cases import GENERATORS, Case, Random
    from onnx.reference import ReferenceEvaluator
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(0)

from peers import Verdict, compare_cases, run_lamina, run_onnxruntime, unlike


def peer(case: Case) -> dict[str, np.ndarray]:
    if case.oracle == "reference":
        return dict(zip(case.outputs, ReferenceEvaluator(case.model()).run(None, case.feed()), strict=True))
    return run_onnxruntime(case.model().SerializeToString(), case.feed())


def run(case: Case, reference: bool) -> Verdict:
    try:
        wanted = peer(case)
    except Exception as e:
        return "refused by the peer", str(e)[:300]
    problem, results = run_lamina(case.model().SerializeToString(), case.feed(), *(["--reference"] if reference else []))
    if problem:
        return "wrong", problem
    for name, b in wanted.items():
        a = results[name]
        if other := unlike(a, b):
            return "wrong", f"{name} {other}"
        off = ~np.isclose(a, b, rtol=1e-3, atol=case.atol, equal_nan=True)
        if off.any():
            return "wrong", f"{name} is {a[off][:4]}, wanted {b[off][:4]}"
    return "passed", ""


def text(case: Case) -> str:
    shapes = ", ".join(f"{a.dtype.char}{list(a.shape)}" for a in case.inputs)
    short = {k: v if len(str(v)) < 60 else f"{str(v)[:60]}..." for k, v in case.attributes.items()}
    return f"{case.op}-{case.version}({shapes}) {short}"


if __name__ == "__main__":
    sys.exit(compare_cases(__doc__, GENERATORS, Random, run, text))
