"""Custom layers on the command line: --extensions on every verb that reads a model, ops, check, one-line errors."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

TOOL = os.environ["LAMINA_TOOL"]
LIBRARIES = pathlib.Path(os.environ["LAMINA_TEST_EXTENSIONS"])
OPERATIONS = LIBRARIES / "operations.so"
FAULTS = LIBRARIES / "faults.so"

MODEL = """<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,3,8,8" element_type="f32"/><output><port id="0"/></output></layer>
<layer id="1" name="mine" type="{type}" version="{domain}"><data {data}/><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="2" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer></layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"""


def lamina(*arguments: object, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, timeout=120, env={**os.environ, **(environment or {})}
    )


class Extensions(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def model(self, kind: str = "Affine", domain: str = "test.ops", data: str = 'shift="1"') -> str:
        path = pathlib.Path(self.folder.name) / f"{kind}.xml"
        path.write_text(MODEL.format(type=kind, domain=domain, data=data))
        return str(path)

    def refused(self, *arguments: object, says: tuple[str, ...], status: int = 1) -> None:
        done = lamina(*arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        lines = [line for line in done.stderr.splitlines() if "seeded" not in line]
        self.assertEqual(len(lines), 1, done.stderr)
        for part in says:
            self.assertIn(part, lines[0])

    def test_every_verb_that_reads_a_model(self) -> None:
        svg = pathlib.Path(self.folder.name) / "m.svg"
        for verb, *more in (("run",), ("check",), ("benchmark", "--seconds", "0.1"), ("inspect",), ("explain",), ("graph", "-o", svg)):
            done = lamina(verb, self.model(), "--extensions", OPERATIONS, *more)
            self.assertEqual(done.returncode, 0, f"{verb}: {done.stdout}{done.stderr}")
        done = lamina("benchmark", "-m", self.model(), "-extensions", OPERATIONS, "-t", "0.1")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_without_the_library(self) -> None:
        self.refused("run", self.model(), says=("test.ops:Affine", '"mine"'))

    def test_several_in_any_order(self) -> None:
        for both in ((OPERATIONS, FAULTS), (FAULTS, OPERATIONS)):
            done = lamina("run", self.model(), "--extensions", ",".join(map(str, both)))
            self.assertEqual(done.returncode, 0, done.stderr)
        same = f"{OPERATIONS},{LIBRARIES / 'same_operations.so'}"
        self.refused("run", self.model(), "--extensions", same, says=("/operations.so", "/same_operations.so"), status=2)

    def test_libraries_that_are_none(self) -> None:
        self.refused("run", self.model(), "--extensions", "missing.so", says=("missing.so: no such file",))
        self.refused("run", self.model(), "--extensions", self.model(), says=("is no shared library",))
        self.refused("inspect", self.model(), "--extensions", LIBRARIES / "no_entry.so", says=("lamina_extension", "RegisterCustomOps"))

    def test_ops_shows_a_library_without_a_model(self) -> None:
        done = lamina("ops", "--extensions", OPERATIONS)
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("test.ops:Affine  since 1", "attribute   scale: a number, default 2.0", "operations of the tests 1.2"):
            self.assertIn(part, done.stdout)
        library = json.loads(lamina("ops", "--extensions", OPERATIONS, "--json", "-").stdout)["extensions"][0]
        self.assertEqual(library["version"], "1.2")
        self.assertIn("Weigh", [op["type"] for op in library["operations"]])

        self.assertNotIn("Convolution", done.stdout)  # ours are not what was asked for

    def test_ops_says_what_of_a_newer_library_is_not_known(self) -> None:
        done = lamina("ops", "--extensions", LIBRARIES / "versions.so", environment={"LAMINA_TEST_VERSION": "later"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('ignored     operation "test.versions:Copy": operation: members behind the first', done.stdout)

    def test_failures_name_node_operation_and_library(self) -> None:
        for kind, text in (
            ("Fails", "run: the moon is full"),
            ("StatusOnly", "run: gave the status 42"),
            ("Throws", "run: threw an exception: no more paper"),
            ("ThrowsInt", "run: threw an exception that is no std::exception"),
            ("ThrowsInLoop", "run: threw an exception: out of ink"),
            ("CreateThrows", "create: threw an exception: no clay"),
        ):
            self.refused("run", self.model(kind, "test.faults", ""), "--extensions", FAULTS, says=('node "mine"', f"faults.so: test.faults:{kind}", text))

    def test_a_compiled_model_wants_its_library(self) -> None:
        file = pathlib.Path(self.folder.name) / "m.lamina"
        done = lamina("compile", self.model("Leak", data='slope="0.25"'), "--extensions", OPERATIONS, "-o", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        for verb, *more in (("run",), ("check",), ("inspect",), ("explain",), ("benchmark", "--iterations", "1")):
            done = lamina(verb, file, "--extensions", OPERATIONS, *more)
            self.assertEqual(done.returncode, 0, f"{verb}: {done.stdout}{done.stderr}")
        library = f"{file}: needs the library operations of the tests 1.2 (operations.so) for test.ops:Leak 1"
        self.refused("run", file, says=(f"{library}: it is not among the extensions",))
        self.refused("inspect", file, "--extensions", LIBRARIES / "operations_later.so", says=(library, "is version 1.3"))
        self.refused("run", file, "--extensions", LIBRARIES / "operations_anew.so", says=(library, "has another content"))

    def test_cached_by_the_content_of_the_library(self) -> None:
        def cached(library: pathlib.Path) -> bool:
            folder = pathlib.Path(self.folder.name) / "cache"
            done = lamina("benchmark", self.model(), "--extensions", library, "--iterations", "1", "--json", "-", "--set", f"CACHE_DIR={folder}")
            self.assertEqual(done.returncode, 0, done.stderr)
            loaded: bool = json.loads(done.stdout)["loaded_from_cache"]
            return loaded

        self.assertEqual([cached(OPERATIONS), cached(OPERATIONS), cached(LIBRARIES / "operations_anew.so")], [False, True, False])

    def test_a_fused_layer_shows_its_library(self) -> None:
        model = self.model("Leak", data="")
        for words in ("explain", "benchmark --iterations 1 -pc"):
            done = lamina(*words.split(), model, "--extensions", OPERATIONS, "--json", "-")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("+operations.so:Leak", done.stdout, words)
        graph = pathlib.Path(self.folder.name) / "runtime.xml"
        done = lamina("benchmark", "-m", model, "-extensions", OPERATIONS, "-niter", "1", "-exec_graph_path", graph)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("+operations.so:Leak", graph.read_text())

    def test_explain_says_what_rules_of_libraries_did(self) -> None:
        examples = LIBRARIES / "without_exceptions.so"
        done = lamina("explain", self.model(), "--extensions", f"{OPERATIONS},{examples}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"com\.example\.cpp\.squared-relu +matched 0, refused 0\n")
        self.assertEqual(lamina("check", "--extensions", examples).returncode, 0)

    def test_check_of_a_library_without_a_model(self) -> None:
        done = lamina("check", "--extensions", f"{OPERATIONS},{LIBRARIES / 'keeps.so'}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("clean: 17 of 18 operations tried", done.stdout)
        self.assertIn("test.keeps:AddTensor: no inputs are known that it takes", done.stdout)
        self.refused("check", says=("wanted MODEL, or --extensions alone",), status=2)
        for kind, text in (("Overruns", "behind the end of output 0"), ("Thread", "starts threads of its own"), ("Aborts", "ended by signal 6")):
            done = lamina("check", "--extensions", FAULTS, "--json", "-", environment={"LAMINA_TEST_FAULT": kind})
            self.assertEqual(done.returncode, 1, done.stderr)
            problems = [row["problem"] for row in json.loads(done.stdout)["extensions"] if not row["within"]]
            self.assertIn(text, problems[0])

    def test_check_does_not_compare_layers_that_are_not_pure(self) -> None:
        model = self.model("Count", "test.keeps", "")
        behind = model.replace("Count.xml", "behind.xml")  # its epilogue has what follows it
        text = pathlib.Path(model).read_text()
        relu = '<layer id="3" name="relu" type="ReLU" version="opset1"><input><port id="0"/></input><output><port id="1"/></output></layer>'
        text = text.replace('<layer id="2"', relu + '<layer id="2"').replace('from-layer="1" from-port="1" to-layer="2"', 'from-layer="1" from-port="1" to-layer="3"')
        pathlib.Path(behind).write_text(text.replace("</edges>", '<edge from-layer="3" from-port="1" to-layer="2" to-port="0"/></edges>'))
        for path in (model, behind):
            done = lamina("check", path, "--extensions", LIBRARIES / "keeps.so", "--per-layer")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("not compared: the operation says that it is not pure", done.stdout)
            self.assertRegex(done.stdout, "none  output .*: not compared: 'mine' says that it is not pure")
        done = lamina("check", self.model("Counts", "test.faults", ""), "--extensions", FAULTS)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("gives other results when it is run again", done.stdout)

    def test_check_names_what_is_wrong_and_lives(self) -> None:
        for kind, text in (("FarOff", "touches memory"), ("NaN", "writes NaN"), ("Thread", "starts threads"), ("Overruns", "behind the end of output 0")):
            done = lamina("check", self.model(kind, "test.faults", ""), "--extensions", FAULTS, "--json", "-")
            self.assertEqual(done.returncode, 1, done.stderr)
            document = json.loads(done.stdout)
            self.assertFalse(document["clean"])
            wrong = [row for row in document["extensions"] if not row["within"]]
            self.assertIn(text, wrong[0]["problem"])
            self.assertEqual(wrong[0]["op"], f"faults.so: test.faults:{kind}")
            self.assertEqual(wrong[0]["node"], "mine")


if __name__ == "__main__":
    unittest.main()
