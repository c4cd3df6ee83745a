"""Operators of com.microsoft against ONNX Runtime, many seeded random cases of each.

microsoft_test.py [--only TEXT] [--seed N] [--cases N] [--show]
"""

import sys

import numpy as np

try:
    import onnxruntime  # noqa: F401
    from microsoft_cases import GENERATORS, Case, Random
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(0)

from peers import Verdict, compare_cases, run_lamina, run_onnxruntime, unlike


def run(case: Case, reference: bool) -> Verdict:
    model = case.model().SerializeToString()
    try:
        wanted = case.expected(case) if case.expected else run_onnxruntime(model, case.feed())
    except Exception as e:
        return "refused by the peer", str(e)[:300]
    problem, results = run_lamina(model, case.feed(), *(["--reference"] if reference else []))
    if problem:
        return "wrong", problem
    for name, b in wanted.items():
        a = results[name]
        if other := unlike(a, b):
            return "wrong", f"{name} {other}"
        a, b = (case.relevant(int(name[1:]), y) for y in (a, b))
        if not np.allclose(a, b, rtol=1e-3, atol=case.atol, equal_nan=True):
            return "wrong", f"{name} is off by {np.abs(a - b).max():.3g}"
    return "passed", ""


def text(case: Case) -> str:
    shapes = ", ".join("-" if a is None else f"{a.dtype.char}{list(a.shape)}" for a in case.inputs)
    return f"{case.op}({shapes}) {case.attributes}"


if __name__ == "__main__":
    sys.exit(compare_cases(__doc__, GENERATORS, Random, run, text))
