"""lamina optimize: the Model Optimizer's command line, its output, its errors, and what is written."""

import json
import pathlib
import re
import subprocess
import unittest
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper
from optimize_case import TOOL, Base, constant, lamina, network, picture, save, varint


class Console(Base):
    def test_of_the_model_optimizer(self) -> None:
        out = self.path / "ir" / "deep"
        done = self.done("--input_model", self.model, "--output_dir", out, "--model_name", "other")
        for line in (
            "Model Optimizer arguments:",
            "Common parameters:",
            f"\t- Path to the Input Model: \t{self.model}",
            "\t- IR output name: \tother",
            "\t- Batch: \tNot specified, inherited from the model",
            "\t- Precision of IR: \tFP32",
            "\t- Enable fusing: \tTrue",
            "\t- Enable grouped convolutions fusing: \tTrue",
            "\t- Reverse input channels: \tFalse",
        ):
            self.assertIn(line, done.stdout.splitlines())
        self.assertRegex(done.stdout, r"(?m)^Model Optimizer version: \t\S+")
        self.assertIn(
            f"\n\n[ SUCCESS ] Generated IR version 11 model.\n[ SUCCESS ] XML file: {out}/other.xml\n[ SUCCESS ] BIN file: {out}/other.bin\n",
            done.stdout,
        )
        self.assertRegex(
            done.stdout,
            r"\[ SUCCESS \] Total execution time: \d+\.\d\d seconds\. \n\[ SUCCESS \] Memory consumed: \d+ MB\. \n$",
        )
        self.assertTrue((out / "other.xml").exists() and (out / "other.bin").exists())

    def test_silent_says_success_only(self) -> None:
        for words in (["--silent"], ["--silent=True"], ["--silent", "true"]):
            done = self.done("-m", self.model, "-o", self.path / "ir", *words)
            self.assertTrue(done.stdout.lstrip().startswith("[ SUCCESS ]"), done.stdout)
        self.assertIn(
            "Common parameters", self.done("-m", self.model, "-o", self.path / "ir", "--silent=False").stdout
        )

    def test_the_current_folder_is_where_it_goes(self) -> None:
        (self.path / "here").mkdir()
        done = lamina("optimize", "--input_model", self.model, "--silent", cwd=self.path / "here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(p.name for p in (self.path / "here").iterdir()), ["net.bin", "net.xml"])

    def test_own_form(self) -> None:
        done = self.done(self.model, "-o", self.path / "x.xml")
        self.assertNotIn("Common parameters", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^rewrites +\d+: .*\noperators +\d+ -> \d+\nmultiply-adds .*")
        self.assertIn(f"[ SUCCESS ] XML file: {self.path}/x.xml", done.stdout)
        self.assertEqual(self.done(self.model, "-o", self.path / "x.xml", "--quiet").stdout, "")
        document = json.loads(self.done(self.model, "-o", self.path / "x.xml", "--json", "-").stdout)
        self.assertEqual((document["version"], document["xml"]), (11, str(self.path / "x.xml")))
        self.assertGreater(document["before"]["operators"], document["after"]["operators"])

    def test_version_progress_levels(self) -> None:
        self.assertRegex(self.done("--version").stdout, r"^Version of Model Optimizer is: lamina \d")
        lines = self.done(
            "-m", self.model, "-o", self.path, "-n", "p", "--stream_output", "--silent"
        ).stdout.splitlines()
        self.assertIn("Progress: [....................] 100.00% done", lines)
        words = [TOOL, "optimize", "-m", self.model, "-o", self.path, "-n", "p", "--progress"]
        self.assertIn(b"\rProgress: [", subprocess.run(words, check=True, capture_output=True).stdout)
        for level in ("CRITICAL", "ERROR", "WARN", "WARNING", "INFO", "DEBUG", "NOTSET"):
            self.done("-m", self.model, "-o", self.path, "-n", "p", "--log_level", level)
        self.refused(2, "-m", self.model, "--log_level", "LOUD", says="LOUD")

    def test_help_has_an_example_that_works(self) -> None:
        text = lamina("optimize", "--help").stdout
        example = text[text.index("Example:") :].splitlines()[1].split()
        self.assertEqual(example[0], "lamina")
        (self.path / "model.onnx").write_bytes(self.model.read_bytes())
        done = lamina(*example[1:], cwd=self.path)
        self.assertEqual(done.returncode, 0, done.stderr)


class Documentation(Base):
    def test_every_option_has_its_line(self) -> None:
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "optimize.md").read_text()
        options = set(re.findall(r"(?<![\w-])--[a-zA-Z_][\w-]*", lamina("optimize", "--help").stdout))
        self.assertGreater(len(options), 40)
        self.assertEqual(sorted(o for o in options if f"`{o}" not in page), ["--help", "--help-all"])


class Spellings(Base):
    def test_short_names_and_beginnings(self) -> None:
        same = []
        for words in (
            ["--mean_values", "[1,2,3]", "--scale", "2"],
            ["-ms", "[1,2,3]", "-s", "2"],
            ["--mean_v=(1,2,3)", "--scale=2"],
            ["-ms=data[1 2 3]", "-s=2.0"],
        ):
            out, _ = self.made(*words)
            same.append(self.run_model(out, data=picture(1, 3, 8, 8))[0])
        for other in same[1:]:
            np.testing.assert_array_equal(other, same[0])

    def test_ambiguous_or_unknown_ones(self) -> None:
        self.refused(2, self.model, "-o", self.path / "x.xml", "--inp", "a", says="--input")
        self.refused(2, self.model, "-o", self.path / "x.xml", "--imput_shape", "[1]", says="--input_shape")
        self.refused(2, self.model, "-o", self.path / "x.xml", "--batch", "0", says="--batch")
        self.refused(2, self.model, "-o", self.path / "x.xml", "-b", "-1")
        self.refused(2, self.model, "-o", self.path / "x.xml", "--data_type", "FP8", says="FP8")
        self.refused(2, self.model, "-o", self.path / "x.xml", "--framework", "torch", says="torch")
        self.refused(2, self.model, "-o", self.path / "x.xml", "--framework", "mxnet", says="mxnet")
        self.refused(2, self.model, "-o", self.path / "x.xml", "--scale", "0", says="--scale")
        self.refused(2, self.model, says="-o")
        self.refused(2, "-o", self.path, says="MODEL")
        self.refused(2, self.model, "-m", self.model, says="two models")
        self.refused(2, self.model, "-o", self.path / "x.onnx", says="FILE.xml")
        self.refused(2, self.model, "-o", self.path / "x.xml", "--finegrain_fusing", "a(", says="a(")
        self.refused(
            2, self.model, "-o", self.path / "x.xml", "--disable", "fuse-nothing", says="fuse-nothing"
        )

    def test_options_without_an_effect_say_so(self) -> None:
        for words in (
            ["--use_legacy_frontend"],
            ["--enable_concat_optimization"],
            ["--keep_shape_ops"],
            ["-k", "x"],
            ["--move_to_preprocess"],
            ["--disable_nhwc_to_nchw"],
            ["--legacy_ir_generation"],
        ):
            done = self.done("-m", self.model, "-o", self.path, "-n", "x", *words)
            self.assertIn(words[0], done.stderr)
            self.assertTrue(done.stderr.startswith("[ WARNING ]  "), done.stderr)
        for words in (
            ["--static_shape"],
            ["--extensions", ""],
            ["--transform", ""],
            ["--input_model_is_text"],
        ):
            self.assertEqual(self.done("-m", self.model, "-o", self.path, "-n", "x", *words).stderr, "")

    def test_options_of_other_frameworks_are_refused(self) -> None:
        for words in (
            ["--input_checkpoint", "x"],
            ["--saved_model_dir", "x"],
            ["--input_symbol", "x"],
            ["--counts", "x"],
            ["--generate_deprecated_IR_V7"],
            ["--transformations_config", "x"],
            ["--tensorflow_object_detection_api_pipeline_config", "x"],
        ):
            self.refused(2, "-m", self.model, *words, says=words[0])
        self.refused(
            2,
            "-m",
            self.model,
            "--transform",
            "LowLatency2[use_const_initializer=False]",
            says="Transformation LowLatency2 is not available.",
        )


class Refusals(Base):
    """Every question of the FAQ that can come up, with an input that it comes up with."""

    def fails(self, question: int, *arguments: object, model: object = None) -> None:
        self.refused(
            1,
            "--input_model",
            model or self.model,
            "--output_dir",
            self.path / "ir",
            "--silent",
            *arguments,
            faq=question,
        )
        self.assertFalse((self.path / "ir").is_dir() and list((self.path / "ir").iterdir()))

    def test_shapes_and_names(self) -> None:
        self.fails(56, "--input_shape", "[1,3,8,8]", "--batch", "1")
        self.fails(56, "--input", "data[1,3,8,8]", "--batch", "1")
        self.fails(57, "--input_shape", "1,3,8,8")
        self.fails(57, "--input_shape", "[1,3,8,x]")
        self.fails(58, "--input_shape", "[1,3,8,8],[1]")
        self.fails(58, "--input", "data", "--input_shape", "[1,3,8,8],[1]")
        self.fails(51, "--output", "nothing")
        self.fails(51, "--input", "nothing")
        self.fails(50, "--input", "data{f33}")
        self.fails(38, "--input_shape", "[1,4,8,8]")
        self.fails(59, "--freeze_placeholder_with_value", "data->x")
        self.fails(59, "--freeze_placeholder_with_value", "data->[1,2]")

    def test_cuts(self) -> None:
        self.fails(27, "--input", "1:sum")
        self.fails(28, "--input", "0:data")
        self.fails(29, "--input", "7:sum")
        self.fails(30, "--input", "sum[1,4,8,8]")
        self.fails(34, "--output", "conv1:3")
        self.fails(
            33,
            "--input",
            "w2c",
            model=save(
                self.path / "c.onnx",
                [
                    helper.make_node("Relu", ["w"], ["r"], "w2c"),
                    helper.make_node("Add", ["x", "r"], ["y"], "a"),
                ],
                [constant("w", 2)],
                {"x": [2]},
                "y",
            ),
        )

    def test_inputs_without_a_batch(self) -> None:
        scalar = save(self.path / "s.onnx", [helper.make_node("Relu", ["x"], ["y"], "r")], [], {"x": []}, "y")
        self.fails(39, "--batch", "2", model=scalar)
        two = save(
            self.path / "t.onnx",
            [helper.make_node("Add", ["x", "z"], ["y"], "a")],
            [],
            {"x": [2], "z": [2]},
            "y",
        )
        self.fails(32, "--input_shape", "[2]", model=two)
        self.fails(61, "--mean_values", "[1]", model=two)
        self.fails(62, "--scale_values", "[1]", model=two)
        self.fails(9, "--mean_file", self.model, model=two)

    def test_preprocessing(self) -> None:
        self.fails(19, "--scale", "2", "--scale_values", "[1,2,3]")
        self.fails(17, "--mean_file", "m.binaryproto", "--mean_values", "[1,2,3]")
        self.fails(18, "--mean_file", "m.binaryproto", "--mean_file_offsets", "(-1,0)")
        self.fails(10, "--mean_file", self.model)
        self.fails(59, "--mean_values", "[1,2,x]")
        self.fails(60, "--mean_values", "[1,2]")
        self.fails(60, "--scale_values", "data[1,2]")
        self.fails(61, "--mean_values", "[1,2,3],[1]")
        self.fails(83, "--mean_values", "dada[1,2,3]")
        self.fails(83, "--layout", "dada(nchw)")
        self.fails(101, "--mean_values", "1,2,3")

    def test_files(self) -> None:
        (self.path / "model.bin").write_bytes(b"x" * 100)
        self.fails(15, model=self.path / "model.bin")
        self.refused(1, "-m", self.model, "-o", self.model / "x", "--silent", faq=22)
        self.refused(1, "-m", self.path / "none.onnx", says="none.onnx")
        (self.path / "bad.onnx").write_bytes(b"nonsense")
        self.refused(1, "-m", self.path / "bad.onnx", "--silent", says="[ ERROR ]  ")

    def test_unknown_operators(self) -> None:
        nodes = [
            helper.make_node("Relu", ["x"], ["r"], "relu"),
            helper.make_node("Mystery", ["r"], ["y"], "what", domain="odd"),
        ]
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("odd", 1)]
        path = self.path / "odd.onnx"
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
        self.fails(45, model=path)
        self.made("--output", "relu", model=path)  # cut off

    def test_an_empty_network(self) -> None:
        empty = save(self.path / "e.onnx", [], [constant("w", 2)], {}, "w")
        self.fails(79, model=empty)

    def test_in_lamina_s_form_errors_are_lamina_s(self) -> None:
        self.refused(1, self.path / "none.onnx", "-o", self.path / "x.xml", says="lamina: ")

    def test_the_model_is_not_overwritten(self) -> None:
        out, _ = self.made()
        before = out.read_bytes()
        for words in (
            ["-m", out, "-o", out.parent],
            [out, "-o", out],
            ["-m", out, "-o", self.path / "out", "-n", "made"],
        ):
            self.refused(2, *words, says="overwritten")
        self.assertEqual(out.read_bytes(), before)


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
            self.assertEqual("What f16 holds exactly stays f16" in done.stdout, kept, done.stdout)
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
