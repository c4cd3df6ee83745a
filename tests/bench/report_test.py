"""bench/report: data and pages, with a stand-in for the program that measures."""

import json
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest
import xml.etree.ElementTree as ET

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPORT = ROOT / "bench/report"
sys.path.insert(0, str(ROOT / "bench"))
from network_list import BUILT, CLASSES, CLASSICS, ELSEWHERE, TRAINED  # noqa: E402

# Takes bench/compare's options and writes what it would: lamina takes 2, OpenVINO 3, ONNX Runtime fails on b.
COMPARE = textwrap.dedent("""
    import json, pathlib, sys
    words = sys.argv[1:]
    models = {}
    for model in (w for w in words if w.endswith(".onnx")):
        name = pathlib.Path(model).stem
        models[name] = {
            "lamina": {"values": [2.0, 2.2], "name": "lamina 0.1"},
            "openvino": {"values": [3.0, 3.3], "name": "openvino 2026"},
            "onnxruntime": {"values": [1.0, 1.1], "name": "onnxruntime 1"},
            "lamina+cache": {"values": [1.0, 1.0]},
        }
        if name == "b":
            models[name]["onnxruntime"] = {"failed": "no"}
        if name == "c":
            models[name]["openvino"] = {"failed": "openvino: outputs differ from onnxruntime's by 0.2"}
    pathlib.Path(words[words.index("--json") + 1]).write_text(json.dumps({"models": models}))
""")


class Report(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = pathlib.Path(self.folder.name)
        (self.at / "compare.py").write_text(COMPARE)
        for name in ("lamina", "a.onnx", "b.onnx", "c.onnx"):
            (self.at / name).touch()

    def run_report(self, *words: object) -> subprocess.CompletedProcess[str]:
        fixed = ["--data", self.at / "data.json", "--docs", self.at, "--lamina", self.at / "lamina"]
        command = [sys.executable, REPORT, *words, *fixed]
        return subprocess.run([str(c) for c in command], capture_output=True, text=True)

    def test_measures_and_makes_pages(self) -> None:
        models = [self.at / "a.onnx", self.at / "b.onnx"]
        done = self.run_report(*models, "--compare", self.at / "compare.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        data = json.loads((self.at / "data.json").read_text())
        self.assertEqual(data["networks"]["a"]["latency"]["1"]["openvino"]["ratio"], 1.5)
        self.assertEqual(data["networks"]["b"]["memory"]["2"]["onnxruntime"], {"failed": "no"})
        self.assertEqual(data["versions"]["openvino"], "OpenVINO 2026")
        page = (self.at / "performance.md").read_text()
        self.assertIn("| a | 2.1 | 1.50 | 0.50 | 2.1 | 1.50 | 0.50 |", page)
        self.assertIn("| b | 2.1 | 1.50 | cannot |", page)
        self.assertIn("median over 7 rounds", page)
        # the better peer is ONNX Runtime for a, OpenVINO for b: sqrt(0.5 * 1.5)
        self.assertIn("**latency, 1 thread**: geometric mean **0.87**", page)
        # Both are named nowhere: small convolution networks. ONNX Runtime failed on b.
        self.assertIn("| small convolution networks | 2 | 1.50 | 0.50 | 1.50 | 0.50 |", page)
        picture = ET.parse(self.at / "performance.svg").getroot()
        words = [e.text for e in picture.iter("{http://www.w3.org/2000/svg}text")]
        self.assertLess({"a", "b", "1.50", "0.50", "geometric mean"}, set(words))

        # Again from the data alone: the same pages.
        (self.at / "performance.svg").unlink()
        self.assertEqual(self.run_report().returncode, 0)
        self.assertEqual((self.at / "performance.md").read_text(), page)
        self.assertTrue((self.at / "performance.svg").exists())

    def test_what_was_measured_before_keeps_its_rounds(self) -> None:
        by = ["--compare", self.at / "compare.py"]
        self.assertEqual(self.run_report(self.at / "a.onnx", *by).returncode, 0)
        self.assertEqual(self.run_report(self.at / "c.onnx", *by, "--rounds", "3").returncode, 0)
        page = (self.at / "performance.md").read_text()
        self.assertIn("median over 3 to 7 rounds", page)
        self.assertIn("| c | 2.1 | wrong | 0.50 |", page)

    def test_the_pages_of_docs_are_those_of_the_data(self) -> None:
        (self.at / "data.json").write_text((ROOT / "bench/performance.json").read_text())
        self.assertEqual(self.run_report().returncode, 0)
        for name in ("performance.md", "performance.svg"):
            self.assertEqual((ROOT / "docs" / name).read_text(), (self.at / name).read_text(), "run: bench/report")

    def test_says_what_it_needs(self) -> None:
        done = self.run_report(self.at / "a.onnx", "--compare", self.at / "nowhere.py")
        self.assertEqual(done.returncode, 1)
        self.assertIn("say with --compare what measures", done.stderr)
        done = self.run_report()
        self.assertIn("name models to measure", done.stderr)


class Networks(unittest.TestCase):
    def test_a_class_names_networks_of_the_list_and_shares_none(self) -> None:
        named = [name for names in CLASSES.values() for name in names]
        self.assertLessEqual(set(named), {*CLASSICS, *BUILT, *TRAINED, *ELSEWHERE})
        self.assertEqual(sorted(named), sorted(set(named)))


if __name__ == "__main__":
    unittest.main()
