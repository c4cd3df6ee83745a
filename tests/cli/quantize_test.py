"""lamina quantize: samples of all kinds, files that are whole or not there, errors of one line, a page and a document."""

import html.parser
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

TOOL = os.environ["LAMINA_TOOL"]
VOID = {"meta", "br", "link", "input"}


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, errors="replace", timeout=120
    )


class Page(html.parser.HTMLParser):
    """Elements must be closed in their order, and nothing comes from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name in ("src", "href") for name, _ in attrs), attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (self.open, tag)
        self.open.pop()


def network(path: pathlib.Path, *, batch: int | str = 1, inputs: int = 1, opset: int = 11) -> pathlib.Path:
    """Two convolutions and a product; a second input is added in the middle."""
    random = np.random.default_rng(1)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        return onnx.numpy_helper.from_array((random.standard_normal(shape) / 3).astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["c1"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], "second", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c2", "r1" if inputs == 1 else "more"], ["s"]),
        helper.make_node("GlobalAveragePool", ["s"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["scores"], "third"),
    ]
    tensors = [weights("w1", 8, 3, 3, 3), weights("b1", 8), weights("w2", 8, 8, 3, 3), weights("w3", 8, 5), weights("b3", 5)]
    values = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 3, 12, 12])]
    if inputs == 2:
        values.append(helper.make_tensor_value_info("more", TensorProto.FLOAT, [batch, 8, 12, 12]))
    outputs = [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [batch, 5])]
    graph = helper.make_graph(nodes, "g", values, outputs, tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7), path)
    return path


class QuantizeTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.model = network(self.path / "model.onnx")
        self.data = self.path / "data"
        self.data.mkdir()
        self.random = np.random.default_rng(2)

    def picture(self, *, more: bool = False) -> np.ndarray:
        return self.random.uniform(-1, 2, (1, 8 if more else 3, 12, 12)).astype(np.float32)

    def save_arrays(self, count: int = 6) -> None:
        for i in range(count):
            np.save(self.data / f"{i}.npy", self.picture())

    def quantize(self, *arguments: object, output: str = "q.onnx", model: pathlib.Path | None = None) -> dict:
        document = self.path / "q.json"
        done = lamina("quantize", model or self.model, "--data", self.data, "-o", self.path / output, "--json", document, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(document.read_text())

    def refuse(self, *arguments: object, output: str = "q.onnx", status: int = 1, model: pathlib.Path | None = None) -> str:
        done = lamina("quantize", model or self.model, "--data", self.data, "-o", self.path / output, *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(done.stderr.strip().count("\n"), 0, done.stderr)
        self.assertFalse((self.path / output).exists() and output != "model.onnx")
        return done.stderr

    def outputs(self, model: pathlib.Path, values: np.ndarray) -> np.ndarray:
        np.save(self.path / "in.npy", values)
        done = lamina("run", model, "--input", self.path / "in.npy", "--output", self.path / "out.npz", "--by-position", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(self.path / "out.npz")["out0"]

    def test_onnx_and_ir_are_near_the_model(self) -> None:
        self.save_arrays()
        values = np.load(self.data / "0.npy")
        wanted = self.outputs(self.model, values)
        for output in ("q.onnx", "q.xml"):
            document = self.quantize(output=output)
            got = self.outputs(self.path / output, values)
            self.assertLess(np.linalg.norm(got - wanted), 0.02 * np.linalg.norm(wanted))
            self.assertGreater(document["outputs"][0]["sqnr_db"], 34)
            self.assertEqual([x["precision"] for x in document["layers"]], ["int8"] * 3)
            parts = ["q.onnx"] if output == "q.onnx" else ["q.xml", "q.bin"]
            self.assertEqual(document["bytes"], sum((self.path / part).stat().st_size for part in parts))
            self.assertFalse(document["held_out"])
            self.assertEqual(lamina("check", self.path / output, "--input", self.data / "1.npy").returncode, 0)

    def test_the_onnx_file_is_the_model_with_steps_in_it(self) -> None:
        self.save_arrays()
        self.quantize()
        onnx.checker.check_model(str(self.path / "q.onnx"))
        model = onnx.load(self.path / "q.onnx")
        self.assertGreaterEqual(model.opset_import[0].version, 13)
        self.assertEqual([n.name for n in model.graph.node if n.op_type in ("Conv", "Gemm")], ["first", "second", "third"])
        kinds = {t.name: t.data_type for t in model.graph.initializer}
        self.assertEqual(kinds["w1_levels"], TensorProto.INT8)
        self.assertNotIn("w1", kinds)
        self.assertIn(TensorProto.INT32, kinds.values())  # biases

    def test_is_the_same_each_time(self) -> None:
        """Another number of threads may bring other kernels, which round their sums differently."""
        self.save_arrays()
        for threads in (1, 2):
            self.quantize("--threads", threads)
            first = (self.path / "q.onnx").read_bytes()
            self.quantize("--threads", threads)
            self.assertEqual(first, (self.path / "q.onnx").read_bytes())
        one, two = self.numbers(1), self.numbers(2)
        self.assertEqual(one.keys(), two.keys())
        for name, values in one.items():
            if values.dtype == np.float32:
                np.testing.assert_allclose(two[name], values, rtol=1e-5, err_msg=name)
            else:
                self.assertLessEqual(np.abs(two[name].astype(np.int64) - values).max(initial=0), 1, name)

    def numbers(self, threads: int) -> dict[str, np.ndarray]:
        self.quantize("--threads", threads)
        tensors = onnx.load(self.path / "q.onnx").graph.initializer
        return {t.name: onnx.numpy_helper.to_array(t) for t in tensors}

    def test_options_of_ranges(self) -> None:
        self.save_arrays()
        for method in ("min-max", "percentile", "entropy", "mse"):
            document = self.quantize("--calibration", method, "--no-equalize")
            self.assertIn(method, document["settings"])
            self.assertGreater(document["outputs"][0]["sqnr_db"], 20, method)
        document = self.quantize("--activations", "symmetric", "--granularity", "per-tensor", "--bits", 7, "--equalize")
        self.assertEqual([x["input_zero_point"] for x in document["layers"]], [0, 0, 0])
        levels = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(self.path / "q.onnx").graph.initializer}
        self.assertEqual(abs(levels["w2_levels"].astype(int)).max(), 63)
        self.assertEqual(levels["w2_scale"].shape, ())

    def test_layers_that_stay_f32_say_why(self) -> None:
        self.save_arrays()
        document = self.quantize("--exclude", "sec.*", "--exclude-type", "MatMul")
        self.assertEqual([x.get("reason") for x in document["layers"]], [None, "--exclude", "--exclude-type MatMul"])
        self.assertIn("w2", {t.name for t in onnx.load(self.path / "q.onnx").graph.initializer})
        self.assertIn("matches the name of no node", self.refuse("--exclude", "fourth", output="x.onnx", status=2))
        self.assertIn('--exclude "(": no regular expression', self.refuse("--exclude", "(", output="x.onnx", status=2))

    def test_largest_allowed_drop(self) -> None:
        self.save_arrays()
        error = self.quantize()["outputs"][0]["relative"]
        document = self.quantize("--max-drop", error / 2)
        self.assertLessEqual(document["outputs"][0]["relative"], error / 2 * 1.05)
        self.assertIn("f32", [x["precision"] for x in document["layers"]])
        self.assertIn("--max-drop", self.refuse("--max-drop", 0, output="x.onnx"))

    def test_samples_of_all_kinds(self) -> None:
        np.save(self.data / "several.npy", np.concatenate([self.picture() for _ in range(5)]))
        np.savez(self.data / "named.npz", image=self.picture())
        np.savez(self.data / "numbered.npz", in0=self.picture(), out0=np.zeros(3))
        (self.data / "readme.txt").write_text("not a sample")
        document = self.quantize()
        self.assertEqual(document["samples"], 7)
        self.assertEqual(len(document["notes"]), 1)
        document = self.quantize("--samples", 4)
        self.assertEqual((document["samples"], document["measured_with"], document["held_out"]), (4, 3, True))

    def test_batches_that_are_open(self) -> None:
        model = network(self.path / "open.onnx", batch="N")
        np.save(self.data / "two.npy", np.concatenate([self.picture(), self.picture()]))
        np.save(self.data / "one.npy", self.picture())
        self.assertEqual(self.quantize(model=model)["samples"], 2)

    def test_external_data_becomes_part_of_the_file(self) -> None:
        self.save_arrays()
        folder = self.path / "elsewhere"
        folder.mkdir()
        model = folder / "model.onnx"
        onnx.save(onnx.load(self.model), model, save_as_external_data=True, size_threshold=64, location="weights.bin")
        self.assertTrue((folder / "weights.bin").exists())
        self.quantize("--exclude", "second", model=model)
        values = np.load(self.data / "0.npy")
        wanted = self.outputs(self.model, values)
        self.assertLess(np.linalg.norm(self.outputs(self.path / "q.onnx", values) - wanted), 0.02 * np.linalg.norm(wanted))

    def test_external_data_of_constants_and_bodies(self) -> None:
        folder = self.path / "elsewhere"
        folder.mkdir()

        def weights(name: str, *shape: int) -> onnx.TensorProto:
            return onnx.numpy_helper.from_array(self.random.standard_normal(shape).astype(np.float32), name)

        taken = helper.make_graph(
            [helper.make_node("Mul", ["c", "m"], ["t"])], "then", [], [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)], [weights("m", 1, 4, 12, 12)]
        )
        other = helper.make_graph(
            [helper.make_node("Constant", [], ["k"], value=weights("k", 1, 4, 12, 12)), helper.make_node("Sub", ["c", "k"], ["e"])],
            "else",
            [],
            [helper.make_tensor_value_info("e", TensorProto.FLOAT, None)],
        )
        nodes = [
            helper.make_node("Conv", ["image", "w"], ["c0"]),
            helper.make_node("Constant", [], ["n"], value=weights("n", 1, 4, 12, 12)),
            helper.make_node("Add", ["c0", "n"], ["c"]),
            helper.make_node("ReduceMax", ["c"], ["top"], keepdims=0),
            helper.make_node("Greater", ["top", "zero"], ["positive"]),
            helper.make_node("If", ["positive"], ["y"], then_branch=taken, else_branch=other),
        ]
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 12, 12])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [weights("w", 4, 3, 1, 1), onnx.numpy_helper.from_array(np.float32(0), "zero")],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
        onnx.save(model, self.path / "inside.onnx")
        onnx.save(model, folder / "model.onnx", save_as_external_data=True, size_threshold=64, location="weights.bin", convert_attribute=True)
        for body in (taken, other):  # what onnx.save leaves inside
            for t in [*body.initializer, *(a.t for n in body.node for a in n.attribute if a.HasField("t"))]:
                with (folder / "weights.bin").open("ab") as file:
                    offset = file.tell()
                    file.write(t.raw_data)
                onnx.external_data_helper.set_external_data(t, "weights.bin", offset, len(t.raw_data))
                t.ClearField("raw_data")
        outside = onnx.load(folder / "model.onnx", load_external_data=False)
        for node in outside.graph.node:
            for a in node.attribute:
                if a.name in ("then_branch", "else_branch"):
                    a.g.CopyFrom(taken if a.name == "then_branch" else other)
        (folder / "model.onnx").write_bytes(outside.SerializeToString())
        self.save_arrays()
        self.quantize(model=folder / "model.onnx")
        values = np.load(self.data / "0.npy")
        wanted = self.outputs(self.path / "inside.onnx", values)
        self.assertLess(np.linalg.norm(self.outputs(self.path / "q.onnx", values) - wanted), 0.02 * np.linalg.norm(wanted))

    def test_constants_that_are_inputs_too(self) -> None:
        self.save_arrays()
        model = onnx.load(self.model)
        for t in model.graph.initializer:
            model.graph.input.append(helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)))
        for version in (3, 7):
            model.ir_version = version
            onnx.save(model, self.path / "inputs.onnx")
            self.quantize("--exclude", "second", model=self.path / "inputs.onnx")
            left = [x.name for x in onnx.load(self.path / "q.onnx").graph.input]
            self.assertEqual(left, ["image"] if version == 3 else ["image", "w2"])

    def test_pictures(self) -> None:
        for i in range(4):
            pixels = self.random.integers(0, 256, (20, 16, 3)).astype(np.uint8)
            (self.data / f"{i}.ppm").write_bytes(b"P6 16 20 255\n" + pixels.tobytes())
        document = self.quantize("--mean", "127.5", "--scale", "127.5", "--no-equalize")
        self.assertEqual(document["samples"], 4)
        self.assertAlmostEqual(document["layers"][0]["input_scale"], 2 / 255, delta=0.001)

    def test_options_of_pictures_want_pictures(self) -> None:
        self.save_arrays(1)
        self.assertIn("no sample is one", self.refuse("--mean", "1", status=2))

    def test_two_inputs(self) -> None:
        model = network(self.path / "two.onnx", inputs=2)
        self.save_arrays(1)
        self.assertIn("2 inputs", self.refuse(model=model))
        (self.data / "0.npy").unlink()
        np.savez(self.data / "half.npz", image=self.picture())
        self.assertIn('no file for input "more"', self.refuse(model=model))
        (self.data / "half.npz").unlink()
        for i in range(3):
            np.savez(self.data / f"{i}.npz", in0=self.picture(), more=self.picture(more=True))
        self.assertEqual(self.quantize(model=model)["samples"], 3)

    def test_errors_are_one_line_and_leave_nothing(self) -> None:
        self.assertIn("no samples", self.refuse())
        np.save(self.data / "a.npy", np.zeros((1, 3, 5, 12), np.float32))
        self.assertIn("does not fit", self.refuse())
        np.save(self.data / "a.npy", np.zeros((1, 3, 12, 12), np.int64))
        self.assertIn("does not fit", self.refuse())
        (self.data / "a.npy").write_bytes(b"no array")
        self.assertIn("a.npy", self.refuse())
        (self.data / "a.npy").unlink()
        self.save_arrays(2)
        self.assertIn("wanted FILE.onnx or FILE.xml", self.refuse(output="q.bin", status=2))
        self.assertIn("no folder", self.refuse(output="none/q.onnx"))
        self.assertIn("page.html", self.refuse("--report", self.path / "none" / "page.html"))
        self.assertIn("none", self.refuse("--json", self.path / "none" / "r.json"))
        for output in ("q.onnx", "q.xml"):
            self.assertIn("written twice", self.refuse("--json", self.path / output, output=output, status=2))
        self.assertIn("written twice", self.refuse("--json", self.path / "q.bin", output="q.xml", status=2))
        self.assertIn("written twice", self.refuse("--json", self.path / "r.html", "--report", self.path / "data/../r.html", status=2))
        self.assertIn("the model itself", self.refuse(output="model.onnx", status=2))
        self.assertIn("calibration", self.refuse("--calibration", "best", status=2))
        missing = lamina("quantize", self.model, "--data", self.path / "none", "-o", self.path / "q.onnx")
        self.assertEqual(missing.returncode, 1)
        self.quantize(output="once.onnx")
        self.assertIn("quantised already", self.refuse(model=self.path / "once.onnx"))
        self.quantize(output="once.xml")
        self.assertIn("quantised already", self.refuse(model=self.path / "once.xml", output="q.xml"))
        lamina("optimize", self.model, "-o", self.path / "ir.xml")
        self.assertIn("no ONNX file", self.refuse(model=self.path / "ir.xml"))
        self.quantize(model=self.path / "ir.xml", output="again.xml")

    def test_numbers_that_are_none(self) -> None:
        values = self.picture()
        values[0, 0, 0, 0] = np.nan
        np.save(self.data / "a.npy", values)
        # Whether NaN goes on through a ReLU depends on the kernel: the layers behind the first one may stay f32, too.
        done = lamina("quantize", self.model, "--data", self.data, "-o", self.path / "q.onnx", "--json", self.path / "q.json")
        if done.returncode == 0:
            self.assertIn("infinities or NaN", json.loads((self.path / "q.json").read_text())["layers"][0].get("reason", ""))
        else:
            self.assertRegex(done.stderr, "nothing to quantise: .* first because what it reads has infinities or NaN")
        np.save(self.data / "a.npy", np.zeros_like(values))
        self.quantize()

    def test_page(self) -> None:
        self.save_arrays()
        pages = []
        for _ in range(2):
            self.quantize("--exclude", "second", "--report", self.path / "page.html")
            pages.append((self.path / "page.html").read_text())
        self.assertEqual(pages[0], pages[1])
        page = Page(pages[0])
        self.assertGreaterEqual(page.tags.count("rect"), 4)  # a bar for each layer and output
        self.assertIn("first", pages[0])
        self.assertIn("--exclude", pages[0])


if __name__ == "__main__":
    unittest.main()
