"""One engine in a process of its own, driven by lines: the protocol of `lamina benchmark --interactive`.

It reads `measure SECONDS`, `run COUNT`, `save FILE.npz` and answers each with one line of JSON. First comes
{"ready": true, "name": ..., "load_ms": ..., "first_inference_ms": ..., "before_mb": ...}.
"""

import contextlib
import json
import os
import pathlib
import selectors
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

Json = dict[str, Any]
LONGEST_REASON = 200


class Failure(Exception):
    """Why an engine is out, in a sentence."""


class Engine:
    """Starts with the object; stop() ends it."""

    def __init__(
        self, label: str, command: Sequence[object], environment: Mapping[str, str], timeout: float
    ) -> None:
        self.label, self._timeout, self._buffer = label, timeout, b""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            [str(c) for c in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=dict(environment),
        )
        assert self._process.stdin and self._process.stdout
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self.ready = self._read(timeout)
        if not self.ready.get("ready"):
            self._fail("did not get ready: " + json.dumps(self.ready))

    @property
    def name(self) -> str:
        return str(self.ready.get("name", self.label))

    def ask(self, line: str, seconds: float = 0.0) -> Json:
        """The answer to a line that takes about so many seconds."""
        try:
            self._stdin.write(line.encode() + b"\n")
            self._stdin.flush()
        except OSError:
            self._fail("has ended")
        answer = self._read(self._timeout + 3 * seconds)
        if "error" in answer:
            raise Failure(f"{self.label}: {answer['error']}"[:LONGEST_REASON])
        return answer

    def measure(self, seconds: float) -> Json:
        """One slice; cpu_ms is processor time per inference, as seen from outside."""
        before = self._cpu_seconds()
        answer = self.ask(f"measure {seconds}", seconds)
        # One inference of the slice is not measured, but its processor time is counted.
        answer["cpu_ms"] = 1e3 * (self._cpu_seconds() - before) / (answer["n"] + 1)
        return answer

    def peak_mb(self) -> float:
        """The high-water mark of the resident set, read from outside: the same measure for every engine."""
        for line in pathlib.Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise Failure(f"{self.label}: no VmHWM")

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._selector.close()
        for stream in (self._stdin, self._stdout, self._errors):
            with contextlib.suppress(OSError):  # what was still to be written
                stream.close()

    def _cpu_seconds(self) -> float:
        total = 0
        for task in pathlib.Path(f"/proc/{self._process.pid}/task").glob("*/schedstat"):
            try:
                total += int(task.read_text().split()[0])
            except OSError:  # the thread has ended meanwhile
                continue
        return total * 1e-9

    def _read(self, timeout: float) -> Json:
        end = time.monotonic() + timeout
        while True:
            line, newline, rest = self._buffer.partition(b"\n")
            if newline:
                self._buffer = rest
                if not line.startswith(b"{"):
                    continue  # libraries talk
                try:
                    answer: Json = json.loads(line)
                except ValueError:
                    self._fail("unreadable answer: " + line.decode(errors="replace"))
                return answer
            if not self._selector.select(max(0.0, end - time.monotonic())):
                self._fail(f"no answer within {timeout:.0f} s")
            data = os.read(self._stdout.fileno(), 65536)
            if not data:
                self._fail(f"ended with status {self._process.wait()}")
            self._buffer += data

    def _fail(self, reason: str) -> NoReturn:
        self._errors.seek(0)
        tail = self._errors.read().decode(errors="replace").strip().splitlines()[-1:]
        self.stop()
        raise Failure(f"{self.label}: {reason}"[:LONGEST_REASON] + "".join(f" ({t[:160]})" for t in tail))
