"""lamina benchmark with the command lines of benchmark_app: its output and its options."""

import subprocess
import time
import unittest

import numpy as np
from benchmark_app_case import TOOL, Base
from sample_models import DYNAMIC, SMALL

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
        self.assertLess(time.monotonic() - begin, 60)
        self.assertIn("-nireq 4", self.warnings("-niter", "2", "-api", "sync", "-nireq", "4"))

    def test_percentile(self) -> None:
        lines = self.lines("-niter", "20", "-latency_percentile", "100")
        figures = {line.split(":")[0].removeprefix("[ INFO ]").strip(): line.split(":")[1].strip() for line in lines[-6:-1]}
        self.assertEqual(figures["100 percentile"], figures["Max"])

    def test_the_rate_is_at_most_what_was_said(self) -> None:
        for words in (["-hint", "latency"], ["-nireq", "2"]):
            lines = self.lines("-max_irate", "100", "-niter", "4", *words)
            self.assertLessEqual(float(lines[-1].split()[-2]), 100)

    def test_nothing_is_wanted_of_data_that_is_not_used(self) -> None:
        self.assertIn("Compile model took", self.benchmark("-m", DYNAMIC, "-niter", "0").stdout)

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
