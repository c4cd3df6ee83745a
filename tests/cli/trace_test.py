"""lamina benchmark --trace: when each inference and each step ran, as Perfetto and chrome://tracing read it."""

import itertools
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
from typing import Any

from sample_models import SMALL

TOOL = os.environ["LAMINA_TOOL"]


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, timeout=120)


class Trace(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "t.json"

    def traced(self, *arguments: object) -> dict[str, Any]:
        done = lamina("benchmark", *arguments, "--trace", self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(self.file.read_text())

    def test_steps_lie_in_their_inferences(self) -> None:
        for more in (["--iterations", 6], ["--iterations", 6, "--requests", 2, "--streams", 2, "--api", "async"], ["--iterations", 6, "--requests", 3, "--streams", 0, "--api", "async"]):
            document = self.traced(SMALL, *more)
            events = document["traceEvents"]
            self.assertEqual(document["displayTimeUnit"], "ms")
            self.assertEqual({e["ph"] for e in events}, {"X", "M"})
            bars = [e for e in events if e["ph"] == "X"]
            inferences = {(e["tid"], e["name"]): e for e in bars if e["cat"] == "inference"}
            self.assertEqual(len(inferences), 6)
            steps = [e for e in bars if e["cat"] != "inference"]
            self.assertEqual(len(steps), sum(e["args"]["steps"] for e in inferences.values()))
            for step in steps:
                whole = inferences[step["args"]["request"], f"inference {step['args']['inference']}"]
                self.assertGreaterEqual(step["ts"], whole["ts"])
                self.assertLessEqual(step["ts"] + step["dur"], whole["ts"] + whole["dur"] + 1)
                self.assertTrue(step["args"]["kernel"])
            # Bars in one row do not overlap.
            for row in {(e["pid"], e["tid"]) for e in bars}:
                mine = sorted((e for e in bars if (e["pid"], e["tid"]) == row), key=lambda e: e["ts"])
                for one, other in itertools.pairwise(mine):
                    self.assertLessEqual(one["ts"] + one["dur"], other["ts"] + 1)
            named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
            self.assertEqual({(e["pid"], e["tid"]) for e in bars} - named, set())

    def test_names_are_those_of_the_layers(self) -> None:
        names = {e["name"] for e in self.traced(SMALL, "--iterations", 1)["traceEvents"]}
        self.assertTrue(any("Convolution28" in name for name in names), names)

    def test_it_is_bounded(self) -> None:
        document = self.traced(SMALL, "--iterations", 30000)
        steps = sum(1 for e in document["traceEvents"] if e.get("cat") in ("kernel", "step"))
        self.assertLessEqual(steps, 100000)
        self.assertGreater(document["otherData"]["inferences_left_out"], 0)

    def test_benchmark_app_has_it_too(self) -> None:
        self.assertTrue(self.traced("-m", SMALL, "-niter", 4)["traceEvents"])

    def test_refusals(self) -> None:
        for status, *more in ((2, "--trace", "-"), (1, "--trace", "/no/such/folder/t.json"), (2, "--trace", self.file, "--interactive")):
            done = lamina("benchmark", SMALL, "--iterations", 1, *more)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (status, 1), done.stderr)


if __name__ == "__main__":
    unittest.main()
