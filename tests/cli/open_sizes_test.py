"""Sizes that a model leaves open: every verb asks for them with a line that can be pasted, and a compiled model keeps those that it was compiled for."""

import json
import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

TOOL = os.environ["LAMINA_TOOL"]


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, timeout=120)


def saved(path: pathlib.Path, nodes: list[onnx.NodeProto], inputs: dict[str, list[int | str | None] | None], weights: dict[str, np.ndarray] | None = None) -> pathlib.Path:
    """A model with the result `y`; an input of None has no known rank."""
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    constants = [onnx.numpy_helper.from_array(value, name) for name, value in (weights or {}).items()]
    graph = helper.make_graph(nodes, "open", ports, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


class OpenSizes(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.file = self.path / "m.lamina"

    def picture(self) -> pathlib.Path:
        """A convolution on pictures of any size."""
        weights = {"w": np.ones((4, 3, 3, 3), np.float32)}
        return saved(self.path / "picture.onnx", [helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1] * 4), helper.make_node("Relu", ["c"], ["y"], "relu")], {"x": ["N", 3, "H", "W"]}, weights)

    def verbs(self) -> list[list[object]]:
        """The verbs that need to know how large the inputs are."""
        return [["run"], ["check"], ["benchmark", "--seconds", "0"], ["explain"], ["explain", "--no-run"], ["explain", "--summary", "--no-run"], ["graph", "--stage", "runtime", "-o", self.path / "g.svg"], ["compile", "-o", self.file]]

    def asked(self, *arguments: object) -> list[str]:
        """The options that the question proposes."""
        done = lamina(*arguments)
        self.assertEqual(done.returncode, 2, f"{arguments}: {done.stdout}{done.stderr}")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        words = shlex.split(done.stderr.split("with ", 1)[1].split(" (or")[0])
        self.assertIn("--shape", words)
        return words

    def test_every_verb_asks_and_takes_the_answer(self) -> None:
        model = self.picture()
        for verb, *options in self.verbs():
            words = self.asked(verb, model, *options)
            self.assertEqual(words, ["--shape", "x=1,3,224,224"])
            done = lamina(verb, model, *options, "--shape", "x=1,3,32,32")
            self.assertEqual(done.returncode, 0, f"{verb}: {done.stderr}")
        self.assertEqual(lamina("run", model, *words).returncode, 0)
        self.assertIn('"x" f32[N,3,H,W]', lamina("run", model).stderr)
        done = lamina("benchmark", "-m", model, "-t", "0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is dynamic: give -data_shape x[1,3,224,224]", done.stderr)
        self.assertEqual(lamina("benchmark", "-m", model, "-niter", "1", "-data_shape", "x[1,3,24,24]").returncode, 0)

    def test_verbs_that_need_no_sizes_do_not_ask(self) -> None:
        model = self.picture()
        for words in (["inspect"], ["graph", "--stage", "original", "-o", self.path / "g.svg"], ["graph", "--compare", "-o", self.path / "g.html"], ["optimize", "-o", self.path / "o.xml"]):
            done = lamina(words[0], model, *words[1:])
            self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")

    def test_batches_are_one(self) -> None:
        model = saved(self.path / "b.onnx", [helper.make_node("Relu", ["x"], ["y"])], {"x": ["N", 8]})
        done = lamina("run", model)
        self.assertIn("f32[1,8]", done.stderr)
        self.assertIn("planned for x[1,8]", lamina("compile", model, "-o", self.file).stdout)

    def test_proposals_fit_the_layers(self) -> None:
        add = [helper.make_node("Add", ["a", "b"], ["y"], "add")]
        two = saved(self.path / "two.onnx", add, {"a": ["N", "length"], "b": ["N", "length"]})
        words = self.asked("check", two)
        self.assertEqual(words, ["--shape", "a=1,128", "--shape", "b=1,128"])
        self.assertEqual(lamina("check", two, *words).returncode, 0)
        # Only one size of the usual ones fits the weights.
        product = [helper.make_node("MatMul", ["x", "w"], ["y"], "product")]
        narrow = saved(self.path / "narrow.onnx", product, {"x": ["N", "features"]}, {"w": np.ones((64, 2), np.float32)})
        words = self.asked("explain", narrow)
        self.assertEqual(words, ["--shape", "x=1,64"])
        self.assertEqual(lamina("run", narrow, *words).returncode, 0)
        ranks = saved(self.path / "ranks.onnx", product, {"x": None}, {"w": np.ones((128, 2), np.float32)})
        words = self.asked("run", ranks)
        self.assertEqual(lamina("run", ranks, *words).returncode, 0)
        # A state with its batch in the middle, beside an input with its batch in front.
        state = saved(self.path / "state.onnx", [helper.make_node("Add", ["x", "h"], ["y"])], {"x": ["N", 16], "h": [2, None, 16]})
        self.assertEqual(self.asked("run", state), ["--shape", "h=2,1,16"])
        odd = saved(self.path / "odd.onnx", [helper.make_node("Relu", ["in put's $HOME"], ["y"])], {"in put's $HOME": [1, "n"]})
        words = self.asked("run", odd)
        self.assertEqual(words, ["--shape", "in put's $HOME=1,128"])
        self.assertEqual(lamina("run", odd, *words).returncode, 0)

    def test_many_inputs_are_all_named(self) -> None:
        names = [f"a_rather_long_name_of_an_input_{i}" for i in range(12)]
        model = saved(self.path / "many.onnx", [helper.make_node("Sum", names, ["y"])], {name: ["N", "length"] for name in names})
        words = self.asked("run", model)
        self.assertEqual(words[1::2], [f"{name}=1,128" for name in names])
        self.assertEqual(lamina("run", model, *words).returncode, 0)

    def test_a_file_answers(self) -> None:
        np.save(self.path / "x.npy", np.zeros((2, 3, 20, 24), np.float32))
        for verb, *options in self.verbs()[:5]:
            done = lamina(verb, self.picture(), *options, "--input", self.path / "x.npy")
            self.assertEqual(done.returncode, 0, f"{verb}: {done.stderr}")

    def test_a_compiled_model_keeps_its_sizes(self) -> None:
        done = lamina("compile", self.picture(), "-o", self.file, "--shape", "x=2,3,40,48")
        self.assertIn("planned for x[2,3,40,48]", done.stdout)
        self.assertIn("compiled for  x[2,3,40,48]", lamina("inspect", self.file).stdout)
        self.assertEqual(json.loads(lamina("inspect", self.file, "--json", "-").stdout)["compiled_for"], [[[2, 3, 40, 48]]])
        for verb, *options in self.verbs()[:-1]:
            done = lamina(verb, self.file, *options)
            self.assertEqual(done.returncode, 0, f"{verb}: {done.stderr}")
        self.assertIn("f32[2,3,40,48], the shape that it was compiled for", lamina("run", self.file).stderr)
        self.assertIn("y  f32[2,4,40,48]", lamina("run", self.file).stdout)
        done = lamina("benchmark", "-m", self.file, "-niter", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[2,3,40,48]", done.stdout)
        other = lamina("run", self.file, "--shape", "x=1,3,16,16")
        self.assertIn("y  f32[1,4,16,16]", other.stdout)
        again = self.path / "again.lamina"
        self.assertIn("planned for x[2,3,40,48]", lamina("compile", self.file, "-o", again).stdout)

    def test_compiled_again_it_keeps_the_new_sizes(self) -> None:
        lamina("compile", self.picture(), "-o", self.file, "--shape", "x=2,3,40,48")
        again = self.path / "again.lamina"
        done = lamina("compile", self.file, "-o", again, "--shape", "x=1,3,8,8")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(lamina("inspect", again, "--json", "-").stdout)["compiled_for"], [[[1, 3, 8, 8]]])

    def test_sizes_may_stay_open(self) -> None:
        done = lamina("compile", self.picture(), "-o", self.file, "--shape", "x=?,3,?,?")
        self.assertIn("not planned for any input sizes", done.stdout)
        self.assertEqual(json.loads(lamina("inspect", self.file, "--json", "-").stdout)["compiled_for"], [])
        self.assertEqual(self.asked("run", self.file), ["--shape", "x=1,3,224,224"])
        self.assertEqual(lamina("run", self.file, "--shape", "x=1,3,16,16").returncode, 0)
        self.assertEqual(lamina("compile", self.picture(), "-o", self.file, "--tune", "--shape", "x=?,3,?,?").returncode, 2)

    def test_fixed_sizes_are_not_asked_for(self) -> None:
        model = saved(self.path / "fixed.onnx", [helper.make_node("Relu", ["x"], ["y"])], {"x": [2, 8]})
        self.assertIn("planned for x[2,8]", lamina("compile", model, "-o", self.file).stdout)
        self.assertNotIn("which it was compiled for", lamina("run", self.file).stderr)


if __name__ == "__main__":
    unittest.main()
