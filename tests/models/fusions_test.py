"""Real networks are fused wherever that is legal: no activation, scale, sum or quantise step runs as a node of its own behind a convolution,
matrix product or pooling whose result nobody else reads. bench/fused-models writes what was fused to docs/fused-models.md."""

import collections
import json
import os
import pathlib
import subprocess
import unittest

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


if __name__ == "__main__":
    unittest.main()
