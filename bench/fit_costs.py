#!/usr/bin/env python3
"""Fits the constants of the cost table (src/kernels/cost.cc) to measurements of kernel_bench.

    bench/fit_costs.py                 measures all problems on each instruction set, fits, prints the table
    bench/fit_costs.py --keep DIR      keeps the times in DIR/ISA.json; later they are read from there
    bench/fit_costs.py --residuals FILE   writes each offer's time beside both estimates, worst first

What offers count is what their estimates are made of: microseconds = the sum over families of calls * call +
work / rate + bytes / bandwidth. All constants of an instruction set are fitted at once, each set on its own:
none below 0, by least squares of relative errors, in which large ones count less. What problems do not tell
stays as it is. The table is printed for a machine whose rates are 1; this one's are known
(base/machine_rates.cc). Tensors lie in caches while they are measured, as most do in a network. Compare with
the table that is there and take over by hand what is plausible: few problems make a poor fit. Needs numpy
(.deps/py/bin/python3 has it).
"""

import argparse
import json
import pathlib
import statistics
import sys
from dataclasses import dataclass

import numpy as np
from measured import ISAS, Measured, Row, add_arguments, measured

PULL = 0.03  # of what a constant is now, against that of a row that it alone explains
LARGE = 0.25  # relative errors above it count less
ROUNDS = 20


def least_squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x >= 0 with the least |a x - b|^2: by turns the most promising variable becomes free, and those that
    would be negative are 0 again (Lawson and Hanson)."""
    x, free = np.zeros(a.shape[1]), np.zeros(a.shape[1], bool)
    while True:
        slope = np.where(free, -np.inf, a.T @ (b - a @ x))
        if slope.max(initial=-np.inf) < 1e-9:
            return x
        free[slope.argmax()] = True
        while True:
            best = np.zeros_like(x)
            best[free] = np.linalg.lstsq(a[:, free], b, rcond=None)[0]
            below = free & (best <= 0)
            if not below.any():
                break
            x += min(x[below] / (x[below] - best[below])) * (best - x)
            free &= x > 1e-12
            x[~free] = 0
        x = best


@dataclass
class Fit:
    """One instruction set."""

    units: dict[str, list[float]]  # of each family that is counted: microseconds of a call, work and a byte
    rows: list[tuple[Row, float]]  # with what they take by these


def fit(m: Measured) -> Fit:
    columns = sorted(
        {(name, unit) for r in m.rows for name, part in r.parts.items() for unit in range(3) if part[unit]}
    )
    counts = np.array([[r.parts.get(name, (0, 0, 0))[unit] for name, unit in columns] for r in m.rows])
    times = np.array([r.microseconds for r in m.rows])
    now = np.array([m.table[name]["us"][unit] for name, unit in columns])
    relative = counts / times[:, None]
    scale = np.linalg.norm(relative, axis=0)
    weights = np.ones(len(times))
    for _ in range(ROUNDS):
        a = np.vstack([relative / scale * weights[:, None], PULL * np.eye(len(columns))])
        x = least_squares(a, np.concatenate([weights, PULL * now * scale])) / scale
        error = np.abs(relative @ x - 1)
        weights = np.sqrt(LARGE / np.maximum(error, LARGE))
    units = {name: list(m.table[name]["us"]) for name, _ in columns}
    for (name, unit), value in zip(columns, x, strict=True):
        units[name][unit] = float(value)
    return Fit(units, list(zip(m.rows, map(float, counts @ x), strict=True)))


def dominant_family(row: Row, units: dict[str, list[float]]) -> str:
    """The family that takes most of it."""
    return max(
        row.parts, key=lambda name: sum(c * u for c, u in zip(row.parts[name], units[name], strict=True))
    )


def digits(value: float) -> str:
    """Three digits that matter."""
    return f"{float(f'{value:.3g}'):.10g}"


def constants(name: str, m: Measured, f: Fit | None) -> str:
    """A call in microseconds, work and bytes per microsecond, as cost.cc has them."""
    base, here = m.table[name]["base_us"], m.table[name]["us"]
    new = f.units.get(name, here) if f else here
    us = [n * b / h if h > 0 else n for n, b, h in zip(new, base, here, strict=True)]
    return f"{{{digits(us[0])}, {', '.join(digits(1 / u) if u > 1e-9 else '0' for u in us[1:])}}}"


def factor(estimate: float, time: float) -> float:
    return max(estimate / time, time / estimate) if estimate > 0 else float("inf")


def print_table(measurements: dict[str, Measured], fits: dict[str, Fit]) -> None:
    print(f"// call, then work and bytes per microsecond; for {', '.join(fits)}")
    for name in next(iter(measurements.values())).table:
        cells = [constants(name, m, fits[isa]) for isa, m in measurements.items()]
        unseen = "" if any(name in f.units for f in fits.values()) else "  // not seen"
        print(f'    "{name}", {", ".join(cells)},{unseen}')
    print("\nmedian factor between estimate and time: fitted (as estimated now), offers that it decides")
    for name in next(iter(measurements.values())).table:
        cells = []
        for isa, f in fits.items():
            mine = [(r, us) for r, us in f.rows if dominant_family(r, f.units) == name]
            if mine:
                fitted = statistics.median(factor(us, r.microseconds) for r, us in mine)
                said = statistics.median(factor(r.cost, r.microseconds) for r, _ in mine)
                cells.append(f"{isa} {fitted:.2f} ({said:.2f}) {len(mine)}")
        print(f"  {name:<20}" + ("   ".join(cells) or "no offers"))


def residuals(fits: dict[str, Fit]) -> list[dict]:
    """Worst first."""
    found = [
        {
            "isa": isa,
            "problem": r.problem,
            "label": r.label,
            "layout": r.layout,
            "microseconds": r.microseconds,
            "estimated": r.cost,
            "fitted": us,
            "ratio": us / r.microseconds,
            "family": dominant_family(r, f.units),
        }
        for isa, f in fits.items()
        for r, us in f.rows
    ]
    return sorted(found, key=lambda row: -factor(row["fitted"], row["microseconds"]))


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(p)
    p.add_argument("--isa", nargs="+", choices=ISAS, default=list(ISAS), help="instruction sets (all)")
    p.add_argument("--residuals", type=pathlib.Path, help="a JSON file for what is left between fit and time")
    options = p.parse_args()
    if not options.bench.exists():
        print(f"fit_costs.py: {options.bench} is not there: `make bench` makes it", file=sys.stderr)
        return 1
    measurements = {isa: measured(options, isa) for isa in options.isa}
    fits = {isa: fit(m) for isa, m in measurements.items()}
    print_table(measurements, fits)
    if options.residuals:
        options.residuals.write_text(json.dumps(residuals(fits), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
