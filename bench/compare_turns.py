"""The engines in turns on one model: what each gives in every round."""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from compare_environment import HERE, Environment
from compare_process import Engine, Failure, Json

LAMINA = "lamina"
MODES = ("latency", "throughput", "load", "memory")
INSTRUCTION_SETS = {"native": "", "sse41": "SSE41", "avx2": "AVX2", "avx512": "AVX512_CORE"}
KEEP_COMPILED = ("openvino",)  # engines that can keep a compiled model in a folder
WARM_UP = 0.3  # seconds
T = TypeVar("T")


@dataclass(frozen=True)
class Settings:
    """How it is measured."""

    mode: str = "latency"
    threads: int = 1
    rounds: int = 7
    seconds: float = 1.0  # of a slice
    by: str = "median"  # the value of a slice: median, min, cpu
    max_isa: str = "native"
    tolerance: float = 0.01  # share of the largest value
    timeout: float = 300
    shapes: dict[str, list[int]] = field(default_factory=dict)


class Turns:
    """Runs lamina and its peers; the peers by a worker in their own environment."""

    def __init__(self, settings: Settings, lamina: pathlib.Path | None, environment: Environment) -> None:
        self.settings, self.lamina, self.environment = settings, lamina, environment
        self._folder = tempfile.TemporaryDirectory(prefix="lamina-compare-")
        self._at = pathlib.Path(self._folder.name)
        self._inputs = self._at / "inputs.npz"
        self._variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}

    def close(self) -> None:
        self._folder.cleanup()

    def labels(self) -> list[str]:
        labels = ([LAMINA] if self.lamina else []) + list(self.environment.peers)
        if self.settings.mode == "load":
            labels += [f"{x}+cache" for x in KEEP_COMPILED if x in labels]
        return labels

    def run(self, model: pathlib.Path) -> Json:
        """{label: {"values": [one per round], "median": ..., "name": ...} or {"failed": reason}}."""
        results: Json = {label: {"values": []} for label in self.labels()}
        try:
            self._worker("inputs", model, self._inputs, json.dumps(self.settings.shapes))
        except Failure as reason:
            return {label: {"failed": f"{label}: {reason}"} for label in results}
        if self.settings.mode in ("load", "memory"):
            self._afresh(model, results)
        else:
            self._alternate(model, results)
        for label, result in results.items():
            if "failed" not in result and not result["values"]:
                result["failed"] = f"{label}: no value"
            if "failed" not in result:
                result["median"] = statistics.median(result["values"])
        return results

    # --- one round after the other ---

    def _afresh(self, model: pathlib.Path, results: Json) -> None:
        """Load and memory: a new process for every value, behind one that is judged and warms files and caches."""
        with self._started(model, results) as engines:
            self._judge(engines, results)
        for turn in range(self.settings.rounds):
            for label in rotated(list(results), turn):
                engine = attempt(results[label], partial(self._start, label, model))
                if engine is None:
                    continue
                value = attempt(results[label], partial(self._fresh_value, engine))
                engine.stop()
                if value is not None:
                    results[label]["values"].append(value)

    def _fresh_value(self, engine: Engine) -> float:
        if self.settings.mode == "load":
            return float(engine.ready["load_ms"]) + float(engine.ready["first_inference_ms"])
        engine.ask("run 3")
        return max(engine.peak_mb() - float(engine.ready.get("before_mb", 0)), 0.1)

    def _alternate(self, model: pathlib.Path, results: Json) -> None:
        """Latency and throughput: all are loaded and warm; slices in turn, the order rotating."""
        with self._started(model, results) as engines:
            self._judge(engines, results)
            for turn in range(-1, self.settings.rounds):  # the first turn warms
                for label in rotated(list(engines), turn):
                    seconds = self.settings.seconds if turn >= 0 else min(WARM_UP, self.settings.seconds)
                    answer = attempt(results[label], partial(engines[label].measure, seconds))
                    time.sleep(0.01)  # lets the engine's threads stop spinning
                    if answer is not None and turn >= 0:
                        results[label]["values"].append(self._value(answer))

    @contextlib.contextmanager
    def _started(self, model: pathlib.Path, results: Json) -> Iterator[dict[str, Engine]]:
        """Loads all peers that are available."""
        engines: dict[str, Engine] = {}
        try:
            for label, result in results.items():
                engine = attempt(result, partial(self._start, label, model))
                if engine is not None:
                    engines[label] = engine
                    result["name"] = engine.name
            yield engines
        finally:
            for engine in engines.values():
                engine.stop()

    def _value(self, answer: Json) -> float:
        if self.settings.mode == "throughput":
            return float(answer["throughput_fps"])
        return float(
            answer["cpu_ms"] if self.settings.by == "cpu" else answer["latency_ms"][self.settings.by]
        )

    def _judge(self, engines: dict[str, Engine], results: Json) -> None:
        """A fast wrong answer is a failure: outputs against those of the reference peer."""
        peers = [p for p in ("onnxruntime", *self.environment.peers) if p in engines]
        saved: list[tuple[str, pathlib.Path]] = []
        for label in dict.fromkeys([*peers, *engines]):
            file = self._at / f"{label}.npz"
            try:
                engines[label].ask(f"save {file}")
                saved.append((label, file))
            except Failure as reason:
                results[label]["unchecked"] = str(reason)
        if len(saved) < 2:
            return
        errors: list[float] = json.loads(self._worker("difference", *(file for _, file in saved)))
        for (label, _), error in zip(saved[1:], errors, strict=True):
            results[label]["error"] = error
            if not error <= self.settings.tolerance:
                engines.pop(label).stop()
                results[label]["failed"] = (
                    f"{label}: outputs differ from {saved[0][0]}'s by {error:.2g} of the largest value"
                )

    # --- processes ---

    def _start(self, label: str, model: pathlib.Path) -> Engine:
        s = self.settings
        name, _, kept = label.partition("+")
        cache = self._at / f"cache-{name}-{abs(hash(model))}" if kept else None
        if cache:
            cache.mkdir(exist_ok=True)
        hint = "throughput" if s.mode == "throughput" else "latency"
        variables = dict(self._variables)
        command: list[object]
        if name == LAMINA:
            command = [self.lamina, "benchmark", model, "--interactive", "--hint", hint]
            command += ["--threads", s.threads, "--inputs", self._inputs]
            command += ["--max-isa", s.max_isa] if s.max_isa != "native" else []
        else:
            wanted = {"hint": hint, "threads": s.threads, "inputs": str(self._inputs)}
            wanted |= {"cache": str(cache)} if cache else {}
            command = [*self._python(), "serve", name, model, json.dumps(wanted)]
            if s.max_isa != "native":  # oneDNN's, which OpenVINO uses; the others have no such setting
                variables["ONEDNN_MAX_CPU_ISA"] = INSTRUCTION_SETS[s.max_isa]
        return Engine(label, command, variables, s.timeout)

    def _python(self) -> list[object]:
        return [self.environment.python, HERE / "peers/worker.py"]

    def _worker(self, *words: object) -> str:
        command = [str(w) for w in [*self._python(), *words]]
        done = subprocess.run(command, env=self._variables, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure("".join(done.stderr.strip().splitlines()[-1:]) or "the worker failed")
        return done.stdout


def attempt(result: Json, work: Callable[[], T]) -> T | None:
    """The work's value, or nothing: a failure is kept in the result, and that engine is asked no more."""
    if "failed" in result:
        return None
    try:
        return work()
    except Failure as reason:
        result["failed"] = str(reason)
        return None


def rotated(items: list[str], turn: int) -> list[str]:
    turn %= max(1, len(items))
    return items[turn:] + items[:turn]
