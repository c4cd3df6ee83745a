"""Random cases of com.microsoft's operators."""

import dataclasses
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from peers import RandomBase

TYPES = {"f": TensorProto.FLOAT, "i": TensorProto.INT32, "l": TensorProto.INT64, "B": TensorProto.UINT8}


@dataclasses.dataclass
class Case:
    """One node. A constant is an initialiser, what is None is left out."""

    op: str
    inputs: list[np.ndarray | None]
    attributes: dict
    outputs: int = 1
    constants: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()  # outputs that the node gives; empty: all of them
    dynamic: bool = False
    atol: float = 1e-4
    relevant: Callable[[int, np.ndarray], np.ndarray] = lambda i, y: y  # what of an output is defined
    expected: Callable[["Case"], dict[str, np.ndarray]] | None = None  # where ONNX Runtime has no such operator

    def model(self) -> onnx.ModelProto:
        names = [f"x{i}" if a is not None else "" for i, a in enumerate(self.inputs)]
        while not names[-1]:
            names.pop()
        wanted = self.wanted or tuple(range(self.outputs))
        outputs = [f"y{i}" if i in wanted else "" for i in range(self.outputs)]
        given = [(n, a) for n, a in zip(names, self.inputs, strict=False) if a is not None]
        graph = helper.make_graph(
            [helper.make_node(self.op, names, outputs, domain="com.microsoft", **self.attributes)], "g",
            [helper.make_tensor_value_info(n, TYPES[a.dtype.char], self.dims(n, a))
             for n, a in given if int(n[1:]) not in self.constants],
            [helper.make_value_info(o, helper.make_tensor_type_proto(self.type_of(o), None)) for o in outputs if o],
            [numpy_helper.from_array(a, n) for n, a in given if int(n[1:]) in self.constants])
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)])

    def dims(self, name: str, a: np.ndarray) -> list[int | str]:
        """With unknown batches and lengths, but not sizes of heads or how many there are."""
        known = {a.ndim - 1, a.ndim - 3} if a.ndim > 3 else {2} if a.ndim == 3 and a.dtype.char == "f" else set()
        return [f"{name}_{i}" if self.dynamic and i not in known else d for i, d in enumerate(a.shape)]

    def type_of(self, output: str) -> int:
        if self.op == "NhwcMaxPool":
            return TensorProto.UINT8
        return TensorProto.INT32 if self.op == "EmbedLayerNormalization" and output == "y1" else TensorProto.FLOAT

    def feed(self) -> dict[str, np.ndarray]:
        return {f"x{i}": a for i, a in enumerate(self.inputs) if a is not None and i not in self.constants}


MASKED = 2e-3  # a row that sees nothing has scores of -10000, whose roundings are large


class Random(RandomBase):
    """What cases are made of."""

    def ints(self, low: int, high: int, *shape: int, dtype: type = np.int32) -> np.ndarray:
        return self.g.integers(low, high + 1, shape).astype(dtype)


def key_mask(r: Random, n: int, rows: int, columns: int, *kinds: str) -> np.ndarray | None:
    kind = r.pick(*kinds)
    if kind == "lengths":
        return r.ints(1, columns, n)
    if kind == "spans":
        return np.concatenate([r.ints(columns // 2 + 1, columns, n), r.ints(0, columns // 2, n)])
    if kind == "2d":
        return r.ints(0, 1, n, columns)
    if kind == "3d":
        return r.ints(0, 1, n, rows, columns)
    return None


def attention(r: Random) -> Case:
    n, rows, heads, size, past = r.size(1, 3), r.size(1, 9), r.pick(1, 2, 4), r.pick(4, 8), r.pick(0, 0, 3)
    value = size if past or r.flag() else r.pick(4, 8, 12)
    width, depth = heads * size, r.pick(8, 24)
    columns = 2 * width + heads * value
    attributes = {"num_heads": heads, "unidirectional": int(r.flag(0.4))}
    if value != size or r.flag(0.2):
        attributes["qkv_hidden_sizes"] = [width, width, heads * value]
    if r.flag(0.2):
        attributes["scale"] = 0.3
    if r.flag(0.3):
        attributes["mask_filter_value"] = float(r.pick(-3.0, -3.4028234663852886e38))
    constant = r.flag(0.8)
    dynamic = constant and r.flag(0.3)
    # The peer reads a bias even where there is none, and dies.
    inputs = [r.floats(n, rows, depth), r.floats(depth, columns) / 3, r.floats(columns),
              key_mask(r, n, rows, rows + past, "none", "lengths", "2d", "3d", *([] if dynamic else ["spans"])),
              r.floats(2, n, heads, past, size) if past else None,
              r.floats(r.pick(1, n), r.pick(1, heads), rows, rows + past) if not past and r.flag(0.3) else None]
    outputs = 2 if past or (value == size and r.flag(0.2)) else 1
    return Case("Attention", inputs, attributes, outputs, constants=(1, 2) if constant else (), dynamic=dynamic, atol=MASKED)


def multi_head_attention(r: Random) -> Case:
    n, rows, heads, size = r.size(1, 3), r.size(1, 9), r.pick(1, 2, 4), r.pick(4, 8)
    width = heads * size
    form = r.pick("plain", "plain", "past", "cross")
    columns = rows if form == "past" else r.size(1, 9)
    past = r.size(1, 4) if form == "past" else 0
    value = r.pick(size, 12) if form == "plain" else size
    attributes = {"num_heads": heads}
    if columns <= rows and r.flag():  # with more columns the peer's last row sees them all
        attributes["unidirectional"] = 1
    if r.flag(0.2):
        attributes["scale"] = 0.3
    if r.flag(0.3):
        attributes["mask_filter_value"] = float(r.pick(-3.0, -3.4028234663852886e38))
    inputs: list[np.ndarray | None] = [r.floats(n, rows, width)]
    if form == "cross":
        inputs += [r.floats(n, heads, columns, size), r.floats(n, heads, columns, size)]
    else:
        inputs += [r.floats(n, columns, width), r.floats(n, columns, heads * value)]
    bias = r.flag()
    inputs.append(r.floats(2 * width + heads * value) if bias else None)
    inputs.append(key_mask(r, n, rows, columns + past, "none", "lengths", "2d", "3d"))
    inputs.append(r.floats(r.pick(1, n), r.pick(1, heads), rows, columns + past) if r.flag(0.3) else None)
    if past:
        inputs += [r.floats(n, heads, past, size), r.floats(n, heads, past, size)]
    outputs = 3 if past else 1
    scores = r.flag(0.3)

    def relevant(output: int, y: np.ndarray) -> np.ndarray:
        return np.maximum(y, -3000) if output == 3 else y  # of hidden keys only that they are

    return Case("MultiHeadAttention", inputs, attributes, 4 if scores else outputs, constants=(3,), dynamic=r.flag(0.3), atol=MASKED, relevant=relevant,
                wanted=(*range(outputs), 3) if scores else ())


def rotary_embedding(r: Random) -> Case:
    n, rows, heads, half = r.size(1, 3), r.size(1, 7), r.pick(1, 2, 3), r.pick(2, 4, 8)
    attributes: dict = {"interleaved": int(r.flag())}
    size = 2 * half
    partial = r.flag(0.3)
    if partial:
        size += 4
        attributes |= {"rotary_embedding_dim": 2 * half, "num_heads": heads}
    x = r.floats(n, heads, rows, size) if r.flag(0.4) else r.floats(n, rows, heads * size)
    longest = 16
    positions = np.array([r.size(0, 5)], np.int64) if r.flag(0.4) else r.ints(0, longest - 1, n, rows, dtype=np.int64)
    return Case("RotaryEmbedding", [x, positions, r.floats(longest, half), r.floats(longest, half)], attributes, constants=(2, 3), dynamic=r.flag(0.3))


def group_query_attention(r: Random) -> Case:
    groups, share, size = r.pick(1, 2), r.pick(1, 2, 3), r.pick(16, 32)
    heads, longest = groups * share, 24
    form = r.pick("prompt", "prompt_room", "token", "token_room", "several")
    n = 1 if form == "several" else r.size(1, 3)
    rows = 1 if form.startswith("token") else r.size(2, 7)
    past = {"prompt": 0, "prompt_room": longest, "token": 5, "token_room": longest, "several": r.pick(5, longest)}[form]
    if form.startswith("prompt"):
        totals = r.ints(1, rows, n)
        totals[r.size(0, n - 1)] = rows
    else:
        totals = r.ints(rows + 1, rows + 5, n)
        if past != longest:
            totals[r.size(0, n - 1)] = rows + past
    total = int(totals.max())
    attributes: dict = {"num_heads": heads, "kv_num_heads": groups}
    for name, value, chance in (("scale", 0.2, 0.2), ("local_window_size", r.size(1, 4), 0.3), ("softcap", 2.0, 0.2), ("smooth_softmax", 1, 0.15)):
        if r.flag(chance):
            attributes[name] = value
    inputs: list[np.ndarray | None] = []
    if r.flag(0.3):
        inputs = [r.floats(n, rows, (heads + 2 * groups) * size), None, None]
    else:
        inputs = [r.floats(n, rows, heads * size), r.floats(n, rows, groups * size), r.floats(n, rows, groups * size)]
    inputs += [r.floats(n, groups, past, size), r.floats(n, groups, past, size)] if past else [None, None]
    inputs += [totals - 1, np.array([total], np.int32)]
    if r.flag():
        attributes |= {"do_rotary": 1, "rotary_interleaved": int(r.flag())}
        inputs += [r.floats(longest, size // 2), r.floats(longest, size // 2)]
    else:
        inputs += [None, None]
    inputs.append(None)
    inputs.append(r.floats(r.pick(1, n), r.pick(1, heads), rows, total) if r.flag(0.2) else None)
    if r.flag(0.15) and "smooth_softmax" not in attributes:
        inputs.append(r.floats(heads))

    def relevant(output: int, y: np.ndarray) -> np.ndarray:
        y = y.copy()
        for i, t in enumerate(totals):
            if output == 0:
                y[i, t:] = 0
            else:
                y[i, :, t:] = 0
        return y

    return Case("GroupQueryAttention", inputs, attributes, 3, constants=(6, 7, 8, 11) if r.flag() else (7, 8), dynamic=r.flag(0.3), relevant=relevant)


def embed_layer_normalization(r: Random) -> Case:
    n, rows, hidden, words = r.size(1, 3), r.size(1, 9), r.pick(4, 8), 20
    segments = r.flag(0.7)
    inputs = [r.ints(0, words - 1, n, rows), r.ints(0, 1, n, rows) if segments else None, r.floats(words, hidden), r.floats(12, hidden),
              r.floats(2, hidden) if segments else None, r.floats(hidden), r.floats(hidden), r.ints(0, 1, n, rows) if r.flag() else None,
              r.ints(0, 11, r.pick(1, n), rows) if r.flag(0.3) else None]
    attributes = {"epsilon": 1e-3} if r.flag(0.3) else {}
    return Case("EmbedLayerNormalization", inputs, attributes, 3, constants=(2, 3, 4, 5, 6), wanted=r.pick((0, 1), (0, 1, 2)), dynamic=r.flag(0.3))


def skip_layer_normalization(r: Random) -> Case:
    n, rows, hidden = r.size(1, 3), r.size(1, 5), r.pick(4, 8, 24)
    skip = r.pick((n, rows, hidden), (1, rows, hidden), (rows, hidden))
    inputs = [r.floats(n, rows, hidden), r.floats(*skip), r.floats(hidden), r.floats(hidden) if r.flag(0.7) else None, r.floats(hidden) if r.flag() else None]
    return Case("SkipLayerNormalization", inputs, {"epsilon": 1e-3} if r.flag(0.3) else {}, 4, wanted=r.pick((0,), (0, 3)), constants=(2, 3, 4) if r.flag() else (), dynamic=r.flag(0.3))


def skip_simplified_layer_normalization(r: Random) -> Case:
    shape = (r.size(1, 3), r.size(1, 5), r.pick(4, 8, 24))[r.pick(0, 0, 1):]
    inputs = [r.floats(*shape), r.floats(*shape), r.floats(shape[-1]), r.floats(shape[-1]) if r.flag() else None]
    return Case("SkipSimplifiedLayerNormalization", inputs, {"epsilon": 1e-3} if r.flag(0.3) else {}, 4, wanted=r.pick((0,), (0, 3)))


def gelu(r: Random) -> Case:
    x = 3 * r.floats(*(r.size(1, 5) for _ in range(r.size(1, 3))), r.pick(1, 7, 16))
    bias = r.floats(x.shape[-1])
    op = r.pick("BiasGelu", "FastGelu", "QuickGelu", "Gelu")
    if op == "QuickGelu":
        return Case(op, [x], {"alpha": float(r.pick(0.5, 2, -1))} if r.flag() else {})
    return Case(op, [x, bias] if op == "BiasGelu" or (op == "FastGelu" and r.flag()) else [x], {}, constants=(1,) if r.flag() else ())


def fused_matmul(r: Random) -> Case:
    m, k, n = r.size(1, 7), r.size(1, 7), r.size(1, 7)
    batch = [r.size(1, 3) for _ in range(r.size(0, 2))]
    attributes: dict = {"alpha": 0.5} if r.flag() else {}

    def operand(rows: int, columns: int, which: str) -> np.ndarray:
        if r.flag():
            attributes[f"trans{which}"] = 1
            rows, columns = columns, rows
        if batch and r.flag(0.4):
            attributes[f"transBatch{which}"] = 1
            return r.floats(rows, *batch, columns)
        return r.floats(*batch, rows, columns)

    return Case("FusedMatMul", [operand(m, k, "A"), operand(k, n, "B")], attributes, constants=(1,) if r.flag() else ())


def normalised_groups(case: Case) -> dict[str, np.ndarray]:
    """GroupNorm and SkipGroupNorm in doubles: ONNX Runtime has them for other processors only."""
    x, gamma, beta, skip, bias = ([a if a is None else a.astype(np.float64) for a in case.inputs] + [None, None])[:5]
    if not case.attributes["channels_last"]:
        x = x.transpose(0, 2, 3, 1)
        skip = skip if skip is None or skip.ndim == 2 else skip.transpose(0, 2, 3, 1)
    if skip is not None:
        x = x + (skip if skip.ndim == 4 else skip[:, None, None, :])
    if bias is not None:
        x = x + bias
    n, h, w, c = x.shape
    groups = x.reshape(n, h * w, case.attributes["groups"], -1)
    centred = groups - groups.mean((1, 3), keepdims=True)
    y = (centred / np.sqrt((centred**2).mean((1, 3), keepdims=True) + case.attributes.get("epsilon", 1e-5))).reshape(x.shape) * gamma + beta
    if case.attributes["activation"]:
        y = y / (1 + np.exp(-y))
    outputs = [y, x] if case.attributes["channels_last"] else [y.transpose(0, 3, 1, 2), x.transpose(0, 3, 1, 2)]
    return {f"y{i}": outputs[i].astype(np.float32) for i in range(case.outputs)}


def group_norm(r: Random) -> Case:
    groups, n, last = r.pick(1, 2, 4), r.size(1, 2), r.flag()
    channels, h, w = groups * r.size(1, 3), r.size(2, 5), r.size(2, 5)
    shape = (n, h, w, channels) if last else (n, channels, h, w)
    inputs = [r.floats(*shape), r.floats(channels), r.floats(channels)]
    attributes = {"groups": groups, "activation": int(r.flag()), "channels_last": int(last)} | ({"epsilon": 0.01} if r.flag(0.3) else {})
    if r.flag():
        return Case("GroupNorm", inputs, attributes, constants=(1, 2), expected=normalised_groups)
    one = (n, 1, 1, channels) if last else (n, channels, 1, 1)
    inputs += [r.floats(*r.pick(shape, one, (n, channels))), r.floats(channels) if r.flag() else None]
    return Case("SkipGroupNorm", inputs, attributes, r.size(1, 2), constants=(1, 2), expected=normalised_groups)


def matmul_n_bits(r: Random) -> Case:
    bits, block, k, n = r.pick(4, 4, 4, 2, 8), r.pick(16, 32, 64), r.pick(r.size(1, 150), 64, 128), r.size(1, 9)
    blocks = -(-k // block)
    zeros = None
    if r.flag(0.6):
        zeros = r.floats(n, blocks) if bits == 4 and r.flag(0.3) else r.ints(0, 255, n, -(-blocks * bits // 8), dtype=np.uint8)
    shape = (r.size(1, 3), r.size(1, 5), k)[r.pick(0, 1):]
    inputs = [r.floats(*shape), r.ints(0, 255, n, blocks, block * bits // 8, dtype=np.uint8), r.floats(n, blocks) / 8, zeros, None, r.floats(n) if r.flag(0.3) else None]
    if k % block == 0 and bits == 4 and zeros is None and r.flag(0.5):  # the peer takes zero points of 8 with an index
        inputs[4] = r.ints(0, blocks - 1, k)
    return Case("MatMulNBits", inputs, {"K": k, "N": n, "bits": bits, "block_size": block}, constants=(1, 2, 3, 4, 5), atol=2e-3)


def nhwc_max_pool(r: Random) -> Case:
    kernel = [r.size(1, 3), r.size(1, 3)]
    attributes: dict = {"kernel_shape": kernel}
    if r.flag():
        attributes["strides"] = [r.size(1, 2), r.size(1, 3)]
    if r.flag(0.4):
        attributes["pads"] = [r.size(0, s - 1) for s in kernel] + [r.size(0, s - 1) for s in kernel]
    if r.flag(0.3):
        attributes["ceil_mode"] = 1
    if r.flag(0.3):
        attributes["dilations"] = [r.size(1, 2), 1]
    x = r.ints(0, 255, r.size(1, 2), r.size(5, 9), r.size(5, 9), r.size(1, 20), dtype=np.uint8)
    return Case("NhwcMaxPool", [x], attributes)


def gather_block_quantized(r: Random) -> Case:
    bits, rank, block = r.pick(4, 8), r.pick(2, 3), r.pick(16, 32)
    quantize, gather = rank - 1, 0  # the peer takes bytes in this order only
    shape = [r.size(2, 5) for _ in range(rank)]
    shape[-1] *= 2
    shape[quantize] = block * r.size(1, 3) - r.pick(0, 2)
    packed = [*shape[:-1], shape[-1] * bits // 8]
    blocks = list(shape)
    blocks[quantize] = -(-shape[quantize] // block)
    zeros = [*blocks[:-1], -(-blocks[-1] * bits // 8)]
    indices = r.ints(-shape[gather], shape[gather] - 1, *(r.size(1, 4) for _ in range(r.size(0, 2))), dtype=r.pick(np.int32, np.int64))
    inputs = [r.ints(0, 255, *packed, dtype=np.uint8), np.asarray(indices), r.floats(*blocks), r.ints(0, 255, *zeros, dtype=np.uint8) if r.flag() else None]
    attributes = {"bits": bits, "block_size": block, "gather_axis": gather, "quantize_axis": quantize}
    return Case("GatherBlockQuantized", inputs, attributes, constants=(0, 2, 3))


def linear_attention(r: Random) -> Case:
    rule = r.pick("linear", "gated", "delta", "gated_delta")
    n, groups, share, size, width, rows = r.size(1, 3), r.pick(1, 2), r.pick(1, 2), r.pick(4, 8), r.pick(4, 8), r.pick(1, 2, 6)
    inputs = [r.floats(n, rows, groups * share * size), r.floats(n, rows, groups * size) / size, r.floats(n, rows, groups * width),
              r.floats(n, groups, size, width) if r.flag() else None,
              -np.abs(r.floats(n, rows, groups * r.pick(1, size))) if "gated" in rule else None,
              np.abs(r.floats(n, rows, r.pick(1, groups))) / 2 if "delta" in rule else None]
    attributes: dict = {"update_rule": rule, "q_num_heads": groups * share, "kv_num_heads": groups}
    if r.flag():
        attributes["scale"] = 0.5
    return Case("LinearAttention", inputs, attributes, 2, dynamic=r.flag(0.4))


def causal_conv_with_state(r: Random) -> Case:
    n, channels, rows, kernel = r.size(1, 3), r.pick(1, 4, 7), r.size(1, 6), r.size(2, 4)
    inputs = [r.floats(n, channels, rows), r.floats(channels, 1, kernel), r.floats(channels) if r.flag() else None, r.floats(n, channels, kernel - 1) if r.flag() else None]
    return Case("CausalConvWithState", inputs, {"activation": r.pick("none", "silu", "swish")}, 2, constants=(1, 2))


GENERATORS: dict[str, tuple[Callable[[Random], Case], int]] = {
    "Attention": (attention, 150),
    "MultiHeadAttention": (multi_head_attention, 150),
    "RotaryEmbedding": (rotary_embedding, 60),
    "GroupQueryAttention": (group_query_attention, 150),
    "EmbedLayerNormalization": (embed_layer_normalization, 60),
    "SkipLayerNormalization": (skip_layer_normalization, 60),
    "SkipSimplifiedLayerNormalization": (skip_simplified_layer_normalization, 40),
    "Gelu": (gelu, 60),
    "FusedMatMul": (fused_matmul, 60),
    "GroupNorm": (group_norm, 40),
    "MatMulNBits": (matmul_n_bits, 80),
    "NhwcMaxPool": (nhwc_max_pool, 40),
    "GatherBlockQuantized": (gather_block_quantized, 60),
    "LinearAttention": (linear_attention, 60),
    "CausalConvWithState": (causal_conv_with_state, 40),
}
