"""Casts to and from floats of 8 and 4 bits, against ml_dtypes: every code, every tie between two numbers and what is next to it.

Through the plan and through the reference interpreter; inputs and outputs as users have them (arrays of ml_dtypes in, codes out). Also what
else came with these types: scales whose sizes are known at run time, BitCast, and losses.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

TOOL = os.environ.get("LAMINA_TOOL", "build/release/bin/lamina")
TYPES = {
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    TensorProto.FLOAT8E8M0: ml_dtypes.float8_e8m0fnu,
    TensorProto.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
}


def codes(dtype) -> np.ndarray:
    return np.arange(16 if dtype is ml_dtypes.float4_e2m1fn else 256, dtype=np.uint8)


def values_around(dtype) -> np.ndarray:
    """All numbers, the middles between neighbours, what is next to both, and what lies beyond."""
    numbers = codes(dtype).view(dtype).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    middles = (numbers[1:] + numbers[:-1]) / 2
    points = np.concatenate([numbers, middles, numbers * 2, numbers / 2, [0.0]]).astype(np.float32)
    points = points[np.isfinite(points)]
    beside = np.concatenate([np.nextafter(points, np.float32(s)) for s in (-np.inf, np.inf)])
    special = np.float32([np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30, -1e-30, 465, 449, 61441, 241, 249])
    return np.concatenate([points, beside, special]).astype(np.float32)


def casting(source: int, to: int, size: int, **attributes) -> bytes:
    x, y = helper.make_tensor_value_info("x", source, [size]), helper.make_tensor_value_info("y", to, [size])
    graph = helper.make_graph([helper.make_node("Cast", ["x"], ["y"], to=to, **attributes)], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=12).SerializeToString()


class SmallFloats(unittest.TestCase):
    def run_model(self, model: bytes, x: np.ndarray, *more: str, fault: str = "", **inputs: np.ndarray) -> np.ndarray | None:
        """The output y; with `fault`, the run must fail with a message that it matches."""
        with tempfile.TemporaryDirectory() as folder:
            path, feed, out = (pathlib.Path(folder) / name for name in ("m.onnx", "in.npz", "out.npz"))
            path.write_bytes(model)
            np.savez(feed, x=x, **inputs)
            done = subprocess.run([TOOL, "run", path, "--inputs", feed, "--output", out, "--quiet", "--threads", "1", *more], capture_output=True, text=True)
            if fault:
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, fault)
                return None
            self.assertEqual(done.returncode, 0, done.stderr)
            return np.load(out)["y"]

    def check(self, model: bytes, x: np.ndarray, wanted: np.ndarray) -> None:
        for way in ((), ("--reference",)):
            got = self.run_model(model, x, *way)
            if wanted.dtype != np.float32:
                got, exact = got.view(wanted.dtype).astype(np.float32), wanted.astype(np.float32)
            else:
                exact = wanted
            same = (got == exact) & (np.signbit(got) == np.signbit(exact)) | np.isnan(got) & np.isnan(exact)
            wrong = list(zip(x[~same], got[~same], exact[~same], strict=True))[:5]
            self.assertTrue(same.all(), f"{way} {wanted.dtype}: {wrong}")

    def test_every_code_is_read(self) -> None:
        for number, dtype in TYPES.items():
            x = codes(dtype).view(dtype)
            if number == TensorProto.FLOAT8E8M0:
                x = x[1:]  # 2^-127 is subnormal in f32, which may count as 0
            self.check(casting(number, TensorProto.FLOAT, x.size), x, x.astype(np.float32))

    def test_numbers_ties_and_neighbours_are_rounded(self) -> None:
        for number, dtype in TYPES.items():
            x = values_around(dtype)
            if number == TensorProto.FLOAT8E8M0:
                x = x[np.isfinite(x) & (np.abs(x) >= 2.0**-126)]
                for mode in ("up", "down", "nearest"):
                    wanted = numpy_helper.to_float8e8m0(x, True, mode)
                    self.check(casting(TensorProto.FLOAT, number, x.size, round_mode=mode), x, wanted)
                continue
            if number == TensorProto.FLOAT4E2M1:
                x = x[~np.isnan(x)]  # there is no such number
                self.check(casting(TensorProto.FLOAT, number, x.size), x, x.astype(dtype))
                continue
            self.check(casting(TensorProto.FLOAT, number, x.size), x, numpy_helper.saturate_cast(x, np.dtype(dtype)))
            self.check(casting(TensorProto.FLOAT, number, x.size, saturate=0), x, x.astype(dtype))

    def test_codes_go_in_and_out_as_bytes(self) -> None:
        x = np.arange(16, dtype=np.uint8)
        same = helper.make_graph([helper.make_node("Reshape", ["x", "to"], ["y"])], "g",
                                 [helper.make_tensor_value_info("x", TensorProto.FLOAT4E2M1, [16])],
                                 [helper.make_tensor_value_info("y", TensorProto.FLOAT4E2M1, [4, 4])], [numpy_helper.from_array(np.int64([4, 4]), "to")])
        model = helper.make_model(same, opset_imports=[helper.make_opsetid("", 24)], ir_version=12).SerializeToString()
        np.testing.assert_array_equal(self.run_model(model, x), x.reshape(4, 4))

    def test_packed_weights_are_moved(self) -> None:
        """Constant weights of 4 and 2 bits of an odd number: sliced, transposed, dequantized, multiplied."""
        rng, make = np.random.default_rng(0), helper.make_node
        x = rng.integers(-4, 5, (2, 5)).astype(np.float32)
        for dtype in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.float4_e2m1fn):
            w = rng.integers(0, 2, (7, 7)).astype(np.float32).astype(dtype)
            nodes = [make("Slice", ["w", "begin", "end"], ["part"]), make("Transpose", ["part"], ["wt"], perm=[1, 0]),
                     make("DequantizeLinear", ["wt", "scale"], ["wd"]), make("MatMul", ["x", "wd"], ["y"])]
            constants = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.float32(0.5), "scale"),
                         numpy_helper.from_array(np.int64([1, 2]), "begin"), numpy_helper.from_array(np.int64([6, 7]), "end")]
            graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 5])],
                                      [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 5])], constants)
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13).SerializeToString()
            self.check(model, x, x @ (w.astype(np.float32)[1:6, 2:7].T * np.float32(0.5)))

    def test_scales_of_open_sizes(self) -> None:
        x = np.arange(40, dtype=np.uint8).reshape(2, 5, 4)
        wide = x.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
        dims, scale_dims = ["a", "b", "c"], {5: [None], 1: [None], 2: [None, None, None]}
        for attributes, size in (({"axis": 1}, 5), ({"axis": 1}, 1), ({"axis": -2, "block_size": 3}, 2)):
            shape = (2, 2, 4) if size == 2 else (size,)
            scale = np.linspace(0.5, 4, np.prod(shape), dtype=np.float32).reshape(shape)
            spread = scale.repeat(3, axis=1)[:, :5] if size == 2 else scale.reshape(1, -1, 1)
            graph = helper.make_graph([helper.make_node("DequantizeLinear", ["x", "s"], ["y"], **attributes)], "g",
                                      [helper.make_tensor_value_info("x", TensorProto.FLOAT8E4M3FN, dims),
                                       helper.make_tensor_value_info("s", TensorProto.FLOAT, scale_dims[size])],
                                      [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
            model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=12).SerializeToString()
            longer = np.concatenate([scale, scale, scale], axis=-1 if size != 2 else 1)
            for way in ((), ("--reference",)):
                np.testing.assert_array_equal(self.run_model(model, x, *way, s=scale), wide * spread)
                self.run_model(model, x, *way, s=longer, fault="scale has")

    def test_bits_of_halves(self) -> None:
        """BitCast of an input and as the result of a Loop's body, of NaNs too."""
        half, word = TensorProto.FLOAT16, TensorProto.UINT16
        info, node = helper.make_tensor_value_info, helper.make_node
        x = np.uint16([0xFFFF, 0x7C01, 0x3C00]).view(np.float16)
        graph = helper.make_graph([node("BitCast", ["x"], ["y"], to=word)], "g", [info("x", half, [3])], [info("y", word, [3])])
        read = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13).SerializeToString()
        body = helper.make_graph([node("BitCast", ["v"], ["b"], to=word), node("BitwiseXor", ["b", "k"], ["f"]), node("BitCast", ["f"], ["w"], to=half), node("Identity", ["c"], ["d"])],
                                 "b", [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("v", half, [3])],
                                 [info("d", TensorProto.BOOL, []), info("w", half, [3])], [numpy_helper.from_array(np.uint16([0x8000]), "k")])
        graph = helper.make_graph([node("Loop", ["n", "t", "x"], ["y"], body=body)], "g", [info("x", half, [3])], [info("y", half, [3])],
                                  [numpy_helper.from_array(np.array(3), "n"), numpy_helper.from_array(np.array(True), "t")])
        loop = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13).SerializeToString()
        numbers = np.float16([1, -2, 3.5])
        for way in ((), ("--reference",)):
            np.testing.assert_array_equal(self.run_model(read, x, *way), x.view(np.uint16))
            np.testing.assert_array_equal(self.run_model(loop, numbers, *way), -numbers)

    def test_bits_of_halves_that_are_moved(self) -> None:
        """What moves elements between the model's halves and BitCast keeps the bits of NaNs; arithmetic makes quiet ones."""
        info, node, word = helper.make_tensor_value_info, helper.make_node, TensorProto.UINT16
        bits = np.uint16([[0x7C01, 0x3C00, 0xFDAB], [0x7F81, 0xFF83, 0x0001]])
        begin, end = numpy_helper.from_array(np.int64([1]), "b"), numpy_helper.from_array(np.int64([3]), "e")
        axes, to = numpy_helper.from_array(np.int64([1]), "a"), numpy_helper.from_array(np.int64([-1]), "t")
        rows = numpy_helper.from_array(np.int64([1, 0, 1]), "r")
        moves = {
            "Transpose": ([node("Transpose", ["x"], ["m"], perm=[1, 0])], bits.T),
            "Reshape": ([node("Reshape", ["x", "t"], ["m"])], bits.reshape(-1)),
            "Identity": ([node("Identity", ["x"], ["m"])], bits),
            "Gather": ([node("Gather", ["x", "r"], ["m"])], bits[[1, 0, 1]]),
            "Slice": ([node("Slice", ["x", "b", "e", "a"], ["m"])], bits[:, 1:3]),
            "Concat": ([node("Concat", ["x", "x"], ["m"], axis=0)], np.concatenate([bits, bits])),
            "all": ([node("Transpose", ["x"], ["u"]), node("Gather", ["u", "r"], ["v"]), node("Concat", ["v", "v"], ["w"], axis=1), node("Unsqueeze", ["w", "a"], ["m"])],
                    np.concatenate([bits.T[[1, 0, 1]]] * 2, axis=1)[:, None]),
        }
        for half, dtype in ((TensorProto.FLOAT16, np.float16), (TensorProto.BFLOAT16, ml_dtypes.bfloat16)):
            for name, (nodes, wanted) in moves.items():
                for sizes in ([2, 3], ["n", "m"]):
                    graph = helper.make_graph([*nodes, node("BitCast", ["m"], ["y"], to=word)], "g", [info("x", half, sizes)], [info("y", word, None)], [begin, end, axes, to, rows])
                    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=13).SerializeToString()
                    for way in ((), ("--reference",)):
                        np.testing.assert_array_equal(self.run_model(model, bits.view(dtype), *way), wanted, str((name, sizes, way)))

    def test_losses_of_open_sizes(self) -> None:
        info = helper.make_tensor_value_info
        ins = [info("x", TensorProto.FLOAT, ["n", "c"]), info("t", TensorProto.INT64, ["m"]), info("w", TensorProto.FLOAT, ["k"])]
        graph = helper.make_graph([helper.make_node("NegativeLogLikelihoodLoss", ["x", "t", "w"], ["y"], reduction="sum")], "g", ins, [info("y", TensorProto.FLOAT, [])])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10).SerializeToString()
        x, target, weight = np.arange(12, dtype=np.float32).reshape(3, 4), np.int64([0, 2, 3]), np.float32([1, 2, 3, 4])
        for way in ((), ("--reference",)):
            self.assertEqual(self.run_model(model, x, *way, t=target, w=weight), -(0 * 1 + 6 * 3 + 11 * 4))
            for wrong in (target[:2], target[:1], np.int64([0, 0, 0, 0])):
                self.run_model(model, x, *way, t=wrong, w=weight, fault="Gather|shapes|elements")
            self.run_model(model, x, *way, t=target, w=weight[:2], fault="Gather")


if __name__ == "__main__":
    sys.exit(unittest.main())
