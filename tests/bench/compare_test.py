"""bench/compare with stand-ins for the engines: turns, ratios, judgement, environment."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import math
import os
import pathlib
import sys
import tempfile
import textwrap
import unittest
from typing import Any
from unittest import mock

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
sys.path.insert(0, str(BENCH / "peers"))
import compare_environment as setup  # noqa: E402
from compare_process import Engine, Failure  # noqa: E402
from compare_table import best_ratios, geometric_mean, ratio, rivals, table  # noqa: E402
from compare_turns import Settings, Turns, rotated  # noqa: E402

# Stands for lamina (`benchmark MODEL ...`) and for the peers' Python (`worker.py serve PEER MODEL ...`). The
# engine called wrong gives other outputs, dead ends at its start, slow takes twice as long.
STAND_IN = textwrap.dedent("""\
    #!{python}
    import json, os, pathlib, sys
    words = sys.argv[1:]
    log = pathlib.Path({log!r})
    if words[0].endswith("worker.py"):
        words = words[1:]
        if words[0] == "inputs":
            if "unreadable" in words[1]:
                sys.exit("no such format")
            pathlib.Path(words[2]).write_text(words[3])
            sys.exit()
        if words[0] == "difference":
            print(json.dumps([0.5 if "wrong" in w else 0.001 for w in words[2:]]))
            sys.exit()
        name = words[1]
    else:
        name = "lamina"
    if name == "dead":
        sys.exit("cannot read this")
    took = 4.0 if name == "slow" else 2.0
    say = lambda answer: print(json.dumps(answer), flush=True)
    print("a library says hello", flush=True)
    say(dict(ready=True, name=name + " 1.0", load_ms=took, first_inference_ms=1.0, before_mb=1.0,
             limit=os.environ.get("ONEDNN_MAX_CPU_ISA", "")))
    for line in sys.stdin:
        verb = line.split()[0]
        if verb == "measure":
            with log.open("a") as file:
                file.write(name + "\\n")
            say(dict(n=3, latency_ms=dict(median=took, min=took - 1, p90=took), throughput_fps=1000 / took))
        elif verb == "quit":
            break
        elif verb in ("run", "save"):
            say(dict(ok=True))
        else:
            say(dict(error="unknown command"))
""")


def script() -> Any:
    """bench/compare as a module."""
    loader = importlib.machinery.SourceFileLoader("compare", str(BENCH / "compare"))
    spec = importlib.util.spec_from_loader("compare", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    with mock.patch.object(sys, "dont_write_bytecode", True):
        loader.exec_module(module)
    return module


class WithStandIn(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)
        self.log = self.at / "log"
        self.engine = self.at / "engine"
        self.engine.write_text(STAND_IN.format(python=sys.executable, log=str(self.log)))
        self.engine.chmod(0o755)
        self.model = self.at / "net.onnx"
        self.model.touch()

    def environment(self, *peers: str) -> setup.Environment:
        return setup.Environment(self.engine, peers, {})

    def turns(self, *peers: str, **settings: object) -> Turns:
        wanted = Settings(**{"rounds": 3, "seconds": 0.01, "timeout": 30, **settings})  # type: ignore[arg-type]
        turns = Turns(wanted, self.engine, self.environment(*peers))
        self.addCleanup(turns.close)
        return turns


class TurnsOfEngines(WithStandIn):
    def test_engines_alternate_and_the_first_turn_only_warms(self) -> None:
        results = self.turns("slow", "fast").run(self.model)
        self.assertEqual(results["lamina"]["values"], [2.0] * 3)
        self.assertEqual(results["slow"]["values"], [4.0] * 3)
        self.assertEqual(results["slow"]["name"], "slow 1.0")
        order = self.log.read_text().split()
        rounds = [order[i : i + 3] for i in range(0, len(order), 3)]
        self.assertEqual(len(rounds), 4)
        for one in rounds:
            self.assertEqual(set(one), {"lamina", "slow", "fast"})
        self.assertEqual(len({one[0] for one in rounds}), 3, "each begins a round")

    def test_a_wrong_answer_and_an_engine_that_cannot_are_left_out(self) -> None:
        results = self.turns("onnxruntime", "wrong", "dead").run(self.model)
        self.assertIn("differ from onnxruntime's by 0.5", results["wrong"]["failed"])
        self.assertEqual(results["dead"]["failed"], "dead: ended with status 1 (cannot read this)")
        self.assertNotIn("failed", results["lamina"])
        self.assertEqual(results["lamina"]["error"], 0.001)

    def test_a_model_without_inputs_fails_everywhere(self) -> None:
        results = self.turns("fast").run(self.at / "unreadable.onnx")
        self.assertEqual(results["fast"]["failed"], "fast: no such format")
        self.assertIn("failed", results["lamina"])

    def test_load_and_memory_take_fresh_processes(self) -> None:
        results = self.turns("openvino", mode="load").run(self.model)
        self.assertEqual(results["lamina"]["values"], [3.0] * 3)
        self.assertEqual(set(results), {"lamina", "openvino", "openvino+cache"})
        wrong = self.turns("onnxruntime", "wrong", mode="load").run(self.model)["wrong"]
        self.assertIn("differ from onnxruntime's by 0.5", wrong["failed"])
        self.assertNotIn("median", wrong)
        results = self.turns("openvino", mode="memory", rounds=1).run(self.model)
        self.assertGreater(results["lamina"]["median"], 1)

    def test_throughput_and_processor_time(self) -> None:
        self.assertEqual(self.turns("slow", mode="throughput").run(self.model)["slow"]["median"], 250)
        self.assertGreaterEqual(self.turns("slow", by="cpu").run(self.model)["slow"]["median"], 0)

    def test_rotation(self) -> None:
        self.assertEqual(rotated(["a", "b", "c"], 4), ["b", "c", "a"])
        self.assertEqual(rotated([], 3), [])


class Processes(WithStandIn):
    def start(self, *words: str) -> Engine:
        engine = Engine("it", [self.engine, "worker.py", "serve", *words], os.environ, 30)
        self.addCleanup(engine.stop)
        return engine

    def test_answers(self) -> None:
        engine = self.start("fast")
        self.assertEqual(engine.name, "fast 1.0")
        self.assertEqual(engine.ask("run 3"), {"ok": True})
        with self.assertRaisesRegex(Failure, "it: unknown command"):
            engine.ask("dance")
        with self.assertRaisesRegex(Failure, "it: ended with status 0"):
            engine.ask("quit")

    def test_one_that_does_not_answer(self) -> None:
        with self.assertRaisesRegex(Failure, "it: no answer within 0 s"):
            Engine("it", ["sleep", "30"], os.environ, 0.2)


class Tables(unittest.TestCase):
    def test_ratio_is_the_median_of_the_rounds(self) -> None:
        self.assertEqual(ratio([1, 2, 4], [3, 4, 4], more_is_better=False), 2)
        self.assertEqual(ratio([1, 2, 4], [2, 2, 2], more_is_better=True), 1)
        self.assertAlmostEqual(geometric_mean([2, 8]), 4)
        self.assertTrue(math.isnan(geometric_mean([])))

    def test_the_better_rival_counts(self) -> None:
        own = {"values": [2.0], "median": 2.0}
        results = {
            "lamina": own,
            "openvino": {"values": [3.0], "median": 3.0},
            "onnxruntime": {"values": [2.4], "median": 2.4},
            "mnn": {"failed": "mnn: no"},
            "openvino+cache": {"values": [1.0], "median": 1.0},
        }
        found = rivals(results, "lamina", "latency", limited=False)
        self.assertEqual(set(found), {"openvino", "onnxruntime"})
        self.assertEqual(set(rivals(results, "lamina", "latency", limited=True)), {"openvino"})
        text = "\n".join(table({"net": results}, "latency", "median", "lamina", False))
        self.assertIn("1.200  onnxruntime", text)
        self.assertIn("  mnn: no", text)
        self.assertIn("geometric mean 1.200, worst 1.200, best 1.200 over 1 of 1 models", text)
        self.assertEqual(best_ratios({"a": {"lamina": {"failed": "x"}}}, "load", "lamina", False), [])


class Environments(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name) / "compare"
        self.calls: list[list[str]] = []

    def run_stand_in(self, command: list[str]) -> tuple[bool, str]:
        self.calls.append(command)
        if "venv" in command:
            (self.home / "bin").mkdir(parents=True)
            (self.home / "bin/python3").touch()
        return not any(w.startswith("MNN==") for w in command), "no wheel for this system"

    def provision(self, *peers: str) -> setup.Environment:
        with contextlib.redirect_stderr(io.StringIO()):
            return setup.provision(peers, self.home, self.run_stand_in)

    def test_what_cannot_be_had_is_left_out(self) -> None:
        found = self.provision("openvino", "mnn")
        self.assertEqual(found.peers, ("openvino",))
        self.assertEqual(found.missing, {"mnn": "no wheel for this system"})
        self.calls.clear()
        self.assertEqual(self.provision("openvino").peers, ("openvino",))
        self.assertEqual(self.calls, [], "nothing is installed twice")

    def test_every_requirement_is_pinned(self) -> None:
        found = setup.groups(setup.REQUIREMENTS.read_text())
        self.assertEqual(set(found), {"all", *script().PEERS})
        for lines in found.values():
            for line in lines:
                self.assertRegex(line, r"^[\w.-]+==[\w.]+$")
        with self.assertRaises(ValueError):
            setup.groups("numpy==1\n")


class Command(WithStandIn):
    def run_command(self, *words: object, peers: tuple[str, ...] = ("slow",)) -> tuple[int, str]:
        module = script()
        said = io.StringIO()
        fixed = ["--lamina", self.engine, "--rounds", 1, "--seconds", 0.01]
        with (
            mock.patch.object(module, "provision", lambda _: self.environment(*peers)),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            try:
                status = module.main([str(w) for w in [*words, *fixed]])
            except SystemExit as end:
                status = int(end.code or 0)
        return status, said.getvalue()

    def test_bars(self) -> None:
        status, said = self.run_command(self.model, "--json", self.at / "out.json", "--floor", 1.5)
        self.assertEqual(status, 0, said)
        self.assertIn("2.000  slow", said)
        written = json.loads((self.at / "out.json").read_text())
        self.assertEqual(written["models"]["net"]["slow"]["median"], 4)
        self.assertEqual(self.run_command(self.model, "--floor", 2.5)[0], 1)
        self.assertEqual(self.run_command(self.model, "--bar", 2.5)[0], 1)
        self.assertEqual(self.run_command(self.model, "--floor", 0.1, peers=("dead",))[0], 1)

    def test_models_of_one_name_have_rows_of_their_own(self) -> None:
        other = self.at / "other" / "net.onnx"
        other.parent.mkdir()
        other.touch()
        status, said = self.run_command(self.model, other, "--json", self.at / "out.json")
        self.assertEqual(status, 0, said)
        written = json.loads((self.at / "out.json").read_text())["models"]
        self.assertEqual(list(written), [str(self.model), str(other)])
        status, said = self.run_command(self.model, self.model)
        self.assertEqual((status, said), (2, f"bench/compare: {self.model} is there twice\n"))

    def test_user_mistakes(self) -> None:
        status, said = self.run_command(self.at / "nowhere.onnx")
        self.assertEqual((status, said), (2, f"bench/compare: {self.at}/nowhere.onnx is not there\n"))
        status, said = self.run_command(self.model, "--peers", "openvino,tensorflow")
        self.assertEqual(status, 2)
        self.assertIn("'tensorflow' is none of openvino, onnxruntime, mnn, ncnn", said)


try:
    import numpy as np
    import onnx
    import onnxruntime
except ImportError:
    np = None  # type: ignore[assignment]


@unittest.skipIf(np is None, "needs numpy, onnx and onnxruntime (scripts/bootstrap --test-models)")
class Arrays(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)

    def test_differences_are_relative(self) -> None:
        from arrays import difference

        np.savez(self.at / "a.npz", y=np.array([1.0, -4.0]))
        np.savez(self.at / "b.npz", other=np.array([1.0, -3.0]))  # by position
        np.savez(self.at / "c.npz", y=np.zeros(3))
        found = difference(self.at / "a.npz", self.at / "b.npz", self.at / "c.npz", self.at / "a.npz")
        self.assertEqual(found, [0.25, math.inf, 0.0])

    def test_built_networks_have_plausible_values(self) -> None:
        from network_builders import bert_mini, chain100
        from network_weights import settle

        for build, shape in ((chain100, [1, 16, 16]), (lambda: bert_mini(1, 32, 4, 8, 1000), [1, 8, 32])):
            model, feeds = settle(build(), 1)
            session = onnxruntime.InferenceSession(model.SerializeToString(), None, ["CPUExecutionProvider"])
            ((name, got),) = zip(
                [o.name for o in session.get_outputs()], session.run(None, feeds), strict=True
            )
            self.assertEqual(list(got.shape), shape, name)
            self.assertTrue(np.isfinite(got).all())

    def test_inputs(self) -> None:
        from arrays import write_inputs
        from network_builders import chain100

        model = self.at / "net.onnx"
        onnx.save(chain100(), model)
        write_inputs(model, self.at / "seeded.npz", {})
        seeded = np.load(self.at / "seeded.npz")["x"]
        self.assertEqual(seeded.shape, (1, 16, 16))
        np.savez(self.at / "net.npz", in0=np.ones((1, 16, 16), np.float32))
        write_inputs(model, self.at / "given.npz", {})
        self.assertEqual(np.load(self.at / "given.npz")["x"].min(), 1)
        write_inputs(model, self.at / "other.npz", {"x": [2, 16, 16]})
        self.assertEqual(np.load(self.at / "other.npz")["x"].shape, (2, 16, 16))


if __name__ == "__main__":
    unittest.main()
