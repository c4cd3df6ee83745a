"""The lamina command: verbs, errors, exit statuses, files."""

import json
import os
import pathlib
import random
import shlex
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
import sample_models

TOOL = os.environ["LAMINA_TOOL"]
# Nothing but SSE4.1 is there, or allowed.
LOWEST = os.environ.get("LAMINA_MAX_ISA") == "sse41" or "avx2" not in pathlib.Path("/proc/cpuinfo").read_text()
MODEL = pathlib.Path(os.environ["LAMINA_DEPS"]) / "models" / "ch_ppocr_mobile_v2.0_cls_infer.onnx"
SHAPE = ["--shape", "x=1,3,48,192"]
# LAMINA_MUTATIONS=N tries more of them (make soak).
MUTATIONS = int(os.environ.get("LAMINA_MUTATIONS", "60"))


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


def lamina(*arguments: object, text: str | None = None, cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, timeout=120, input=text, cwd=cwd)


class Base(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def refused(self, status: int, *arguments: object, says: tuple[str, ...] = ()) -> str:
        done = lamina(*arguments)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        lines = done.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, f"{arguments}: {done.stderr}")
        for part in says:
            self.assertIn(part, lines[0])
        return lines[0]


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


class WrongUse(Base):
    def test_command_line(self) -> None:
        self.refused(2, "rum", says=("rum", "run"))
        self.refused(2, says=("no verb",))
        self.refused(2, "--verison", says=('"--verison" is not known, did you mean "--version"',))
        self.refused(2, "--quiet", "run", MODEL, says=('"--quiet" is not known',))
        self.refused(2, "run", MODEL, "--thread", "2", says=("--thread", "--threads"))
        for arguments in (["--threads", "-1"], ["--threads", "x"], ["--precision", "f8"], ["--max-isa", "mmx"], ["--log-level", "loud"], ["--set", "FOO=1"],
                          ["--set", "FOO"], ["--shape", "x"], ["--shape", "x=a"], ["--top", "-3"], ["--disable", "fuse-nothing"]):
            self.refused(2, "run", MODEL, *arguments)
        self.refused(2, "run", MODEL, *SHAPE, "--disable", "fuse-conv-simpel", says=("fuse-conv-simple",))
        self.refused(2, "run", MODEL, *SHAPE, "--quiet", "--disable", "all,nosuch", says=("nosuch",))
        self.refused(2, "run", MODEL, "--set", "CPU_THREADS_NUN=1", says=("CPU_THREADS_NUM",))
        self.refused(2, "run", MODEL, "--inptus", "x.npz", says=('did you mean "--inputs"?',))
        self.assertNotIn("did you mean", lamina("run", "-m", MODEL).stderr)
        self.refused(2, "run", "-m", MODEL, says=('"-m"', "lamina run --help"))
        self.refused(2, "run", MODEL, "--log-level", "x" * 100_000, says=("characters)",))
        for broken in ("(", "a[", "*conv"):
            self.refused(2, "run", MODEL, *SHAPE, "--exempt", broken, says=(f'exempt "{broken}"', "no regular expression"))
        self.refused(2, "benchmark", MODEL, "--seconds", "-1")
        self.refused(2, "benchmark", MODEL, "--hint", "fast")

    def test_files(self) -> None:
        self.refused(1, "run", self.path / "none.onnx", says=("none.onnx", "no such file"))
        self.refused(1, "run", self.path, says=("folder",))
        for name, content in (("empty.onnx", b""), ("text.onnx", b"hello world, this is no model"), ("zeros.onnx", bytes(1000)), ("xml.xml", b"<net"),
                              ("html.xml", b"<html></html>")):
            (self.path / name).write_bytes(content)
            self.refused(1, "run", self.path / name, says=(name,))

    def test_hostile_names(self) -> None:
        """One short line, whatever the operators are called."""
        nodes = [onnx.helper.make_node(f"Wonder{i}" + "w" * 1_000_000, ["x"], [f"y{i}"], "\n\x1b[31m" * 500) for i in range(9)]
        x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("x", "y8"))
        onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [x], [y])), self.path / "hostile.onnx")
        line = self.refused(1, "run", self.path / "hostile.onnx", says=("hostile.onnx: unsupported: Wonder0", "characters)", "more"))
        self.assertLess(len(line), 400)
        self.assertNotIn("\x1b", line)

    def test_hostile_names_of_inputs_and_outputs(self) -> None:
        x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("\x1b[31mx\n", "\x1b]0;y\a\n"))
        graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", [x.name], [y.name], "\x1b[2J\a\nnode")], "g", [x], [y])
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8, producer_name="\x1b[31mP\nq"),
                  self.path / "names.onnx")
        for verb in (("inspect",), ("run",), ("explain",), ("explain", "--summary"), ("check", "--per-layer"), ("benchmark", "--seconds", "0.01", "-pc")):
            done = lamina(verb[0], self.path / "names.onnx", *verb[1:])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertFalse(set(done.stdout + done.stderr) & set("\x1b\a\r"), f"{verb}: {done.stdout}{done.stderr}")
        self.assertIn("\ninput   \ufffd[31mx ", lamina("inspect", self.path / "names.onnx").stdout)

    def test_warnings_of_readers(self) -> None:
        x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in ("x", "y"))
        graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 99)]), self.path / "new.onnx")
        for verb in (("run",), ("check",), ("explain",), ("benchmark", "--seconds", "0.01"), ("graph", "-o", self.path / "g.dot")):
            done = lamina(verb[0], self.path / "new.onnx", *verb[1:])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("lamina: warning: opset 99 is newer"), 1, done.stderr)
            self.assertNotIn("warning", lamina(verb[0], self.path / "new.onnx", *verb[1:], "--quiet").stderr)

    def test_inputs(self) -> None:
        np.savez(self.path / "wrong_name.npz", z=np.zeros((1, 3, 48, 192), np.float32))
        np.savez(self.path / "wrong_shape.npz", in0=np.zeros((1, 4, 48, 192), np.float32))
        np.savez(self.path / "wrong_type.npz", in0=np.zeros((1, 3, 48, 192), np.int32))
        self.refused(1, "run", MODEL, "--inputs", self.path / "wrong_name.npz", says=('"z"', '"x"'))
        self.refused(1, "run", MODEL, "--inputs", self.path / "wrong_shape.npz", says=('"x"', "4"))
        self.refused(1, "run", MODEL, "--inputs", self.path / "wrong_type.npz", says=('"x"', "i32"))
        self.refused(1, "run", MODEL, "--input", f"y={self.path}/wrong_type.npz", says=('"y"',))
        right = np.zeros((1, 3, 48, 192), np.float32)
        np.savez(self.path / "in00.npz", in00=right)
        np.savez(self.path / "both.npz", x=right, in0=right + 1)
        np.savez(self.path / "x.npz", x=right)
        self.refused(1, "run", MODEL, "--inputs", self.path / "in00.npz", says=('"in00"',))
        self.refused(1, "run", MODEL, "--inputs", self.path / "both.npz", says=('"x" and "in0" are the same input and differ',))
        self.refused(2, "run", MODEL, "--inputs", self.path / "x.npz", "--input", self.path / "x.npz", says=("--input and --inputs",))
        self.refused(1, "run", MODEL, "--input", "q" * 300 + "=x.npy", says=("--input: there is no input",))

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
            self.assertIn("is not a file that --tune wrote", said)
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

    def test_nothing_is_half_written(self) -> None:
        target = self.path / "no" / "such" / "folder.npz"
        self.refused(1, "run", MODEL, *SHAPE, "--quiet", "--output", target)
        self.assertEqual(list(self.path.iterdir()), [])


class Damaged(Base):
    def test_mutations(self) -> None:
        data = MODEL.read_bytes()
        seed = int(os.environ.get("LAMINA_SEED", "7"))
        print(f"seed {seed}")
        rng = random.Random(seed)
        target = self.path / "m.onnx"
        for i in range(MUTATIONS):
            changed = bytearray(data)
            if i % 3 == 0:
                changed = changed[: rng.randrange(len(changed))]
            for _ in range(rng.choice([1, 4, 32])):
                if changed:
                    changed[rng.randrange(min(len(changed), 4000 if i % 2 else len(changed)))] ^= 1 << rng.randrange(8)
            target.write_bytes(changed)
            done = lamina("run", target, *SHAPE, "--quiet", "--threads", "1")
            self.assertIn(done.returncode, (0, 1), f"mutation {i}: {done.returncode} {done.stderr}")
            if done.returncode == 1:
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, f"mutation {i}: {done.stderr}")
                self.assertNotIn("internal error", done.stderr, f"mutation {i}")


if __name__ == "__main__":
    if not shutil.which(TOOL):
        raise SystemExit(f"{TOOL} is missing")
    unittest.main()
