"""Compiled models in files and folders: lamina compile, CACHE_DIR, lamina cache."""

import contextlib
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import time
import unittest

import numpy as np
import onnx
import sample_models
from command_case import MODEL, SHAPE, TOOL, Base, lamina
from onnx import TensorProto, helper

# LAMINA_MUTATIONS=N tries more of them (make soak).
MUTATIONS = int(os.environ.get("LAMINA_MUTATIONS", "60"))


class CacheBase(Base):
    def setUp(self) -> None:
        super().setUp()
        self.model = self.path / "m.onnx"
        shutil.copy(sample_models.LARGE, self.model)
        self.cache = self.path / "cache"
        self.file = self.path / "m.lamina"

    def outputs(self, model: object, *more: object, expect: int = 0) -> dict[str, np.ndarray]:
        out = self.path / "out.npz"
        out.unlink(missing_ok=True)
        done = lamina("run", model, "--quiet", "--output", out, *more)
        self.assertEqual(done.returncode, expect, done.stderr)
        return dict(np.load(out)) if expect == 0 else {}

    def assert_same_bits(self, a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
        self.assertEqual(a.keys(), b.keys())
        for name, array in a.items():
            self.assertEqual(array.tobytes(), b[name].tobytes(), name)

    def cached(self, model: object | None = None, *more: object) -> tuple[bool, str]:
        """Whether it was loaded from the folder, and what was said."""
        done = lamina("benchmark", model or self.model, "--iterations", "1", "--json", "-", "--set", f"CACHE_DIR={self.cache}", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        warnings = [line for line in done.stderr.splitlines() if "warning" in line]
        return json.loads(done.stdout)["loaded_from_cache"], "\n".join(warnings)

    def entries(self) -> list[pathlib.Path]:
        return sorted(self.cache.glob("*.lamina"))


class Compile(CacheBase):
    def test_every_verb_opens_it(self) -> None:
        done = lamina("compile", self.model, "-o", self.file, "--json", "-")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        document = json.loads(done.stdout)
        self.assertEqual(document["bytes"], self.file.stat().st_size)
        self.assert_same_bits(self.outputs(self.model), self.outputs(self.file))
        for words in (
            "check {}",
            "inspect {}",
            "explain {}",
            "explain {} --plan",
            "graph {} -o {}.svg",
            "graph {} -o {}.html --stage runtime",
            "benchmark {} --iterations 1 -pc",
            "run {} --reference --quiet",
            "run {} --disable all --quiet",
        ):
            done = lamina(*words.replace("{}", str(self.file)).split())
            self.assertEqual(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
        known = lamina("explain", self.model, "--no-run").stdout.replace(str(self.model), "M")
        self.assertEqual(lamina("explain", self.file, "--no-run").stdout.replace(str(self.file), "M"), known)

    def test_inspect_counts_the_same(self) -> None:
        lamina("compile", self.model, "-o", self.file)
        counts = [json.loads(lamina("inspect", m, "--json", "-").stdout)["parameters"] for m in (self.model, self.file)]
        self.assertEqual(counts[0], counts[1])
        self.assertGreater(counts[0], 0)

    def test_weights_that_bodies_read_too(self) -> None:
        """They are packed for the layers outside, and read as they are inside: in a branch of the same size, and of
        another one, so that it is planned when the branch is known."""
        w = onnx.numpy_helper.from_array(np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32), "w")
        for other in "MatMul", "Concat":
            inside = helper.make_node("MatMul", ["p", "w"], ["e"]) if other == "MatMul" else helper.make_node("Concat", ["p", "w"], ["e"], axis=0)
            branches = [
                helper.make_graph([helper.make_node("Identity", ["p"], ["t"])], "then", [], [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)]),
                helper.make_graph([inside], "else", [], [helper.make_tensor_value_info("e", TensorProto.FLOAT, None)]),
            ]
            nodes = [
                helper.make_node("MatMul", ["x", "w"], ["p"]),
                helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1]),
            ]
            inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 64]), helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
            graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [w])
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), self.model)
            given = self.path / "in.npz"
            np.savez(given, x=np.ones((8, 64), np.float32), c=np.array(False))
            for precision in "f32", "bf16":
                words = "--inputs", given, "--precision", precision
                lamina("compile", self.model, "-o", self.file, "--precision", precision)
                self.assert_same_bits(self.outputs(self.model, *words), self.outputs(self.file, *words))

    def test_the_same_bytes(self) -> None:
        other = self.path / "other.lamina"
        lamina("compile", self.model, "-o", self.file)
        lamina("compile", self.model, "-o", other, "--quiet")
        self.assertEqual(self.file.read_bytes(), other.read_bytes())

    def test_shapes_that_are_known_later(self) -> None:
        lamina("compile", MODEL, "-o", self.file, *SHAPE)
        done = lamina("benchmark", self.file, "--iterations", "1", "--json", "-", *SHAPE)
        document = json.loads(done.stdout)
        self.assertTrue(document["loaded_from_cache"])
        self.assertEqual(document["load_phases_ms"]["pack"], 0)
        for shape in ("x=1,3,48,192", "x=2,3,48,192"):
            self.assert_same_bits(self.outputs(MODEL, "--shape", shape), self.outputs(self.file, "--shape", shape))

    def test_another_instruction_set(self) -> None:
        native = json.loads(lamina("version", "--json", "-").stdout)["isa"]
        lamina("compile", self.model, "-o", self.file)
        if native != "sse41":
            self.refused(1, "run", self.file, "--max-isa", "sse41", says=(str(self.file), f"needs {native}, this process may use sse41"))
        # Made for less than there is: it opens.
        lamina("compile", self.model, "-o", self.file, "--max-isa", "sse41")
        self.assert_same_bits(self.outputs(self.model, "--max-isa", "sse41"), self.outputs(self.file, "--max-isa", "sse41"))
        self.outputs(self.file)
        self.assertEqual(lamina("check", self.file).returncode, 0)

    def test_a_damaged_file_is_refused(self) -> None:
        lamina("compile", self.model, "-o", self.file)
        good, wanted = self.file.read_bytes(), self.outputs(self.file)
        rng = random.Random(7)
        refused = 0
        for i in range(MUTATIONS):
            bad = bytearray(good)
            if i % 5 == 0:
                del bad[rng.randrange(len(bad)) :]
            else:
                bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
            self.file.write_bytes(bad)
            done = lamina("run", self.file, "--quiet", "--output", self.path / "bad.npz")
            if done.returncode == 0:  # a byte that it has not used
                self.assert_same_bits(wanted, dict(np.load(self.path / "bad.npz")))
                continue
            refused += 1
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertTrue(done.stderr.isascii() or i % 5 == 0, done.stderr)
        self.assertGreater(refused, MUTATIONS // 4)

    def test_the_model_itself_is_not_overwritten(self) -> None:
        self.refused(2, "compile", self.model, "-o", self.model, says=("is the model itself",))
        data = self.path / "m.data"
        onnx.save(onnx.load(self.model), self.model, save_as_external_data=True, location=data.name, size_threshold=0)
        self.refused(2, "compile", self.model, "-o", data, says=("is the model itself",))

    def test_refusals(self) -> None:
        self.refused(1, "compile", self.model, "-o", self.path / "no" / "such" / "x.lamina", says=("cannot be written",))
        self.refused(2, "compile", self.model, says=("--output",))
        self.file.write_bytes(b"LAMINA\r\n")
        self.refused(1, "run", self.file, says=("m.lamina: truncated",))
        lamina("compile", self.model, "-o", self.file)
        data = bytearray(self.file.read_bytes())
        data[8] = 200
        self.file.write_bytes(data)
        self.refused(1, "inspect", self.file, says=("damaged: header",))


class Folder(CacheBase):
    def test_hits_and_what_makes_another_entry(self) -> None:
        fresh = self.outputs(self.model)
        self.assertEqual(self.cached(), (False, ""))
        self.assertEqual(self.cached(), (True, ""))
        self.assertEqual(len(self.entries()), 1)
        self.assertRegex(self.entries()[0].name, r"^[0-9a-f]{32}\.lamina$")
        self.assert_same_bits(fresh, self.outputs(self.model, "--set", f"CACHE_DIR={self.cache}"))
        moved = self.path / "moved.onnx"
        shutil.copy(self.model, moved)
        self.assertEqual(self.cached(moved, "--threads", "1", "-pc"), (True, ""))
        self.assertEqual(self.cached(None, "--disable", "fuse-linear"), (False, ""))
        self.assertEqual(self.cached(None, "--max-isa", "sse41")[0], json.loads(lamina("version", "--json", "-").stdout)["isa"] == "sse41")
        # Who looks inside gets the same with it.
        for words in (["explain", "--no-run"], ["check"]):
            plain = lamina(words[0], self.model, *words[1:])
            with_cache = lamina(words[0], self.model, *words[1:], "--set", f"CACHE_DIR={self.cache}")
            self.assertEqual((plain.returncode, plain.stdout), (with_cache.returncode, with_cache.stdout))

    def test_a_replaced_model_of_the_same_size_and_date(self) -> None:
        self.cached()
        time.sleep(0.2)
        self.assertEqual(self.cached(), (True, ""))  # its hash is remembered now
        data = bytearray(self.model.read_bytes())
        before = self.model.stat()
        data[len(data) // 2] ^= 1  # of a weight
        self.model.write_bytes(data)
        os.utime(self.model, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertEqual(self.model.stat().st_mtime_ns, before.st_mtime_ns)
        self.assertEqual(self.cached(), (False, ""))
        self.assert_same_bits(self.outputs(self.model), self.outputs(self.model, "--set", f"CACHE_DIR={self.cache}"))

    def test_a_damaged_entry_is_rebuilt(self) -> None:
        self.cached()
        entry = self.entries()[0]
        good = entry.read_bytes()
        wanted = self.outputs(self.model)
        rng = random.Random(3)
        for i in range(MUTATIONS // 3):
            bad = bytearray(good)
            if i % 5 == 0:
                del bad[rng.randrange(len(bad)) :]
            else:
                bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
            entry.write_bytes(bad)
            done = lamina("run", self.model, "--output", self.path / "o.npz", "--set", f"CACHE_DIR={self.cache}", "--quiet", "--log-level", "warning")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_same_bits(wanted, dict(np.load(self.path / "o.npz")))
            loaded, said = self.cached()
            self.assertEqual((loaded, said), (True, ""))
        bad = bytearray(good)
        bad[-100] ^= 1
        entry.write_bytes(bad)
        loaded, said = self.cached()
        self.assertFalse(loaded)
        self.assertRegex(said, r"^lamina: warning: cache: rebuilt: .*damaged: section \w+ \d+$")

    def test_trouble_with_the_folder(self) -> None:
        self.cache.write_text("a file")
        loaded, said = self.cached()
        self.assertFalse(loaded)
        self.assertEqual(len(said.splitlines()), 1)

    def test_a_folder_to_be_read_only(self) -> None:
        self.cached()
        self.cache.chmod(0o555)
        self.addCleanup(self.cache.chmod, 0o755)
        self.assertEqual(self.cached(), (True, ""))
        loaded, said = self.cached(None, "--disable", "all")
        self.assertFalse(loaded)
        self.assertLessEqual(len(said.splitlines()), 1)

    def test_no_room_for_the_entry(self) -> None:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

        done = subprocess.run(
            [TOOL, "run", self.model, "--quiet", "--log-level", "warning", "--set", f"CACHE_DIR={self.cache}"],
            check=False, capture_output=True, text=True, preexec_fn=limit,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.entries(), [])
        self.assertEqual(list(self.cache.glob("*.tmp")), [])
        self.assertEqual(self.cached(None, "--set", "CACHE_SIZE=1"), (False, ""))

    @unittest.skipUnless(os.geteuid() == 0, "mounts a small disk")
    def test_a_full_disk(self) -> None:
        self.cache.mkdir()
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0700", "tmpfs", self.cache], check=False, capture_output=True)
        if mount.returncode != 0:
            self.skipTest("mount is not allowed")
        try:
            loaded, said = self.cached()
            self.assertFalse(loaded)
            self.assertEqual(len(said.splitlines()), 1)
            self.assertIn("No space left on device", said)
            self.assertEqual([p.name for p in self.cache.iterdir() if not p.name.startswith(".")], [])
        finally:
            subprocess.run(["umount", self.cache], check=True)

    def test_eight_at_once_and_some_are_killed(self) -> None:
        wanted = self.outputs(self.model, "--threads", "1")  # other threads, other orders of sums
        command = [TOOL, "run", self.model, "--quiet", "--set", f"CACHE_DIR={self.cache}", "--threads", "1"]
        killed = [subprocess.Popen(command) for _ in range(8)]
        for i, process in enumerate(killed):
            time.sleep(0.02 * i)
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
        for process in killed:
            process.wait()
        shutil.rmtree(self.cache, ignore_errors=True)
        running = [subprocess.Popen([*command, "--output", self.path / f"{i}.npz"]) for i in range(8)]
        for i, process in enumerate(running):
            self.assertEqual(process.wait(), 0)
            self.assert_same_bits(wanted, dict(np.load(self.path / f"{i}.npz")))
        self.assertEqual(len(self.entries()), 1)
        self.assertEqual(self.cached(), (True, ""))

    def test_entries_with_a_damaged_header(self) -> None:
        self.cached()
        entry = self.entries()[0]
        data = bytearray(entry.read_bytes())
        data[8] = 7
        entry.write_bytes(data)
        loaded, said = self.cached()
        self.assertFalse(loaded)
        self.assertIn("damaged: header", said)
        self.assertEqual(self.cached(), (True, ""))


class NotOurs(CacheBase):
    """What has the name of an entry, or of the hashes, and is no file of ours."""

    def test_links_and_pipes_are_replaced(self) -> None:
        self.cached()
        entry, hashes = self.entries()[0], self.cache / ".lamina-hashes"
        for name in (entry, hashes):
            thesis = self.path / "thesis.txt"
            thesis.write_text("not to be lost")
            name.unlink(missing_ok=True)
            name.symlink_to(thesis)
            self.cached()
            self.assertEqual(thesis.read_text(), "not to be lost")
            name.unlink(missing_ok=True)
            os.mkfifo(name)
            self.cached()
            self.assertTrue(self.cached()[0])


class Verb(CacheBase):
    def test_list_verify_prune(self) -> None:
        self.cached()
        self.cached(None, "--disable", "all")
        os.utime(self.entries()[1], (1, 1))
        (self.cache / "notes.txt").write_text("x")
        done = lamina("cache", "list", self.cache, "--json", "-")
        listed = json.loads(done.stdout)["entries"]
        self.assertEqual([e["name"] for e in listed], [self.entries()[1].name, self.entries()[0].name])
        self.assertEqual([e["state"] for e in listed], ["", ""])
        self.assertEqual({e["isa"] for e in listed}, {json.loads(lamina("version", "--json", "-").stdout)["isa"]})
        known = json.loads(lamina("inspect", self.model, "--json", "-").stdout)
        for e in listed:
            self.assertIn(f"{known['inputs'][0]['name']} f32", e["inputs"])
        self.assertIn("2 entries", lamina("cache", "list", self.cache).stdout)
        self.assertEqual(lamina("cache", "verify", self.cache).returncode, 0)

        bad = self.entries()[0]
        data = bytearray(bad.read_bytes())
        data[len(data) // 2] ^= 4
        bad.write_bytes(data)
        done = lamina("cache", "verify", self.cache)
        self.assertEqual(done.returncode, 1)
        self.assertIn(bad.name, done.stdout)
        self.assertIn("damaged: section", done.stdout)

        oldest = self.entries()[1]
        done = lamina("cache", "prune", self.cache, "--keep", "0", "--json", "-")
        self.assertEqual(json.loads(done.stdout)["removed"][0]["name"], oldest.name)
        self.assertEqual([p.name for p in self.cache.iterdir() if not p.name.startswith(".")], ["notes.txt"])
        self.refused(1, "cache", "list", self.path / "nothing", says=("cannot be read as a cache",))
        self.refused(2, "cache", "burn", self.cache)


if __name__ == "__main__":
    unittest.main()
