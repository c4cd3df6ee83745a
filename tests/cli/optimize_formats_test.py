"""lamina optimize on Caffe and TensorFlow networks: names, files, channels, errors."""

import pathlib
import unittest
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from optimize_case import Base, field, picture, varint


def caffemodel(**blobs: Sequence[np.ndarray]) -> bytes:
    """NetParameter with names and blobs of layers."""
    out = field(1, b"net")
    for name, arrays in blobs.items():
        layer = field(1, name.encode())
        for array in arrays:
            layer += field(
                7,
                field(7, field(1, b"".join(map(varint, array.shape))))
                + field(5, array.astype(np.float32).tobytes()),
            )
        out += field(100, layer)
    return out


PROTOTXT = """name: "net"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 6 dim: 6 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1" convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1" pooling_param { pool: AVE global_pooling: true } }
"""

PBTXT = """node { name: "image" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 1 } dim { size: 4 } dim { size: 4 } dim { size: 3 } } } } }
node { name: "training" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } } attr { key: "shape" value { shape { } } } }
node { name: "w" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT
  tensor_shape { dim { size: 1 } dim { size: 1 } dim { size: 3 } dim { size: 2 } } float_val: [1, -2, 3, 0.5, 0.25, 2] } } } }
node { name: "conv" op: "Conv2D" input: "image" input: "w" attr { key: "T" value { type: DT_FLOAT } }
  attr { key: "strides" value { list { i: [1, 1, 1, 1] } } } attr { key: "padding" value { s: "VALID" } } attr { key: "data_format" value { s: "NHWC" } } }
node { name: "switch" op: "Switch" input: "conv" input: "training" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "twice" op: "Add" input: "switch:1" input: "switch:1" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "relu" op: "Relu" input: "switch" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "merge" op: "Merge" input: "relu" input: "twice" attr { key: "N" value { i: 2 } } attr { key: "T" value { type: DT_FLOAT } } }
node { name: "prob" op: "Identity" input: "merge" attr { key: "T" value { type: DT_FLOAT } } }
"""


# An input with a value decides a condition, another one is a factor, a third one the size of a picture.
DEFAULTS = """node { name: "image" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 1 } dim { size: 2 } dim { size: 2 } dim { size: 3 } } } } }
node { name: "no" op: "Const" attr { key: "dtype" value { type: DT_BOOL } } attr { key: "value" value { tensor { dtype: DT_BOOL
  tensor_shape { } bool_val: false } } } }
node { name: "phase_train" op: "PlaceholderWithDefault" input: "no" attr { key: "dtype" value { type: DT_BOOL } } attr { key: "shape" value { shape { } } } }
node { name: "two" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value { tensor { dtype: DT_FLOAT
  tensor_shape { } float_val: 2 } } } }
node { name: "keep" op: "PlaceholderWithDefault" input: "two" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }
node { name: "sizes" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value { tensor { dtype: DT_INT32
  tensor_shape { dim { size: 2 } } int_val: [2, 6] } } } }
node { name: "shape" op: "PlaceholderWithDefault" input: "sizes" attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "switch" op: "Switch" input: "image" input: "phase_train" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "times" op: "Mul" input: "switch:1" input: "keep" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "relu" op: "Relu" input: "switch" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "merge" op: "Merge" input: "relu" input: "times" attr { key: "N" value { i: 2 } } attr { key: "T" value { type: DT_FLOAT } } }
node { name: "prob" op: "Reshape" input: "merge" input: "shape" attr { key: "T" value { type: DT_FLOAT } } attr { key: "Tshape" value { type: DT_INT32 } } }
"""


class Caffe(Base):
    def setUp(self) -> None:
        super().setUp()
        random = np.random.default_rng(5)
        self.w, self.b = (random.standard_normal(shape).astype(np.float32) for shape in ((4, 3, 3, 3), (4,)))
        self.proto, self.weights = self.path / "net.prototxt", self.path / "net.caffemodel"
        self.proto.write_text(PROTOTXT)
        self.weights.write_bytes(caffemodel(conv1=[self.w, self.b]))

    def conv(self, x: np.ndarray) -> np.ndarray:
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
        return np.einsum("nchwij,ocij->nohw", windows, self.w) + self.b.reshape(1, 4, 1, 1)

    def close(self, made: pathlib.Path, wanted: np.ndarray, x: np.ndarray) -> None:
        np.testing.assert_allclose(
            self.run_model(made, in0=x)[0], wanted, rtol=1e-4, atol=1e-4 * float(np.abs(wanted).max())
        )

    def test_layers_go_before_blobs(self) -> None:
        x = picture(1, 3, 6, 6) / 255
        for name, wanted in (("conv1", self.conv(x)), ("relu1", np.maximum(self.conv(x), 0))):
            out, _ = self.made("--output", name, model=self.proto)
            self.close(out, wanted, x)

    def test_either_file_is_the_model(self) -> None:
        x = picture(1, 3, 6, 6) / 255
        wanted = np.maximum(self.conv(x), 0).mean((2, 3), keepdims=True)
        apart = self.path / "elsewhere.txt"
        apart.write_text(PROTOTXT)
        for words in (
            ["--input_model", self.weights],
            ["-m", self.weights, "-d", apart],
            ["-w", self.weights, "--input_proto", self.proto],
        ):
            self.done(*words, "-o", self.path / "ir", "-n", "caffe", "--framework", "caffe")
            self.close(self.path / "ir" / "caffe.xml", wanted, x)
        (self.path / "apart.bin").write_bytes(self.weights.read_bytes())
        (self.path / "alone.prototxt").write_text(PROTOTXT)
        self.done(
            self.path / "alone.prototxt", "--weights", self.path / "apart.bin", "-o", self.path / "x.xml"
        )
        self.close(self.path / "x.xml", wanted, x)
        done = self.done("-m", self.weights, "-o", self.path / "ir")
        self.assertIn("Caffe specific parameters:", done.stdout)
        self.assertTrue((self.path / "ir" / "net.xml").exists())

    def test_preprocessing(self) -> None:
        x = picture(1, 3, 6, 6)
        wanted = self.conv(
            (x[:, ::-1] - np.array([104, 117, 123], np.float32).reshape(1, 3, 1, 1)) / np.float32(58)
        )
        out, document = self.made(
            "--output",
            "conv1",
            "-ms",
            "(104,117,123)",
            "-s",
            "58",
            "--reverse_input_channels",
            model=self.proto,
        )
        self.close(out, wanted, x)
        self.assertEqual(document["after"]["operators"], 1)

    def test_refusals(self) -> None:
        def fails(question: int, text: str | None, weights: bytes | None) -> None:
            folder = self.path / f"faq{question}"
            folder.mkdir()
            if text is not None:
                (folder / "a.prototxt").write_text(text)
            if weights is not None:
                (folder / "a.caffemodel").write_bytes(weights)
            self.refused(
                1,
                "-m",
                folder / ("a.prototxt" if weights is None else "a.caffemodel"),
                "-o",
                folder,
                "--silent",
                faq=question,
            )

        fails(7, 'name: "empty"', None)
        fails(
            8,
            'name: "n" input: "a" input: "b" input_dim: 1 input_dim: 2 layer { name: "r" type: "ReLU" bottom: "a" top: "c" }',
            None,
        )
        fails(11, 'layer { name: "a" type: ', None)
        fails(20, None, caffemodel(conv1=[self.w]))
        fails(
            45,
            'input: "a" input_dim: [1, 1, 2, 2] layer { name: "m" type: "Mystery" bottom: "a" top: "c" }',
            None,
        )
        fails(103, PROTOTXT, b"\xff" * 50)


class Onnx(Base):
    """Initialisers that are inputs, too, have a value which callers may change."""

    def setUp(self) -> None:
        super().setUp()
        nodes = [
            helper.make_node("Reshape", ["x", "s"], ["t"], "reshape"),
            helper.make_node("Mul", ["t", "k"], ["y"], "mul"),
        ]
        weights = [
            numpy_helper.from_array(np.array([3, 4], np.int64), "s"),
            numpy_helper.from_array(np.array([2], np.float32), "k"),
        ]
        ports = [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 6]),
            helper.make_tensor_value_info("s", TensorProto.INT64, [2]),
            helper.make_tensor_value_info("k", TensorProto.FLOAT, [1]),
        ]
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph(nodes, "g", ports, [result], weights)
        self.model = self.path / "defaults.onnx"
        onnx.save(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.model
        )

    def test_inputs_that_have_values(self) -> None:
        x = np.arange(12, dtype=np.float32).reshape(2, 6)
        for words, shape, factor in (
            ([], (3, 4), 2),
            (["--freeze_placeholder_with_value", "k->5"], (3, 4), 5),
            (["--input", "x,s->[4 3]"], (4, 3), 2),
            (["--input", "x,k"], (3, 4), 7),
            (["--input", "k,x,s->[4 3]"], (4, 3), 7),
        ):
            out, _ = self.made(*words)
            given = {"x": x} | ({"k": np.array([7], np.float32)} if factor == 7 else {})
            self.assertEqual(set(self.inputs_of(out)), set(given), words)
            np.testing.assert_array_equal(self.run_model(out, **given)[0], factor * x.reshape(shape))
        line = ["-m", self.model, "-o", self.path, "--silent", "--quiet", "--freeze_placeholder_with_value"]
        self.refused(1, *line, "k->[5 6]", says="k: 2 values for f32[1]", faq=59)


class TensorFlow(Base):
    def setUp(self) -> None:
        super().setUp()
        self.graph = self.path / "net.pbtxt"
        self.graph.write_text(PBTXT)
        self.w = np.array([1, -2, 3, 0.5, 0.25, 2], np.float32).reshape(3, 2)

    def test_values_decide_what_is_read(self) -> None:
        x = picture(1, 4, 4, 3)
        for value, wanted in (("False", np.maximum(x @ self.w, 0)), ("True", 2 * (x @ self.w))):
            for words in (
                ["--freeze_placeholder_with_value", f"training->{value}"],
                ["--input", f"image,training->{value}"],
                ["--input_shape", "[1,4,4,3]", "--freeze_placeholder_with_value", f"training->{value}"],
                ["--input_shape", "[1,4,4,3],[]", "--freeze_placeholder_with_value", f"training->{value}"],
            ):
                out, _ = self.made(*words, model=self.graph)
                self.assertEqual(self.inputs_of(out), {"image": "f32[1,4,4,3]"})
                np.testing.assert_allclose(self.run_model(out, image=x)[0], wanted, rtol=1e-4, atol=0.1)

    def defaults(self) -> pathlib.Path:
        path = self.path / "defaults.pbtxt"
        path.write_text(DEFAULTS)
        return path

    def test_inputs_that_have_values(self) -> None:
        x = picture(1, 2, 2, 3) - 128
        graph = self.defaults()
        for value, wanted in (
            ("phase_train->True", (2 * x).reshape(2, 6)),
            ("phase_train->False", np.maximum(x, 0).reshape(2, 6)),
            ("phase_train:0->true,keep->3.5", (3.5 * x).reshape(2, 6)),
            ("phase_train->True,keep{f32}->(-1)", (-x).reshape(2, 6)),
            ("shape->[4 3]", np.maximum(x, 0).reshape(4, 3)),
            ("shape[2]->[4,-1]", np.maximum(x, 0).reshape(4, 3)),
        ):
            for words in (
                ["--freeze_placeholder_with_value", value],
                ["--input", value],
                ["--input", "image," + value],
                ["--input", value + ",image:0[1,2,2,3]"],
            ):
                out, _ = self.made(*words, model=graph)
                self.assertEqual(self.inputs_of(out), {"image": "f32[1,2,2,3]"}, words)
                np.testing.assert_allclose(
                    self.run_model(out, image=x)[0], wanted, rtol=1e-5, err_msg=str(words)
                )

    def test_inputs_that_have_values_may_be_inputs(self) -> None:
        x = picture(1, 2, 2, 3) - 128
        graph = self.defaults()
        out, _ = self.made(
            "--input", "keep,image", "--freeze_placeholder_with_value", "phase_train->1", model=graph
        )
        self.assertEqual(self.inputs_of(out), {"keep": "f32[]", "image": "f32[1,2,2,3]"})
        wanted = (7 * x).reshape(2, 6)
        np.testing.assert_allclose(self.run_model(out, keep=np.float32(7), image=x)[0], wanted, rtol=1e-5)
        out, _ = self.made("--input", "image,phase_train", model=graph)
        self.assertEqual(self.inputs_of(out), {"image": "f32[1,2,2,3]", "phase_train": "boolean[]"})
        for phase, wanted in ((True, 2 * x), (False, np.maximum(x, 0))):
            got = self.run_model(out, image=x, phase_train=np.array(phase))[0]
            np.testing.assert_allclose(got, wanted.reshape(2, 6), rtol=1e-5)
        out, _ = self.made("--settable", "keep", "--input", "phase_train->True", model=graph)
        self.assertEqual(self.inputs_of(out), {"image": "f32[1,2,2,3]", "keep": "f32[]"})

    def test_values_that_do_not_fit(self) -> None:
        graph = self.defaults()
        for value in ("keep->[1,2]", "keep->red", "shape->1", "keep->"):
            words = [
                "-m",
                graph,
                "-o",
                self.path / "ir",
                "--silent",
                "--freeze_placeholder_with_value",
                value,
            ]
            self.refused(1, *words, says=value.split("-")[0], faq=59)
        words = ["-m", graph, "-o", self.path / "ir", "--silent", "--input", "image,keep->1"]
        self.refused(1, *words, "--freeze_placeholder_with_value", "keep->2", says='"keep" is named twice')

    def test_channels_are_last(self) -> None:
        x = picture(1, 4, 4, 3)
        mean = np.array([10, 20, 30], np.float32)
        words = [
            "--output",
            "conv",
            "--mean_values",
            "[10,20,30]",
            "--reverse_input_channels",
            "--input_model_is_text",
        ]
        wanted = (x[..., ::-1] - mean) @ self.w
        out, _ = self.made(*words, model=self.graph)
        np.testing.assert_allclose(self.run_model(out, image=x)[0], wanted, rtol=1e-4, atol=0.1)
        out, _ = self.made(*words, "--layout", "image(nhwc->nchw)", model=self.graph)
        self.assertEqual(self.inputs_of(out), {"image": "f32[1,3,4,4]"})
        np.testing.assert_allclose(
            self.run_model(out, image=np.ascontiguousarray(x.transpose(0, 3, 1, 2)))[0],
            wanted,
            rtol=1e-4,
            atol=0.1,
        )

    def test_damaged(self) -> None:
        (self.path / "bad.pb").write_bytes(b"\xff" * 50)
        self.refused(1, "-m", self.path / "bad.pb", "-o", self.path / "ir", "--silent", faq=43)
        cycle = 'node { name: "a" op: "Relu" input: "b" } node { name: "b" op: "Relu" input: "a" } node { name: "c" op: "Relu" input: "b" }'
        (self.path / "cycle.pbtxt").write_text(cycle)
        self.refused(1, "-m", self.path / "cycle.pbtxt", "-o", self.path / "ir", "--silent", faq=97)


if __name__ == "__main__":
    unittest.main()
