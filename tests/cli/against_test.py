"""lamina check --against: the table, the page, the document, inputs of all kinds, errors of one line."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper
from quantize_test import Page, network

TOOL = os.environ["LAMINA_TOOL"]


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, errors="replace", timeout=120
    )


class AgainstTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.path = pathlib.Path(folder.name)
        cls.f32 = network(cls.path / "model.onnx", opset=13)
        cls.data = cls.path / "data"
        cls.data.mkdir()
        random = np.random.default_rng(2)
        for i in range(6):
            np.save(cls.data / f"{i}.npy", random.standard_normal((1, 3, 12, 12)).astype("f4"))
        cls.int8 = cls.path / "int8.onnx"
        done = lamina("quantize", cls.f32, "--data", cls.data, "-o", cls.int8, "--granularity", "per-tensor", "--quiet")
        assert done.returncode == 0, done.stderr

    def check(self, *arguments: object, model: pathlib.Path | None = None) -> subprocess.CompletedProcess[str]:
        return lamina("check", model or self.int8, "--against", *arguments)

    def test_table_and_list(self) -> None:
        done = self.check(self.f32, "--input", self.data / "0.npy")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0].split(), ["layer", "share", "output", "own", "input", "operators"])
        names = [line.split()[0] for line in lines[1 : lines.index("")]]
        self.assertLessEqual({"first", "second", "third"}, set(names))
        self.assertIn("layers      3 of 3 layers with weights have a counterpart of their own", done.stdout)
        self.assertRegex(done.stdout, r"output      scores: \d+\.\d dB")
        self.assertRegex(done.stdout, r"leave out   ")

    def test_names_are_whole_in_a_pipe(self) -> None:
        long = "a_layer_with_a_name_that_is_much_longer_than_the_column_of_the_table_that_it_stands_in"
        model = onnx.load(self.f32)
        model.graph.node[0].name = long
        onnx.save(model, self.path / "long.onnx")
        self.assertIn(long, self.check(self.path / "long.onnx", "--input", self.data / "0.npy").stdout)

    def test_document(self) -> None:
        done = self.check(self.f32, "--data", self.data, "--samples", 4, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["layers_with_weights"], report["layers_matched"], report["random_inputs"]), (3, 3, False))
        self.assertAlmostEqual(sum(layer["share"] for layer in report["layers"]), 1, places=6)
        self.assertGreaterEqual(report["sqnr_without_db"], report["sqnr_db"])

    def test_quantize_takes_the_proposal(self) -> None:
        f32, int8 = self.path / "hard.onnx", self.path / "hard8.onnx"
        model = onnx.load(self.f32)
        tensor = next(t for t in model.graph.initializer if t.name == "w2")
        weights = onnx.numpy_helper.to_array(tensor).copy()
        weights.flat[0] *= 100  # with one scale for all, little is left of the others
        tensor.CopyFrom(onnx.numpy_helper.from_array(weights, "w2"))
        onnx.save(model, f32)
        quantize = ("quantize", f32, "--data", self.data, "-o", int8, "--granularity", "per-tensor", "--no-equalize", "--quiet")
        document = (f32, "--data", self.data, "--samples", 4, "--json", "-")
        self.assertEqual(lamina(*quantize).returncode, 0)
        report = json.loads(self.check(*document, model=int8).stdout)
        self.assertIn("second", report["leave_out_layers"])
        self.assertLess(len(report["leave_out_layers"]), 3)
        done = lamina(*quantize, *(part for name in report["leave_out"] for part in ("--exclude", name)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(json.loads(self.check(*document, model=int8).stdout)["sqnr_db"], report["sqnr_db"] + 3)

    def test_page(self) -> None:
        page = self.path / "page.html"
        done = self.check(self.f32, "--input", self.data / "0.npy", "--html", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = page.read_text()
        Page(text)
        self.assertIn('<table class="sort">', text)
        for name in ("first", "second", "third"):
            self.assertIn(f"<th>{name}</th>", text)
        self.assertGreater(text.count("<svg"), 6)
        self.assertNotIn("http", text.replace("http-equiv", ""))
        self.assertEqual(self.check(self.f32, "--html", self.path / "page.txt").returncode, 2)

    def test_names_of_files_are_escaped(self) -> None:
        model = onnx.load(self.f32)
        model.graph.node[0].name = "<script>alert(1)</script>"
        onnx.save(model, self.path / "bad.onnx")
        self.check(self.path / "bad.onnx", "--input", self.data / "0.npy", "--html", self.path / "bad.html")
        self.assertNotIn("<script>alert", (self.path / "bad.html").read_text())

    def test_random_inputs_are_said(self) -> None:
        done = self.check(self.f32, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the inputs are random", done.stderr)
        self.assertTrue(json.loads(done.stdout)["random_inputs"])

    def test_ir_with_fake_quantize(self) -> None:
        xml = self.path / "int8.xml"
        done = lamina("quantize", self.f32, "--data", self.data, "-o", xml, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        plain = self.path / "f32.xml"
        self.assertEqual(lamina("optimize", self.f32, "-o", plain, "--quiet").returncode, 0)
        done = self.check(plain, "--input", self.data / "0.npy", "--json", "-", model=xml)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["layers_with_weights"], report["layers_matched"]), (3, 3))

    def test_equalised_layers_beside_biases_that_are_sums(self) -> None:
        """MatMul, Add and Relu, as ONNX and as IR: the quantiser scales the bias too, and the comparison finds that."""
        random = np.random.default_rng(5)
        w1 = random.standard_normal((8, 16)) * 4.0 ** random.integers(-2, 3, 16)  # channels of very different ranges
        tensors = {"w1": w1, "b1": random.standard_normal(16), "w2": random.standard_normal((16, 6)), "b2": random.standard_normal(6)}
        nodes = [
            helper.make_node("MatMul", ["x", "w1"], ["m1"], "first"),
            helper.make_node("Add", ["m1", "b1"], ["a1"]),
            helper.make_node("Relu", ["a1"], ["r1"]),
            helper.make_node("MatMul", ["r1", "w2"], ["m2"], "second"),
            helper.make_node("Add", ["b2", "m2"], ["y"]),
        ]
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            nodes,
            "g",
            [value("x", TensorProto.FLOAT, [20, 8])],
            [value("y", TensorProto.FLOAT, [20, 6])],
            [onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in tensors.items()],
        )
        plain, data = self.path / "sums.onnx", self.path / "sums"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7), plain)
        data.mkdir()
        for i in range(6):
            np.save(data / f"{i}.npy", random.standard_normal((20, 8)).astype("f4"))
        ir = self.path / "sums.xml"
        self.assertEqual(lamina("optimize", plain, "-o", ir, "--quiet").returncode, 0)
        for f32 in (plain, ir):
            int8 = self.path / f"sums8{f32.suffix}"
            done = lamina("quantize", f32, "--data", data, "-o", int8, "--granularity", "per-tensor", "--equalize")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("equalised", done.stdout)
            for other in (plain, ir):
                done = self.check(other, "--data", data, "--json", "-", model=int8)
                self.assertEqual(done.returncode, 0, done.stderr)
                report = json.loads(done.stdout)
                self.assertEqual((report["layers_with_weights"], report["layers_matched"]), (2, 2))
                for layer in report["layers"]:
                    self.assertGreater(layer["own_sqnr_db"] or 100, 25, (f32, other, layer))

    def test_open_sizes_are_asked_for(self) -> None:
        f32 = network(self.path / "open.onnx", batch="n", opset=13)
        model = onnx.load(f32)
        model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "h"
        onnx.save(model, f32)
        done = self.check(f32, "--input", self.data / "0.npy", model=self.int8)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_inputs_that_are_not_finite_are_said(self) -> None:
        data = self.path / "not_finite"
        data.mkdir()
        for i in range(3):
            image = np.load(self.data / f"{i}.npy")
            if i == 1:
                image[0, 0, 3, 3] = np.nan
            np.save(data / f"{i}.npy", image)
        page = self.path / "not_finite.html"
        done = self.check(self.f32, "--data", data, "--html", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in done.stdout.splitlines() if line.startswith("input  ")]
        self.assertEqual(len(lines), 1, done.stdout)
        self.assertIn("image has NaN or infinities in 1 of 3 samples", lines[0])
        self.assertIn("NaN or infinities", page.read_text())
        done = self.check(self.f32, "--data", data, "--json", "-")
        self.assertEqual(json.loads(done.stdout)["inputs_not_finite"], [{"name": "image", "samples": 1}])

    def test_errors(self) -> None:
        def line(done: subprocess.CompletedProcess[str], status: int) -> str:
            self.assertEqual((done.returncode, done.stderr.count("\n")), (status, 1), done.stderr)
            return done.stderr

        sample = ("--input", self.data / "0.npy")
        self.assertIn("quantised itself", line(self.check(self.int8, *sample), 1))
        self.assertIn("there.onnx", line(self.check(self.path / "there.onnx", *sample), 1))
        nodes = [helper.make_node("GlobalAveragePool", ["image"], ["p"]), helper.make_node("Flatten", ["p"], ["scores"])]
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            nodes, "g", [value("image", TensorProto.FLOAT, [1, 3, 12, 12])], [value("scores", TensorProto.FLOAT, [1, 3])]
        )
        other = self.path / "other.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7), other)
        self.assertIn('output "scores" is', line(self.check(other, *sample), 1))
        two = network(self.path / "two.onnx", inputs=2, opset=13)
        self.assertIn("inputs", line(self.check(two, *sample), 1))
        self.assertIn("--html", line(lamina("check", self.int8, "--html", self.path / "x.html"), 2))
        self.assertIn("--data", line(lamina("check", self.int8, "--data", self.data), 2))
        self.assertIn("--data", line(self.check(self.f32, "--data", self.data, *sample), 2))
        self.assertEqual(self.check(self.f32, "--bisect").returncode, 2)
        self.assertEqual(self.check(self.f32, "--expect", "x.npz").returncode, 2)


if __name__ == "__main__":
    unittest.main()
