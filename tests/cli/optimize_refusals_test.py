"""lamina optimize: every question of the Model Optimizer's FAQ that can come up, and files that are left alone."""

import unittest

import onnx
from onnx import TensorProto, helper
from optimize_case import Base, constant, save


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


if __name__ == "__main__":
    unittest.main()
