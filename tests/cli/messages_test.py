"""What the command says where something is wrong, and tables that are read by other programs."""

import os
import pathlib
import subprocess
import tempfile
import unittest
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper
from sample_models import LARGE, SMALL

TOOL = os.environ["LAMINA_TOOL"]
#: Words of the libraries that read files; none of them helps who does not know these.
FOREIGN = ("pbf", "varint", "exception", "protozero", "pugi", "nlohmann", "libpng", "tag", "IDAT", "IHDR", "PCDATA", "SOF", "Huffman", "marker")


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, errors="replace", timeout=120)


class Base(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def refused(self, status: int, *arguments: object) -> str:
        done = lamina(*arguments)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr


class Words(Base):
    def test_damaged_models_are_told_in_our_words(self) -> None:
        whole = SMALL.read_bytes()
        damaged = {f"cut{n}.onnx": whole[:n] for n in (3, 10, 200, len(whole) // 2, len(whole) - 5)}
        damaged |= {"wire.onnx": b"\x08\x07" + b"\x3f" * 40, "number.onnx": b"\x08" + b"\xff" * 20, "zero.onnx": b"\x08\x07\x00\x01\x02"}
        damaged |= {"cut.pb": b"\x0a\x50\x0a\x01x", "bad.caffemodel": b"\x0a\x7fnet", "wire.pb": b"\x0a\x05\x0a\x01x\x12\x3f"}
        for name, content in damaged.items():
            (self.path / name).write_bytes(content)
            line = self.refused(1, "inspect", self.path / name)
            for word in FOREIGN:
                self.assertNotIn(f" {word} ", line.replace("(", " ").replace(")", " "), line)

    def test_damaged_xml_is_told_in_our_words(self) -> None:
        for text in ("", "<net", "<net>", "<net></nit>", "<net a></net>", "<net a=1/>", "<net><!-- </net>", "<net><![CDATA[ </net>", "<?xml <net/>", "<net></net", "<1/>", "text"):
            file = self.path / "m.xml"
            file.write_text(text)
            line = self.refused(1, "inspect", file)
            for word in ("PCDATA", "parsing", "document element", "tag"):
                self.assertNotIn(word, line)

    def test_damaged_pictures_are_told_in_our_words(self) -> None:
        model = self.path / "m.onnx"
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 4])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), model)

        def chunk(kind: bytes, data: bytes) -> bytes:
            return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

        head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", (4).to_bytes(4, "big") * 2 + b"\x08\x02\x00\x00\x00")
        rows = zlib.compress(b"".join(b"\x00" + bytes(12) for _ in range(4)))
        pictures = {
            "cut.png": head[:20],
            "rows.png": head + chunk(b"IDAT", rows[: len(rows) // 2]) + chunk(b"IEND", b""),
            "crc.png": head[:-1] + b"\x00" + chunk(b"IDAT", rows) + chunk(b"IEND", b""),
            "short.jpg": b"\xff\xd8\xff\xe0",
            "odd.jpg": b"\xff\xd8\xff\xc9\x00\x0b\x08\x00\x04\x00\x04\x01\x01\x11\x00" + bytes(40),
        }
        for name, content in pictures.items():
            (self.path / name).write_bytes(content)
            line = self.refused(1, "run", model, "--input", self.path / name)
            self.assertIn(name, line)
            for word in FOREIGN:
                self.assertNotIn(word, line.split(name, 1)[1])

    def test_paths_are_whole(self) -> None:
        folder = self.path
        for i in range(6):
            folder = folder / (f"a_folder_with_a_rather_long_name_{i}_" + "x" * 60)
        folder.mkdir(parents=True)
        file = folder / "model.onnx"
        file.write_bytes(b"\x08\x07" + b"\x3f" * 40)
        self.assertIn(f"{file}: ", self.refused(1, "inspect", file))
        self.assertIn(f"{folder / 'none.onnx'}: ", self.refused(1, "run", folder / "none.onnx"))
        self.assertIn(str(folder / "g.txt"), self.refused(2, "graph", SMALL, "-o", folder / "g.txt"))
        self.assertLess(len(self.refused(2, "run", SMALL, "--log-level", "x" * 100_000)), 1000)

    def test_capabilities(self) -> None:
        line = next(line for line in lamina("version", "--properties").stdout.splitlines() if line.startswith("OPTIMIZATION_CAPABILITIES"))
        for word in ("FP32", "INT8", "BIN", "EXPORT_IMPORT"):
            self.assertIn(word, line)

    def test_more_instructions_than_there_are(self) -> None:
        limited = {**os.environ, "LAMINA_MAX_ISA": "avx2"}
        done = subprocess.run([TOOL, "run", SMALL, "--max-isa", "avx512"], check=False, capture_output=True, text=True, timeout=120, env=limited)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "max isa avx512: this processor has (avx2|sse41) at most, which is used")
        said = subprocess.run([TOOL, "version", "--verbose"], check=False, capture_output=True, text=True, timeout=120, env=limited).stdout
        self.assertNotIn("()", said)

    def test_no_empty_parentheses(self) -> None:
        for words in (["version", "--verbose"], ["inspect", SMALL], ["explain", SMALL, "--no-run"]):
            self.assertNotIn("()", lamina(*words).stdout)


class Names(Base):
    def test_unknown_names_are_refused_before_anything_is_planned(self) -> None:
        # The weights cannot be multiplied with the input: to plan this model fails.
        nodes = [helper.make_node("Reshape", ["x", "shape"], ["r"], "reshape"), helper.make_node("MatMul", ["r", "w"], ["y"], "product")]
        ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 8]), helper.make_tensor_value_info("shape", TensorProto.INT64, [2])]
        weights = [onnx.numpy_helper.from_array(np.ones((5, 3), np.float32), "w")]
        graph = helper.make_graph(nodes, "g", ports, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
        model = self.path / "m.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), model)
        self.assertIn('did you mean "product"', self.refused(1, "explain", model, "--node", "prodct"))
        self.assertIn('did you mean "product"', self.refused(1, "explain", model, "--why", "fuse-linear", "prodct"))
        self.assertIn('did you mean "fuse-linear"', self.refused(2, "explain", model, "--why", "fuse-linera", "product"))

    def test_names_of_nodes_that_rules_made_are_found(self) -> None:
        self.assertEqual(lamina("explain", SMALL, "--no-run", "--node", "Convolution28").returncode, 0)


class Tables(Base):
    def test_columns_are_whole_in_a_pipe(self) -> None:
        name = "a/layer/with/a/name/that/is/longer/than/any/column/of/the/table/is/wide/conv"
        weights = [onnx.numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")]
        graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"], name)], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], weights)
        model = self.path / "m.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), model)
        for words in (["explain", model], ["explain", model, "--no-run"], ["benchmark", model, "-pc", "--iterations", 2], ["benchmark", "-m", model, "-pc", "-niter", 2]):
            text = lamina(*words).stdout
            self.assertIn(name, text, words)
            self.assertNotIn("\u2026", text)

    def test_pcsort_orders_the_table(self) -> None:
        def times(*more: object) -> list[float]:
            lines = lamina("benchmark", LARGE, "-pc", "--iterations", 3, "--report-folder", self.path, *more).stdout.splitlines()
            first = next(i for i, line in enumerate(lines) if line.startswith("layer "))
            last = next(i for i, line in enumerate(lines) if line.startswith("(overhead)"))
            return [float(next(word for word in line.split() if word.replace(".", "", 1).isdigit() and "." in word)) for line in lines[first + 1 : last]]

        for order in ("sort", "simple_sort"):
            shown = times("-pcsort", order)
            self.assertGreater(len(shown), 5)
            self.assertEqual(shown, sorted(shown, reverse=True))
        self.assertEqual(len(times("-pcsort", "no_sort")), len(times()))


if __name__ == "__main__":
    unittest.main()
