"""lamina explain ends with five sentences and a line to try, which are true of the model."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from names_test import quantised
from onnx import TensorProto, helper, numpy_helper
from sample_models import CONTROL_FLOW, DYNAMIC, LARGE, SMALL, with_inputs

TOOL = os.environ["LAMINA_TOOL"]
LIBRARIES = pathlib.Path(os.environ["LAMINA_TEST_EXTENSIONS"])
MACHINES = pathlib.Path(__file__).resolve().parents[2] / "machines"
SENTENCES = ("time", "fusion", "integers", "bf16", "next")


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, timeout=300)


def network(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], shape: list[int | str]) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(values, name) for name, values in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def weights(*shape: int) -> np.ndarray:
    return (np.random.default_rng(3).standard_normal(shape) * 0.1).astype(np.float32)


class Verdict(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def saved(self, model: onnx.ModelProto, name: str = "m.onnx") -> pathlib.Path:
        path = self.folder / name
        onnx.save(model, path)
        return path

    def explained(self, *arguments: object) -> tuple[dict, dict]:
        """What all of JSON says, and the verdict, of which what holds for each model is looked at here."""
        done = lamina("explain", *arguments, "--json", "-")
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}")
        document = json.loads(done.stdout)
        verdict = document["verdict"]
        for about in SENTENCES:
            self.assertTrue(verdict[about].endswith("."), verdict[about])
            self.assertNotIn("\n", verdict[about])
        layers = {layer["name"] for layer in document["layers"]} | {node["node"] for layer in document["layers"] for node in layer["nodes"]}
        for sentence in (verdict["time"], verdict["integers"]):
            for name in re.findall(r"'([^']+)'", sentence):
                self.assertIn(name, layers, "it names what is there")
        for product in verdict["products"]:
            self.assertIn(product["layer"], layers)
        self.assertTrue(verdict["command"].startswith("lamina "))
        return document, verdict

    def tried(self, verdict: dict, *more: str) -> None:
        """The line is one that can be pasted."""
        words = shlex.split(verdict["command"])[1:]
        self.assertNotIn("SAMPLES", words)
        done = lamina(*words, *more)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")

    def test_f32_network(self) -> None:
        document, verdict = self.explained(LARGE, "--no-run")
        self.assertIn("A run is estimated at ", verdict["time"])
        self.assertIn("Convolution", verdict["time"])
        shares = {layer["name"]: 0.0 for layer in document["layers"]}
        for layer in document["layers"]:
            for node in layer["nodes"]:
                shares[layer["name"]] += node.get("estimate_us", 0) if node["chief"] and "kernel" in node else 0
        dearest = max(shares, key=lambda name: shares[name])
        self.assertIn(f"'{dearest}'", verdict["time"])
        self.assertRegex(verdict["integers"], r"^8 bits would (pay|not pay|gain almost nothing) on this processor")
        self.assertTrue(all(product["runs"] == "f32" for product in verdict["products"]))

    def test_measured(self) -> None:
        document, verdict = self.explained(LARGE, "--seconds", "0.05", "--threads", "1")
        self.assertRegex(verdict["time"], r"^A run takes [0-9.e+]+ [mu]s: ")
        self.assertIn("us", document)

    def test_text(self) -> None:
        text = lamina("explain", SMALL, "--no-run").stdout
        lines = text[text.index("\nverdict\n") + len("\nverdict\n") :].splitlines()
        self.assertEqual(len(lines), 6, "five sentences and the line")
        self.assertTrue(all(line.startswith("  ") for line in lines))
        self.assertTrue(lines[5].startswith("    lamina "))
        self.assertIn("\nverdict\n", lamina("explain", SMALL, "--no-run", "--summary").stdout)
        for more in (("--node", "Convolution28"), ("--plan",)):
            self.assertNotIn("\nverdict\n", lamina("explain", SMALL, "--no-run", *more).stdout)

    def test_quantised_network(self) -> None:
        path = self.saved(quantised(named=True))
        _, verdict = self.explained(path, "--no-run")
        self.assertRegex(verdict["integers"], r"^8 bits (pay|do not pay) on this processor")
        self.assertIn("2 products", verdict["integers"])
        self.assertEqual({product["runs"] for product in verdict["products"]}, {"u8"})
        self.assertRegex(verdict["bf16"], "all 2 products run in 8 bits already|has no bf16 instructions")
        self.tried(verdict, "--no-run") if " explain " in verdict["command"] else self.tried(verdict, "--seconds", "0.05")
        _, floats = self.explained(path, "--no-run", "--precision", "f32")
        self.assertEqual({product["runs"] for product in floats["products"]}, {"f32"})
        self.assertIn("8 bits would ", floats["integers"])
        self.assertIn("as you asked", floats["integers"])

    def test_products_of_two_computed_tensors(self) -> None:
        """In 8 bits where the model says so; nobody would quantise them in a model of floats."""
        nodes = [
            helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], "round"),
            helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"], "number"),
            helper.make_node("Transpose", ["d"], ["t"], "turn", perm=[0, 2, 1]),
            helper.make_node("MatMul", ["d", "t"], ["y"], "product"),
        ]
        constants = {"scale": np.float32(0.1), "zero": np.int8(0)}
        path = self.saved(network(nodes, constants, [1, 64, 64]))
        _, verdict = self.explained(path, "--no-run")
        self.assertEqual([(product["layer"], product["runs"]) for product in verdict["products"]], [("product", "i8")])
        self.assertRegex(verdict["integers"], "^8 bits (pay|do not pay) on this processor")
        _, floats = self.explained(path, "--no-run", "--precision", "f32")
        self.assertEqual(floats["products"], [])

    def test_transformer(self) -> None:
        nodes = [helper.make_node("MatMul", ["x", name], [f"{name}_out"], name) for name in ("query", "key", "value")]
        nodes += [
            helper.make_node("Transpose", ["key_out"], ["keys"], "turn", perm=[0, 2, 1]),
            helper.make_node("MatMul", ["query_out", "keys"], ["scores"], "scores"),
            helper.make_node("Softmax", ["scores"], ["shares"], "shares", axis=-1),
            helper.make_node("MatMul", ["shares", "value_out"], ["y"], "mix"),
        ]
        model = network(nodes, {"query": weights(64, 64), "key": weights(64, 64).T.copy(), "value": -weights(64, 64)}, [1, 48, 64])
        _, verdict = self.explained(self.saved(model), "--no-run")
        self.assertRegex(verdict["time"], "MatMul|ScaledDotProductAttention")
        self.assertEqual({product["layer"] for product in verdict["products"]}, {"query", "key", "value"}, "those with constant weights")

    def test_recurrent_network(self) -> None:
        nodes = [helper.make_node("LSTM", ["x", "w", "r"], ["y"], "memory", hidden_size=32)]
        model = network(nodes, {"w": weights(1, 128, 16), "r": weights(1, 128, 32)}, [20, 1, 16])
        _, verdict = self.explained(self.saved(model), "--no-run")
        self.assertIn("'memory'", verdict["time"])
        self.assertIn("no convolution or matrix product with constant weights", verdict["integers"])
        self.assertRegex(verdict["bf16"], "^bf16 would gain nothing: ")
        self.assertEqual(verdict["products"], [])

    def test_tiny_network(self) -> None:
        _, verdict = self.explained(self.saved(network([helper.make_node("Sigmoid", ["x"], ["y"], "only")], {}, [1, 4])), "--no-run")
        self.assertIn("'only' (100 %)", verdict["time"])
        self.assertIn("1 element-wise step runs on its own", verdict["fusion"])
        self.assertIn("it reads the input 'x'", verdict["fusion"])
        self.tried(verdict, "--seconds", "0.05")

    def test_nothing_to_compute(self) -> None:
        _, verdict = self.explained(self.saved(network([helper.make_node("Identity", ["x"], ["y"], "same")], {}, [1, 4])), "--no-run")
        self.assertTrue(verdict["time"])

    def test_open_sizes_are_said_again(self) -> None:
        """The line repeats what was said of sizes, and quotes what a shell would take for its own."""
        nodes = [helper.make_node("Conv", ["x", "w"], ["y"], "conv", pads=[1, 1, 1, 1])]
        path = self.saved(network(nodes, {"w": weights(8, 3, 3, 3)}, ["N", 3, "H", "W"]), "it's a model.onnx")
        for size in (8, 64):
            _, verdict = self.explained(path, "--no-run", "--shape", f"x=1,3,{size},{size}")
            words = shlex.split(verdict["command"])
            self.assertEqual(words[2], str(path))
            if words[1] != "quantize":
                self.assertIn(f"x=1,3,{size},{size}", words)
                self.tried(verdict, "--seconds", "0.05")
        self.explained(*with_inputs(DYNAMIC), "--no-run")

    def test_control_flow(self) -> None:
        self.explained(*with_inputs(CONTROL_FLOW), "--seconds", "0.01")

    def test_what_could_be_fused(self) -> None:
        """An exempt layer runs on its own behind a convolution, and the reason is said."""
        nodes = [helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["y"], "relu")]
        path = self.saved(network(nodes, {"w": weights(8, 3, 3, 3)}, [1, 3, 32, 32]))
        _, fused = self.explained(path, "--no-run")
        self.assertIn("Nothing is left to fuse: 1 of the 2 layers runs", fused["fusion"])
        _, apart = self.explained(path, "--no-run", "--exempt", "relu")
        self.assertIn("1 element-wise step could run in the step before it and does not", apart["fusion"])
        self.assertIn("'relu' after 'conv'", apart["fusion"])
        self.assertIn("'relu' is exempt", apart["fusion"])

    def test_custom_layers(self) -> None:
        xml = self.folder / "m.xml"
        xml.write_text(
            """<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,3,8,8" element_type="f32"/><output><port id="0"/></output></layer>
<layer id="1" name="mine" type="Leak" version="test.ops"><data slope="0.25"/><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="2" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"""
        )
        _, verdict = self.explained(xml, "--extensions", LIBRARIES / "operations.so", "--no-run")
        self.assertIn("'mine' (100 %)", verdict["time"])
        self.assertIn(f"--extensions {LIBRARIES / 'operations.so'}", verdict["command"])
        self.tried(verdict, "--seconds", "0.05")

    def test_other_machines(self) -> None:
        _, old = self.explained(LARGE, "--machine", MACHINES / "haswell-laptop.json")
        self.assertIn("that processor (avx2, without VNNI)", old["integers"])
        self.assertIn("avx2 has no bf16 instructions", old["bf16"])
        self.tried(old)
        _, new = self.explained(LARGE, "--machine", MACHINES / "amx-server.json")
        self.assertIn("that processor (avx512, with VNNI)", new["integers"])
        # oneDNN offers bf16 for another machine only where the one at hand has it, too.
        self.assertRegex(new["bf16"], "^bf16 would (save up to|gain almost nothing|gain nothing: no kernel)")
        gains = [product["f32_us"] / product["i8_us"] for product in new["products"] if "i8_us" in product]
        before = [product["f32_us"] / product["i8_us"] for product in old["products"] if "i8_us" in product]
        self.assertGreater(sum(gains) / len(gains), sum(before) / len(before), "VNNI is what 8 bits want")
        self.tried(new)


if __name__ == "__main__":
    unittest.main()
