"""What `lamina optimize` writes of the models of ../shared/models: it gives their stored outputs, in OpenVINO too where
that is installed, and is no larger than they are."""

import importlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import openvino_cases

TOOL = os.environ["LAMINA_TOOL"]
SHARED = pathlib.Path(os.environ["LAMINA_SHARED"]) / "models"

# What OpenVINO 2026.4 answers otherwise to the models as they are, too.
KNOWN = {
    "silero_vad_16k_op15": "OpenVINO has no If of dynamic rank",
}
# Prior boxes become constants, and what is fused into f16 may need f32; weights of few bits would need four times as much.
LARGER = 1.4
WIDER = 2.1


def lamina(*arguments: object) -> None:
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)


def stored_bytes(model: pathlib.Path) -> int:
    return (model.with_suffix(".bin") if model.suffix == ".xml" else model).stat().st_size


@unittest.skipUnless(SHARED.is_dir(), f"skipped: {SHARED} is not there")
class Optimized(unittest.TestCase):
    def test_outputs(self) -> None:
        sys.path.insert(0, str(SHARED))
        import check_outputs  # type: ignore[import-not-found]

        core = None
        if importlib.util.find_spec("openvino"):
            core = importlib.import_module("openvino").Core()
        else:
            print("skipped in part: OpenVINO is not installed, so only lamina runs what is written")
        for case in json.loads((SHARED / "models.json").read_text())["cases"]:
            model = SHARED / case["model"]
            if model.suffix not in (".onnx", ".xml"):
                continue
            with self.subTest(case=case["name"]), tempfile.TemporaryDirectory() as folder:
                xml, out = pathlib.Path(folder, "m.xml"), f"{folder}/out.npz"
                lamina("optimize", model, "-o", xml, "--quiet")
                few_bits = "int8" in model.name or model.parent.name == "qdq"
                self.assertLess(stored_bytes(xml), (LARGER if few_bits else WIDER) * stored_bytes(model))
                lamina("run", xml, "--by-position", "--inputs", SHARED / case["npz"], "--output", out, "--quiet")
                ok, text = check_outputs.check(case, check_outputs.arrays(np.load(out), "out"))
                self.assertTrue(ok, text)
                if core is None or model.stem in KNOWN:
                    continue
                inputs = check_outputs.arrays(np.load(SHARED / case["npz"]), "in")
                compiled = core.compile_model(core.read_model(xml), "CPU", openvino_cases.EXACT)
                results = compiled(dict(zip(compiled.inputs, inputs, strict=True)))
                ok, text = check_outputs.check(case, [results[port] for port in compiled.outputs])
                self.assertTrue(ok, f"in OpenVINO: {text}")


if __name__ == "__main__":
    openvino_cases.use_openvino()
    unittest.main()
