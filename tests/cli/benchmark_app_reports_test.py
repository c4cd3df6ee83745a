"""lamina benchmark with the command lines of benchmark_app: its reports, and files of settings."""

import csv
import json
import subprocess
import unittest

from benchmark_app_case import TOOL, Base
from sample_models import SMALL

COLUMNS = "layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms)"


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


if __name__ == "__main__":
    unittest.main()
