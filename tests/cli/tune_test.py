"""Option --tune: measured kernels and streams are remembered in a file, which may be missing, odd or damaged."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

import numpy as np
import onnx
from command_case import MODEL, TOOL, Base

# Nothing but SSE4.1 is there, or allowed.
LOWEST = os.environ.get("LAMINA_MAX_ISA") == "sse41" or "avx2" not in pathlib.Path("/proc/cpuinfo").read_text()


class Tuning(Base):
    def test_tuned_kernels_are_remembered(self) -> None:
        def tuned(*more: str) -> str:
            done = subprocess.run(
                [TOOL, "run", MODEL, "--shape", "x=1,3,48,48", "--tune", "--threads", "1", *more],
                check=False,
                capture_output=True,
                text=True,
                timeout=120,
                env={**os.environ, "XDG_CACHE_HOME": str(self.path)},
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stderr

        self.assertIn("kernels other than estimated", tuned())
        self.assertIn("as measured before", tuned())
        files = list((self.path / "lamina" / "tuned").iterdir())
        self.assertEqual(len(files), 1)
        # What decides differently was not measured yet; what decides nothing changes nothing.
        lower = [] if LOWEST else [["--max-isa", "sse41"]]
        for more in ["--disable", "all"], ["--exempt", ".*"], *lower:
            self.assertIn("kernels other than estimated", tuned(*more), more)
        self.assertIn("as measured before", tuned("--set", "CACHED_PLANS=3"))
        for text in "{", "[]", '{"key": 3}', "\x00" * 50:
            files[0].write_text(text)
            said = tuned()
            self.assertIn("is not a file of remembered measurements", said)
            self.assertIn("kernels other than estimated", said)
            self.assertIn("as measured before", tuned())
        file = json.loads(files[0].read_text())
        files[0].write_text(json.dumps({**file, "force": ["NoSuchLayer=native"]}))
        self.assertIn("are not available any more", tuned())
        self.assertIn("as measured before", tuned())
        shutil.rmtree(self.path / "lamina")
        (self.path / "lamina").write_text("a file in the folder's place")
        self.assertIn("not remembered", tuned())
        machine = pathlib.Path(__file__).parents[2] / "machines" / "zen2-server.json"
        self.refused(2, "explain", MODEL, "--tune", "--machine", machine, says=("--machine excludes --tune",))

    def test_streams_of_auto_are_forecast_or_measured(self) -> None:
        def call(verb: str, *more: str) -> "subprocess.CompletedProcess[str]":
            done = subprocess.run(
                [TOOL, verb, MODEL, "--shape", "x=1,3,48,48", "--set", "NUM_STREAMS=AUTO", "--threads", "2", *more],
                check=False,
                capture_output=True,
                text=True,
                timeout=120,
                env={**os.environ, "XDG_CACHE_HOME": str(self.path)},
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            return done

        report = self.path / "explained.json"
        shown = call("explain", "--no-run", "--json", str(report)).stdout
        self.assertRegex(shown, r"streams threads +forecast/s\n +1 +2 +[\d.]+.*\n +2 +1 +[\d.]+")
        self.assertEqual(sum(line.endswith("  used") for line in shown.splitlines()), 1)
        self.assertEqual([s["streams"] for s in json.loads(report.read_text())["streams"]], [1, 2])
        said = [call("run", "--tune").stderr for _ in range(2)]
        self.assertRegex(said[0], r"kernels other than estimated, [12] streams?\n")
        self.assertRegex(said[1], r"kernels, [12] streams? as measured before")

    def test_tuning_where_names_or_places_are_odd(self) -> None:
        weights = onnx.numpy_helper.from_array(np.ones((8, 8), np.float32), "w")
        nodes = [
            onnx.helper.make_node("MatMul", ["x", "w"], ["a"], name="same"),
            onnx.helper.make_node("Softmax", ["a"], ["b"], name="same"),
            onnx.helper.make_node("Tanh", ["b"], ["c"], name="same"),
            onnx.helper.make_node("MatMul", ["c", "w"], ["y"], name="last"),
        ]
        ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 8]) for name in "xy"]
        model = self.path / "names.onnx"
        graph = onnx.helper.make_graph(nodes, "g", ports[:1], ports[1:], [weights])
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), model)

        def tuned(cache: str, *more: str) -> str:
            done = subprocess.run(
                [TOOL, "run", model, "--shape", "x=64,8", "--tune", "--threads", "1", *more],
                check=False,
                capture_output=True,
                text=True,
                timeout=60,
                env={**os.environ, "XDG_CACHE_HOME": cache},
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stderr

        self.assertIn("kernels other than estimated", tuned(str(self.path)))
        file = next((self.path / "lamina" / "tuned").iterdir())
        file.write_text(json.dumps({**json.loads(file.read_text()), "force": ["last=nonsense"]}))
        self.assertIn("are not available any more", tuned(str(self.path)))  # sizes are known when it runs
        self.assertIn("as measured before", tuned(str(self.path)))
        file.unlink()
        os.mkfifo(file)
        self.assertIn("is a pipe", tuned(str(self.path)))
        self.assertIn("not remembered", tuned("/" + "a" * 300))
        if LOWEST:
            return  # there is no other instruction set to limit it to
        self.assertIn("kernels other than estimated", tuned(str(self.path), "--max-isa", "sse41"))
        self.assertIn("as measured before", tuned(str(self.path), "--max-isa", "sse41"))


if __name__ == "__main__":
    unittest.main()
