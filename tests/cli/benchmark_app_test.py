"""lamina benchmark with the command lines of benchmark_app: its output, its options, its reports."""

import csv
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

import numpy as np
from sample_models import DYNAMIC, FLAT, LARGE, SMALL, STATE

TOOL = os.environ["LAMINA_TOOL"]
STEPS = [
    "Parsing and validating input arguments",
    "Loading OpenVINO Runtime",
    "Setting device configuration",
    "Reading model files",
    "Resizing model to match image sizes and given batch",
    "Configuring input of the model",
    "Loading the model to the device",
    "Querying optimal runtime parameters",
    "Creating infer requests and preparing input tensors",
    "Measuring performance",
    "Dumping statistics report",
]
COLUMNS = "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)"


class Base(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def benchmark(self, *arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([TOOL, "benchmark", *map(str, arguments)], check=False, capture_output=True, text=True, timeout=50)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stderr}")
        return done

    def lines(self, *arguments: object) -> list[str]:
        return self.benchmark("-m", SMALL, *arguments).stdout.splitlines()

    def count(self, *arguments: object) -> int:
        counts = [re.fullmatch(r"\[ INFO \] Count:            (\d+) iterations", line) for line in self.lines(*arguments)]
        return next(int(m[1]) for m in counts if m)

    def warnings(self, *arguments: object) -> str:
        return "\n".join(line for line in self.lines(*arguments) if line.startswith("[ WARNING ]"))


class Output(Base):
    def test_steps_and_closing_block(self) -> None:
        lines = self.lines("-t", "0.05", "-nireq", "2")
        steps = [line for line in lines if line.startswith("[Step")]
        self.assertEqual([line.split(" (")[0] for line in steps], [f"[Step {i}/11] {name}" for i, name in enumerate(STEPS, 1)])
        self.assertTrue(steps[9].endswith("(Start inference asynchronously, 2 inference requests, limits: 50 ms duration)"), steps[9])
        for line in lines:
            self.assertRegex(line, r"^\[(Step \d+/11| INFO | WARNING )\] ")
        form = [r"Execution Devices:\['CPU'\]", r"Count:            \d+ iterations", r"Duration:         \d+\.\d\d ms", "Latency:", r"   Median:        \d+\.\d\d ms",
                r"   Average:       \d+\.\d\d ms", r"   Min:           \d+\.\d\d ms", r"   Max:           \d+\.\d\d ms", r"Throughput:   \d+\.\d\d FPS"]
        for line, wanted in zip(lines[-len(form):], form, strict=True):
            self.assertRegex(line, rf"^\[ INFO \] {wanted}$")
        for part in ("Read model took", "Compile model took", "First inference took", "Input3 (node: Input3) : f32 / [N,C,H,W] / [1,1,28,28]"):
            self.assertTrue(any(part in line for line in lines), part)

    def test_defaults(self) -> None:
        self.assertIn("hint will be set to THROUGHPUT", self.warnings("-niter", "2"))
        self.assertIn("hint will be set to LATENCY", self.warnings("-niter", "2", "-api", "sync"))
        self.assertEqual(self.warnings("-niter", "2", "-hint", "none"), "")
        self.assertTrue(any("Start inference synchronously" in line for line in self.lines("-niter", "2", "-hint", "latency")))
        self.assertTrue(any("limits: 60000 ms duration" in line for line in self.interrupted()))

    def interrupted(self) -> list[str]:
        with subprocess.Popen([TOOL, "benchmark", "-m", SMALL], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("[Step 10"):
                    process.terminate()
            return lines

    def test_iterations(self) -> None:
        self.assertEqual(self.count("-niter", "10", "-nireq", "4"), 12)
        self.assertIn("10 iterations become 12", self.warnings("-niter", "10", "-nireq", "4"))
        self.assertEqual(self.count("-niter", "7", "-api", "sync"), 7)
        self.assertGreater(self.count("-niter", "4", "-t", "0.2"), 4)
        lines = self.lines("-niter", "0")
        self.assertFalse(any(line.startswith("[Step 10") for line in lines))
        self.assertTrue(any("Compile model took" in line for line in lines))
        begin = time.monotonic()
        self.assertLessEqual(self.count("-t", "0.5", "-max_irate", "20"), 11)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertIn("-nireq 4", self.warnings("-niter", "2", "-api", "sync", "-nireq", "4"))

    def test_percentile(self) -> None:
        lines = self.lines("-niter", "20", "-latency_percentile", "100")
        figures = {line.split(":")[0].removeprefix("[ INFO ]").strip(): line.split(":")[1].strip() for line in lines[-6:-1]}
        self.assertEqual(figures["100 percentile"], figures["Max"])

    def test_shapes(self) -> None:
        done = self.benchmark("-m", DYNAMIC, "-niter", "2", status=1)
        self.assertIn('input "picture" is dynamic: give -data_shape', done.stderr)
        self.benchmark("-m", DYNAMIC, "-niter", "2", "-shape", "[?,1,40,30..60]", status=1)
        self.benchmark("-m", DYNAMIC, "-niter", "2", "-shape", "[?,1,40,30..60]", "-data_shape", "[1,1,40,64]", status=1)
        lines = self.benchmark("-m", DYNAMIC, "-niter", "4", "-shape", "[?,1,40,30..60]", "-data_shape", "picture[1,1,40,56][3,1,40,48]", "-pcseq").stdout.splitlines()
        self.assertIn("[ INFO ] 1. picture: [1,1,40,56]", lines)
        self.assertIn("[ INFO ] 2. picture: [3,1,40,48]", lines)
        self.assertTrue(any("full mode" in line for line in lines))
        self.assertIn("-data_shape has no effect", self.warnings("-niter", "2", "-data_shape", "[1,1,28,28]"))

    def test_fixed_models_are_reshaped(self) -> None:
        lines = self.benchmark("-m", LARGE, "-niter", "2", "-b", "2", "-nireq", "1").stdout.splitlines()
        self.assertTrue(any(re.fullmatch(r"\[ INFO \] Reshaping model: '\w+': \[2,3,\d+,\d+\]", line) for line in lines), lines)
        self.assertIn("[ INFO ] Model batch size: 2", lines)
        self.assertTrue(any(line.startswith("[ INFO ] Reshape model took") for line in lines))
        lines = self.benchmark("-m", LARGE, "-niter", "2", "-shape", "[1..2,3,64,64]", "-data_shape", "[1,3,64,64][2,3,64,64]").stdout.splitlines()
        self.assertEqual(sum("[2,3,64,64]" in line for line in lines if re.match(r"\[ INFO \] \d\. ", line)), 1)
        self.assertIn("Reshape", self.benchmark("-m", SMALL, "-niter", "2", "-b", "2", status=1).stderr)
        self.benchmark("-m", SMALL, "-niter", "2", "-b", "1")

    def refused(self, model: object, *arguments: object, says: str, status: int = 2) -> None:
        done = self.benchmark("-m", model, "-hint", "none", "-niter", "2", *arguments, status=status)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(says, done.stderr)

    def batch(self, *arguments: object) -> int:
        """What the report says of the batch."""
        self.benchmark(*arguments, "-hint", "none", "-report_type", "no_counters", "-json_stats", "-report_folder", self.folder)
        report = json.loads((self.folder / "benchmark_report.json").read_text())
        results = report["execution_results"]
        frames = results["throughput"] * results["total execution time (ms)"] / 1000 / results["total number of iterations"]
        self.assertAlmostEqual(frames, report["configuration_setup"]["batch size"], delta=0.1)
        return report["configuration_setup"]["batch size"]

    def test_shapes_without_dimensions(self) -> None:
        self.refused(DYNAMIC, "-data_shape", "[]", says='input "picture" is')
        np.save(self.folder / "scalar.npy", np.float32(1))
        np.savez(self.folder / "scalar.npz", picture=np.float32(1))
        self.refused(DYNAMIC, "-i", self.folder / "scalar.npy", says="picture", status=1)
        self.refused(DYNAMIC, "--inputs", self.folder / "scalar.npz", says="picture", status=1)

    def test_the_batch_is_what_b_says(self) -> None:
        self.assertEqual(self.batch("-m", FLAT, "-b", "4", "-niter", "20"), 4)
        self.assertEqual(self.batch("-m", DYNAMIC, "-b", "2", "-niter", "2", "-layout", "[?CHW]", "-data_shape", "[1,1,20,20]"), 2)
        lines = self.benchmark("-m", DYNAMIC, "-b", "4", "-niter", "0").stdout.splitlines()
        self.assertIn("[ INFO ] Model batch size: 4", lines)
        for words in (["-m", DYNAMIC, "-shape", "[?,1,40,56]", "-b", "2", "-hint", "none"], [DYNAMIC, "--shape", "?,1,40,56", "--batch", "2"]):
            done = self.benchmark(*words, "-niter", "2")
            self.assertIn("f32[2,1,40,56]", done.stdout + done.stderr)
        self.refused(DYNAMIC, "-shape", "[1..2,1,?,?]", "-data_shape", "[1,1,40,56]", "-b", "3", says="[3,1,40,56] is not a shape that --shape allows: [1..2,1,?,?]", status=1)

    def test_batches_stand_where_layouts_say(self) -> None:
        words = ["-m", STATE, "-b", "3", "-niter", "2", "-layout", "input[N?],state[?N?]"]
        lines = self.benchmark(*words, "-shape", "input[1,4],state[2,1,8]", "-hint", "none").stdout.splitlines()
        self.assertTrue(any("/ [2,3,8]" in line for line in lines), lines)
        self.assertTrue(any("/ [3,4]" in line for line in lines), lines)
        self.assertEqual(self.batch(*words, "-data_shape", "input[1,4],state[2,1,8]"), 3)
        np.savez(self.folder / "in.npz", input=np.zeros((3, 4), np.float32), state=np.zeros((2, 1, 8), np.float32))
        self.assertIn('input "state": 1 row repeated to a batch of 3', self.benchmark(*words, "--inputs", self.folder / "in.npz").stdout)

    def test_shapes_hold_for_files(self) -> None:
        np.save(self.folder / "x.npy", np.zeros((1, 1, 40, 56), np.float32))
        self.benchmark("-m", DYNAMIC, "-niter", "2", "-shape", "[1,1,?,30..60]", "-i", self.folder / "x.npy")
        self.refused(DYNAMIC, "-shape", "[1,1,64..128,64..]", "-i", self.folder / "x.npy", says="[1,1,40,56] is not a shape that --shape allows: [1,1,64..128,64..]", status=1)

    def test_layouts_are_checked(self) -> None:
        for layout, says in (("foo", "O occurs twice"), ("[NCHWX]", "a letter per dimension"), ("[NCH]", "a letter per dimension"), ("[NNNN]", "N occurs twice"),
                             ("[]", "a letter per dimension"), ("x[NCHW]", "an input's name in front"), ("Input3:NCHW", "wanted letters"), ("[NCHW],Input3[NCHW],Input3[NHWC]", "two layouts")):
            self.refused(SMALL, "-layout", layout, says=says)
        for layout in ("[N...]", "[N,C,H,W]", "Input3[n?hw]", "[...C]", "nchw"):
            self.benchmark("-m", SMALL, "-niter", "2", "-layout", layout)
        self.refused(SMALL, "-layout", "[NCHW]", "-imean", "[1,2,3]", says="no input has 3 channels")

    def test_files_go_to_inputs_in_turn(self) -> None:
        state, signal = np.zeros((2, 1, 8), np.float32), np.zeros((1, 4), np.float32)
        for name, value in (("signal", signal), ("state", state)):
            np.save(self.folder / f"{name}.npy", value)
        np.savez(self.folder / "names.npz", input=signal, state=state)
        np.savez(self.folder / "places.npz", in0=signal, in1=state)
        np.savez(self.folder / "others.npz", x=signal)
        for files in ("signal.npy,{}/state.npy", "names.npz", "places.npz"):
            done = self.benchmark("-m", STATE, "-niter", "2", "-i", f"{self.folder}/{files.format(self.folder)}")
            self.assertNotIn("seeded", done.stdout)
        self.refused(STATE, "-i", self.folder / "others.npz", says='there is no input "x"', status=1)

    def test_plans_of_many_shapes_are_kept(self) -> None:
        shapes = "".join(f"[1,1,{8 + n},8]" for n in range(12))
        lines = self.benchmark("-m", DYNAMIC, "-niter", "2", "-data_shape", shapes).stdout.splitlines()
        plans = next(int(line.split()[-1]) for line in lines if "CACHED_PLANS:" in line)
        self.assertGreaterEqual(plans, 12)
        self.assertIn("[ INFO ]   CACHED_PLANS: 3", self.lines("-niter", "2", "--set", "CACHED_PLANS=3"))

    def test_the_rate_is_at_most_what_was_said(self) -> None:
        for words in (["-hint", "latency"], ["-nireq", "2"]):
            lines = self.lines("-max_irate", "100", "-niter", "4", *words)
            self.assertLessEqual(float(lines[-1].split()[-2]), 100)

    def test_nothing_is_wanted_of_data_that_is_not_used(self) -> None:
        self.assertIn("Compile model took", self.benchmark("-m", DYNAMIC, "-niter", "0").stdout)

    def test_files(self) -> None:
        for name in ("a", "b"):
            np.save(self.folder / f"{name}.npy", np.zeros((1, 1, 28, 28), np.float32))
        a, b = self.folder / "a.npy", self.folder / "b.npy"
        choices: list[list[object]] = [[f"{a},{b}"], [a, b], [self.folder], [f"Input3:{a}", b]]
        for words in choices:
            lines = self.lines("-i", *words, "-niter", "2")
            self.assertIn('[ INFO ] input "Input3": the first 1 of 2 files', lines)
        for word in ("x:random", "x:image_info", "image_info"):
            self.benchmark("-m", SMALL, "-niter", "2", "-i", word, status=1)

    def test_what_has_no_effect_is_said(self) -> None:
        for words in (["-c", "x.xml"], ["-use_device_mem"], ["-stream_output"], ["-progress"], ["-qb", "8"]):
            self.assertIn(f"{words[0].split('=')[0]} has no effect", self.warnings("-niter", "2", *words))
        self.assertIn("-json_stats", self.warnings("-niter", "2", "-json_stats"))
        self.assertIn("-report_folder", self.warnings("-niter", "2", "-report_folder", self.folder))
        for words in (["-ip", "u8"], ["-exec_graph_path", self.folder / "g.xml"], ["--set", "KEEP_WEIGHTS=YES"]):
            self.assertIn("CACHE_DIR has no effect", self.warnings("-niter", "2", "-cdir", self.folder, *words))
        self.assertIn('"GPU:2" has no effect', self.warnings("-niter", "2", "-nstreams", "CPU:1,GPU:2"))
        done = self.benchmark(SMALL, "-niter", "2", "-progress")
        self.assertIn("-progress has no effect", done.stderr)

    def test_every_option_is_taken(self) -> None:
        for words in ("--niter=2", "--number_iterations 2", "-pin YES -niter 2", "-pin=HYBRID_AWARE -niter 2", "-pin NUMA -niter 2", "-infer_precision CPU:bf16 -niter 2",
                      "-infer_precision f16 -niter 2", "-enforcebf16=false -niter 2", "-enforcebf16 -niter 2", "-nstreams AUTO -niter 2", "-nstreams NUMA -niter 2",
                      "-nstreams CPU:2 -nthreads 2 -niter 2", "-ip FP32 -op f32 -niter 2", "-ip U8 -niter 2", "-iop Input3:f16 -niter 2", "-imean [127.5] -iscale Input3[2] -niter 2", "-layout [NCHW] -niter 2", "-layout Input3[NCHW] -niter 2",
                      "-no_warmup -niter 2", "-lfile -niter 2", "-inference_only=false -niter 2", "-inference_only no -niter 2", "-i random -niter 2", "-d AUTO -niter 2",
                      "-target_device MULTI:CPU -niter 2", "-t 0.01", f"-cdir {self.folder}/c -niter 2", "--pc true -niter 2"):
            with self.subTest(words):
                self.lines(*words.split())


class Reports(Base):
    def sections(self, *arguments: object) -> dict[str, dict[str, str]]:
        self.lines(*arguments, "-report_folder", self.folder / "deep" / "r")
        out: dict[str, dict[str, str]] = {}
        for block in (self.folder / "deep" / "r" / "benchmark_report.csv").read_text().split("\n\n"):
            name, *rows = block.splitlines() or [""]
            if name:
                out[name] = dict(row.split(";", 1) for row in rows)
        return out

    def test_general(self) -> None:
        s = self.sections("-niter", "4", "-nireq=2", "-report_type", "no_counters", "-no_warmup")
        self.assertEqual(list(s), ["Command line parameters", "Configuration setup", "Execution results"])
        c = s["Command line parameters"]
        self.assertEqual((c["-m"], c["-niter"], c["-nireq"], c["-no_warmup"]), (str(SMALL), "4", "2", ""))
        self.assertEqual(list(s["Configuration setup"]), ["topology", "target device", "API", "inference_only", "precision", "batch size", "number of iterations",
                                                          "number of parallel infer requests", "duration (ms)", "number of CPU streams"])
        self.assertEqual(list(self.sections("-niter", "4", "-report_type", "no_counters")["Execution results"]),
                         ["read model time (ms)", "compile model time (ms)", "first inference time (ms)", "total execution time (ms)", "total number of iterations", "latency (ms)",
                          "avg latency", "min latency", "max latency", "throughput"])
        self.assertIn("latency (99 percentile) (ms)", self.sections("-niter", "4", "-report_type", "no_counters", "-latency_percentile", "99")["Execution results"])
        self.assertEqual(sorted(p.name for p in (self.folder / "deep" / "r").iterdir()), ["benchmark_report.csv"])

    def test_counters(self) -> None:
        for kind, tables in (("average", 1), ("detailed", 2)):
            self.lines("-niter", "40", "-nireq", "2", "-report_type", f"{kind}_counters", "-report_folder", self.folder)
            blocks = (self.folder / f"benchmark_{kind}_counters_report.csv").read_text().split("\n\n")
            self.assertEqual((len(blocks), blocks[-1]), (tables + 1, ""))
            for block in blocks[:-1]:
                header, *rows = block.splitlines()
                self.assertEqual(header, COLUMNS)
                cells = [row.split(";") for row in rows]
                self.assertEqual({len(c) for c in cells}, {6})
                self.assertLessEqual({c[1] for c in cells[:-1]}, {"EXECUTED", "OPTIMIZED_OUT", "NOT_RUN"})
                self.assertEqual(cells[-1][:4], ["Total", "", "", ""])
                self.assertAlmostEqual(sum(float(c[4]) for c in cells[:-1]), float(cells[-1][4]), delta=0.001 * len(cells))

    def test_sorted(self) -> None:
        for order in ("sort", "no_sort", "simple_sort"):
            self.lines("-niter", "40", "-pcsort", order, "-nireq", "1", "-report_folder", self.folder)
            with (self.folder / "benchmark_sorted_report.csv").open() as file:
                rows = [row for row in csv.reader(file) if row]
            self.assertEqual(rows[0], ["layerName", "execStatus", "layerType", "execType", "realTime (ms)", "cpuTime (ms)", "proportion (%)"])
            times = [float(row[4]) for row in rows[1:-1]]
            if order != "no_sort":
                self.assertEqual(times, sorted(times, reverse=True))
            if order == "simple_sort":
                self.assertEqual({row[1] for row in rows[1:-1]}, {"EXECUTED"})
            self.assertAlmostEqual(sum(float(row[6]) for row in rows[1:-1]), 100, delta=0.5)

    def test_json(self) -> None:
        self.lines("-niter", "4", "-nireq", "2", "-report_type", "detailed_counters", "-json_stats", "-report_folder", self.folder)
        report = json.loads((self.folder / "benchmark_report.json").read_text())
        self.assertEqual(set(report), {"cmd_options", "configuration_setup", "execution_results"})
        self.assertIsInstance(report["execution_results"]["throughput"], float)
        self.assertIs(report["configuration_setup"]["inference_only"], True)
        self.assertEqual(report["configuration_setup"]["number of parallel infer requests"], 2)
        self.assertIn("first inference time (ms)", report["execution_results"])
        counters = json.loads((self.folder / "benchmark_detailed_counters_report.json").read_text())
        self.assertEqual((counters["report_type"], len(counters["detailed_performance"])), ("detailed", 2))
        table = counters["detailed_performance"][0]
        self.assertEqual(set(table["nodes"][0]), {"name", "node_type", "status", "real_time", "cpu_time", "exec_type"})
        self.assertAlmostEqual(table["total_real_time"], sum(n["real_time"] for n in table["nodes"]))

    def test_a_folder_that_cannot_be(self) -> None:
        (self.folder / "file").write_text("")
        done = self.benchmark("-m", SMALL, "-niter", "2", "-report_type", "no_counters", "-report_folder", self.folder / "file", status=1)
        self.assertIn("file", done.stderr)
        self.assertNotIn("[Step 4", done.stdout)

    def test_a_report_that_cannot_be_written_keeps_no_figures_back(self) -> None:
        done = self.benchmark("-m", SMALL, "-niter", "2", "-exec_graph_path", "/dev/full", status=1)
        self.assertIn("/dev/full", done.stderr)
        self.assertIn("FPS", done.stdout.splitlines()[-1])


    def test_what_cannot_be_written_keeps_no_other_report_back(self) -> None:
        done = self.benchmark("-m", SMALL, "-niter", "2", "-exec_graph_path", "/dev/full", "-report_type", "no_counters", "-report_folder", self.folder, status=1)
        self.assertIn("/dev/full", done.stderr)
        self.assertTrue((self.folder / "benchmark_report.csv").exists())

    def test_paths_are_looked_at_before_the_measurement(self) -> None:
        (self.folder / "file").write_text("")
        for words in (["-exec_graph_path", self.folder / "none" / "g.xml"], ["-exec_graph_path", self.folder], ["--json", self.folder / "file" / "x.json"]):
            done = self.benchmark("-m", SMALL, "-niter", "2", *words, status=1)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertNotIn("[Step 4", done.stdout)
        self.assertEqual(list(self.folder.iterdir()), [self.folder / "file"])


class Configuration(Base):
    def test_the_command_line_wins(self) -> None:
        file = self.folder / "c.json"
        file.write_text('{"CPU": {"NUM_STREAMS": "2", "INFERENCE_NUM_THREADS": 2}, "GPU": {"X": "1"}}')
        self.assertIn("[ INFO ]   NUM_STREAMS: 2", self.lines("-niter", "2", "-load_config", file))
        self.assertIn("[ INFO ]   NUM_STREAMS: 1", self.lines("-niter", "2", "-load_config", file, "-nstreams", "1"))
        self.assertIn("[ INFO ]   CPU_THREADS_NUM: 1", self.lines("-niter", "2", "-load_config", file, "-nthreads", "1"))
        self.assertIn('"GPU" is not the CPU', self.warnings("-niter", "2", "-load_config", file))

    def test_own_options_win_too(self) -> None:
        file = self.folder / "c.json"
        file.write_text('{"CPU": {"INFERENCE_PRECISION_HINT": "f32", "MAX_ISA": "avx2", "DISABLE": "all"}}')
        lines = self.lines("-niter", "2", "-load_config", file)
        self.assertTrue({"[ INFO ]   INFERENCE_PRECISION_HINT: f32", "[ INFO ]   MAX_ISA: avx2", "[ INFO ]   DISABLE: all"} <= set(lines))
        lines = self.lines("-niter", "2", "-load_config", file, "--precision", "model", "--max-isa", "sse41", "--disable", "fold-constants")
        self.assertTrue({"[ INFO ]   INFERENCE_PRECISION_HINT: model", "[ INFO ]   MAX_ISA: sse41", "[ INFO ]   DISABLE: fold-constants"} <= set(lines))

    def test_dumped_settings_load(self) -> None:
        file = self.folder / "c.json"
        self.lines("-niter", "2", "-nstreams", "2", "-nthreads", "2", "-dump_config", file)
        self.assertEqual(json.loads(file.read_text())["CPU"]["NUM_STREAMS"], "2")
        self.assertIn("[ INFO ]   NUM_STREAMS: 2", self.lines("-niter", "2", "-load_config", file))

    def test_no_hint_is_dumped_as_asked(self) -> None:
        file = self.folder / "c.json"
        self.lines("-niter", "2", "-hint", "none", "-dump_config", file)
        self.assertEqual(json.loads(file.read_text())["CPU"]["PERFORMANCE_HINT"], "NONE")
        self.assertIn("[ INFO ]   NUM_STREAMS: 1", self.lines("-niter", "2", "-load_config", file))

    def test_every_setting_is_dumped_once(self) -> None:
        file = self.folder / "c.json"
        self.lines("-niter", "2", "-pin", "NUMA", "-nthreads", "1", "-dump_config", file)
        settings = json.loads(file.read_text())["CPU"]
        self.assertEqual(set(settings) & {"CPU_BIND_THREAD", "AFFINITY", "ENABLE_CPU_PINNING"}, {"AFFINITY"})
        self.assertEqual(set(settings) & {"CPU_THREADS_NUM", "INFERENCE_NUM_THREADS"}, {"INFERENCE_NUM_THREADS"})
        loaded = json.loads(self.benchmark("-m", SMALL, "-niter", "2", "-load_config", file, "--json", "-").stdout)["properties"]
        self.assertEqual((loaded["CPU_BIND_THREAD"]["asked"], loaded["AFFINITY"]["asked"], loaded["CPU_THREADS_NUM"]["asked"]), ("NUMA", "NUMA", "1"))

    def test_the_command_line_wins_by_other_keys_too(self) -> None:
        file = self.folder / "c.json"
        file.write_text('{"CPU": {"KEY_INFERENCE_PRECISION_HINT": "bf16", "PERFORMANCE_HINT_NUM_REQUESTS": "1"}}')
        for words in (["-enforcebf16=false"], ["--set", "EXECUTION_MODE_HINT=ACCURACY"], ["--precision", "model"]):
            properties = json.loads(self.benchmark("-m", SMALL, "-niter", "2", "-load_config", file, *words, "--json", "-").stdout)["properties"]
            self.assertEqual(properties["INFERENCE_PRECISION_HINT"]["value"], "model", words)
        properties = json.loads(self.benchmark("-m", SMALL, "-niter", "4", "-load_config", file, "-nireq", "4", "--json", "-").stdout)["properties"]
        self.assertEqual(properties["PERFORMANCE_HINT_NUM_REQUESTS"]["value"], "4")

    def test_errors_name_the_file(self) -> None:
        file = self.folder / "c.json"
        file.write_text('{"CPU": {"NUM_STREAM": "2"}}')
        self.assertIn(f'{file}: CPU: option "NUM_STREAM" is not known', self.benchmark("-m", SMALL, "-load_config", file, status=1).stderr)

    def test_damaged_files(self) -> None:
        file = self.folder / "c.json"
        for text in ("", "[]", "{", '{"CPU": 1}', '{"CPU": {"NUM_STREAMS": []}}', "[" * 100000, '{"CPU": {"NUM_STREAM": "2"}}',
                     '{"CPU": {"NUM_STREAMS": "1", "NUM_STREAMS": "2"}}', '{"CPU": {}, "CPU": {"NUM_STREAMS": "2"}}'):
            file.write_text(text)
            done = subprocess.run([TOOL, "benchmark", "-m", SMALL, "-niter", "1", "-load_config", file], check=False, capture_output=True, text=True, timeout=50)
            self.assertIn(done.returncode, (1, 2), text[:50])
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


class Repeated(Base):
    """When an option is given several times, the last one counts, as with gflags."""

    def test_the_last_one_holds(self) -> None:
        self.assertEqual(self.count("-nireq", "1", "-niter", "5", "-niter=9"), 9)
        self.assertEqual(self.count("-nireq", "1", "-niter", "5", "--number_iterations", "7"), 7)
        self.assertEqual(self.count("-niter", "5", "-nireq", "3", "-nireq", "1", "-t", "9", "-t", "0"), 5)
        self.assertEqual(self.count("-nireq", "1", "-niter", "5", "--iterations", "6"), 6)
        done = self.benchmark("-m", DYNAMIC, "-m", SMALL, "-niter", "1", "-nireq", "1")
        self.assertIn("Input3", done.stdout)
        self.assertIn("1 streams", self.benchmark("-m", SMALL, "-niter", "2", "-nstreams", "2", "-nstreams", "CPU:1", "-hint", "latency", "-hint", "none", "-api", "async").stdout)

    def test_shapes_and_lists(self) -> None:
        done = self.benchmark("-m", DYNAMIC, "-niter", "1", "-nireq", "1", "-shape", "[1,1,8,8]", "-shape", "[1,1,16,24]")
        self.assertIn("[1,1,16,24]", done.stdout)
        self.assertNotIn("[1,1,8,8]", done.stdout)

    def test_cache_folders(self) -> None:
        one, two = self.folder / "one", self.folder / "two"
        self.lines("-niter", "1", "-cdir", one, "-cdir", two)
        self.assertFalse(one.exists())
        self.assertTrue(two.exists())

    def test_flags(self) -> None:
        self.assertFalse((self.folder / "benchmark_report.json").exists())
        self.lines("-niter", "1", "-report_type", "no_counters", "-json_stats", "-json_stats=false", "-report_folder", self.folder)
        self.assertTrue((self.folder / "benchmark_report.csv").exists())

    def test_files_add_up(self) -> None:
        for i in range(2):
            np.save(self.folder / f"{i}.npy", np.zeros((1, 1, 28, 28), np.float32))
        self.assertEqual(self.count("-i", self.folder / "0.npy", "-i", self.folder / "1.npy", "-niter", "2", "-nireq", "1"), 2)

    def test_own_lists_add_up(self) -> None:
        done = self.benchmark(DYNAMIC, "--iterations", "1", "--iterations", "2", "--shape", "[1,1,8,8]")
        self.assertIn("2 runs", done.stdout)


class Typed(Base):
    """Warnings call options as they were typed."""

    def test_cache_and_runtime_graph(self) -> None:
        said = self.warnings("-niter", "1", "-cdir", self.folder / "c", "-exec_graph_path", self.folder / "g.xml")
        self.assertIn("-cdir: CACHE_DIR has no effect: -exec_graph_path needs data that cached models do not hold", said)
        done = self.benchmark(SMALL, "--iterations", "1", "--set", f"CACHE_DIR={self.folder / 'c'}", "--runtime-graph", self.folder / "g.xml")
        self.assertIn("CACHE_DIR has no effect: --runtime-graph needs", done.stderr)

    def test_requests(self) -> None:
        self.assertIn("--requests 4: -api sync runs", self.benchmark(SMALL, "--iterations", "1", "--requests", "4", "-api", "sync").stderr)
        self.assertIn("-nireq 4: -api sync runs", self.warnings("-niter", "1", "-nireq", "4", "-api", "sync"))

    def test_reports(self) -> None:
        self.assertIn("--json-stats has no effect without --report-type or --pcsort", self.benchmark(SMALL, "--iterations", "1", "--json-stats").stderr)
        self.assertIn("-json_stats has no effect without -report_type or -pcsort", self.warnings("-niter", "1", "-json_stats"))


if __name__ == "__main__":
    unittest.main()
