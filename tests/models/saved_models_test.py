"""Models from files and folders of compiled ones give the bits that a fresh compile gives, on all of ../shared/models."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

TOOL = os.environ["LAMINA_TOOL"]
MODELS = pathlib.Path(os.environ["LAMINA_SHARED"]) / "models"


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, words)], check=False, capture_output=True, text=True, timeout=300)


def sizes_of(inputs: pathlib.Path, model: pathlib.Path) -> list[str]:
    """--shape for inputs whose sizes the model leaves open, as the file has them."""
    ports = json.loads(run("inspect", model, "--json", "-").stdout)["inputs"]
    with np.load(inputs) as arrays:
        given = {port["name"]: arrays[port["name"] if port["name"] in arrays else f"in{i}"].shape for i, port in enumerate(ports)}
    return [word for port in ports if "?" in port["text"] or any(d < 0 for d in port["shape"]) for word in ("--shape", f"{port['name']}={','.join(map(str, given[port['name']]))}")]


@unittest.skipUnless(MODELS.is_dir(), "no ../shared/models")
class SavedModels(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def outputs(self, model: object, inputs: object, *more: object) -> dict[str, bytes]:
        out = self.path / "out.npz"
        done = run("run", model, "--inputs", inputs, "--output", out, "--quiet", *more)
        self.assertEqual(done.returncode, 0, f"{model}: {done.stderr}")
        with np.load(out) as arrays:
            return {name: arrays[name].tobytes() for name in arrays}

    def check_one(self, model: pathlib.Path, given: pathlib.Path, file: pathlib.Path) -> None:
        cache = f"CACHE_DIR={self.path / 'cache'}"
        fresh = {n: self.outputs(model, given, "--threads", n) for n in (1, 2)}
        self.assertEqual(self.outputs(file, given, "--threads", 2), fresh[2])
        for threads in (2, 2, 1, 1):
            self.assertEqual(self.outputs(model, given, "--set", cache, "--threads", threads), fresh[threads])

    def check(self, folder: str) -> None:
        models = sorted((MODELS / folder).glob("*.onnx")) + sorted((MODELS / folder).glob("*.xml"))
        self.assertGreater(len(models), 10)
        for model in models:
            inputs = [p for p in (model.with_suffix(".npz"), model.with_suffix(".b.npz")) if p.exists()]
            if not inputs or run("inspect", model, "--quiet").returncode != 0:
                continue
            file = self.path / "m.lamina"
            done = run("compile", model, "-o", file, "--threads", 2, *sizes_of(inputs[0], model))
            if "unsupported" in done.stderr or "is not supported" in done.stderr:
                continue
            self.assertEqual(done.returncode, 0, f"{model}: {done.stderr}")
            for given in inputs:
                with self.subTest(model=model.name, inputs=given.name):
                    self.check_one(model, given, file)
        entries = json.loads(run("cache", "list", self.path / "cache", "--json", "-").stdout)["entries"]
        self.assertGreater(len(entries), 10)
        self.assertEqual(run("cache", "verify", self.path / "cache").returncode, 0)

    def test_onnx(self) -> None:
        self.check("onnx")

    def test_ir(self) -> None:
        self.check("ir")

    def test_quantised(self) -> None:
        self.check("qdq")


if __name__ == "__main__":
    unittest.main()
