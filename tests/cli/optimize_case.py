"""What the tests of lamina optimize share: small networks, the command run, what it made looked at."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TOOL = os.environ["LAMINA_TOOL"]


def lamina(*arguments: object, cwd: pathlib.Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, timeout=120, cwd=cwd
    )


def constant(name: str, *shape: int, seed: int = 1) -> onnx.TensorProto:
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return numpy_helper.from_array(values, name)


def save(
    path: pathlib.Path,
    nodes: Sequence[onnx.NodeProto],
    weights: Sequence[onnx.TensorProto],
    inputs: dict[str, list[int | str]],
    *outputs: str,
    opset: int = 17,
) -> pathlib.Path:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "net", ports, results, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


def network(path: pathlib.Path, pad: int = 1) -> pathlib.Path:
    """conv1 3x3, a normalisation, relu1, conv2 1x1, a sum with relu1, a mean over the picture."""
    nodes = [
        helper.make_node("Conv", ["data", "w1"], ["conv1_out"], "conv1", pads=[pad] * 4),
        helper.make_node("BatchNormalization", ["conv1_out", "s", "b", "m", "v"], ["bn1_out"], "bn1"),
        helper.make_node("Relu", ["bn1_out"], ["relu1_out"], "relu1"),
        helper.make_node("Conv", ["relu1_out", "w2"], ["conv2_out"], "conv2"),
        helper.make_node("Add", ["conv2_out", "relu1_out"], ["sum_out"], "sum"),
        helper.make_node("GlobalAveragePool", ["sum_out"], ["pool_out"], "pool"),
        helper.make_node("Flatten", ["pool_out"], ["prob"], "flat"),
    ]
    weights = [constant("w1", 4, 3, 3, 3), constant("w2", 4, 4, 1, 1, seed=2)]
    weights += [constant(name, 4, seed=3 + i) for i, name in enumerate("sbm")]
    weights.append(numpy_helper.from_array(np.array([1, 2, 3, 4], np.float32), "v"))
    return save(path, nodes, weights, {"data": [1, 3, 8, 8]}, "prob")


class Base(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.model = network(self.path / "net.onnx")

    def done(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        done = lamina("optimize", *arguments)
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stdout}{done.stderr}")
        return done

    def refused(self, status: int, *arguments: object, says: str = "", faq: int = 0) -> None:
        done = lamina("optimize", *arguments)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        lines = done.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, f"{arguments}: {done.stderr}")
        self.assertIn(says, lines[0])
        if faq:
            self.assertTrue(lines[0].startswith("[ ERROR ]  "), lines[0])
            self.assertTrue(
                lines[0].endswith(
                    f" For more information please refer to Model Optimizer FAQ, question #{faq}."
                ),
                lines[0],
            )

    def made(self, *arguments: object, model: pathlib.Path | None = None) -> tuple[pathlib.Path, dict]:
        """-> the .xml, and what --json says."""
        out = self.path / "out" / "made.xml"
        report = self.path / "report.json"
        self.done(model or self.model, "-o", out, "--json", report, *arguments)
        return out, json.loads(report.read_text())

    def run_model(self, model: pathlib.Path, **inputs: np.ndarray) -> list[np.ndarray]:
        np.savez(self.path / "in.npz", **inputs)
        done = lamina(
            "run",
            model,
            "--inputs",
            self.path / "in.npz",
            "--by-position",
            "--output",
            self.path / "out.npz",
            "--quiet",
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        arrays = np.load(self.path / "out.npz")
        return [arrays[f"out{i}"] for i in range(len(arrays.files))]

    def inputs_of(self, model: pathlib.Path) -> dict[str, str]:
        return {
            p["name"]: p["text"] for p in json.loads(lamina("inspect", model, "--json", "-").stdout)["inputs"]
        }

    def outputs_of(self, model: pathlib.Path) -> list[str]:
        return [p["name"] for p in json.loads(lamina("inspect", model, "--json", "-").stdout)["outputs"]]


def picture(*shape: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 255, shape).astype(np.float32)


def varint(n: int) -> bytes:
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number: int, content: bytes) -> bytes:
    return varint(8 * number + 2) + varint(len(content)) + content
