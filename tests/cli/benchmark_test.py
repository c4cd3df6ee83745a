"""lamina benchmark: the spellings of benchmark_app, what it cannot do, several requests, Ctrl-C."""

import json
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
from sample_models import DYNAMIC, LARGE, SMALL

TOOL = os.environ["LAMINA_TOOL"]
SHAPE = "picture[1,1,40,56]"


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, timeout=120)


class Base(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def refused(self, *arguments: object, says: str) -> None:
        done = lamina(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), f"{arguments}: {done.stderr}")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(says, done.stderr)

    def document(self, *arguments: object) -> dict:
        done = lamina("benchmark", *arguments, "--json", "-")
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stderr}")
        return json.loads(done.stdout)


class BenchmarkApp(Base):
    def test_what_it_honours(self) -> None:
        d = self.document("-m", SMALL, "-d", "CPU", "-hint", "latency", "-nthreads", "1", "-niter", "3", "-api", "sync", "-infer_precision", "f32", "-pin=NO",
                          "-inference_only", "-shape", "[1,1,28,28]")
        self.assertEqual((d["count"], d["threads"], d["requests"], d["streams"]), (3, 1, 1, 1))
        d = self.document("--path_to_model", DYNAMIC, "--number_iterations=4", "-shape", SHAPE, "-b", "2", "-nireq", "2", "-nstreams", "CPU:2", "-nthreads", "2", "-hint", "none")
        self.assertEqual((d["count"], d["threads"], d["requests"], d["streams"], d["threads_per_stream"]), (4, 2, 2, 2, 1))
        self.assertEqual(self.document("-m", SMALL, "-niter", "2", "-hint", "tput", "-api", "sync")["requests"], 1)

    def test_what_converts_integers_first_computes_in_f32(self) -> None:
        model = pathlib.Path(self.folder.name) / "m.onnx"
        ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, 4, 4]) for name in "xy"]
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ports[:1], ports[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), model)
        d = self.document(model, "-ip", "u8", "-mean_values", "[1]", "-niter", "1")
        self.assertEqual((d["precision_used"], d["precision_layers"]), ("f32", {"f32": 1}))

    def test_niter_and_t_run_until_both_are_reached(self) -> None:
        self.assertGreater(self.document("-m", SMALL, "-niter", "2", "-t", "0.1")["count"], 2)
        self.assertGreaterEqual(self.document("-m", SMALL, "-niter", "50", "-t", "0")["count"], 50)

    def test_what_it_cannot_is_refused(self) -> None:
        self.refused("benchmark", "-m", SMALL, "-infer_precision", "f64", says="wanted f32, bf16 or f16")
        self.refused("benchmark", "-m", SMALL, "-d", "GPU", says="CPU only")
        self.refused("benchmark", "-m", SMALL, "-pin", "MAYBE", says="-pin MAYBE: wanted YES, NO, NUMA or HYBRID_AWARE")
        self.refused("benchmark", "-m", SMALL, "-inference_only=maybe", says="wanted true or false")
        self.refused("benchmark", "-m", SMALL, "-niter", "-1", says="-niter")
        self.refused("benchmark", SMALL, "-nstreams", "MANY", says="-nstreams MANY: wanted a number from 0 to 1024, AUTO or NUMA")
        self.refused("benchmark", SMALL, "-t", "nan", says="-t: nan is not a number")
        self.refused("benchmark", SMALL, "-max_irate", "nan", says="-max_irate: nan is not a number")
        self.refused("benchmark", SMALL, "-nstreams", "GPU:2", says="-nstreams GPU:2: has no entry for the CPU")
        self.refused("benchmark", SMALL, "-shape", "[x,1,28,28]", says='"x" is not a size')
        self.refused("benchmark", SMALL, "-data_shape", "Input3[1,1,28,28", says="-data_shape")
        self.refused("benchmark", SMALL, "-ip", "u9", says="-ip u9: wanted an element type")
        self.refused("benchmark", SMALL, "-mean_values", "[1,2,3]", says="-mean_values")
        self.refused("benchmark", SMALL, "-latency_percentile", "101", says="-latency_percentile")
        self.refused("benchmark", SMALL, "-report_type", "all", says="-report_type")
        self.refused("benchmark", "-m", SMALL, "-niter", says="-niter")
        self.refused("benchmark", DYNAMIC, says="--shape picture=")
        self.refused("benchmark", SMALL, "--interactive", "--seconds", "1", says="--interactive")

    def test_throughput_counts_frames_however_the_batch_is_said(self) -> None:
        np.savez(pathlib.Path(self.folder.name) / "x.npz", picture=np.zeros((4, 1, 40, 56), np.float32))
        for words in (["--shape", "4,1,40,56"], ["--shape", "1,1,40,56", "--batch", "4"], ["-data_shape", "[4,1,40,56]", "-b", "4"],
                      ["--inputs", f"{self.folder.name}/x.npz"]):
            d = self.document(DYNAMIC, *words, "--seconds", "0.1", "--threads", "1")
            self.assertEqual(d["batch"], 4)
            self.assertAlmostEqual(d["throughput_fps"] * d["latency_ms"]["mean"] / 4000, 1, delta=0.2)
        d = self.document(SMALL, "--seconds", "0.05")
        self.assertEqual(d["batch"], 1)

    def test_batches_are_said(self) -> None:
        done = lamina("benchmark", DYNAMIC, "--shape", "1,1,40,56", "--batch", "4", "--seconds", "0.02")
        self.assertEqual(done.stderr.splitlines(), ['lamina: input "picture": --batch makes the 1 of --shape 4',
                                                    'lamina: input "picture": seeded random values, f32[4,1,40,56]'])
        self.assertIn("frames/s (4 in each inference)", done.stdout)
        for rows, says in ((1, "1 row repeated to a batch of 2"), (3, "the first 2 of 3 rows")):
            np.savez(pathlib.Path(self.folder.name) / "x.npz", picture=np.zeros((rows, 1, 40, 56), np.float32))
            done = lamina("benchmark", DYNAMIC, "--inputs", f"{self.folder.name}/x.npz", "-b", "2", "--seconds", "0.02")
            self.assertIn(says, done.stderr)

    def test_more_streams_than_threads_are_said(self) -> None:
        done = lamina("benchmark", SMALL, "-nstreams", "99", "-nthreads", "2", "--seconds", "0.02")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("99 wanted: there are 2 threads for them", done.stderr)

    def test_booleans(self) -> None:
        for words, table in ((["-pc"], True), (["-pc", "true"], True), (["-pc=YES"], True), (["-pc=0"], False), (["-pc", "no"], False)):
            done = lamina("benchmark", *words, "-m", SMALL, "-niter", "1")
            self.assertEqual((done.returncode, "Total CPU time:" in done.stdout), (0, table), f"{words}: {done.stderr}")
        self.refused("benchmark", "-m", SMALL, "-pc=maybe", says="-pc=maybe: wanted true or false")
        for option in ("-inference_only", "-lfile", "-pcseq"):
            self.refused("benchmark", "-m", SMALL, option, "maybe", says=f"{option} maybe: wanted true or false")
            self.refused("benchmark", SMALL, option, "maybe", says=f"{option} maybe: wanted true or false")

    def test_misspelt_options(self) -> None:
        self.refused("benchmark", "-m", SMALL, "-hnt", "latency", says='"-hnt" is not known, did you mean "-hint"')
        self.refused("benchmark", "-m", SMALL, "-hlep", says='"-hlep" is not known')
        self.refused("run", SMALL, "-hlep", says='"-hlep" is not known')
        self.refused("benchmark", "-m", SMALL, "-infer_prec", "f32", says='"-infer_prec" is not known, did you mean "-infer_precision"')
        self.refused("benchmark", "-m", SMALL, "-cache", "x", says='"-cache" is not known, did you mean "-cache_dir"')
        self.refused("graph", SMALL, "-output", "x.svg", says='"-output" is not known')


class Help(Base):
    def test_help_and_version(self) -> None:
        self.assertEqual(lamina("--version").stdout, lamina("version").stdout)
        self.assertEqual(lamina("help").stdout, lamina("--help").stdout)
        for verb in ("run", "benchmark", "graph"):
            done = lamina("help", verb)
            self.assertEqual((done.returncode, done.stdout), (0, lamina(verb, "--help").stdout))
        self.refused("help", "benhcmark", says='did you mean "benchmark"')
        self.assertEqual(lamina("benchmark", "-h").returncode, 0)


class WordsThatWouldDoNothing(Base):
    def test_they_are_refused(self) -> None:
        self.refused("run", SMALL, "--by-position", says="--by-position")
        self.refused("explain", SMALL, "--no-run", "--seconds", "1", says="--seconds")
        self.refused("explain", SMALL, "--summary", "--why", "fuse-linear", "Plus30", says="--summary")
        self.refused("graph", SMALL, "-o", "x.svg", "--seconds", "1", says="--stage runtime")
        self.refused("graph", SMALL, "-o", "x.svg", "--input", "x.npy", says="--stage runtime")
        for word, value in (("--seed", "3"), ("--threads", "1"), ("--max-isa", "sse41"), ("--precision", "bf16"), ("--force", "conv=reference")):
            self.refused("graph", SMALL, "-o", "x.svg", word, value, says=f"{word}: needs --stage runtime")
            self.refused("graph", SMALL, "-o", "x.svg", "--compare", word, value, says=f"{word}: needs --stage runtime")
        for word, value in (("--disable", "nosuch"), ("--exempt", "("), ("--set", "CPU_THREADS_NUM=1")):
            self.refused("graph", SMALL, "-o", "x.svg", "--stage", "original", word, value, says=f"{word}: cannot be combined with --stage original")
        self.refused("graph", SMALL, "-o", "x.svg", "--tune", says="--tune: needs --stage runtime")
        self.refused("graph", SMALL, "-o", "x.svg", "--set", "PERF_COUNT=YES", says="--set PERF_COUNT=YES: needs --stage runtime")
        self.refused("graph", SMALL, "-o", "x.svg", "--set", "PERF_COUMT=YES", says="did you mean")
        self.assertEqual(lamina("graph", SMALL, "-o", f"{self.folder.name}/x.svg", "--set", "DISABLE=all", "--quiet").returncode, 0)
        self.refused("graph", SMALL, "-o", "x.dot", "--columns", "2", says="--columns")
        self.refused("run", SMALL, "--output", "-", says="--output -")
        self.refused("benchmark", SMALL, "--runtime-graph", "-", says="--runtime-graph -")
        self.refused("benchmark", SMALL, "--interactive", "--api", "sync", says="--interactive")

    def test_empty_words_are_refused(self) -> None:
        for verb, *words in (("run", "--output"), ("run", "--json"), ("run", "--inputs"), ("run", "--labels"), ("check", "--expect"), ("explain", "--node"),
                             ("benchmark", "--runtime-graph"), ("run", "--threads"), ("run", "--scale"), ("run", "--disable")):
            self.refused(verb, SMALL, *words, "", says=f"{words[0]}: wanted a value")

    def test_idle_exemptions_are_told(self) -> None:
        done = lamina("graph", SMALL, "--exempt", "nosuch", "-o", f"{self.folder.name}/x.dot")
        self.assertEqual((done.returncode, done.stderr), (0, 'lamina: warning: exempt "nosuch": matches the name of no node\n'))


class Interrupted(Base):
    def interrupted(self, file: pathlib.Path, *words: str) -> str:
        """What it prints when it is stopped as soon as it has measured something, however slow the machine is."""
        out = ""
        for pause in (0.5, 4, 30):
            process = subprocess.Popen([TOOL, "benchmark", LARGE, "--seconds", "100", "--json", file, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            assert process.stderr
            self.assertIn("seeded", process.stderr.readline())  # loaded; it measures from now on
            time.sleep(pause)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + signal.SIGINT, err)
            self.assertIn("interrupted", err)
            if out:
                break
        return out

    def test_what_was_measured_is_told(self) -> None:
        for words in ([], ["--requests", "2", "--streams", "2", "--threads", "2", "-pc"]):
            with tempfile.TemporaryDirectory() as folder:
                file = pathlib.Path(folder) / "r.json"
                self.assertIn("latency", self.interrupted(file, *words))
                document = json.loads(file.read_text())
                self.assertTrue(document["interrupted"])
                self.assertGreaterEqual(document["count"], 1)

    def test_the_report_can_be_stopped_as_well(self) -> None:
        process = subprocess.Popen([TOOL, "benchmark", LARGE, "--seconds", "100", "-pc"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stderr
        self.assertIn("seeded", process.stderr.readline())
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        self.assertIn("interrupted", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, err)  # not killed by the signal


if __name__ == "__main__":
    unittest.main()
