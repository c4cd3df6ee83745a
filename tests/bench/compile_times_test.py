"""bench/compile-times: models, exponents and the chart, with a stand-in for the program that is measured."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ET

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
try:
    import onnx  # noqa: F401
except ImportError:
    print("onnx is not installed")
    sys.exit(77)
import compile_models  # noqa: E402


def script():
    loader = importlib.machinery.SourceFileLoader("compile_times", str(BENCH / "compile-times"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compile_times", loader))
    loader.exec_module(module)
    return module


class CompileTimes(unittest.TestCase):
    def test_models(self) -> None:
        for kind, (make, _, sizes) in compile_models.GROWING.items():
            with self.subTest(kind):
                model = make(3)
                if isinstance(model, compile_models.File):
                    self.assertGreater(len(model.data), 100)
                else:
                    self.assertGreater(len(model.graph.node), 0)
                self.assertTrue(all(2 * a == b for a, b in zip(sizes, sizes[1:], strict=False)))

    def test_exponents(self) -> None:
        times = script()
        self.assertAlmostEqual(times.exponent([(1, 9.0), (100, 1.0), (200, 4.0)]), 2)
        self.assertAlmostEqual(times.exponent([(100, 1.0), (200, 2.0)]), 1)

    def test_chart(self) -> None:
        text = script().chart({"a & b": [(1, 0.1), (2, 0.2), (4, 0.8)], "c": [(10, 0.01), (20, 0.02)]})
        self.assertEqual(ET.fromstring(text).tag, "{http://www.w3.org/2000/svg}svg")
        self.assertIn("a &amp; b 2.00", text)

    def test_table(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            tool = pathlib.Path(folder) / "tool"
            tool.write_text("#!/bin/sh\nexit 0\n")
            tool.chmod(0o755)
            words = [BENCH / "compile-times", "depth", "--tool", tool, "--rounds", "1", "--most", "99"]
            done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.startswith("depth"), done.stdout)


if __name__ == "__main__":
    unittest.main()
