"""The data of bench/report: what is kept of bench/compare's results, how it is written and how it is read."""

import json
import math
import pathlib
import statistics
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]
SUBJECT = "lamina"
PEERS = {"openvino": "OpenVINO", "onnxruntime": "ONNX Runtime"}
UNITS = {"latency": "ms", "latency-avx2": "ms", "load": "ms", "memory": "MiB"}


def peers_of(mode: str) -> dict[str, str]:
    """With instructions limited only those count that heed the limit."""
    return {"openvino": PEERS["openvino"]} if mode == "latency-avx2" else PEERS


def count_of(threads: str) -> str:
    return f"{threads} thread{'' if threads == '1' else 's'}"


# --- writing ----------------------------------------------------------------------------------------------


def ratio(mine: list[float], other: list[float]) -> float:
    """How many times as good: the median over the rounds of the ratio within a round (less is better)."""
    return statistics.median(y / x for x, y in zip(mine, other, strict=False))


def digest(engines: Json, rounds: int) -> Json:
    """What is kept of one network's results: {engine: {value, ratio}}, or {engine: {failed}}; and the rounds."""
    own = engines.get(SUBJECT, {})
    kept: Json = {"rounds": rounds}
    for engine in (SUBJECT, *PEERS):
        if engine not in engines:
            continue
        result = engines[engine]
        if "failed" in result or not result.get("values"):
            kept[engine] = {"failed": result.get("failed", "no value")}
            continue
        kept[engine] = {"value": round(statistics.median(result["values"]), 4)}
        if engine != SUBJECT and "failed" not in own and own.get("values"):
            kept[engine]["ratio"] = round(ratio(own["values"], result["values"]), 4)
    return kept


def versions(models: Json) -> Json:
    """Names with versions, as the engines say them."""
    found: Json = {}
    for engines in models.values():
        for engine, result in engines.items():
            name, _, version = result.get("name", "").partition(" ")
            if version and engine in (SUBJECT, *PEERS):
                found[engine] = f"{PEERS.get(engine, name)} {version}"
    return found


def write_data(file: pathlib.Path, data: Json) -> None:
    """One line per network and mode, so that a change is easy to see."""
    head = {k: v for k, v in sorted(data.items()) if k != "networks"}
    networks = []
    for name, modes in sorted(data.get("networks", {}).items()):
        lines = [
            f"   {json.dumps(mode)}: {json.dumps(part, sort_keys=True)}"
            for mode, part in sorted(modes.items())
        ]
        networks.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n  }")
    body = [f" {json.dumps(k)}: {json.dumps(v, sort_keys=True)}" for k, v in head.items()]
    body.append(' "networks": {\n' + ",\n".join(networks) + "\n }")
    file.write_text("{\n" + ",\n".join(body) + "\n}\n")


# --- reading ----------------------------------------------------------------------------------------------


def better_peer(engines: Json) -> float | None:
    """The ratio to the better peer: the smallest one."""
    ratios = [engines[p]["ratio"] for p in PEERS if "ratio" in engines.get(p, {})]
    return min(ratios) if ratios else None


def results(data: Json, mode: str, threads: str) -> dict[str, Json]:
    """{network: {engine: ...}} of what was measured so."""
    return {
        name: network[mode][threads]
        for name, network in sorted(data.get("networks", {}).items())
        if threads in network.get(mode, {})
    }


def rounds(data: Json) -> str:
    """Number of rounds of all measurements: "7", "5 to 7"."""
    usual = data.get("rounds", "?")
    networks = data.get("networks", {}).values()
    found = sorted(
        {e.get("rounds", usual) for n in networks for part in n.values() for e in part.values()}, key=str
    )
    return f"{found[0]} to {found[-1]}" if len(found) > 1 else str(found[0])


def thread_counts(data: Json, mode: str) -> list[str]:
    counts = {t for network in data.get("networks", {}).values() for t in network.get(mode, {})}
    return sorted(counts, key=int)


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan
