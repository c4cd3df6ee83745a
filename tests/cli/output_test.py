"""Where the command's output goes: pipes, full disks, files of which nothing is to be left."""

import json
import os
import pathlib
import pty
import resource
import signal
import subprocess
import tempfile
import unicodedata
import unittest

import onnx

TOOL = os.environ["LAMINA_TOOL"]
PORT = '<port id="{}"><dim>4</dim></port>'


def model(path: pathlib.Path, name: str = "act") -> pathlib.Path:
    """A Relu and, for a long report, its copies."""
    layers = [f'<layer id="0" name="x" type="Parameter" version="opset1"><data shape="4" element_type="f32"/><output>{PORT.format(0)}</output></layer>']
    edges = []
    for i in range(300):
        layers.append(
            f'<layer id="{2 * i + 1}" name="{name}{i}" type="ReLU" version="opset1"><input>{PORT.format(0)}</input><output>{PORT.format(1)}</output></layer>'
            f'<layer id="{2 * i + 2}" name="{name}r{i}" type="Result" version="opset1"><input>{PORT.format(0)}</input></layer>'
        )
        edges.append(
            f'<edge from-layer="0" from-port="0" to-layer="{2 * i + 1}" to-port="0"/>'
            f'<edge from-layer="{2 * i + 1}" from-port="1" to-layer="{2 * i + 2}" to-port="0"/>'
        )
    path.write_text(f'<net name="m" version="11"><layers>{"".join(layers)}</layers><edges>{"".join(edges)}</edges></net>')
    return path


class Base(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.model = model(self.path / "m.xml")


class Files(Base):
    def test_nothing_is_left_of_a_write_that_was_killed(self) -> None:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        done = subprocess.run(
            [TOOL, "explain", self.model, "--no-run", "--quiet", "--json", self.path / "j.json"], check=False, capture_output=True, preexec_fn=limit
        )
        self.assertEqual(done.returncode, -signal.SIGXFSZ)
        self.assertEqual([file.name for file in self.path.iterdir()], ["m.xml"])

    def test_pipes_are_files_to_write(self) -> None:
        words = [TOOL, "run", self.model, "--quiet", "--json"]
        done = subprocess.run([*words, "/dev/stdout"], check=True, capture_output=True)
        self.assertEqual(len(json.loads(done.stdout)["outputs"]), 300)
        read, write = os.pipe()  # process substitution
        with subprocess.Popen([*words, f"/dev/fd/{write}"], pass_fds=[write]) as process:
            os.close(write)
            with open(read) as pipe:
                self.assertEqual(len(json.load(pipe)["outputs"]), 300)
            self.assertEqual(process.wait(), 0)

    def test_a_log_is_appended_to(self) -> None:
        log = self.path / "log"
        log.write_text("before\n")
        with log.open("a") as file:
            subprocess.run([TOOL, "run", self.model, "--quiet", "--json", "/dev/stdout"], check=True, stdout=file)
        text = log.read_text()
        self.assertTrue(text.startswith("before\n{"), text[:50])


FULL = "lamina: standard output: cannot be written: No space left on device\n"


@unittest.skipUnless(pathlib.Path("/dev/full").exists(), "needs a device that is full")
class FullDisks(Base):
    def test_an_answer_that_is_lost_is_no_success(self) -> None:
        m = self.model
        for words in (
            ["run", m, "--quiet"],
            ["inspect", m],
            ["explain", m, "--no-run"],
            ["check", m, "--quiet"],
            ["benchmark", m, "--seconds", "0.05", "--quiet"],
            ["version"],
            ["ops"],
            ["rules"],
        ):
            with self.subTest(verb=words[0]), open("/dev/full", "w") as full:
                done = subprocess.run([TOOL, *words, "--json", "-"], check=False, stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual((done.returncode, done.stderr), (1, FULL))

    def test_so_is_text(self) -> None:
        for words in (["ops"], ["version"], ["--help"], ["help", "run"], ["--version"], ["inspect", self.model], ["explain", self.model, "--no-run"]):
            with self.subTest(words=words), open("/dev/full", "w") as full:
                done = subprocess.run([TOOL, *words], check=False, stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual((done.returncode, done.stderr), (1, FULL))

    def test_closed_output(self) -> None:
        done = subprocess.run(["bash", "-c", f"'{TOOL}' run '{self.model}' --quiet --json - >&-"], check=False, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "lamina: standard output: cannot be written: Bad file descriptor\n"))
        out = self.path / "x.npz"
        done = subprocess.run(["bash", "-c", f"'{TOOL}' run '{self.model}' --quiet --output '{out}' >&- 2>&- <&-"], check=False)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(out.read_bytes()[:2], b"PK")

    def test_messages_that_are_lost_stop_nothing(self) -> None:
        for closed in ("2>/dev/full", "2>&-"):
            out = self.path / "y.npz"
            for words, status in ((f"run '{self.model}' --output '{out}'", 0), ("run nosuch.onnx", 1), ("run m.onnx --bad", 2)):
                with self.subTest(closed=closed, words=words):
                    done = subprocess.run(["bash", "-c", f"'{TOOL}' {words} {closed}"], check=False, stdout=subprocess.DEVNULL)
                    self.assertEqual(done.returncode, status)
            self.assertEqual(out.read_bytes()[:2], b"PK")
            out.unlink()


class Names(Base):
    """What a file calls its parts may tell a terminal anything."""

    EVIL = "\x1b[31mred\x07\nnext\tline\u009b2J\u202eturned"

    def graph(self, name: str, path: pathlib.Path) -> pathlib.Path:
        value = [onnx.helper.make_tensor_value_info(name + n, onnx.TensorProto.FLOAT, [1, 4]) for n in "xy"]
        nodes = [
            onnx.helper.make_node("Sigmoid", [name + "x"], [name + "v"], name=name + "1"),
            onnx.helper.make_node("Softmax", [name + "v"], [name + "w"], name=name + "2"),
            onnx.helper.make_node("Exp", [name + "w"], [name + "y"], name=name + "3"),
        ]
        graph = onnx.helper.make_graph(nodes, name, value[:1], value[1:])
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8, producer_name=name), path)
        return path

    def test_terminals_are_told_nothing(self) -> None:
        evil, tame = (self.graph(name, self.path / f"{i}.onnx") for i, name in enumerate((self.EVIL, "tame")))
        for words, name in (
            (["inspect"], None),
            (["run"], None),
            (["explain", "--no-run"], None),
            (["explain", "--no-run", "--summary"], None),
            (["explain", "--no-run", "--node"], "2"),
            (["explain", "--no-run", "--why", "fuse-elementwise"], "2"),
            (["check", "--per-layer"], None),
            (["benchmark", "--seconds", "0.05", "-pc"], None),
        ):
            with self.subTest(words=words):
                lines = []
                for model, prefix in ((evil, self.EVIL), (tame, "tame")):
                    done = subprocess.run(
                        [TOOL, words[0], model, *words[1:], *([prefix + name] if name else [])], check=False, capture_output=True, text=True
                    )
                    self.assertEqual(done.returncode, 0, done.stderr)
                    shown = done.stdout + done.stderr
                    self.assertFalse([c for c in shown if c != "\n" and (unicodedata.category(c) == "Cc" or c == "\u202e")], repr(shown))
                    lines.append(len(shown.splitlines()))
                self.assertEqual(lines[0], lines[1])

    def test_json_on_a_terminal(self) -> None:
        evil = self.graph(self.EVIL, self.path / "e.onnx")
        ours, theirs = pty.openpty()
        done = subprocess.run([TOOL, "inspect", evil, "--json", "-"], check=False, stdout=theirs)
        os.close(theirs)
        text = os.read(ours, 1 << 16)
        os.close(ours)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(text.isascii())
        self.assertEqual(json.loads(text)["producer"], self.EVIL)


if __name__ == "__main__":
    unittest.main()
