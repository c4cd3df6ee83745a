"""What tests of benchmark_app's command lines share: lamina benchmark run, its lines and warnings."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from sample_models import SMALL

TOOL = os.environ["LAMINA_TOOL"]


class Base(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def benchmark(self, *arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([TOOL, "benchmark", *map(str, arguments)], check=False, capture_output=True, text=True, timeout=50)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stderr}")
        return done

    def lines(self, *arguments: object) -> list[str]:
        return self.benchmark("-m", SMALL, *arguments).stdout.splitlines()

    def count(self, *arguments: object) -> int:
        counts = [re.fullmatch(r"\[ INFO \] Count:            (\d+) iterations", line) for line in self.lines(*arguments)]
        return next(int(m[1]) for m in counts if m)

    def warnings(self, *arguments: object) -> str:
        return "\n".join(line for line in self.lines(*arguments) if line.startswith("[ WARNING ]"))
