"""Images as inputs: what is done to them is said, sizes are the image's own where the model leaves them open."""

import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest
import zlib

import numpy as np
import onnx
from sample_models import DYNAMIC, LARGE, SMALL

TOOL = os.environ["LAMINA_TOOL"]


def lamina(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOL, *map(str, arguments)], check=False, capture_output=True, text=True, timeout=120)


def png(samples: np.ndarray, colour: int) -> bytes:
    """8 or 16 bits; colour 0 grey, 2 RGB, 6 RGBA."""
    height, width = samples.shape[:2]
    depth = samples.dtype.itemsize * 8
    rows = b"".join(b"\0" + row.astype(samples.dtype.newbyteorder(">")).tobytes() for row in samples)
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)


class Images(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.pixels = np.random.default_rng(1).integers(0, 256, (30, 50, 3), np.uint8)
        self.ppm = self.path / "p.ppm"
        self.ppm.write_bytes(b"P6\n50 30\n255\n" + self.pixels.tobytes())

    def notes(self, *arguments: object) -> list[str]:
        done = lamina("run", *arguments, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        notes: list[str] = json.loads(done.stdout)["notes"]
        self.assertEqual([f"lamina: {note}" for note in notes], done.stderr.splitlines())
        return notes

    def refused(self, status: int, *arguments: object, says: str) -> None:
        done = lamina("run", *arguments)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
        self.assertIn(says, done.stderr.splitlines()[-1])
        self.assertLessEqual(len(done.stderr.splitlines()), 2, done.stderr)

    def test_open_sizes_are_the_images_own(self) -> None:
        out = self.path / "out.npz"
        (note,) = self.notes(DYNAMIC, "--input", self.ppm, "--output", out)
        self.assertIn("p.ppm, 50x30: its own size, colour to grey", note)
        self.assertEqual(np.load(out)["shuffle_out"].shape, (1, 1, 90, 150))
        (note,) = self.notes(DYNAMIC, "--shape", "1,1,15,25", "--input", self.ppm)
        self.assertIn("resized to 25x15", note)

    def test_resizing_is_said(self) -> None:
        (note,) = self.notes(LARGE, "--input", self.ppm)
        self.assertIn("stretched to 224x224", note)
        (note,) = self.notes(LARGE, "--input", self.ppm, "--fit", "letterbox", "--color", "bgr", "--mean", "104,117,123")
        self.assertIn("resized to 224x134 at 0,45 of 224x224, grey bars around, RGB to BGR, pixel - 104,117,123", note)
        (note,) = self.notes(DYNAMIC, "--shape", "1,1,15,25", "--input", self.ppm, "--fit", "letterbox")
        self.assertIn(": resized to 25x15, colour to grey", note)

    def test_the_values_are_right(self) -> None:
        x = (self.pixels[..., ::-1].astype(np.float32) - np.float32([10, 20, 30])) / np.float32(2)
        grid = (np.arange(224) + 0.5)  # half-pixel centres, bilinear
        rows, columns = (np.clip(grid * n / 224 - 0.5, 0, n - 1) for n in (30, 50))
        def lines(a: np.ndarray, at: np.ndarray) -> np.ndarray:
            low = at.astype(int)
            part = (at - low).reshape(-1, *[1] * (a.ndim - 1))
            return a[low] * (1 - part) + a[np.minimum(low + 1, len(a) - 1)] * part
        pixels = lines(self.pixels.astype(np.float64), rows).transpose(1, 0, 2)
        pixels = np.floor(lines(pixels, columns).transpose(1, 0, 2) + 0.5)
        x = (pixels[..., ::-1] - [10, 20, 30]) / 2
        np.save(self.path / "x.npy", x.transpose(2, 0, 1)[None].astype(np.float32))
        results = []
        for words in (["--input", self.path / "x.npy"], ["--input", self.ppm, "--color", "bgr", "--mean", "10,20,30", "--scale", "2"]):
            self.assertEqual(lamina("run", LARGE, *words, "--output", self.path / "o.npz", "--by-position").returncode, 0)
            results.append(np.load(self.path / "o.npz")["out0"])
        np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-4)

    def test_png_of_all_kinds(self) -> None:
        grey = self.pixels[..., 0]
        for name, samples, colour, says in (("deep", self.pixels.astype(np.uint16) * 257, 2, "16 bits to 8"), ("grey", grey, 0, "grey to 3 equal channels"),
                                            ("alpha", np.dstack([self.pixels, grey]), 6, "alpha blended with white")):
            (self.path / f"{name}.png").write_bytes(png(samples, colour))
            (note,) = self.notes(LARGE, "--input", self.path / f"{name}.png")
            self.assertIn(says, note)
        done = [lamina("run", LARGE, "--input", self.path / f, "--quiet", "--json", "-").stdout for f in ("deep.png", "p.ppm")]
        self.assertEqual(*(json.loads(text)["outputs"] for text in done))

    def test_several_images_fill_a_batch(self) -> None:
        notes = self.notes(DYNAMIC, "--input", self.ppm, "--input", f"picture={self.ppm}")
        self.assertEqual(len(notes), 2)
        self.assertIn("f32[2,1,30,50]", notes[1])
        self.refused(1, LARGE, "--input", self.ppm, "--input", self.ppm, says="2 images for a batch of 1")
        np.save(self.path / "x.npy", np.zeros((1, 3, 224, 224), np.float32))
        self.refused(1, LARGE, "--input", self.path / "x.npy", "--input", self.path / "x.npy", says="only images fill a batch")

    def test_wrong_words(self) -> None:
        self.refused(2, LARGE, "--mean", "1", says="no --input is one")
        self.refused(2, LARGE, "--input", self.ppm, "--mean", "1,2", says="2 values for the 3 channels")
        self.refused(2, LARGE, "--input", self.ppm, "--scale", "0", says="--scale 0")
        self.refused(2, LARGE, "--input", self.ppm, "--layout", "NCXW", says="--layout NCXW")
        self.refused(1, LARGE, "--input", self.ppm, "--layout", "CHW", says="has 4 dimensions")
        self.refused(1, LARGE, "--input", self.ppm, "--layout", "nosuch=NHWC", says='there is no input "nosuch"')
        self.refused(2, LARGE, "--input", self.ppm, "--layout", "NCHW", "--layout", "NHWC", says="two layouts")
        self.refused(2, LARGE, "--input", self.ppm, "--mean", "", says="--mean: wanted a value")
        self.refused(2, LARGE, "--input", self.ppm, "--scale", "1e-40", says="out of the range of f32")
        self.refused(2, LARGE, "--input", self.ppm, "--color", "cmyk", says="--color")
        np.save(self.path / "x.npy", np.zeros((1, 3, 224, 224), np.float32))
        self.refused(1, LARGE, "--input", self.path / "x.npy", "--shape", "1,3,1,1", says="--shape says [1,3,1,1]")

    def test_made_up_inputs_fit_those_that_are_given(self) -> None:
        value = onnx.helper.make_tensor_value_info
        kind = onnx.TensorProto.FLOAT
        graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "y"], ["z"])], "g",
                                       [value("x", kind, ["n", "length"]), value("y", kind, ["n", "length"])], [value("z", kind, None)])
        model = self.path / "m.onnx"
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8), model)
        self.assertEqual(self.notes(model, "--shape", "x=2,5")[1], 'input "y": seeded random values, f32[2,5]')

    def test_labels(self) -> None:
        labels = self.path / "labels.txt"
        labels.write_text("\ufeff" + "".join(f"number {i}\r\n" for i in range(10)) + "\n")
        done = lamina("run", SMALL, "--labels", labels, "--top", "1", "--json", self.path / "r.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        best = json.loads((self.path / "r.json").read_text())["outputs"][0]["top"][0]
        self.assertEqual(best["label"], f"number {best['index']}")
        self.assertIn(best["label"], done.stdout)
        labels.write_text("one\ntwo\n")
        self.refused(1, SMALL, "--labels", labels, says='2 names, but output "Plus214_out" has 10 classes')
        self.refused(1, DYNAMIC, "--input", self.ppm, "--labels", labels, says="no output is one row of scores")
        labels.write_bytes(b"a\0b")
        self.refused(1, SMALL, "--labels", labels, says="is no text")
        labels.write_text("\n")
        self.refused(1, SMALL, "--labels", labels, says="is empty")
        self.refused(2, SMALL, "--labels", labels, "--top", "0", says="--top 0")


if __name__ == "__main__":
    unittest.main()
