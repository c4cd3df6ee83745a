"""Real networks are fused wherever that is legal: no activation, scale or sum runs as a node of its own behind a convolution or matrix
product whose result nobody else reads. LAMINA_FUSION_REPORT=1 prints what was fused, and every element-wise step that runs alone."""

import collections
import json
import os
import pathlib
import subprocess
import unittest

TOOL = os.environ["LAMINA_TOOL"]
SHARED = pathlib.Path(os.environ["LAMINA_SHARED"]) / "models"
# Networks made by ../shared/bench/compare.py --make-classics, when they are there.
CLASSICS = pathlib.Path(os.environ.get("LAMINA_CLASSICS", "/tmp/classics"))
PACKAGED = pathlib.Path(os.environ["LAMINA_DEPS"]) / "models"
REPORT = bool(os.environ.get("LAMINA_FUSION_REPORT"))

# Operators that the plan may leave to a step of their own when it says that this is faster: the quantise steps wait for kernels in integers.
BY_COST = {"FakeQuantize", "Quantize", "Dequantize"}
# Other steps that stay alone behind a convolution or matrix product: model -> {operators: why}.
EXCEPTIONS: dict[str, dict[str, str]] = {}


def by_cost(step: dict) -> bool:
    """Begins with such an operator, and takes along what follows."""
    return step["operators"].split("+")[0] in BY_COST and any("estimated to be faster" in reason for reason in step["reasons"])


def models() -> list[tuple[pathlib.Path, pathlib.Path | None]]:
    """Models that fusions are for, with their inputs: IR v10 and v11 and ONNX in f32 and f16."""
    found: list[tuple[pathlib.Path, pathlib.Path | None]] = []
    if SHARED.is_dir():
        for case in json.loads((SHARED / "models.json").read_text())["cases"]:
            group, name = case["model"].split("/")
            if group in ("onnx", "ir") and ".v3." not in name and ".v4." not in name and not name.startswith("NEGATIVE"):
                found.append((SHARED / case["model"], SHARED / case["npz"]))
    found += [(model, model.with_suffix(".npz")) for model in sorted(CLASSICS.glob("*.onnx")) if not model.stem.endswith("_int8")]
    found += [(model, None) for model in [PACKAGED / "ch_ppocr_mobile_v2.0_cls_infer.onnx"] if model.exists()]
    return list(dict.fromkeys(found))


def explain(model: pathlib.Path, inputs: pathlib.Path | None) -> dict:
    words = [TOOL, "explain", model, "--no-run", "--json", "-", "--quiet"]
    if inputs is None:
        words += ["--shape", "x=1,3,48,192"]
    elif inputs.exists():
        words += ["--inputs", inputs]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=300)
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
                if REPORT:
                    print(f"{model.stem}: " + ", ".join(f"{rule} {n}" for rule, n in document["fused"].items()))
                    for step in document["alone"]:
                        print(f"    {step['operators']} {step['node']!r} behind {step['behind']!r}: {step['reasons']}")
                known = EXCEPTIONS.get(model.stem, {})
                for step in document["alone"]:
                    if step["behind"] and step["operators"] not in known and not by_cost(step):
                        self.fail(f"{step['operators']} {step['node']!r} runs alone behind {step['behind']!r}: {step['reasons']}")
        if SHARED.is_dir():
            for rule in ("fuse-bias", "fuse-conv-simple", "fuse-conv-sum", "fuse-fc-activation"):
                self.assertGreater(total[rule], 0, rule)

    def test_every_lone_step_says_why(self) -> None:
        """Where there is something that it might have joined."""
        for model, inputs in models()[:12]:
            with self.subTest(model=model.name):
                for step in explain(model, inputs)["alone"]:
                    if step["behind"]:
                        self.assertTrue(step["reasons"], step)


if __name__ == "__main__":
    unittest.main()
