"""Limits for models and inputs of strangers: --limit, links, archives, pictures, and memory that is gone."""

import os
import pathlib
import resource
import subprocess
import unittest
import zipfile

import numpy as np
import onnx
from command_case import TOOL, Base, lamina
from onnx import TensorProto, helper

# The address sanitizer reserves terabytes of addresses.
RUNS_IN_LITTLE_MEMORY = unittest.skipIf(os.environ.get("LAMINA_SANITIZE"), "the command is built with a sanitizer, which cannot run in little memory")
HOSTILE = pathlib.Path(__file__).resolve().parents[3] / "shared/cases/hostile"


def save(path: pathlib.Path, nodes: list, inputs: list, outputs: list, weights: list | None = None) -> None:
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights or [])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def value(name: str, dims: list, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, dims)


class LimitsTest(Base):
    def setUp(self) -> None:
        super().setUp()
        self.model = self.path / "m.onnx"
        nodes = [helper.make_node("Relu", ["x"], ["a"], "first"), helper.make_node("Neg", ["a"], ["y"], "second")]
        save(self.model, nodes, [value("x", [1, 1000])], [value("y", [1, 1000])])

    def taken(self, *words: object) -> None:
        done = lamina(*words)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stderr}")

    def test_every_verb_has_them(self) -> None:
        for verb in ("run", "check", "benchmark", "inspect", "explain", "graph", "optimize", "compile"):
            more = {"graph": ["-o", self.path / "g.svg"], "optimize": ["-o", self.path / "o.xml"], "compile": ["-o", self.path / "o.lamina"]}
            self.refused(1, verb, self.model, "--limit", "nodes=1", *more.get(verb, []), says=("LIMIT_NODES is 1",))

    def test_time_to_read(self) -> None:
        for verb in ("run", "check", "benchmark", "inspect", "explain", "graph", "optimize", "compile"):
            more = {"graph": ["-o", self.path / "g.svg"], "optimize": ["-o", self.path / "o.xml"], "compile": ["-o", self.path / "o.lamina"]}
            self.refused(1, verb, self.model, "--limit", "compile-seconds=1e-9", *more.get(verb, []), says=("m.onnx: reading ", "took more than", "LIMIT_COMPILE_SECONDS"))

    def test_the_way_they_are_written(self) -> None:
        self.refused(2, "run", self.model, "--limit", "memroy=2G", says=('"memroy"', "memory"))
        self.refused(2, "run", self.model, "--limit", "memory", says=("wanted KEY=VALUE",))
        self.refused(2, "run", self.model, "--limit", "memory=much", says=("LIMIT_MEMORY", "much"))
        self.refused(1, "run", self.model, "--limit", "memory=2G,denied-operators=Conv,Neg,nodes=10", says=("second", "DENIED_OPERATORS has Neg"))
        self.refused(1, "run", self.model, "--limit", "memory=1k", says=("LIMIT_MEMORY is 1024",))
        self.refused(1, "run", self.model, "--set", "LIMIT_ELEMENTS=999", says=("LIMIT_ELEMENTS is 999",))
        done = lamina("run", self.model, "--quiet", "--limit", "memory=1M,LIMIT_NODES=2", "--limit", "allowed-operators=Relu,Neg")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_external_data(self) -> None:
        weights = onnx.numpy_helper.from_array(np.ones((1, 1000), np.float32), "w")
        graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [value("x", [1, 1000])], [value("y", [1, 1000])], [weights])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        folder = self.path / "model"
        folder.mkdir()
        onnx.save(model, folder / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
        self.taken("run", folder / "m.onnx")
        self.refused(1, "run", folder / "m.onnx", "--limit", "external-files=none", says=("w.bin", "EXTERNAL_FILES is none"))
        link = self.path / "link.onnx"
        link.symlink_to(folder / "m.onnx")
        self.refused(1, "run", link, says=("w.bin", "no such file"))
        (folder / "w.bin").rename(self.path / "blob")
        (folder / "w.bin").symlink_to("../blob")
        self.refused(1, "run", folder / "m.onnx", says=("w.bin", "symbolic link", "cp -L"))
        (folder / "w.bin").unlink()
        os.mkfifo(folder / "w.bin")
        self.refused(1, "run", folder / "m.onnx", says=("w.bin", "not a regular file"))

    def test_an_expansion_out_of_proportion(self) -> None:
        target = onnx.numpy_helper.from_array(np.array([1 << 29, 4], np.int64), "s")
        save(self.model, [helper.make_node("Expand", ["x", "s"], ["y"], "grow")], [value("x", [1, 4])], [value("y", [1 << 29, 4])], [target])
        self.refused(1, "run", "--quiet", self.model, says=("LIMIT_MEMORY",))
        self.refused(1, "run", "--quiet", self.model, "--limit", "memory=1G", says=("LIMIT_MEMORY is 1073741824",))

    def test_cases_that_were_reported(self) -> None:
        if not HOSTILE.is_dir():
            self.skipTest(f"there is no {HOSTILE}")
        self.refused(1, "run", "--quiet", HOSTILE / "expandout_g8.onnx", says=("LIMIT_MEMORY",))
        self.refused(1, "run", "--quiet", HOSTILE / "fold_64M_times_200.onnx", "--limit", "memory=500M", says=("LIMIT_MEMORY",))

    def bomb(self, arrays: dict[str, tuple[str, int]]) -> pathlib.Path:
        """An archive of arrays of zeros: header and bytes of each."""
        path = self.path / "bomb.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, (shape, count) in arrays.items():
                head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
                with archive.open(name + ".npy", "w", force_zip64=True) as out:
                    out.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
                    for _ in range(count // (1 << 20)):
                        out.write(bytes(1 << 20))
                    out.write(bytes(count % (1 << 20)))
        return path

    def run_in(self, megabytes: int, *words: object) -> subprocess.CompletedProcess:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_DATA, (megabytes << 20, megabytes << 20))

        return subprocess.run([TOOL, *map(str, words)], check=False, capture_output=True, text=True, preexec_fn=limit, timeout=120)

    @RUNS_IN_LITTLE_MEMORY
    def test_arrays_that_no_input_wants_are_not_unpacked(self) -> None:
        path = self.bomb({"in0": ("(1, 1000)", 4000), "out0": ("(268435456,)", 1 << 30)})
        done = self.run_in(500, "run", self.model, "--inputs", path, "--threads", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        path = self.bomb({"in0": ("(268435456,)", 1 << 30)})
        done = self.run_in(500, "run", self.model, "--inputs", path, "--threads", 1)
        self.assertEqual(done.returncode, 1)
        self.assertIn('"in0" is f32[268435456], wanted f32[1,1000]', done.stderr)
        done = self.run_in(500, "run", self.model, "--input", path, "--threads", 1)
        self.assertIn('"in0" is f32[268435456], wanted f32[1,1000]', done.stderr)
        path = self.bomb({"other": ("(268435456,)", 1 << 30)})
        done = self.run_in(500, "run", self.model, "--inputs", path, "--threads", 1)
        self.assertIn('there is no input "other"', done.stderr)

    @RUNS_IN_LITTLE_MEMORY
    def test_when_memory_is_gone_there_is_one_line(self) -> None:
        big = self.path / "big.onnx"
        save(big, [helper.make_node("Relu", ["x"], ["y"])], [value("x", [1, 100_000_000])], [value("y", [1, 100_000_000])])
        for megabytes in (1, 2, 4, 6, 8, 12, 20, 40, 80, 200):
            done = self.run_in(megabytes, "run", big, "--threads", 1)
            self.assertIn(done.returncode, (1, 127), (megabytes, done))
            lines = done.stderr.splitlines()
            self.assertTrue(lines and len(lines) <= 2, (megabytes, done))
            if done.returncode == 1:  # 127: the loader of programs had too little for the program itself
                self.assertRegex(lines[-1], "memory", (megabytes, done))

    def test_a_picture_of_thousands_of_scans(self) -> None:
        path = self.path / "scans.jpg"
        path.write_bytes(many_scans(3000))
        model = self.path / "p.onnx"
        save(model, [helper.make_node("Relu", ["x"], ["y"])], [value("x", [1, 3, 8, 8])], [value("y", [1, 3, 8, 8])])
        self.refused(1, "run", model, "--input", path, says=("scans.jpg", "scans"))
        path.write_bytes(many_scans(20))
        self.taken("run", model, "--input", path)


def many_scans(count: int, size: int = 2048) -> bytes:
    """A progressive picture in grey, whose first scan (one value for all) comes again and again."""

    def segment(marker: int, body: bytes) -> bytes:
        return bytes([0xFF, marker]) + (len(body) + 2).to_bytes(2, "big") + body

    frame = bytes([8]) + size.to_bytes(2, "big") * 2 + bytes([1, 1, 0x11, 0])
    table = bytes([0x00, 1] + [0] * 15 + [0])  # one code of one bit: difference 0
    refine = bytes([1, 1, 0, 0, 0, 0x10])
    first = bytes([1, 1, 0, 0, 0, 0x01])
    blocks = (size // 8) ** 2
    scan = bytes(-(-blocks // 8))
    head = b"\xff\xd8" + segment(0xDB, bytes([0] + [1] * 64)) + segment(0xC2, frame) + segment(0xC4, table)
    return head + segment(0xDA, first) + scan + (segment(0xDA, refine) + scan) * (count - 1) + b"\xff\xd9"


if __name__ == "__main__":
    unittest.main()
