#!/usr/bin/env python3
"""Fits the constants of the cost table (src/kernels/cost.cc) to measurements of kernel_bench.

    bench/fit_costs.py                 measures all problems on each instruction set, fits, prints the table
    bench/fit_costs.py --keep DIR      keeps what was measured in DIR/ISA.json; later it is read from there

Per family of kernels: microseconds = call + work / rate + bytes / bandwidth, all at least 0, by least squares
of relative errors; what a family's kernels do not count (see FAMILIES) stays out. The call is that of the
widest instruction set. Tensors lie in caches while they are measured, as most do in a network. Compare with
the table that is there and take over by hand what is plausible: few problems make a poor fit.
"""

import argparse
import itertools
import math
import re
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

from measured import ISAS, Row, add_arguments, measured


@dataclass
class Family:
    """Which rows belong to it, and what its cost counts."""

    takes: Callable[[Row], bool]
    work: bool = True
    bytes: bool = True


def kernels(op: str, label: str, more: Callable[[Row], bool] = lambda row: True) -> Callable[[Row], bool]:
    return lambda r: bool(re.fullmatch(op, r.op) and re.search(label, r.label) and more(r))


CONV, DECONV = "Convolution", "ConvolutionBackpropData"
LIGHT, MATH = (
    "Add|Subtract|Multiply|Maximum|Minimum|Relu|Clamp",
    "Sigmoid|Tanh|Exp|Erf|Gelu|Swish|Power|Softmax",
)

# In the order of the enumeration in src/kernels/cost.h.
FAMILIES = {
    "brgemm_conv": Family(kernels(CONV, r"^brgconv_(?!1x1)")),
    "brgemm_1x1": Family(kernels(CONV, r"^(brgconv|jit)_1x1")),
    "jit_conv": Family(kernels(CONV, r"^jit_(?!1x1|dw|uni_dw)")),
    "jit_depthwise": Family(kernels(CONV, r"^(brdgmm_dw|jit_dw|jit_uni_dw)")),
    "gemm_conv": Family(kernels(CONV, r"gemm_jit", lambda r: not r.grouped)),
    "brgemm_deconv": Family(kernels(DECONV, r"^(brg|jit|conv_any\+(jit|brg))")),
    "brgemm_matmul": Family(kernels("MatMul", r"^(brg|gemm)", lambda r: r.rows > 1), bytes=False),
    "matmul_row": Family(kernels("MatMul", r"", lambda r: r.rows == 1), bytes=False),
    "native_gemm": Family(
        kernels(f"MatMul|{CONV}", r"^native_(gemm|1x1)", lambda r: r.op == CONV or r.rows > 1)
    ),
    "native_depthwise": Family(kernels(CONV, r"^native_(dw|depthwise)")),
    "native_direct": Family(kernels(f"{CONV}|{DECONV}", r"^native_(?!gemm|1x1|dw|depthwise)")),
    "native_binary": Family(kernels("BinaryConvolution", r"^native_binary_(?!depthwise)")),
    "vector_light": Family(kernels(LIGHT, r"^native_elementwise")),
    "vector_math": Family(kernels(MATH, r"^native_(elementwise|softmax)")),
    "onednn_pass": Family(kernels(f"{LIGHT}|Sigmoid|Tanh|.*Pool|Reduce.*", r"^(jit|brg|simple)"), work=False),
    "copy": Family(kernels("Concat|Split|Pad", r"^native_copy"), work=False),
    "transpose": Family(kernels("Transpose", r"^native_(copy|transpose)"), work=False),
    "scalar": Family(kernels(".*", r"^native_.*scalar")),
    "reference": Family(kernels(".*", r"^reference")),
}


def solve(matrix: list[list[float]], right: list[float]) -> list[float] | None:
    """Gauss with pivots; nothing for a singular matrix."""
    n = len(right)
    rows = [[*matrix[i], right[i]] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        if abs(rows[pivot][i]) < 1e-12:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(n):
            if k != i:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def least_squares(columns: list[list[float]], right: list[float]) -> list[float]:
    """x >= 0 with the least |columns * x - right|^2: tries every set of columns that may be positive."""
    best, best_error = [0.0] * len(columns), sum(r * r for r in right)
    scale = [max(map(abs, c), default=0) or 1 for c in columns]
    scaled = [[v / s for v in c] for c, s in zip(columns, scale, strict=True)]
    for count in range(1, len(columns) + 1):
        for chosen in itertools.combinations(range(len(columns)), count):
            part = [scaled[i] for i in chosen]
            normal = [[sum(a * b for a, b in zip(p, q, strict=True)) for q in part] for p in part]
            x = solve(normal, [sum(a * b for a, b in zip(p, right, strict=True)) for p in part])
            if x is None or min(x) < 0:
                continue
            got = [sum(w * p[k] for w, p in zip(x, part, strict=True)) for k in range(len(right))]
            error = sum((g - r) ** 2 for g, r in zip(got, right, strict=True))
            if error < best_error:
                best, best_error = [0.0] * len(columns), error
                for i, w in zip(chosen, x, strict=True):
                    best[i] = w / scale[i]
    return best


@dataclass
class Fit:
    """Constants of one family on one instruction set."""

    call: float
    rate: float  # infinite: no influence was seen
    bandwidth: float
    problems: int
    error: float  # median factor between fit and measurement
    error_now: float  # the same of the costs that the offers said


def fit(family: Family, rows: list[Row], call: float | None) -> Fit | None:
    """Relative errors count: every equation is divided by its time. A given call stays as it is."""
    counted = 1 + family.work + family.bytes
    if len(rows) < counted + 1:
        return None
    columns = [[1 / r.microseconds for r in rows]] if call is None else []
    if family.work:
        columns.append([r.work / r.microseconds for r in rows])
    if family.bytes:
        columns.append([r.bytes / r.microseconds for r in rows])
    right = [1.0 if call is None else 1 - min(call / r.microseconds, 1) for r in rows]
    x = least_squares(columns, right)
    own_call = x.pop(0) if call is None else call
    work = x.pop(0) if family.work else 0.0
    memory = x.pop(0) if family.bytes else 0.0

    def factor(estimate: float, time: float) -> float:
        return max(estimate / time, time / estimate) if estimate > 0 else math.inf

    fitted = [factor(own_call + work * r.work + memory * r.bytes, r.microseconds) for r in rows]
    said = [factor(r.cost, r.microseconds) for r in rows]
    return Fit(
        own_call,
        1 / work if work else math.inf,
        1 / memory if memory else math.inf,
        len(rows),
        statistics.median(fitted),
        statistics.median(said),
    )


def digits(value: float) -> str:
    """Two digits that matter."""
    if not math.isfinite(value):
        return "-"
    rounded = float(f"{value:.2g}")
    return f"{rounded:.0f}" if rounded >= 10 else f"{rounded:g}"


def print_table(fits: dict[str, dict[str, Fit | None]]) -> None:
    print(
        "// call, then work and bytes per microsecond for "
        + ", ".join(ISAS)
        + "; - : not seen in these problems"
    )
    for name, by_isa in fits.items():
        calls = [f.call for isa in reversed(ISAS) if (f := by_isa.get(isa))]
        cells = [
            f"{{{digits(f.rate)}, {digits(f.bandwidth)}}}" if (f := by_isa.get(isa)) else "{-, -}"
            for isa in ISAS
        ]
        print(f"    {{{f'{calls[0]:.2g}' if calls else '-'}, {', '.join(cells)}}},  // {name}")
    print(
        "\nmedian factor between estimate and measurement: fitted (as the table says now), number of offers"
    )
    for name, by_isa in fits.items():
        cells = [
            f"{isa} {f.error:.2f} ({f.error_now:.2f}) {f.problems}" for isa in ISAS if (f := by_isa.get(isa))
        ]
        print(f"  {name:<18}" + ("   ".join(cells) or "no offers"))


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(p)
    p.add_argument("--isa", nargs="+", choices=ISAS, default=list(ISAS), help="instruction sets (all)")
    options = p.parse_args()
    if not options.bench.exists():
        print(f"fit_costs.py: {options.bench} is not there: `make bench` makes it", file=sys.stderr)
        return 1
    rows = {isa: measured(options, isa) for isa in options.isa}
    fits: dict[str, dict[str, Fit | None]] = {}
    for name, family in FAMILIES.items():
        call: float | None = None
        fits[name] = {}
        for isa in (
            i for i in reversed(ISAS) if i in rows
        ):  # the widest one first: it says what a call costs
            found = fit(family, [r for r in rows[isa] if family.takes(r)], call)
            call = found.call if found and call is None else call
            fits[name][isa] = found
    print_table(fits)
    return 0


if __name__ == "__main__":
    sys.exit(main())
