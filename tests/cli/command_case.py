"""What tests of the lamina command share: the command run on a small network, refusals."""

import os
import pathlib
import subprocess
import tempfile
import unittest

TOOL = os.environ["LAMINA_TOOL"]
MODEL = pathlib.Path(os.environ["LAMINA_DEPS"]) / "models" / "ch_ppocr_mobile_v2.0_cls_infer.onnx"
SHAPE = ["--shape", "x=1,3,48,192"]


def lamina(*arguments: object, text: str | None = None, cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, timeout=120, input=text, cwd=cwd)


class Base(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def refused(self, status: int, *arguments: object, says: tuple[str, ...] = ()) -> str:
        done = lamina(*arguments)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        lines = done.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, f"{arguments}: {done.stderr}")
        for part in says:
            self.assertIn(part, lines[0])
        return lines[0]
