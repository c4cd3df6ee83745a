"""lamina optimize: what is written computes what the model does."""

import pathlib
import unittest
from collections.abc import Sequence

import numpy as np
from onnx import helper
from optimize_case import Base, lamina, network, picture, save, varint


class Values(Base):
    """What is written computes what the model does."""

    def same(self, made: pathlib.Path, wanted: Sequence[np.ndarray], **inputs: np.ndarray) -> None:
        got = self.run_model(made, **inputs)
        self.assertEqual(len(got), len(wanted))
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * max(1.0, float(np.abs(b).max())))

    def test_as_it_is(self) -> None:
        x = picture(1, 3, 8, 8)
        wanted = self.run_model(self.model, data=x)
        for words in (
            [],
            ["--ir_version", "10"],
            ["--disable_fusing"],
            ["--disable", "all"],
            ["--finegrain_fusing", "conv"],
        ):
            out, document = self.made(*words)
            self.same(out, wanted, data=x)
        out, document = self.made()
        self.assertEqual(self.outputs_of(out), ["prob"])
        self.assertEqual(document["unused_inputs"], [])

    def test_weights_as_halves(self) -> None:
        x = picture(1, 3, 8, 8) / 255
        full, _ = self.made()
        wanted, size = self.run_model(full, data=x), full.with_suffix(".bin").stat().st_size
        for words in (
            ["--data_type", "FP16"],
            ["--data_type=half"],
            ["--compress_to_fp16"],
            ["--compress_to_fp16=True"],
        ):
            out, _ = self.made(*words)
            self.assertLess(out.with_suffix(".bin").stat().st_size, 0.75 * size)
            for a, b in zip(self.run_model(out, data=x), wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-2, atol=2e-2)
        out, _ = self.made("--compress_to_fp16=False")
        self.assertEqual(out.with_suffix(".bin").stat().st_size, size)

    def test_halves_of_the_model_stay(self) -> None:
        halves, _ = self.made("--compress_to_fp16")
        small = halves.with_suffix(".bin").stat().st_size
        again = self.path / "again.xml"
        for words, kept in ((), True), (("--data_type", "FP32"), False), (("--compress_to_fp16=False",), False):
            done = lamina("optimize", halves, "-o", again, *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("Numbers that f16 holds exactly stay f16" in done.stdout, kept, done.stdout)
            self.assertEqual(again.with_suffix(".bin").stat().st_size == small, kept)

    def test_preprocessing(self) -> None:
        x = picture(1, 3, 8, 8)
        mean, scale = np.array([103.5, 116.25, 123.75], np.float32), np.array([58.5, 57, 57.25], np.float32)
        by_channel = {"mean": mean.reshape(1, 3, 1, 1), "scale": scale.reshape(1, 3, 1, 1)}
        sums = []
        for pad in (0, 1):
            model = network(self.path / f"pad{pad}.onnx", pad)
            wanted = self.run_model(model, data=(x[:, ::-1] - by_channel["mean"]) / by_channel["scale"])
            words = [
                "--mean_values",
                "[103.5,116.25,123.75]",
                "--scale_values",
                "[58.5,57,57.25]",
                "--reverse_input_channels",
            ]
            out, document = self.made(*words, model=model)
            self.same(out, wanted, data=x)
            self.assertIn("fold-channel-order", document["rules"])
            text = out.read_text()
            for gone in ("Gather", "Divide", "Multiply"):
                self.assertNotIn(f'type="{gone}"', text)
            sums.append(text.count('type="Add"') + text.count('type="Subtract"'))
        self.assertEqual(sums[1] - sums[0], 1)  # a border of zeros has no mean

    def test_one_scale(self) -> None:
        x = picture(1, 3, 8, 8)
        out, _ = self.made("--scale", "255")
        self.same(out, self.run_model(self.model, data=x / np.float32(255)), data=x)

    def test_shapes_and_batch(self) -> None:
        out, _ = self.made("--batch", "4")
        self.assertEqual(self.inputs_of(out), {"data": "f32[4,3,8,8]"})
        for words in (
            ["--input_shape", "[2,3,10,12]"],
            ["--input", "data[2 3 10 12]"],
            ["--shape", "data=2,3,10,12"],
            ["--input_shape", "(2,3,10,12)", "--input", "data"],
        ):
            out, _ = self.made(*words)
            self.assertEqual(self.inputs_of(out), {"data": "f32[2,3,10,12]"})
        x = picture(2, 3, 9, 8)
        fixed, _ = self.made("--input_shape", "[1,3,9,8]")
        wanted = np.concatenate([self.run_model(fixed, data=x[i : i + 1])[0] for i in range(2)])
        out, _ = self.made("--input_shape", "[?,3,8..16,-1]")
        self.same(out, [wanted], data=x)

    def test_cuts(self) -> None:
        x = picture(1, 3, 8, 8)
        whole, _ = self.made("--output", "relu1,prob")
        self.assertEqual(self.outputs_of(whole), ["relu1", "prob"])
        relu, prob = self.run_model(whole, data=x)
        for word in ("relu1", "relu1_out", "relu1:0", "0:conv2"):
            out, _ = self.made("--output", word)
            self.same(out, [relu], data=x)
        out, _ = self.made("--input", "relu1_out")
        self.same(out, [prob], relu1_out=relu)
        out, _ = self.made("--input", "relu1:0[1,4,8,8]")
        self.assertEqual(self.inputs_of(out), {"relu1/placeholder_out_port_0": "f32[1,4,8,8]"})
        self.same(out, [prob], in0=relu)
        out, document = self.made("--input", "conv2,1:sum")
        self.assertEqual(list(self.inputs_of(out)), ["conv2/placeholder_port_0", "sum/placeholder_port_1"])
        self.same(out, [prob], in0=relu, in1=relu)
        self.assertEqual(document["dropped_inputs"], ["data"])

    def test_types_and_values(self) -> None:
        out, _ = self.made("--input", "data{u8}")
        x = picture(1, 3, 8, 8).astype(np.uint8)
        self.assertEqual(self.inputs_of(out), {"data": "u8[1,3,8,8]"})
        self.same(out, self.run_model(self.model, data=x.astype(np.float32)), data=x)
        nodes = [
            helper.make_node("Mul", ["x", "k"], ["y"], "scale"),
            helper.make_node("Add", ["y", "z"], ["out"], "sum"),
        ]
        model = save(self.path / "two.onnx", nodes, [], {"x": [2, 3], "k": [3], "z": [2, 3]}, "out")
        x = picture(2, 3)
        for words in (
            ["--input", "x,k->[1 2 3],z"],
            ["--freeze_placeholder_with_value", "k->[1,2,3]"],
            ["--input", "k->(1,2,3)"],
        ):
            out, _ = self.made(*words, model=model)
            self.assertEqual(list(self.inputs_of(out)), ["x", "z"])
            self.same(out, [x * np.array([1, 2, 3], np.float32) + 1], in0=x, in1=np.ones((2, 3), np.float32))

    def test_layouts(self) -> None:
        x = picture(1, 3, 8, 8)
        wanted = self.run_model(self.model, data=x)
        for words in (
            ["--layout", "nchw->nhwc"],
            ["--layout", "data(nchw->nhwc)"],
            ["--source_layout", "nchw", "--target_layout", "nhwc"],
            ["--layout", "[n,c,h,w]->[n,h,w,c]"],
        ):
            out, _ = self.made(*words)
            self.assertEqual(self.inputs_of(out), {"data": "f32[1,8,8,3]"})
            self.same(out, wanted, data=np.ascontiguousarray(x.transpose(0, 2, 3, 1)))
        out, _ = self.made("--layout", "nchw", "--mean_values", "[1,2,3]")
        self.assertEqual(self.inputs_of(out), {"data": "f32[1,3,8,8]"})

    def test_exempt_layers_are_left_alone(self) -> None:
        _, free = self.made()
        self.assertEqual(free["exempt"], [])
        for words in (
            ["--finegrain_fusing", "^conv1$"],
            ["--finegrain_fusing", "nothing,onv1"],
            ["--exempt", "conv1"],
        ):
            out, document = self.made(*words)
            self.assertEqual(document["exempt"], ["conv1"])
            self.assertGreater(document["after"]["operators"], free["after"]["operators"])
        done = self.done(self.model, "-o", self.path / "x.xml", "--exempt", "conv1")
        self.assertIn("(exempt) conv1", done.stdout)

    def test_a_mean_file(self) -> None:
        values = picture(3, 10, 12)

        raw = values.tobytes()
        blob = (
            b"".join(bytes([8 * number]) + varint(n) for number, n in ((1, 1), (2, 3), (3, 10), (4, 12)))
            + bytes([42])
            + varint(len(raw))
            + raw
        )
        (self.path / "mean.binaryproto").write_bytes(blob)
        x = picture(1, 3, 8, 8)
        for words, y, column in (([], 1, 2), (["--mean_file_offsets", "(3,0)"], 0, 3)):
            out, _ = self.made("--mean_file", self.path / "mean.binaryproto", *words)
            self.same(
                out,
                self.run_model(self.model, data=x - values[None, :, y : y + 8, column : column + 8]),
                data=x,
            )
        self.refused(
            1,
            self.model,
            "-o",
            self.path / "x.xml",
            "--mean_file",
            self.path / "mean.binaryproto",
            "--mean_file_offsets",
            "(9,9)",
            faq=10,
        )


if __name__ == "__main__":
    unittest.main()
