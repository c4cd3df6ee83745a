"""Ratios, and the table that people read."""

import math
import statistics
from collections.abc import Iterable, Sequence

from compare_process import Json

OBEY_LIMITS = ("lamina", "openvino")  # heed an instruction set that they may use at most
UNITS = {
    "latency": "ms",
    "throughput": "inferences/s",
    "load": "ms to the first result",
    "memory": "MiB at the peak, beyond the process before the model",
}


def ratio(mine: Sequence[float], other: Sequence[float], more_is_better: bool) -> float:
    """How many times as good mine is: the median over the rounds of the ratio within a round."""
    pairs = zip(mine, other, strict=False)
    return statistics.median(x / y if more_is_better else y / x for x, y in pairs)


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def rivals(results: Json, subject: str, mode: str, limited: bool) -> dict[str, float]:
    """The subject's ratio to each other engine that ran; when limited, to those that obey."""
    own = results.get(subject, {})
    if "failed" in own or not own.get("values"):
        return {}
    return {
        label: ratio(own["values"], r["values"], mode == "throughput")
        for label, r in results.items()
        if label != subject
        and "+" not in label
        and "failed" not in r
        and r.get("values")
        and (not limited or label in OBEY_LIMITS)
    }


def table(rows: dict[str, Json], mode: str, by: str, subject: str, limited: bool) -> list[str]:
    """One line per model, reasons of failures below it, and the mean."""
    labels = list(dict.fromkeys(label for results in rows.values() for label in results))
    width = max([5, *map(len, rows)])
    unit = UNITS[mode] + (f", {by}" if mode == "latency" else "")
    lines = [
        f"{mode} ({unit}); ratio: {subject} against the better other engine, more than 1 is better",
        "model".ljust(width) + "".join(f"{x:>17}" for x in labels) + f"{'ratio':>8}  against",
    ]
    for model, results in rows.items():
        cells = [results.get(label, {}) for label in labels]
        line = model.ljust(width)
        line += "".join(f"{r['median']:17.3f}" if "median" in r else f"{'failed':>17}" for r in cells)
        others = rivals(results, subject, mode, limited)
        if others:
            rival = min(others, key=others.__getitem__)
            line += f"{others[rival]:8.3f}  {rival}"
        lines.append(line)
        for r in cells:
            if "failed" in r:
                lines.append(f"  {r['failed']}")
            elif "unchecked" in r:
                lines.append(f"  outputs were not compared: {r['unchecked']}")
    best = best_ratios(rows, mode, subject, limited)
    if best:
        lines.append(
            f"{subject}: geometric mean {geometric_mean(best):.3f}, worst {min(best):.3f}, "
            f"best {max(best):.3f} over {len(best)} of {len(rows)} models"
        )
    return lines


def best_ratios(rows: dict[str, Json], mode: str, subject: str, limited: bool) -> list[float]:
    """The ratio to the better rival of each model that both can run."""
    found = (rivals(results, subject, mode, limited) for results in rows.values())
    return [min(others.values()) for others in found if others]
