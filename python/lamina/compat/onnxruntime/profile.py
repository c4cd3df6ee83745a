"""The file of SessionOptions.enable_profiling: events of layers, as chrome://tracing and Perfetto show them."""

import json
import os
import threading
import time
from typing import Any

from lamina import _process
from lamina.compiled import CompiledModel
from lamina.request import LayerTime


class Profile:
    """Collects the times of the runs of a session."""

    def __init__(self, prefix: str) -> None:
        """prefix: how the file's name begins."""
        self.began = time.time_ns()
        self._prefix = prefix
        self._events: list[dict[str, Any]] = []
        self._lock = _process.Lock()

    def run(self, model: CompiledModel, feed: dict[str, Any]) -> dict[str, Any]:
        """One inference, timed: outputs by name, in memory of their own."""
        request = model.request()
        for name, value in feed.items():
            request.set_input(name, value)
        begin = time.time_ns()
        request.run()
        self._add(begin, (time.time_ns() - begin) / 1000, request.layer_times)
        return {port.name: request.output(port.name).copy() for port in model.outputs}

    def _add(self, begin: int, microseconds: float, layers: list[LayerTime]) -> None:
        at = (begin - self.began) / 1000
        thread = threading.get_native_id()
        with self._lock:
            self._events.append(self._event("Session", "model_run", at, microseconds, thread, {}))
            for layer in layers:
                details = {"op_name": layer.kernel, "provider": "LaminaExecutionProvider"}
                name = f"{layer.name}_kernel_time"
                self._events.append(self._event("Node", name, at, layer.microseconds, thread, details))
                at += layer.microseconds

    @staticmethod
    def _event(kind: str, name: str, at: float, microseconds: float, thread: int, details: Any) -> dict[str, Any]:
        row = {"cat": kind, "pid": os.getpid(), "tid": thread, "dur": round(microseconds), "ts": round(at)}
        return row | {"ph": "X", "name": name, "args": details}

    def write(self) -> str:
        """Writes the events into a file of the current folder, and gives its name."""
        path = f"{self._prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
        with self._lock, open(path, "w", encoding="utf-8") as file:
            json.dump(self._events, file)
        return path
