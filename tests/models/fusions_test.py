"""Real networks are fused wherever that is legal: no activation, scale, sum or quantise step runs as a node of its own behind a convolution,
matrix product or pooling whose result nobody else reads. bench/fused-models writes what was fused to docs/fused-models.md."""

import argparse
import collections
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = os.environ["LAMINA_TOOL"]
SHARED = pathlib.Path(os.environ["LAMINA_SHARED"]) / "models"
# A folder of networks that bench/networks made, when it is said.
CLASSICS = pathlib.Path(os.environ.get("LAMINA_CLASSICS", os.devnull))
PACKAGED = pathlib.Path(os.environ["LAMINA_DEPS"]) / "models"
# Models of packages, with the names and shapes of their inputs.
SHAPES = {
    "ch_ppocr_mobile_v2.0_cls_infer": "x=1,3,48,192",
    "ch_PP-OCRv4_det_infer": "x=1,3,160,160",
    "ch_PP-OCRv4_rec_infer": "x=1,3,48,160",
}

# Steps that stay alone behind something that has an epilogue: model -> {operators: why}.
EXCEPTIONS: dict[str, dict[str, str]] = {}


def models() -> list[tuple[pathlib.Path, list[str]]]:
    """Models that fusions are for, and how explain gets their inputs: IR and ONNX."""
    found: dict[pathlib.Path, list[str]] = {}
    if SHARED.is_dir():
        for case in json.loads((SHARED / "models.json").read_text())["cases"]:
            group, name = case["model"].split("/")
            if group in ("onnx", "ir") and not name.startswith("NEGATIVE"):
                found.setdefault(SHARED / case["model"], ["--inputs", str(SHARED / case["npz"])])
    for model in sorted(CLASSICS.glob("*.onnx")):
        found[model] = ["--inputs", str(model.with_suffix(".npz"))]
    for name, shape in SHAPES.items():
        if (model := PACKAGED / f"{name}.onnx").exists():
            found[model] = ["--shape", shape]
    return list(found.items())


def explain(model: pathlib.Path, inputs: list[str]) -> dict:
    words = [TOOL, "explain", str(model), "--no-run", "--json", "-", "--quiet", *inputs]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise AssertionError(f"{model}: {done.stderr}")
    document: dict = json.loads(done.stdout)
    return document


class Fused(unittest.TestCase):
    def test_nothing_is_left_alone(self) -> None:
        total: collections.Counter[str] = collections.Counter()
        for model, inputs in models():
            with self.subTest(model=model.name):
                document = explain(model, inputs)
                total.update(document["fused"])
                known = EXCEPTIONS.get(model.stem, {})
                for step in document["alone"]:
                    self.assertTrue(step["reasons"], step)
                    if step["behind"] and step["operators"] not in known:
                        self.fail(f"{step['operators']} {step['node']!r} runs alone behind {step['behind']!r}: {step['reasons']}")
        rules = {"fuse-linear", "fuse-conv-simple", "fuse-conv-sum"} | ({"fuse-fc-activation", "fuse-pooling-fakequantize"} if SHARED.is_dir() else set())
        for rule in rules:
            self.assertGreater(total[rule], 0, rule)


def script():
    sys.dont_write_bytecode = True  # bench/fused-models has no name that Python would cache
    loader = importlib.machinery.SourceFileLoader("fused_models", str(ROOT / "bench/fused-models"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fused_models", loader))
    loader.exec_module(module)
    return module


class Page(unittest.TestCase):
    """docs/fused-models.md is that of bench/fused-models. Which kernels take what depends on the processor's oneDNN, so of
    the counts only those are compared that do not: layers, and element-wise steps that run alone."""

    def setUp(self) -> None:
        self.script = script()
        self.machine = ROOT / "machines/zen2-server.json"
        self.page = (ROOT / "docs/fused-models.md").read_text()
        self.rows = {}
        for line in self.page.splitlines()[self.script.head(self.machine).count("\n") :]:
            cells = [cell.strip() for cell in line.split("|")[1:-1]]
            self.rows[cells[0]] = cells

    def test_its_text_is_that_of_the_program(self) -> None:
        self.assertTrue(self.page.startswith(self.script.head(self.machine)), "run: bench/fused-models")

    def test_its_counts_are_those_of_the_models(self) -> None:
        models = self.script.chosen([])
        if not models:
            self.skipTest("../shared has no models")
        options = argparse.Namespace(lamina=TOOL, machine=self.machine)
        for model in models:
            with self.subTest(model=model.name):
                document = self.script.explain(options, model)
                now = [cell.strip() for cell in self.script.row(model, document).split("|")[1:-1]]
                self.assertIn(model.stem, self.rows, "run: bench/fused-models")
                then = self.rows[model.stem]
                self.assertEqual((then[1], then[3]), (now[1], now[3]), "layers, alone; run: bench/fused-models")

    def test_its_rules_exist(self) -> None:
        done = subprocess.run([TOOL, "rules"], capture_output=True, text=True, check=True)
        rules = {line.split()[0] for line in done.stdout.splitlines() if line}
        named = {part.split()[0] for cells in self.rows.values() for part in cells[-1].split(", ") if part}
        self.assertLessEqual(named | set(self.script.SHOWN), rules)


if __name__ == "__main__":
    unittest.main()
