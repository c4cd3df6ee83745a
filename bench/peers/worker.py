"""A peer as a process; runs in the environment of bench/compare, which starts it.

worker.py serve PEER MODEL OPTIONS-JSON   loads, infers once, then obeys lines (see compare_process.py)
worker.py inputs MODEL FILE.npz SHAPES-JSON   writes inputs of fixed shapes
worker.py difference REFERENCE.npz FILE.npz...   prints each file's largest error, relative to the reference
"""

import json
import os
import pathlib
import statistics
import sys
import time
from typing import Any, TextIO

import numpy as np
from arrays import difference, write_inputs
from peer import Options, Peer

READS_IR = ("openvino",)


def make(kind: str, model: str, options: Options) -> Peer:
    """Imports one engine only: each loads libraries of its own."""
    if kind not in READS_IR and not model.endswith(".onnx"):
        raise SystemExit(f"{kind} reads ONNX only")
    if kind == "openvino":
        from openvino_peer import OpenVino as Engine
    elif kind == "onnxruntime":
        from onnxruntime_peer import OnnxRuntime as Engine
    elif kind == "mnn":
        from mnn_peer import Mnn as Engine
    else:
        from ncnn_peer import Ncnn as Engine
    return Engine(model, options)


def measure(peer: Peer, seconds: float, throughput: bool) -> dict[str, Any]:
    if throughput:
        count, took = peer.stream(seconds)
        return {"n": count, "throughput_fps": count / took}
    peer.infer()  # not measured: the caches were another engine's
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        peer.infer()
        times.append((time.perf_counter() - begin) * 1e3)
    times.sort()
    latency = {
        "median": statistics.median(times),
        "min": times[0],
        "p90": times[int(0.9 * (len(times) - 1))],
    }
    return {"n": len(times), "latency_ms": latency, "throughput_fps": 1e3 * len(times) / sum(times)}


def resident_mb() -> float:
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def obey(peer: Peer, throughput: bool, reply: TextIO) -> None:
    for line in sys.stdin:
        verb, _, argument = line.strip().partition(" ")
        answer: dict[str, Any] = {"ok": True}
        if verb == "quit":
            return
        if verb == "measure":
            answer = measure(peer, float(argument), throughput)
        elif verb == "run":
            for _ in range(int(argument)):
                peer.infer()
        elif verb == "save":
            np.savez(argument, **peer.outputs())
        else:
            answer = {"error": "unknown command"}
        print(json.dumps(answer), file=reply)


def serve(kind: str, model: str, wanted: dict[str, Any]) -> None:
    reply = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a library prints goes to standard error
    options = Options(
        feeds=dict(np.load(wanted["inputs"])),
        threads=wanted["threads"],
        throughput=wanted["hint"] == "throughput",
        cache=wanted.get("cache", ""),
    )
    peer = make(kind, model, options)
    before = resident_mb()  # interpreter, libraries and inputs
    begin = time.perf_counter()
    peer.load()
    loaded = time.perf_counter()
    peer.infer()
    ready = {
        "ready": True,
        "name": peer.name,
        "load_ms": (loaded - begin) * 1e3,
        "first_inference_ms": (time.perf_counter() - loaded) * 1e3,
        "before_mb": before,
    }
    print(json.dumps(ready), file=reply)
    obey(peer, options.throughput, reply)
    reply.close()
    os._exit(0)  # some libraries are slow or noisy in tearing down


def main(words: list[str]) -> None:
    verb, rest = words[0], words[1:]
    if verb == "serve":
        serve(rest[0], rest[1], json.loads(rest[2]))
    elif verb == "inputs":
        write_inputs(pathlib.Path(rest[0]), pathlib.Path(rest[1]), json.loads(rest[2]))
    else:
        print(json.dumps(difference(*map(pathlib.Path, rest))))


if __name__ == "__main__":
    main(sys.argv[1:])
