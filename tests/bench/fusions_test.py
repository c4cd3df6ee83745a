"""bench/fusions: networks, data and page, with a stand-in for lamina; the networks themselves with lamina."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
from fusion_chains import BINARY, STAGES, chain  # noqa: E402
from fusion_nets import network  # noqa: E402
from fusion_rules import RULES  # noqa: E402

# Every rule fires, but fuse-group-conv, which it does not know; with a rule off all takes twice as long.
STAND_IN = textwrap.dedent("""\
    #!/usr/bin/env python3
    import json, sys
    words = sys.argv[1:]
    off = words[words.index("--disable") + 1] if "--disable" in words else ""
    if off == "fuse-group-conv":
        sys.exit(2)
    if words[0] == "explain":
        history = [{"rule": "fuse-linear", "kind": "refused", "text": "the moon is full"}]
        layers = [{"fate": "runs", "history": history}]
        hits = {rule: {"hits": 1} for rule in ("fuse-conv-simple", "fuse-conv-sum", "fuse-conv-depthwise")}
        print(json.dumps({"layers": layers, "rules": hits}))
        sys.exit(0)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps({"latency_ms": {"min": 0.25 if off else 0.125}}), flush=True)
""")


class Page(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)
        (self.at / "lamina").write_text(STAND_IN)
        (self.at / "lamina").chmod(0o755)

    def run_it(self, *words: object) -> subprocess.CompletedProcess[str]:
        fixed = ["--data", self.at / "data.json", "--page", self.at / "page.md", "--lamina", self.at / "lamina"]
        return subprocess.run([sys.executable, BENCH / "fusions", *map(str, words), *map(str, fixed)], capture_output=True, text=True)

    def test_measures_and_makes_the_page(self) -> None:
        done = self.run_it("fuse-conv-sum", "fuse-conv-depthwise", "fuse-linear", "fuse-group-conv", "--seconds", "0", "--rounds", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("fuse-group-conv: this lamina has no such rule", done.stderr)
        rules = json.loads((self.at / "data.json").read_text())["settings"]["1 thread"]["rules"]
        self.assertEqual(set(rules), {"fuse-conv-sum", "fuse-conv-depthwise", "fuse-linear"})
        self.assertEqual({entry["ratio"] for entry in rules["fuse-conv-sum"].values()}, {2})
        self.assertGreaterEqual(len(rules["fuse-conv-sum"]), 3)
        page = (self.at / "page.md").read_text()
        self.assertIn("| x + 3x3, 64, 56x56, ReLU | 125 | 250 | **2.00** | 1 of 1 |", page)
        self.assertIn("of the bound", page)
        self.assertIn("the moon is full", page)
        self.assertNotIn("## fuse-group-conv", page)
        # Again from the data alone, and with another setting beside.
        self.assertEqual(self.run_it().returncode, 0)
        self.assertEqual((self.at / "page.md").read_text(), page)
        self.assertEqual(self.run_it("fuse-conv-sum", "--threads", "2", "--max-isa", "avx2", "--seconds", "0", "--rounds", "1").returncode, 0)
        self.assertIn("2 threads, avx2:", (self.at / "page.md").read_text())

    def test_the_page_of_docs_is_that_of_the_data(self) -> None:
        (self.at / "data.json").write_text((BENCH / "fusions.json").read_text())
        self.assertEqual(self.run_it().returncode, 0)
        self.assertEqual((BENCH.parent / "docs/fusions.md").read_text(), (self.at / "page.md").read_text(), "run: bench/fusions")

    def test_says_what_it_needs(self) -> None:
        self.assertIn("say what to measure", self.run_it().stderr)
        self.assertEqual(self.run_it("fuse-nothing").returncode, 2)


class Networks(unittest.TestCase):
    """lamina reads them all; where a rule exists it fires, or says why not."""

    def explain(self, folder: str, build: object, *words: str) -> subprocess.CompletedProcess[str]:
        model = network(build).save(pathlib.Path(folder), "net")  # type: ignore[arg-type]
        command = [os.environ["LAMINA_TOOL"], "explain", str(model), "--no-run", "--json", "-", "--quiet", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    def test_rules_fire(self) -> None:
        for rule in RULES:
            self.assertGreaterEqual(len(rule.cases), 3)
            for case in rule.cases:
                with self.subTest(rule=rule.name, case=case.name), tempfile.TemporaryDirectory() as folder:
                    done = self.explain(folder, case.build, "--disable", rule.name)
                    if done.returncode == 2:
                        break  # a rule that this lamina does not have
                    done = self.explain(folder, case.build)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    document = json.loads(done.stdout)
                    refused = [e for layer in document["layers"] for e in layer["history"] if e["rule"] == rule.name and e["kind"] == "refused"]
                    self.assertTrue(document["rules"].get(rule.name, {}).get("hits") or refused)

    def test_chains_are_one_step(self) -> None:
        for kind in STAGES:
            with self.subTest(kind=kind), tempfile.TemporaryDirectory() as folder:
                done = self.explain(folder, chain(kind, 10))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([step["reasons"] for step in json.loads(done.stdout)["alone"]], [])

    def test_binary_convolutions_are_read(self) -> None:
        for name, pair in BINARY.items():
            for build in pair:
                with self.subTest(name=name), tempfile.TemporaryDirectory() as folder:
                    self.assertEqual(self.explain(folder, build).returncode, 0)


if __name__ == "__main__":
    unittest.main()
