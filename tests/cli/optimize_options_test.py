"""lamina optimize: every option of the Model Optimizer, in its spellings."""

import re
import unittest
import xml.etree.ElementTree as ET

import numpy as np
from onnx import helper
from optimize_case import Base, lamina, picture, save

# Of the Model Optimizer's options those with an effect have a test where the effect is looked at; here each is
# taken in all its names, with and without "=", and by an unambiguous beginning.
WORKING = {
    "--framework": ("onnx", []),
    "--model_name": ("x", ["-n"]),
    "--input_shape": ("[1,3,8,8]", []),
    "--batch": ("2", ["-b"]),
    "--scale": ("2.5", ["-s"]),
    "--mean_values": ("data(1,2,3)", ["-ms"]),
    "--scale_values": ("data[1,2,3]", []),
    "--input": ("data[1 3 8 8]", []),
    "--output": ("relu1", []),
    "--data_type": ("half", []),
    "--source_layout": ("data(nchw)", []),
    "--layout": ("[n,c,h,w]", []),
    "--freeze_placeholder_with_value": ("", []),
    "--finegrain_fusing": ("conv1,bn", []),
    "--log_level": ("CRITICAL", []),
    "--transform": ("", []),
    "--extensions": ("", []),
}
BOOLEANS = ["--reverse_input_channels", "--compress_to_fp16", "--static_shape", "--silent"]
FLAGS = [
    "--progress",
    "--stream_output",
    "--disable_fusing",
    "--disable_gfusing",
    "--disable_resnet_optimization",
    "--disable_weights_compression",
    "--input_model_is_text",
    "--generate_deprecated_IR_V10",
]
IDLE = [
    "--keep_shape_ops",
    "--enable_concat_optimization",
    "--move_to_preprocess",
    "--legacy_ir_generation",
    "--use_new_frontend",
    "--use_legacy_frontend",
    "--share_weights",
    "--disable_nhwc_to_nchw",
    "--disable_omitting_optional",
    "--enable_flattening_nested_params",
]
IDLE_WITH_VALUE = ["--caffe_parser_path", "-k", "--k", "--tensorboard_logdir"]
REFUSED = [
    "--transformations_config",
    "--tensorflow_use_custom_operations_config",
    "--generate_deprecated_IR_V2",
    "--generate_deprecated_IR_V7",
    "--example_input",
    "--input_checkpoint",
    "--input_meta_graph",
    "--saved_model_dir",
    "--saved_model_tags",
    "--tensorflow_object_detection_api_pipeline_config",
    "--tensorflow_custom_operations_config_update",
    "--tensorflow_custom_layer_libraries",
    "--input_symbol",
    "--nd_prefix_name",
    "--pretrained_model_name",
    "--save_params_from_nd",
    "--legacy_mxnet_model",
    "--enable_ssd_gluoncv",
    "--counts",
    "--remove_output_softmax",
    "--remove_memory",
]
# Where these are tested: optimize_formats_test.py, optimize_values_test.py, optimize_console_test.py, ...
ELSEWHERE = [
    "--input_model",
    "--output_dir",
    "--target_layout",
    "--input_proto",
    "--mean_file",
    "--mean_file_offsets",
    "--version",
]
OURS = [
    "--disable",
    "--exempt",
    "--ir_version",
    "--json",
    "--limit",
    "--log-level",
    "--quiet",
    "--report",
    "--settable",
    "--shape",
    "--weights",
]


class EveryOption(Base):
    def words(self, *more: str) -> list[object]:
        return ["-m", self.model, "-o", self.path / "ir", *more]

    def test_that_works(self) -> None:
        for name, (value, short) in WORKING.items():
            for word in [name, *short]:
                for more in ([word, value], [f"{word}={value}"]):
                    self.assertEqual(self.done(*self.words(*more)).stderr, "", more)

    def test_that_the_ir_tells_of(self) -> None:
        of_the_run = {"--log_level", "--transform", "--extensions", "--silent", "--progress", "--stream_output"}
        of_the_run |= {"--generate_deprecated_IR_V10"}
        words = {name: value for name, (value, _) in WORKING.items()}
        words |= dict.fromkeys([*BOOLEANS, *FLAGS], "true")
        for name, value in words.items():
            if name not in of_the_run and value:
                self.done(*self.words(f"{name}={value}"))
                xml = self.path / "ir" / ("x.xml" if name == "--model_name" else "net.xml")
                told = ET.parse(xml).find(f"rt_info/conversion_parameters/{name[2:]}")
                self.assertIsNotNone(told, name)
                self.assertEqual(told.get("value"), value, name)

    def test_that_is_a_flag(self) -> None:
        for name in [*FLAGS, *BOOLEANS]:
            for more in ([name], [name + "=True"], [name + "=False"], [name[:-1]]):
                self.assertEqual(self.done(*self.words(*more)).stderr, "", more)
        for name in BOOLEANS:
            self.assertEqual(self.done(*self.words(name, "False")).stderr, "")

    def test_that_changes_nothing(self) -> None:
        for name in IDLE:
            done = self.done(*self.words(name))
            self.assertRegex(done.stderr, rf"^\[ WARNING \]  {name}: ")
            self.assertEqual(self.done(*self.words(name + "=False")).stderr, "")
        for name in IDLE_WITH_VALUE:
            for more in ([name, "some/where"], [name + "=some/where"]):
                self.assertRegex(self.done(*self.words(*more)).stderr, rf"^\[ WARNING \]  {name}: ")

    def test_that_is_refused(self) -> None:
        for name in REFUSED:
            for more in ([name], [name, "x"], [name + "=x"]):
                self.refused(2, *self.words(*more), says=f"option {name} cannot be used: ")

    def test_that_help_lists(self) -> None:
        listed = set(re.findall(r"(?m)^ +(?:-\w,)*(--[\w-]+)", lamina("optimize", "--help").stdout))
        known = {*WORKING, *FLAGS, *BOOLEANS, *ELSEWHERE, *OURS, "--help", "--help-all"}
        self.assertEqual(sorted(listed - known), [])

    def test_names_of_the_network_and_folders(self) -> None:
        for name in ("..", ".", "a/b", "/tmp/x"):
            self.refused(2, *self.words("--model_name", name), says="--model_name")
        self.refused(2, *self.words("--model_name", ""), says="--model_name: wanted a value")
        self.refused(2, "-m", self.model, "--output_dir", "", says="--output_dir: wanted a value")
        self.refused(1, *self.words("-n", "n" * 300), says="too long")
        for folder in ("/proc", "/proc/self/none/deep"):
            self.refused(1, "-m", self.model, "-o", folder, "--silent", says=folder, faq=22)
        self.done("-m", self.model, "-o", self.path / "new" / "deep", "-n", "v1.2 β")
        self.assertEqual(
            sorted(p.name for p in (self.path / "new" / "deep").iterdir()), ["v1.2 β.bin", "v1.2 β.xml"]
        )


class Places(Base):
    """Spellings of --input and --output."""

    def test_shapes(self) -> None:
        for text, wanted in (
            ("data[1 3 9 9]", "f32[1,3,9,9]"),
            ("data[1,3,9,9]", "f32[1,3,9,9]"),
            ("data(1, 3, 9, 9)", "f32[1,3,9,9]"),
            ("data:0[1,3,9,9]", "f32[1,3,9,9]"),
            ("data[-1 3 ? 9]", "f32[?,3,?,9]"),
            ("data[1..10,3,..16,8..]", "f32[?,3,?,?]"),
            ("data{f16}[1,3,9,9]", "f16[1,3,9,9]"),
            ("data[1,3,9,9]{u8}", "u8[1,3,9,9]"),
            ("data:0{i64}", "i64[1,3,8,8]"),
        ):
            out, _ = self.made("--input", text)
            self.assertEqual(self.inputs_of(out), {"data": wanted}, text)

    def test_several(self) -> None:
        nodes = [
            helper.make_node("Mul", ["a", "b"], ["ab"], "ab"),
            helper.make_node("Add", ["ab", "c"], ["abc"], "abc"),
            helper.make_node("Add", ["abc", "x"], ["y"], "sum"),
        ]
        inputs = {"a": [2], "b": [2], "c": [1], "x": [1, 3, 4, 2]}
        model = save(self.path / "four.onnx", nodes, [], inputs, "y")
        a, x = np.array([7, 8], np.float32), picture(1, 3, 5, 2)
        out, _ = self.made("--input", "a,b->[1 2],c{i64}->5,x:0[1,3,5,2]", model=model)
        self.assertEqual(self.inputs_of(out), {"a": "f32[2]", "x": "f32[1,3,5,2]"})
        np.testing.assert_allclose(self.run_model(out, a=a, x=x)[0], a * [1, 2] + 5 + x)
        out, _ = self.made("--input", "x,0:ab,1:ab,c->5", "--input_shape", "[1,3,5,2],[2],[2]", model=model)
        names = ["x", "ab/placeholder_port_0", "ab/placeholder_port_1"]
        self.assertEqual(list(self.inputs_of(out)), names)
        np.testing.assert_allclose(self.run_model(out, in0=x, in1=a, in2=a)[0], a * a + 5 + x)
        out, _ = self.made("--input", "ab:0,c,x", model=model)
        self.assertEqual(list(self.inputs_of(out)), ["ab/placeholder_out_port_0", "c", "x"])

    def test_twice(self) -> None:
        line = [self.model, "-o", self.path / "x.xml"]
        self.refused(1, *line, "--input", "data,data", says='"data" is named twice', faq=57)
        self.refused(1, *line, "--input", "data[1,3,8,8],data:0", says='"data" is named twice', faq=57)
        self.refused(
            1, *line, "--input", "conv2,0:conv2,1:sum", says='"conv2" and "0:conv2" are the same place'
        )
        self.refused(1, *line, "--output", "relu1,relu1", says='"relu1" is named twice')
        self.refused(1, *line, "--output", "relu1,relu1:0", says='"relu1" and "relu1:0" are the same place')

    def test_names_with_commas(self) -> None:
        nodes = [
            helper.make_node("Relu", ["in,1"], ["mid,a,b"], "layer,1"),
            helper.make_node("Add", ["mid,a,b", "b"], ["out,1"], "b2"),
        ]
        inputs = {"in,1": [1, 3, 2, 2], "b": [1, 3, 2, 2]}
        model = save(self.path / "commas.onnx", nodes, [], inputs, "out,1")
        x = picture(1, 3, 2, 2)
        out, _ = self.made("--output", "layer,1,out,1", model=model)
        relu, both = self.run_model(out, in0=x, in1=x)
        np.testing.assert_allclose([relu, both], [x, 2 * x])
        for words in (
            ["--input", "in,1[1,3,2,2],b"],
            ["--input", "in,1,b", "--input_shape", "[1,3,2,2],[1,3,2,2]"],
            ["--mean_values", "in,1[0,0,0],b[0,0,0]"],
            ["--mean_values", "in,1[0,0,0]"],
        ):
            out, _ = self.made(*words, model=model)
            self.assertEqual(len(self.inputs_of(out)), 2)
            np.testing.assert_allclose(self.run_model(out, in0=x, in1=x)[0], 2 * x)
        out, _ = self.made("--freeze_placeholder_with_value", "in,1->[" + "1 " * 12 + "]", model=model)
        self.assertEqual(list(self.inputs_of(out)), ["b"])
        self.refused(
            1, model, "-o", self.path / "x.xml", "--output", "layer,2", says="No node with name layer"
        )


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


if __name__ == "__main__":
    unittest.main()
