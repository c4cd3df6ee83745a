"""Real models: those of PyPI packages against ONNX Runtime, and ../shared/models where it is beside the project."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from tolerance import ABSOLUTE, RELATIVE

TOOL = os.environ["LAMINA_TOOL"]
MODELS = pathlib.Path(os.environ["LAMINA_DEPS"]) / "models"
SHARED = pathlib.Path(os.environ["LAMINA_SHARED"]) / "models"

# Inputs of the models that packages ship: name -> shapes and, for integers, the values' bound.
PACKAGED = {
    "ch_PP-OCRv4_det_infer": [("x", (1, 3, 96, 160))],
    "ch_PP-OCRv4_rec_infer": [("x", (1, 3, 48, 96))],
    "ch_ppocr_mobile_v2.0_cls_infer": [("x", (2, 3, 48, 192))],
    "magika": [("bytes", (1, 2048), 256)],
    "silero_vad_16k_op15": [("input", (1, 576)), ("state", (2, 1, 128)), ("sr", (), 16001)],
}
# Files of ../shared/models that lamina cannot run, and why: control flow at most.
KNOWN: dict[str, str] = {}


# A check of a large model takes minutes where the command is built with a sanitizer.
TIMEOUT = 1800 if os.environ.get("LAMINA_SANITIZE") else 300


def lamina(*arguments: object, timeout: float = TIMEOUT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=timeout)


def close(got: np.ndarray, wanted: np.ndarray) -> bool:
    if wanted.dtype.kind in "iub":
        return np.array_equal(got, wanted)
    limit = ABSOLUTE + RELATIVE * np.abs(wanted).max(initial=0)
    return got.shape == wanted.shape and bool(np.abs(got - wanted).max(initial=0) <= limit)


class Packaged(unittest.TestCase):
    """The few models that scripts/bootstrap fetches: never skipped."""

    def inputs(self, session: onnxruntime.InferenceSession, shapes: list) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(1)
        feeds = {}
        for port, (_, shape, *bound) in zip(session.get_inputs(), shapes, strict=True):
            kind = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}[port.type]
            if not bound:
                feeds[port.name] = rng.uniform(-1, 1, shape).astype(kind)
            elif shape:
                feeds[port.name] = rng.integers(0, bound[0], shape).astype(kind)
            else:
                feeds[port.name] = np.array(bound[0] - 1, kind)
        return feeds

    def test_agree_with_onnx_runtime(self) -> None:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        for name, shapes in PACKAGED.items():
            with self.subTest(model=name), tempfile.TemporaryDirectory() as folder:
                model = MODELS / f"{name}.onnx"
                self.assertTrue(model.exists(), f"{model} is missing: scripts/bootstrap --test-models")
                session = onnxruntime.InferenceSession(str(model), options, ["CPUExecutionProvider"])
                feeds = self.inputs(session, shapes)
                wanted = session.run(None, feeds)
                np.savez(f"{folder}/in.npz", **feeds)
                done = lamina("run", model, "--inputs", f"{folder}/in.npz", "--output", f"{folder}/out.npz", "--by-position")
                self.assertEqual(done.returncode, 0, done.stderr)
                results = np.load(f"{folder}/out.npz")
                for i, array in enumerate(wanted):
                    self.assertTrue(close(results[f"out{i}"], array), f"{name} output {i}")
                done = lamina("check", model, "--inputs", f"{folder}/in.npz", "--quiet")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


@unittest.skipUnless(SHARED.is_dir(), f"skipped: {SHARED} is not there, so only the packages' models were tried")
class Stored(unittest.TestCase):
    """Every ONNX model and every IR with stored outputs."""

    def cases(self, groups: tuple[str, ...]) -> list[dict]:
        cases = json.loads((SHARED / "models.json").read_text())["cases"]
        return [c for c in cases if c["model"].split("/")[0] in groups]

    def test_outputs(self) -> None:
        sys.path.insert(0, str(SHARED))
        import check_outputs  # type: ignore[import-not-found]

        for case in self.cases(("onnx", "ir", "qdq")):
            if case["name"] in KNOWN:
                print(f"not run: {case['name']}: {KNOWN[case['name']]}")
                continue
            with self.subTest(case=case["name"]), tempfile.TemporaryDirectory() as folder:
                out = f"{folder}/out.npz"
                done = lamina("run", SHARED / case["model"], "--by-position", "--inputs", SHARED / case["npz"], "--output", out, "--quiet")
                self.assertEqual(done.returncode, 0, done.stderr)
                ok, text = check_outputs.check(case, check_outputs.arrays(np.load(out), "out"))
                self.assertTrue(ok, text)

    def test_truncated_weights_are_refused(self) -> None:
        for model in sorted((SHARED / "ir").glob("NEGATIVE*.xml")):
            with self.subTest(model=model.name):
                done = lamina("inspect", model)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
                self.assertIn("which has 262144", done.stderr)

    def test_check_is_clean(self) -> None:
        for case in self.cases(("onnx", "ir", "qdq")):
            if case["name"] in KNOWN:
                continue
            with self.subTest(case=case["name"]):
                done = lamina("check", SHARED / case["model"], "--inputs", SHARED / case["npz"])
                self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)


if __name__ == "__main__":
    unittest.main()
