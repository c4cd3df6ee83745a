"""check --expect with labels and indices: right where the scores there are as good, whatever engine stored them."""

import json
import os
import subprocess
import unittest
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TOOL = os.environ["LAMINA_TOOL"]
ROWS, CLASSES = 50, 8
RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(ROWS, 6)).astype(np.float32)
HALF = RANDOM.normal(size=(6, CLASSES // 2)).astype(np.float32)
WEIGHTS = np.concatenate([HALF, HALF], 1)  # classes c and c + 4 are always equal
SCORES = X.astype(np.float64) @ WEIGHTS
FIRST = SCORES.argmax(1)


def model(nodes: list[onnx.NodeProto], opset: int = 13, outputs: tuple[str, ...] = ("y",), **constants: np.ndarray) -> bytes:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["s"]), *nodes],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, 6])],
        [helper.make_tensor_value_info(name, TensorProto.INT64, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in {"w": WEIGHTS, **constants}.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8).SerializeToString()


class StoredLabels(unittest.TestCase):
    def stored(self, data: bytes, y: np.ndarray, *options: str) -> dict:
        """What check says of the stored output."""
        with TemporaryDirectory() as folder:
            path = f"{folder}/m.onnx"
            with open(path, "wb") as file:
                file.write(data)
            np.savez(f"{folder}/x.npz", x=X)
            np.savez(f"{folder}/y.npz", y=y)
            command = [TOOL, "check", path, "--inputs", f"{folder}/x.npz", "--expect", f"{folder}/y.npz", "--json", "-", *options]
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
            self.assertIn(done.returncode, (0, 1), done.stderr)
            row = next(r for r in json.loads(done.stdout)["outputs"] if r["against"] == "stored output")
            self.assertEqual(row["within"], done.returncode == 0, done.stdout)
            return row

    def right(self, data: bytes, y: np.ndarray, *options: str) -> None:
        row = self.stored(data, y, *options)
        self.assertTrue(row["within"], row)

    def wrong(self, data: bytes, y: np.ndarray, fault: str = "", *options: str) -> None:
        row = self.stored(data, y, *options)
        self.assertFalse(row["within"], row)
        self.assertIn(fault, row["agreement"]["fault"])

    def test_equal_scores_on_any_instruction_set(self) -> None:
        argmax = model([helper.make_node("ArgMax", ["s"], ["y"], axis=1, keepdims=0)])
        other = (FIRST + 4) % CLASSES
        nonsense = other.copy()
        nonsense[17] = SCORES[17].argmin()
        for isa in ((), ("--max-isa", "avx2"), ("--max-isa", "sse41")):
            self.right(argmax, other, *isa)
            self.wrong(argmax, nonsense, "worse than roundings explain at [17]", *isa)
        self.wrong(argmax, np.roll(FIRST, 1))
        self.wrong(argmax, np.where(np.arange(ROWS) == 3, 8, FIRST), "outside of the axis of 8 at [3]")

    def test_the_last_of_equal_scores(self) -> None:
        for last in (0, 1):
            for keep in (0, 1):
                data = model([helper.make_node("ArgMax", ["s"], ["y"], axis=1, keepdims=keep, select_last_index=last)])
                shape = (ROWS, 1) if keep else (ROWS,)
                self.right(data, FIRST.reshape(shape))
                self.right(data, ((FIRST + 4) % CLASSES).reshape(shape))
                self.wrong(data, ((FIRST + 1) % CLASSES).reshape(shape))
        least = model([helper.make_node("ArgMin", ["s"], ["y"], axis=-1, keepdims=0, select_last_index=1)])
        self.right(least, SCORES.argmin(1))
        self.wrong(least, FIRST)

    def test_rows_of_top_k(self) -> None:
        k = np.array([4], np.int64)
        best = np.argsort(-SCORES, axis=1, kind="stable")[:, :4]
        ties = best[:, [1, 0, 3, 2]]
        twice = best.copy()
        twice[9, 1] = twice[9, 0]
        attributes = ({"opset": 10}, {"opset": 13}, {"opset": 13, "sorted": 0})
        for options in attributes:
            options = dict(options)
            opset = options.pop("opset")
            data = model([helper.make_node("TopK", ["s", "k"], ["v", "y"], axis=1, **options)], opset, k=k)
            self.right(data, best)
            self.right(data, ties)
            self.wrong(data, twice, "twice")
            reverse = best[:, ::-1]
            (self.right if options else self.wrong)(data, reverse)
            self.wrong(data, np.argsort(SCORES, axis=1, kind="stable")[:, :4])

    def test_quantised_scores(self) -> None:
        """Most scores are at the end of the levels."""
        nodes = [
            helper.make_node("QuantizeLinear", ["s", "scale", "zero"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
            helper.make_node("ArgMax", ["d"], ["y"], axis=1, keepdims=0),
        ]
        scale = np.float32(0.01)
        data = model(nodes, scale=scale, zero=np.uint8(128))
        levels = np.clip(np.rint(SCORES / scale) + 128, 0, 255)
        last = CLASSES - 1 - levels[:, ::-1].argmax(1)
        self.right(data, levels.argmax(1))
        self.right(data, last)
        far = levels.max(1) - levels[:, 2] > 3
        self.assertGreater(far.sum(), 5)
        block = last.copy()
        block[np.flatnonzero(far)[:5]] = 2
        self.wrong(data, block)


if __name__ == "__main__":
    unittest.main()
