"""A small BERT with seeded weights: as PyTorch exports it, and with ONNX Runtime's fused operators."""

import contextlib
import io
import logging

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Builder:
    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def add(self, op: str, inputs: list[str], **attributes: object) -> str:
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def constant(self, value: object, dtype: type = np.float32) -> str:
        name = f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def values(self, *shape: int, scale: float = 0.05, base: float = 0.0) -> np.ndarray:
        return base + scale * self.random.standard_normal(shape)

    def norm(self, size: int) -> list[str]:
        return [self.constant(self.values(size, base=1)), self.constant(self.values(size))]

    def dense(self, x: str, weight: np.ndarray, bias: np.ndarray | None = None) -> str:
        y = self.add("MatMul", [x, self.constant(weight)])
        return y if bias is None else self.add("Add", [self.constant(bias), y])


MICROSOFT = "com.microsoft"


class Plain(Builder):
    """Every operator by itself."""

    def layer_norm(self, x: str, norm: list[str]) -> str:
        return self.add("LayerNormalization", [x, *norm], axis=-1, epsilon=1e-12)

    def embed(self, words: np.ndarray, segments: np.ndarray, positions: np.ndarray, norm: list[str]) -> str:
        parts = [self.constant(table) for table in (words, segments, positions)]
        ids = self.constant([range(len(positions))], np.int64)
        x = self.add("Add", [self.add("Gather", [parts[0], "input_ids"]), self.add("Gather", [parts[1], "token_type_ids"])])
        return self.layer_norm(self.add("Add", [x, self.add("Gather", [parts[2], ids])]), norm)

    def mask(self) -> str:
        axes = [self.constant([axis], np.int64) for axis in (1, 2)]
        seen = self.add("Cast", [self.add("Unsqueeze", [self.add("Unsqueeze", ["attention_mask", axes[0]]), axes[1]])], to=TensorProto.FLOAT)
        return self.add("Mul", [self.add("Sub", [self.constant(1), seen]), self.constant(-10000)])

    def attend(self, x: str, mask: str, weights: list[np.ndarray], biases: list[np.ndarray], heads: int) -> str:
        size = len(biases[0]) // heads
        shape = self.constant([0, 0, heads, size], np.int64)
        orders = [0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]
        q, k, v = (self.add("Transpose", [self.add("Reshape", [self.dense(x, w, b), shape])], perm=order)
                   for w, b, order in zip(weights, biases, orders, strict=True))
        scores = self.add("Div", [self.add("MatMul", [q, k]), self.constant(np.sqrt(size))])
        shares = self.add("Softmax", [self.add("Add", [scores, mask])], axis=-1)
        y = self.add("Transpose", [self.add("MatMul", [shares, v])], perm=[0, 2, 1, 3])
        return self.add("Reshape", [y, self.constant([0, 0, heads * size], np.int64)])

    def gelu(self, x: str, weight: np.ndarray, bias: np.ndarray) -> str:
        y = self.dense(x, weight, bias)
        erf = self.add("Erf", [self.add("Div", [y, self.constant(np.sqrt(2))])])
        return self.add("Mul", [self.add("Mul", [y, self.add("Add", [erf, self.constant(1)])]), self.constant(0.5)])

    def join(self, x: str, weight: np.ndarray, bias: np.ndarray, skip: str, norm: list[str]) -> str:
        return self.layer_norm(self.add("Add", [self.dense(x, weight, bias), skip]), norm)


class Fused(Builder):
    """With the operators that ONNX Runtime's optimiser fuses."""

    def embed(self, words: np.ndarray, segments: np.ndarray, positions: np.ndarray, norm: list[str]) -> str:
        ids, types, seen = (self.add("Cast", [n], to=TensorProto.INT32) for n in ("input_ids", "token_type_ids", "attention_mask"))
        tables = [self.constant(table) for table in (words, positions, segments)]
        y = self.add("EmbedLayerNormalization", [ids, types, *tables, *norm, seen], domain=MICROSOFT, epsilon=1e-12)
        self.nodes[-1].output.append("mask_index")
        return y

    def mask(self) -> str:
        return self.add("Cast", ["attention_mask"], to=TensorProto.INT32)

    def attend(self, x: str, mask: str, weights: list[np.ndarray], biases: list[np.ndarray], heads: int) -> str:
        joined = [self.constant(np.concatenate(parts, axis=-1)) for parts in (weights, biases)]
        return self.add("Attention", [x, *joined, mask], domain=MICROSOFT, num_heads=heads)

    def gelu(self, x: str, weight: np.ndarray, bias: np.ndarray) -> str:
        return self.add("FastGelu", [self.dense(x, weight), self.constant(bias)], domain=MICROSOFT)

    def join(self, x: str, weight: np.ndarray, bias: np.ndarray, skip: str, norm: list[str]) -> str:
        return self.add("SkipLayerNormalization", [self.dense(x, weight), skip, *norm, self.constant(bias)], domain=MICROSOFT, epsilon=1e-12)


def bert(b: Plain | Fused, layers: int = 2, hidden: int = 64, heads: int = 4, length: int = 16, words: int = 100) -> onnx.ModelProto:
    x = b.embed(b.values(words, hidden), b.values(2, hidden), b.values(length, hidden), b.norm(hidden))
    mask = b.mask()
    for _ in range(layers):
        weights, biases = [b.values(hidden, hidden) for _ in range(3)], [b.values(hidden) for _ in range(3)]
        y = b.attend(x, mask, weights, biases, heads)
        x = b.join(y, b.values(hidden, hidden), b.values(hidden), x, b.norm(hidden))
        y = b.gelu(x, b.values(hidden, 4 * hidden), b.values(4 * hidden))
        x = b.join(y, b.values(4 * hidden, hidden), b.values(hidden), x, b.norm(hidden))
    b.add("Identity", [x])
    b.nodes[-1].output[0] = "last_hidden_state"
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", length]) for n in ("input_ids", "attention_mask", "token_type_ids")]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", length, hidden])
    graph = helper.make_graph(b.nodes, "bert", inputs, [output], b.weights)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)])


def optimised(model: onnx.ModelProto, heads: int, hidden: int, raw_mask: bool = True, approximate: bool = True) -> onnx.ModelProto:
    """What onnxruntime.transformers makes of it; approximate: FastGelu."""
    from onnxruntime.transformers import optimizer
    from onnxruntime.transformers.fusion_options import FusionOptions

    options = FusionOptions("bert")
    options.use_raw_attention_mask(raw_mask)
    options.enable_gelu_approximation = approximate
    logging.disable(logging.CRITICAL)
    with contextlib.redirect_stdout(io.StringIO()):
        made = optimizer.optimize_model(model, "bert", num_heads=heads, hidden_size=hidden, optimization_options=options, opt_level=0)
    return made.model
