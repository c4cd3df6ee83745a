"""Ctrl-C in every verb: the command ends with one line and leaves no file that is written in part."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper
from sample_models import LARGE

TOOL = os.environ["LAMINA_TOOL"]
SOON = 30  # seconds; what does not hear of it takes for ever


def endless(path: pathlib.Path) -> pathlib.Path:
    """A Loop without end."""
    one = [1, 4]
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["o"]), helper.make_node("Add", ["v", "v"], ["w"])],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("v", TensorProto.FLOAT, one)],
        [helper.make_tensor_value_info("o", TensorProto.BOOL, []), helper.make_tensor_value_info("w", TensorProto.FLOAT, one)],
    )
    yes = helper.make_tensor("yes", TensorProto.BOOL, [], [True])
    graph = helper.make_graph(
        [helper.make_node("Loop", ["", "yes", "x"], ["y"], "forever", body=body)],
        "endless",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, one)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, one)],
        [yes],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


class Interrupt(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = endless(self.folder / "endless.onnx")
        np.save(self.folder / "x.npy", np.ones([1, 4], np.float32))

    def interrupt(self, after: float, *arguments: object, by: int = signal.SIGINT) -> tuple[int, str, str, float]:
        process = subprocess.Popen([TOOL, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        time.sleep(after)
        process.send_signal(by)
        began = time.monotonic()
        try:
            out, err = process.communicate(timeout=SOON)
        finally:
            process.kill()
        return process.returncode, out, err, time.monotonic() - began

    def test_verbs_that_run_a_model(self) -> None:
        for words in (["run", self.model, "--output", "y.npz"], ["check", self.model], ["benchmark", self.model], ["benchmark", self.model, "--seconds", "1", "--json", "r.json"],
                      ["benchmark", "-m", self.model, "-t", "1"]):
            before = set(self.folder.iterdir())
            code, _, err, took = self.interrupt(1.0, *words)
            self.assertEqual(code, 128 + signal.SIGINT, f"{words}: {err}")
            self.assertEqual(err.rstrip("\n").splitlines()[-1].split("\x1b[K")[-1], "lamina: interrupted", err)
            self.assertEqual(set(self.folder.iterdir()), before, words)
            print(f"{words[0]}: {1000 * took:.0f} ms")

    def test_a_request_to_terminate(self) -> None:
        code, _, err, _ = self.interrupt(1.0, "run", self.model, by=signal.SIGTERM)
        self.assertEqual((code, err.splitlines()[-1]), (128 + signal.SIGTERM, "lamina: terminated"))

    def test_a_second_one_kills(self) -> None:
        process = subprocess.Popen([TOOL, "benchmark", str(self.model)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder)
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=SOON)
        self.assertIn(process.returncode, (-signal.SIGINT, 128 + signal.SIGINT))

    def test_files_are_whole_or_not_there(self) -> None:
        """At any moment; what was written before may be there."""
        for words, files in ((["compile", LARGE, "-o", "c.lamina"], {"c.lamina"}), (["optimize", LARGE, "-o", "o.xml"], {"o.xml", "o.bin"})):
            before = {f.name for f in self.folder.iterdir()}
            for after in (0.05, 0.2, 0.4, 0.8):
                code, _, err, _ = self.interrupt(after, *words)
                made = {f.name for f in self.folder.iterdir()} - before
                self.assertIn(code, (0, 128 + signal.SIGINT, -signal.SIGINT), err)
                self.assertIn(made, (set(), files) if code else (files,), err)
                for file in made:
                    (self.folder / file).unlink()

    def test_ignored_signals_stay_ignored(self) -> None:
        process = subprocess.Popen(["/bin/sh", "-c", f"trap '' INT; exec {TOOL} run {self.model}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(process.poll())
        process.kill()
        process.wait()


if __name__ == "__main__":
    unittest.main()
