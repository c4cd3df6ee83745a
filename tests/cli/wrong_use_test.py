"""The lamina command, used wrongly: errors of one line, exit statuses, damaged files."""

import os
import random
import unittest

import numpy as np
import onnx
from command_case import MODEL, SHAPE, Base, lamina

# LAMINA_MUTATIONS=N tries more of them (make soak).
MUTATIONS = int(os.environ.get("LAMINA_MUTATIONS", "60"))


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
    unittest.main()
