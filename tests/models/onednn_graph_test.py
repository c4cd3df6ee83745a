"""Graphs in oneDNN's JSON: those of ../shared/models/onednn_graph where it is beside the project, against stored outputs and the interpreter."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

TOOL = os.environ["LAMINA_TOOL"]
GRAPHS = pathlib.Path(os.environ["LAMINA_SHARED"]) / "models" / "onednn_graph"
DTYPES = {"f32": np.float32, "bf16": np.float32, "u8": np.uint8, "s8": np.int8, "boolean": np.bool_}


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def bf16(x: np.ndarray) -> np.ndarray:
    """Rounded to the nearest, ties to even."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32)


def made_input(tensor: dict, shift: int) -> np.ndarray:
    """The README there says the formula."""
    h = np.arange(int(np.prod(tensor["shape"])), dtype=np.uint32) * np.uint32(2654435761)
    h += np.uint32((tensor["id"] * 40503 + 12345) & 0xFFFFFFFF)
    h ^= h >> 15
    h *= np.uint32(2246822519)
    h ^= h >> 13
    dtype, zero = tensor["dtype"], tensor["zp"]
    if dtype == "boolean":
        values = h & 1
    elif dtype == "u8" and zero == 0:
        values = h % (256 >> shift)
    elif dtype in ("u8", "s8"):
        m = 127 >> shift
        least, most = (0, 255) if dtype == "u8" else (-128, 127)
        values = np.clip(zero + (h % (2 * m + 1)).astype(np.int64) - m, least, most)
    else:
        values = (h & 0xFFFF).astype(np.float32) / 32768 - 1
        values = bf16(values) if dtype == "bf16" else values
    return values.astype(DTYPES[dtype]).reshape(tensor["shape"])


def inputs_of(name: str, case: dict) -> dict[str, np.ndarray]:
    made = [made_input(t, case["shift"]) for t in case["inputs"]]
    if name == "bn_relu_fusion":
        made[4] = np.abs(made[4])  # a variance
    return {str(t["id"]): a for t, a in zip(case["inputs"], made, strict=True)}


def elements(case: dict) -> float:
    return float(sum(np.prod(t["shape"]) for t in case["inputs"] + case["outputs"]))


@unittest.skipUnless(GRAPHS.is_dir(), f"skipped: {GRAPHS} is not there")
class Stored(unittest.TestCase):
    def cases(self) -> dict[str, dict]:
        cases: dict[str, dict] = json.loads((GRAPHS / "expected.json").read_text())
        return cases

    def run_graph(self, name: str, case: dict, folder: str) -> dict[str, np.ndarray]:
        np.savez(f"{folder}/in.npz", **inputs_of(name, case))
        out = f"{folder}/out.npz"
        done = lamina(
            "run", GRAPHS / f"{name}.json", "--inputs", f"{folder}/in.npz", "--output", out, "--quiet"
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        with np.load(out) as arrays:
            return dict(arrays)

    def test_outputs(self) -> None:
        with np.load(GRAPHS / "expected.npz") as arrays:
            expected = dict(arrays)
        for name, case in self.cases().items():
            with self.subTest(graph=name), tempfile.TemporaryDirectory() as folder:
                outputs = self.run_graph(name, case, folder)
                for tensor in case["outputs"]:
                    got = outputs[str(tensor["id"])]
                    self.assertEqual(list(got.shape), tensor["shape"])
                    self.assertEqual(got.dtype, DTYPES[tensor["dtype"]])
                    wanted = expected[f"{name}:{tensor['id']}"].astype(np.float64)
                    error = np.abs(got.ravel()[:: tensor["step"]].astype(np.float64) - wanted).max()
                    largest = np.abs(wanted).max()
                    limit = {"f32": 1e-4 + 1e-3 * largest, "bf16": 0.01 * largest}.get(tensor["dtype"], 1)
                    self.assertLessEqual(error, limit, f"output {tensor['id']} of at most {largest}")
                    if tensor["dtype"] == "bf16":
                        self.assertTrue(np.array_equal(got, bf16(got)), "outputs are bf16 numbers")

    def test_check_is_clean(self) -> None:
        for name, case in self.cases().items():
            if elements(case) > 4e6:
                continue
            with self.subTest(graph=name), tempfile.TemporaryDirectory() as folder:
                np.savez(f"{folder}/in.npz", **inputs_of(name, case))
                done = lamina("check", GRAPHS / f"{name}.json", "--inputs", f"{folder}/in.npz")
                self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)

    def test_all_are_read_and_planned(self) -> None:
        for graph in sorted(GRAPHS.glob("*.json")):
            if graph.name != "expected.json":
                with self.subTest(graph=graph.stem):
                    done = lamina("explain", graph, "--no-run")
                    self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
