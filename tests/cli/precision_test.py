"""--precision bf16: what runs in it, where it is used, and how it is said."""

import json
import os
import pathlib
import re
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree
from tempfile import TemporaryDirectory

import onnx
from onnx import TensorProto, helper
from sample_models import DYNAMIC, LARGE

TOOL = os.environ["LAMINA_TOOL"]
MACHINES = pathlib.Path(__file__).resolve().parents[2] / "machines"
LIMITED = any(name in os.environ for name in ("LAMINA_MAX_ISA", "ONEDNN_MAX_CPU_ISA"))
HERE = "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text() and not LIMITED
WITHOUT = "avx2 has no bf16 instructions"


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, timeout=300)


class Precision(unittest.TestCase):
    def text(self, *arguments: object) -> str:
        done = lamina(*arguments)
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}")
        return done.stdout

    def line(self, *arguments: object) -> str:
        found = re.findall(r"^precision   (.*)$", self.text(*arguments), re.MULTILINE)
        self.assertEqual(len(found), 1)
        return found[0]

    def test_f32_unless_asked(self) -> None:
        for verb in (("run",), ("check",), ("benchmark", "--seconds", "0.01")):
            self.assertRegex(self.line(verb[0], LARGE, *verb[1:]), r"^f32: \d+ layers$")

    @unittest.skipUnless(HERE, "this processor has no bf16 instructions, or is limited to others")
    def test_the_line(self) -> None:
        for verb in (("run",), ("check",), ("benchmark", "--seconds", "0.01")):
            self.assertRegex(self.line(verb[0], LARGE, "--precision", "bf16", *verb[1:]), r"^bf16: \d+ of \d+ layers; f32: \d+$")
        d = json.loads(self.text("benchmark", LARGE, "--precision", "bf16", "--seconds", "0.01", "--json", "-"))
        self.assertEqual((d["precision"], d["precision_used"], d["precision_reason"]), ("bf16", "bf16", ""))
        self.assertGreater(d["precision_layers"]["bf16"], 0)

    def test_bodies_count_as_f32(self) -> None:
        ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xyte"]
        bodies = [helper.make_graph([helper.make_node(op, ["x"], [out])], out, [], [port]) for op, out, port in (("Exp", "t", ports[2]), ("Tanh", "e", ports[3]))]
        nodes = [helper.make_node("If", ["c"], ["y"], "branch", then_branch=bodies[0], else_branch=bodies[1])]
        graph = helper.make_graph(nodes, "g", [ports[0], helper.make_tensor_value_info("c", TensorProto.BOOL, [])], [ports[1]])
        with TemporaryDirectory() as folder:
            path = f"{folder}/m.onnx"
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
            self.assertRegex(self.line("run", path), r"^f32: \d+ layers$")

    @unittest.skipUnless(HERE, "this processor has no bf16 instructions, or is limited to others")
    def test_every_layer_says_its_own(self) -> None:
        layers = json.loads(self.text("explain", LARGE, "--precision", "bf16", "--no-run", "--json", "-"))["layers"]
        said = [node["precision"] for layer in layers for node in layer["nodes"] if "precision" in node]
        self.assertTrue(any(words.startswith("bf16") for words in said), said)
        with TemporaryDirectory() as folder:
            path = f"{folder}/graph.xml"
            self.text("benchmark", LARGE, "--precision", "bf16", "--seconds", "0.01", "--runtime-graph", path)
            types = {data.get("runtimePrecision") for data in ElementTree.parse(path).iter("data")}
            self.assertIn("bf16", types)

    @unittest.skipUnless(HERE, "this processor has no bf16 instructions, or is limited to others")
    def test_exempt_layers_stay(self) -> None:
        words = ("explain", LARGE, "--precision", "bf16", "--no-run", "--json", "-")
        for layer in json.loads(self.text(*words, "--exempt", ".*"))["layers"]:
            for node in layer["nodes"]:
                self.assertNotIn("bf16", node.get("precision", ""))

    @unittest.skipUnless(HERE, "this processor has no bf16 instructions, or is limited to others")
    def test_check_tells_the_drift(self) -> None:
        d = json.loads(self.text("check", LARGE, "--precision", "bf16", "--json", "-"))
        self.assertTrue(d["clean"])
        self.assertTrue(d["drift"])
        self.assertTrue(all(drift["max"] > 0 for drift in d["drift"]))
        self.assertTrue(d["rewriting"] and d["layers"])
        text = self.text("check", LARGE, "--precision", "bf16")
        self.assertIn("against the interpreter with bf16", text)
        self.assertRegex(text, r"(?m)^drift output \S+ against f32: max ")
        self.assertNotIn("drift", self.text("check", LARGE))

    @unittest.skipUnless(HERE, "this processor has no bf16 instructions, or is limited to others")
    def test_nothing_in_bf16_drifts_nowhere(self) -> None:
        words = ("check", LARGE, "--precision", "bf16", "--disable", "bf16-product")
        self.assertEqual(json.loads(self.text(*words, "--json", "-"))["drift"], [])
        self.assertRegex(self.text(*words), r"(?m)^drift none: nothing is in bf16$")
        self.assertNotIn("with bf16", self.text(*words))

    def test_processors_without_it_keep_f32_and_say_why(self) -> None:
        self.assertRegex(self.line("run", LARGE, "--precision", "bf16", "--max-isa", "avx2"), rf"^f32: \d+ layers; ({WITHOUT}|sse41 has no bf16 instructions)$")
        for name in ("haswell-laptop", "zen2-server", "hybrid-desktop"):
            text = self.text("explain", LARGE, "--machine", MACHINES / f"{name}.json", "--precision", "bf16")
            self.assertIn(f"precision: the model's precision instead of bf16: {WITHOUT}", text)
            self.assertNotIn("bf16 ->", text)
        text = self.text("explain", LARGE, "--machine", MACHINES / "amx-server.json", "--precision", "bf16", "--max-isa", "avx2")
        self.assertIn(WITHOUT, text)

    @unittest.skipUnless(HERE, "oneDNN cannot be asked for bf16 here")
    def test_machines_with_it_use_it(self) -> None:
        for name in ("zen4-desktop", "amx-server"):
            text = self.text("explain", LARGE, "--machine", MACHINES / f"{name}.json", "--precision", "bf16")
            self.assertIn("precision: bf16 for convolutions", text)
            self.assertRegex(text, r"_bf16 ")

    @unittest.skipUnless(HERE, "this processor has no bf16 instructions, or is limited to others")
    def test_sizes_that_are_known_late(self) -> None:
        model, *shapes = DYNAMIC, "--shape", "picture=1,1,120,160"
        self.assertRegex(self.line("run", model, *shapes, "--precision", "bf16"), r"^bf16: ")


if __name__ == "__main__":
    unittest.main()
