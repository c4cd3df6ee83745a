"""Graphs in oneDNN's JSON through the command: every verb takes one; values that are not given are made up over the range of their type."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

TOOL = os.environ["LAMINA_TOOL"]


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def tensor(number: int, dtype: str, shape: list[int], kind: str = "undef") -> dict:
    stride = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
    return {"id": number, "dtype": dtype, "shape": shape, "stride": stride, "layout_type": "strided", "property_type": kind}


def attributes(**values: object) -> dict:
    def typed(value: object) -> dict:
        if isinstance(value, str):
            return {"type": "string", "value": value}
        if isinstance(value, list):
            return {"type": "f32[]" if isinstance(value[0], float) else "s64[]", "value": value}
        return {"type": "s64", "value": value}

    return {name: typed(value) for name, value in values.items()}


def pattern() -> dict:
    """u8 source with a zero point, s8 weights by channel, ReLU, s8 result."""
    x, w, y = [1, 2, 5, 5], [3, 2, 3, 3], [1, 3, 5, 5]
    window = attributes(
        strides=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilations=[1, 1], groups=1, auto_pad="None", data_format="NCX", weights_format="OIX"
    )
    ops = [
        ("dq_src", "Dequantize", attributes(scales=[0.5], zps=[128]), [tensor(0, "u8", x)], [tensor(2, "f32", x)]),
        (
            "dq_wei",
            "Dequantize",
            attributes(qtype="per_channel", axis=0, scales=[0.25, 0.5, 1.0], zps=[0, 0, 0]),
            [tensor(1, "s8", w, "constant")],
            [tensor(3, "f32", w)],
        ),
        ("conv", "Convolution", window, [tensor(2, "f32", x), tensor(3, "f32", w)], [tensor(4, "f32", y)]),
        ("relu", "ReLU", {}, [tensor(4, "f32", y)], [tensor(5, "f32", y)]),
        ("q", "Quantize", attributes(qtype="per_tensor", scales=[16.0], zps=[-3]), [tensor(5, "f32", y)], [tensor(6, "s8", y)]),
    ]
    graph = [
        {"id": 10 + i, "name": name, "kind": kind, "attrs": attrs, "inputs": inputs, "outputs": outputs}
        for i, (name, kind, attrs, inputs, outputs) in enumerate(ops)
    ]
    return {"version": "3.5.0", "engine_kind": "cpu", "fpmath_mode": "strict", "input_ports": [1, 0], "output_ports": [6], "graph": graph}


def expected(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    numbers = np.pad((x.astype(np.float64) - 128) * 0.5, ((0, 0), (0, 0), (1, 1), (1, 1)))
    weights = w * np.array([0.25, 0.5, 1.0]).reshape(3, 1, 1, 1)
    windows = np.lib.stride_tricks.sliding_window_view(numbers, (3, 3), axis=(2, 3))
    sums = np.einsum("nchwyx,ocyx->nohw", windows, weights)
    return np.clip(np.rint(np.maximum(sums, 0) / 16) - 3, -128, 127).astype(np.int8)


class OneDnnGraph(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.graph = self.folder / "graph-100000.json"
        self.graph.write_text(json.dumps(pattern()))

    def lamina(self, *arguments: object) -> str:
        done = lamina(*arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_inputs_follow_the_ports(self) -> None:
        text = self.lamina("inspect", self.graph)
        self.assertIn("oneDNN Graph 3.5.0", text)
        self.assertEqual([line.split()[1] for line in text.splitlines() if line.startswith("input ")], ["1", "0"])

    def test_run_by_position_and_by_name(self) -> None:
        rng = np.random.default_rng(7)
        x = rng.integers(0, 256, (1, 2, 5, 5)).astype(np.uint8)
        w = rng.integers(-128, 128, (3, 2, 3, 3)).astype(np.int8)
        for names in ({"in0": w, "in1": x}, {"1": w, "0": x}):
            np.savez(self.folder / "in.npz", **names)
            out = self.folder / "out.npz"
            self.lamina("run", self.graph, "--inputs", self.folder / "in.npz", "--output", out, "--quiet")
            with np.load(out) as arrays:
                np.testing.assert_array_equal(arrays["6"], expected(x, w))

    def test_all_verbs(self) -> None:
        for verb in (["run"], ["check"], ["explain"], ["graph", "-o", self.folder / "g.svg"], ["benchmark", "-t", "0.1"]):
            with self.subTest(verb=verb[0]):
                self.lamina(verb[0], self.graph, *verb[1:], "--quiet")
        self.lamina("optimize", "--input_model", self.graph, "--output_dir", self.folder, "--silent")
        self.lamina("check", self.graph.with_suffix(".xml"))
        self.assertIn("Convolution", self.lamina("ops", "--format", "onednn_graph").split())

    def test_made_up_integers_have_their_whole_range(self) -> None:
        copy = pattern()
        copy["graph"] = [{"id": 1, "name": "r", "kind": "Reorder", "attrs": {}, "inputs": [], "outputs": []}]
        copy["graph"][0]["inputs"], copy["graph"][0]["outputs"] = [tensor(0, "s8", [4000])], [tensor(6, "s8", [4000])]
        self.graph.write_text(json.dumps(copy))
        out = self.folder / "out.npz"
        self.lamina("run", self.graph, "--output", out, "--quiet")
        with np.load(out) as arrays:
            self.assertEqual(len(np.unique(arrays["6"])), 256)

    def test_a_broken_graph_is_one_line(self) -> None:
        broken = pattern()
        del broken["graph"][4]["attrs"]["scales"]
        self.graph.write_text(json.dumps(broken))
        done = lamina("run", self.graph)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, f'lamina: {self.graph}: op 14 "q" (Quantize): has no attribute "scales"\n')


if __name__ == "__main__":
    unittest.main()
