"""The lamina command: verbs, standard files."""

import json
import pathlib
import shlex
import shutil
import subprocess
import unittest

import numpy as np
import onnx
import sample_models
from command_case import MODEL, SHAPE, TOOL, Base, lamina

# Adds its input to what it has kept.
COUNTER = """<net name="counter" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/><output><port id="0"><dim>2</dim></port></output></layer>
<layer id="1" name="kept" type="ReadValue" version="opset6"><data variable_id="v" variable_shape="2" variable_type="f32"/>
<output><port id="0"><dim>2</dim></port></output></layer>
<layer id="2" name="sum" type="Add" version="opset1"><input><port id="0"><dim>2</dim></port><port id="1"><dim>2</dim></port></input>
<output><port id="2"><dim>2</dim></port></output></layer>
<layer id="3" name="keep" type="Assign" version="opset6"><data variable_id="v"/><input><port id="0"><dim>2</dim></port></input>
<output><port id="1"><dim>2</dim></port></output></layer>
<layer id="4" name="result" type="Result" version="opset1"><input><port id="0"><dim>2</dim></port></input></layer></layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/><edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/><edge from-layer="2" from-port="2" to-layer="4" to-port="0"/>
</edges></net>"""


class Verbs(Base):
    def test_help_of_everything(self) -> None:
        self.assertEqual(lamina("--help").returncode, 0)
        for verb in ("run", "check", "benchmark", "inspect", "explain", "optimize", "quantize", "ops", "rules", "version"):
            done = lamina(verb, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Example:", done.stdout)

    def test_version(self) -> None:
        done = lamina("version", "--verbose", "--json", "-")
        document = json.loads(done.stdout)
        self.assertIn("TBB", document["onednn"])
        self.assertGreaterEqual(document["threads"], 1)

    def test_run(self) -> None:
        out = self.path / "out.npz"
        done = lamina("run", MODEL, *SHAPE, "--output", out, "--json", self.path / "r.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("seeded random values", done.stderr)
        arrays = np.load(out)
        self.assertEqual([arrays[k].shape for k in arrays.files], [(1, 2)])
        self.assertEqual(json.loads((self.path / "r.json").read_text())["outputs"][0]["shape"], [1, 2])
        again = lamina("run", MODEL, *SHAPE, "--by-position", "--output", out, "--quiet")
        self.assertEqual((again.stdout, again.stderr), ("", ""))
        self.assertEqual(np.load(out).files, ["out0"])

    def test_run_on_files(self) -> None:
        x = np.random.default_rng(1).uniform(-1, 1, (1, 3, 48, 192)).astype(np.float32)
        np.save(self.path / "x.npy", x)
        np.savez(self.path / "x.npz", in0=x)
        np.savez_compressed(self.path / "named.npz", x=x)
        x.tofile(self.path / "x.bin")
        results = []
        for arguments in (["--input", f"x={self.path}/x.npy"], ["--input", f"{self.path}/x.npy"], ["--inputs", self.path / "x.npz"],
                          ["--inputs", self.path / "named.npz"], [*SHAPE, "--input", f"x={self.path}/x.bin"]):
            out = self.path / "out.npz"
            done = lamina("run", MODEL, *arguments, "--output", out, "--by-position")
            self.assertEqual(done.returncode, 0, done.stderr)
            results.append(np.load(out)["out0"])
        for r in results[1:]:
            np.testing.assert_array_equal(r, results[0])

    def test_steps_of_a_model_with_variables(self) -> None:
        model = self.path / "counter.xml"
        model.write_text(COUNTER)
        np.save(self.path / "x.npy", np.array([1, 2], np.float32))
        for more in ([], ["--reference"]):
            for steps, wanted in ((1, [1, 2]), (4, [4, 8])):
                done = lamina("run", model, "--input", f"x={self.path}/x.npy", "--steps", steps, "--output", self.path / "out.npz", *more)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                np.testing.assert_array_equal(np.load(self.path / "out.npz")["sum"], np.array(wanted, np.float32))
        self.assertIn("variable  v  f32[2]", lamina("inspect", model).stdout)
        for steps in (1, 5):
            done = lamina("check", model, "--steps", steps)
            self.assertEqual((done.returncode, "NOT" in done.stdout), (0, False), done.stdout + done.stderr)
        for verb in (["explain", model], ["explain", model, "--no-run"], ["graph", model, "--output", self.path / "g.html"]):
            done = lamina(*verb)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.refused(2, "run", model, "--steps", "0")

    def test_run_on_a_picture(self) -> None:
        pixels = np.random.default_rng(1).integers(0, 256, (30, 50, 3), np.uint8)
        (self.path / "p.ppm").write_bytes(b"P6\n50 30\n255\n" + pixels.tobytes())
        done = lamina("run", MODEL, *SHAPE, "--input", f"x={self.path}/p.ppm", "--mean", "127.5", "--scale", "127.5")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_check_explain_inspect_ops(self) -> None:
        self.assertIn("clean", lamina("check", MODEL, *SHAPE, "--per-layer").stdout)
        self.assertIn("none of the", lamina("check", MODEL, *SHAPE, "--bisect").stdout)
        layers = json.loads(lamina("explain", MODEL, *SHAPE, "--json", "-").stdout)["layers"]
        self.assertGreater(len(layers), 100)
        one = lamina("explain", MODEL, *SHAPE, "--node", layers[0]["name"])
        self.assertEqual(one.returncode, 0, one.stderr)
        document = json.loads(lamina("inspect", MODEL, *SHAPE, "--json", "-").stdout)
        self.assertGreater(document["flops"], 1e6)
        self.assertEqual(document["unsupported"], [])
        self.assertEqual([document[k][0]["shape"] for k in ("inputs", "outputs")], [[1, 3, 48, 192], [1, 2]])
        self.assertIn("Convolution", lamina("ops").stdout)
        self.assertRegex(lamina("rules").stdout, "(?m)^fuse-linear +portable +")
        self.assertIn("fuse-linear", [rule["name"] for rule in json.loads(lamina("rules", "--json", "-").stdout)["rules"]])
        self.assertIn("Conv\n", lamina("ops", "--format", "onnx").stdout)
        self.assertIn("| Convolution |", lamina("ops", "--format", "markdown").stdout)

    def test_exempt(self) -> None:
        idle = lamina("run", MODEL, *SHAPE, "--exempt", "nothing.*")
        self.assertEqual(idle.returncode, 0, idle.stderr)
        self.assertIn('exempt "nothing.*": matches the name of no node', idle.stderr)
        self.assertNotIn("exempt", lamina("run", MODEL, *SHAPE, "--exempt", ".*").stderr)

    def test_names_of_any_length_are_matched(self) -> None:
        model = sample_models.long_names(400_000)
        done = lamina("check", model, "--exempt", ".*conv.*,.*relu")
        self.assertEqual(done.returncode, 0, done.stderr[-300:])
        self.assertNotIn("exempt", done.stderr)

    def test_check_says_what_it_judged(self) -> None:
        document = json.loads(lamina("check", MODEL, *SHAPE, "--json", "-").stdout)
        self.assertTrue(document["clean"])
        self.assertGreater(len(document["rewriting"]), 20)
        self.assertTrue(all(row["within"] for part in ("rewriting", "layers", "outputs") for row in document[part]))

    def test_the_page_of_operators_is_current(self) -> None:
        page = pathlib.Path(__file__).parents[2] / "docs" / "operators.md"
        self.assertEqual(page.read_text(), lamina("ops", "--format", "markdown").stdout, "run: lamina ops --format markdown > docs/operators.md")

    def test_benchmark(self) -> None:
        done = lamina("benchmark", MODEL, *SHAPE, "--seconds", "0.05", "--json", "-", "--threads", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(done.stdout)
        for key in ("latency_ms", "throughput_fps", "load_ms", "first_inference_ms", "before_mb", "peak_rss_mb", "arena_mb", "weights_mb", "count"):
            self.assertIn(key, document)
        table = lamina("benchmark", "-m", MODEL, "-d", "CPU", "-hint", "latency", "-nthreads", "1", "-niter", "2", "-pc", *SHAPE)
        self.assertEqual(table.returncode, 0, table.stderr)
        self.assertIn("Total CPU time:", table.stdout)

    def test_benchmark_interactive(self) -> None:
        lines = f"measure 0.01\nrun 2\nsave {self.path}/s.npz\nnonsense\nquit\n"
        done = lamina("benchmark", MODEL, "--interactive", "--hint", "latency", "--precision", "f32", "--threads", "1", *SHAPE, text=lines)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertTrue(answers[0]["ready"])
        self.assertIn("seeded random values", done.stderr)
        self.assertGreater(answers[1]["latency_ms"]["median"], 0)
        self.assertEqual(answers[2:], [{"ok": True}, {"ok": True}, {"error": "unknown command"}])
        self.assertEqual(len(np.load(self.path / "s.npz").files), 1)

    def test_settable_inputs(self) -> None:
        scale = onnx.numpy_helper.from_array(np.array([3, 4], np.float32), "w")
        ports = {name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xwy"}
        graph = onnx.helper.make_graph([onnx.helper.make_node("Mul", ["x", "w"], ["y"])], "g", [ports["x"], ports["w"]], [ports["y"]], [scale])
        model = self.path / "settable.onnx"
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), model)
        for name, values in {"x": [1, 2], "w": [10, 20]}.items():
            np.save(self.path / f"{name}.npy", np.array(values, np.float32))
        self.assertIn("has a value until it is set", lamina("inspect", model, "--settable", "w").stdout)
        for given, wanted in (("x",), [3, 8]), (("x", "w"), [10, 40]):
            files = [word for name in given for word in ("--input", f"{name}={self.path}/{name}.npy")]
            done = lamina("run", model, "--settable", "w", *files, "--output", self.path / "y.npz")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(np.load(self.path / "y.npz")["y"].tolist(), wanted)
        self.refused(2, "run", model, "--settable", "q", says=('settable "q"',))

    def test_warnings_of_readers(self) -> None:
        x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("x", "y"))
        graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 99)]), self.path / "new.onnx")
        for verb in (("run",), ("check",), ("explain",), ("benchmark", "--seconds", "0.01"), ("graph", "-o", self.path / "g.dot")):
            done = lamina(verb[0], self.path / "new.onnx", *verb[1:])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("lamina: warning: opset 99 is newer"), 1, done.stderr)
            self.assertNotIn("warning", lamina(verb[0], self.path / "new.onnx", *verb[1:], "--quiet").stderr)


class StandardFiles(Base):
    """Closed, or on a disk that is full."""

    def shell(self, text: str) -> subprocess.CompletedProcess[str]:
        command = text.replace("LAMINA", shlex.quote(TOOL)).replace("MODEL", f"{shlex.quote(str(MODEL))} {' '.join(SHAPE)}")
        return subprocess.run(["bash", "-c", command], check=False, capture_output=True, text=True, timeout=120, cwd=self.path)

    def test_output_that_does_not_arrive_is_no_success(self) -> None:
        for verb in ("run MODEL --quiet", "inspect MODEL", "explain MODEL --no-run", "check MODEL --quiet", "benchmark MODEL --seconds 0.01 --quiet", "version", "ops", "rules"):
            done = self.shell(f"LAMINA {verb} --json - > /dev/full")
            self.assertEqual((done.returncode, done.stderr), (1, "lamina: standard output: cannot be written: No space left on device\n"), verb)
        for words in ("ops > /dev/full", "--version > /dev/full", "run MODEL --quiet --json - >&-"):
            self.assertEqual(self.shell(f"LAMINA {words}").returncode, 1, words)
        self.assertEqual(self.shell("LAMINA run MODEL --quiet >&-").returncode, 0)

    def test_messages_that_do_not_arrive_change_nothing(self) -> None:
        for where in ("2>/dev/full", "2>&-"):
            done = self.shell(f"LAMINA run MODEL --output x.npz {where}")
            self.assertEqual(done.returncode, 0)
            self.assertEqual(np.load(self.path / "x.npz")["save_infer_model/scale_0.tmp_1"].shape, (1, 2))
            self.assertEqual(self.shell(f"LAMINA run none.onnx {where}").returncode, 1)
            self.assertEqual(self.shell(f"LAMINA run MODEL --bad {where}").returncode, 2)

    def test_files_do_not_become_standard_output(self) -> None:
        self.assertEqual(self.shell("LAMINA run MODEL --output x.npz >&-").returncode, 1)
        self.assertEqual(np.load(self.path / "x.npz")["save_infer_model/scale_0.tmp_1"].shape, (1, 2))

    def test_pipes_have_no_other_name(self) -> None:
        done = self.shell("LAMINA run MODEL --quiet --json /dev/stdout | cat")
        self.assertIn("outputs", json.loads(done.stdout))


if __name__ == "__main__":
    if not shutil.which(TOOL):
        raise SystemExit(f"{TOOL} is missing")
    unittest.main()
