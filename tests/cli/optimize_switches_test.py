"""lamina optimize: what its switches switch off, and how they may be said."""

import pathlib
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper
from optimize_case import Base, constant, save


def port(number: int, *dims: int) -> str:
    return f'<port id="{number}" precision="FP32">{"".join(f"<dim>{d}</dim>" for d in dims)}</port>'


def quantised_product(path: pathlib.Path) -> pathlib.Path:
    """An IR of x [1,3] times weights [4,3] behind a FakeQuantize."""
    weights = np.random.default_rng(1).uniform(-1, 1, (4, 3)).astype(np.float32)
    path.with_suffix(".bin").write_bytes(weights.tobytes() + np.array([-1, 1], np.float32).tobytes())
    layers = [f'<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,3" element_type="f32"/><output>{port(0, 1, 3)}</output></layer>']
    for number, (name, dims, offset) in enumerate([("w", (4, 3), 0), ("low", (1, 1), 48), ("high", (1, 1), 52)], 1):
        shape, size = ",".join(map(str, dims)), 4 * int(np.prod(dims))
        layers.append(
            f'<layer id="{number}" name="{name}" type="Const" version="opset1"><data element_type="f32" shape="{shape}" '
            f'offset="{offset}" size="{size}"/><output>{port(0, *dims)}</output></layer>'
        )
    bounds = "".join(port(i, 1, 1) for i in range(1, 5))
    layers += [
        f'<layer id="4" name="fq" type="FakeQuantize" version="opset1"><data levels="255"/><input>{port(0, 4, 3)}{bounds}</input><output>{port(5, 4, 3)}</output></layer>',
        f'<layer id="5" name="y" type="MatMul" version="opset1"><data transpose_b="true"/><input>{port(0, 1, 3)}{port(1, 4, 3)}</input><output>{port(2, 1, 4)}</output></layer>',
        f'<layer id="6" name="y/sink" type="Result" version="opset1"><input>{port(0, 1, 4)}</input></layer>',
    ]
    edges = [(1, 0, 4, 0), (2, 0, 4, 1), (3, 0, 4, 2), (2, 0, 4, 3), (3, 0, 4, 4), (0, 0, 5, 0), (4, 5, 5, 1), (5, 2, 6, 0)]
    lines = "".join(f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in edges)
    path.write_text(f'<net name="fq" version="11"><layers>{"".join(layers)}</layers><edges>{lines}</edges></net>')
    return path


class Switches(Base):
    def rules(self, *words: str) -> dict[str, int]:
        """Rules that fired, and how often."""
        _, document = self.made(*words)
        return document["rules"]

    def test_disable_fusing(self) -> None:
        self.assertIn("fuse-linear", self.rules())
        off = self.rules("--disable_fusing")
        self.assertIn("decompose-batchnorm", off)
        self.assertNotIn("fuse-linear", off)
        self.assertNotIn("merge-linear", off)

    def test_disable_gfusing(self) -> None:
        nodes = [helper.make_node("Split", ["data"], ["a", "b"], "split", axis=1, num_outputs=2)]
        nodes += [helper.make_node("Conv", [p, "w" + p], ["y" + p], "conv_" + p) for p in "ab"]
        nodes.append(helper.make_node("Concat", ["ya", "yb"], ["y"], "join", axis=1))
        weights = [constant("wa", 3, 2, 3, 3), constant("wb", 3, 2, 3, 3, seed=2)]
        self.model = save(self.path / "parts.onnx", nodes, weights, {"data": [1, 4, 8, 8]}, "y", opset=18)
        self.assertIn("fuse-group-conv", self.rules())
        self.assertNotIn("fuse-group-conv", self.rules("--disable_gfusing"))

    def test_disable_resnet_optimization(self) -> None:
        nodes = [
            helper.make_node("Conv", ["data", "w1"], ["c"], "conv1", pads=[1] * 4),
            helper.make_node("Relu", ["c"], ["r"], "relu1"),
            helper.make_node("Conv", ["r", "w2"], ["y"], "conv2", strides=[2, 2]),
        ]
        weights = [constant("w1", 16, 3, 3, 3), constant("w2", 8, 16, 1, 1, seed=2)]
        self.model = save(self.path / "strided.onnx", nodes, weights, {"data": [1, 3, 32, 32]}, "y")
        self.assertIn("move-strides", self.rules())
        self.assertNotIn("move-strides", self.rules("--disable_resnet_optimization"))
        self.assertNotIn("move-strides", self.rules("--finegrain_fusing", "^conv2$"))

    def test_a_switch_may_be_false(self) -> None:
        self.assertIn("fuse-linear", self.rules("--disable_fusing=False"))
        self.assertNotIn("fuse-linear", self.rules("--disable_fusing=True"))
        self.refused(
            2, self.model, "-o", self.path / "x.xml", "--disable_fusing=maybe", says="--disable_fusing"
        )

    def test_exempt_layers_of_a_body_are_named(self) -> None:
        def body(op: str) -> onnx.GraphProto:
            result = helper.make_tensor_value_info(op, TensorProto.FLOAT, [1])
            node = helper.make_node(op, ["data", "data"], [op], "inner_" + op)
            return helper.make_graph([node], op, [], [result])

        nodes = [helper.make_node("Greater", ["data", "zero"], ["is"], "is")]
        branches = {"then_branch": body("Add"), "else_branch": body("Mul")}
        nodes.append(helper.make_node("If", ["is"], ["y"], "if", **branches))
        self.model = save(self.path / "if.onnx", nodes, [constant("zero", 1)], {"data": [1]}, "y")
        _, document = self.made("--exempt", "inner_Add")
        self.assertEqual(document["exempt"], ["inner_Add"])

    def test_weights_compression(self) -> None:
        self.model = quantised_product(self.path / "fq.xml")
        x = np.array([[1, -2, 0.5]], np.float32)
        sizes = []
        for words, type_of_weights in ((), "i8"), (("--disable_weights_compression",), "f32"):
            out, _ = self.made(*words)
            self.assertIn(f'element_type="{type_of_weights}" shape="4,3"', out.read_text())
            self.assertEqual("FakeQuantize" in out.read_text(), bool(words))
            sizes.append(out.with_suffix(".bin").stat().st_size)
            np.testing.assert_allclose(self.run_model(out, x=x)[0], self.run_model(self.model, x=x)[0], rtol=1e-5)
        self.assertLess(sizes[0], sizes[1])

    def test_exempt_names_that_fit_nothing(self) -> None:
        done = self.done("-m", self.model, "-o", self.path, "-n", "x", "--finegrain_fusing", "nothing,conv1")
        self.assertEqual(done.stderr, '[ WARNING ]  finegrain_fusing "nothing": matches part of no node name\n')

    def test_work_for_an_open_batch(self) -> None:
        fixed = self.made("--input_shape", "[1,3,8,8]")[1]
        self.assertFalse(fixed["before"]["flops_of_one"])
        self.assertGreater(fixed["before"]["flops"], 0)
        for shape, known in (("[?,3,8,8]", True), ("[2..9,3,8,8]", True), ("[?,3,?,8]", False)):
            report = self.path / "report.html"
            _, document = self.made("--input_shape", shape, "--report", report)
            for when in ("before", "after"):
                self.assertEqual(document[when]["flops_complete"], known)
                self.assertEqual(document[when]["flops_of_one"], known)
                if known:
                    self.assertEqual(document[when]["flops"], fixed[when]["flops"])
            self.assertEqual("the figures are for a batch of 1" in report.read_text(), known)

    def test_an_empty_list_is_none(self) -> None:
        off = self.rules("--finegrain_fusing", "", "--disable_fusing", "--layout=", "--mean_values", "")
        self.assertIn("decompose-batchnorm", off)
        self.assertNotIn("fuse-linear", off)
        self.refused(2, self.model, "-o", self.path / "x.xml", "--batch", "", says="--batch: wanted a value")

    def test_reports_overwrite_nothing(self) -> None:
        kept = self.model.read_bytes()
        out = self.path / "x.xml"
        self.refused(2, self.model, "-o", out, "--json", self.model, says="is the model itself")
        for name in ("x.xml", "x.bin"):
            words = ["--json", self.path / name]
            self.refused(2, self.model, "-o", out, *words, says="is a file of the model that is written")
        self.assertEqual(self.model.read_bytes(), kept)
        self.assertFalse(out.exists())

    def test_shapes_as_in_other_verbs(self) -> None:
        for words in (
            ["--shape", "data=1,3,6,6"],
            ["--shape", "data[1,3,6,6]"],
            ["--shape", "[1,3,6,6]"],
            ["--shape", "1,3,6,6"],
        ):
            out, _ = self.made(*words)
            self.assertEqual(self.inputs_of(out), {"data": "f32[1,3,6,6]"})
        two = ["--shape", "data=1,3,6,6", "--shape", "data=1,3,7,7"]
        self.refused(2, self.model, "-o", self.path / "x.xml", *two, says='two shapes for input "data"')


if __name__ == "__main__":
    unittest.main()
