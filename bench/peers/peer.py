"""What an engine offers to the worker."""

import abc
import hashlib
import os
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]


@dataclass(frozen=True)
class Options:
    feeds: dict[str, Array]  # inputs by name
    threads: int
    throughput: bool  # many requests at once instead of one
    cache: str = ""  # folder for compiled models


class Peer(abc.ABC):
    """Making one imports the engine and, where it has a format of its own, converts the model."""

    name: str

    @abc.abstractmethod
    def load(self) -> None:
        """Reads and compiles the model and binds the inputs."""

    @abc.abstractmethod
    def infer(self) -> None: ...

    @abc.abstractmethod
    def outputs(self) -> dict[str, Array]:
        """Infers; results by name."""

    def stream(self, seconds: float) -> tuple[int, float]:
        """As many inferences at once as the engine thinks best: their number, and the time they took."""
        raise SystemExit(f"{self.name} is not measured for throughput")


def count_in_threads(infer: Callable[[int], None], threads: int, seconds: float) -> tuple[int, float]:
    """Calls infer(thread) again and again in so many threads."""
    counts, begin = [0] * threads, time.perf_counter()

    def work(k: int) -> None:
        while time.perf_counter() - begin < seconds:
            infer(k)
            counts[k] += 1

    workers = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return sum(counts), time.perf_counter() - begin


def converted(model: str, suffix: str, command: list[str]) -> pathlib.Path:
    """The model in an engine's own format, made once by a command that reads model.onnx where it runs."""
    stamp = f"{os.path.abspath(model)} {pathlib.Path(model).stat().st_mtime_ns} {' '.join(command)}"
    home = pathlib.Path(sys.prefix) / "converted"
    folder = home / hashlib.sha256(stamp.encode()).hexdigest()[:16]
    target = folder / f"model{suffix}"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "model.onnx"
    source.unlink(missing_ok=True)
    source.symlink_to(os.path.abspath(model))
    done = subprocess.run(command, cwd=folder, stdout=2, check=False)
    for file in folder.iterdir():  # converters leave large files behind
        if not file.name.startswith(("model.mnn", "model.ncnn")) or file.suffix == ".py":
            file.unlink()
    if done.returncode or not target.exists():
        raise SystemExit(f"{pathlib.Path(command[0]).name} cannot convert the model")
    return target
