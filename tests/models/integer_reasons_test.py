"""Quantised models of ../shared/models: what does not run in integers has its reason in `lamina explain --json`.

For each convolution and product with a quantised operand that is computed in floats: an integer kernel's offer that lost, or
the refusal of an integer kernel or rule. `integer_reasons_test.py MODEL...` lists those of other models, without a test.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import onnx

TOOL = os.environ["LAMINA_TOOL"]
MODELS = pathlib.Path(os.environ["LAMINA_SHARED"]) / "models"
INTEGER = re.compile("int8|u8|s8|integer|quanti[sz]e", re.IGNORECASE)
PRODUCTS = re.compile("Conv(Transpose|olution|Integer)?|GroupConvolution|(Group)?ConvolutionBackpropData|MatMul|Gemm|FullyConnected|MatMulInteger|QLinear(Conv|MatMul)|QGemm|MatMulIntegerToFloat|DynamicQuantizeMatMul")
OF_INTEGERS = re.compile("ConvInteger|MatMulInteger|QLinear(Conv|MatMul)|QGemm|MatMulIntegerToFloat|DynamicQuantizeMatMul")
FROM_INTEGERS = re.compile("DequantizeLinear|Dequantize|DynamicDequantize|FakeQuantize|Quantize2")
HANDS_ON = re.compile("Reshape|Transpose|Squeeze|Unsqueeze|Flatten|Identity|Concat|MaxPool|Relu|ReLU|Clip|TypeCast|Cast|Reorder|StaticReshape|StaticTranspose")
# Some of each kind, for each change; all others by hand.
TRIED = (
    "qdq/fastestdet.qdq.u8s8.pc.8bit.convonly.onnx",
    "qdq/head_yunet.qdq.s8s8.pc.8bit.onnx",
    "qdq/mnist.qop.u8u8.pt.8bit.onnx",
    "qdq/magika.dyn.s8.pc.onnx",
    "qdq/ultraface.qdq.u8s8.pc.7bit.onnx",
    "ir/age-gender-recognition-retail-0013.v10.fp16-int8.xml",
    "ir/landmarks-regression-retail-0009.v10.fp16-int8.xml",
    "onednn_graph/MHA-distill_bert-inf-int8-bs1.json",
    "onednn_graph/int8_conv_post_ops_fusion.json",
)

Layer = tuple[str, list[int]]  # type, the layers that make its inputs


def onnx_layers(path: pathlib.Path) -> list[Layer]:
    nodes = onnx.load(str(path), load_external_data=False).graph.node
    makers = {name: i for i, node in enumerate(nodes) for name in node.output}
    return [(node.op_type, [makers.get(name, -1) for name in node.input]) for node in nodes]


def ir_layers(path: pathlib.Path) -> list[Layer]:
    root = ET.parse(path).getroot()
    layers = list(root.find("layers") or [])
    places = {layer.get("id"): i for i, layer in enumerate(layers)}
    inputs: dict[str | None, dict[int, int]] = {}
    for edge in root.find("edges") or []:
        inputs.setdefault(edge.get("to-layer"), {})[int(edge.get("to-port", "0"))] = places[edge.get("from-layer")]
    return [(layer.get("type", ""), [at for _, at in sorted(inputs.get(layer.get("id"), {}).items())]) for layer in layers]


def graph_layers(path: pathlib.Path) -> list[Layer]:
    nodes = json.loads(path.read_text())["graph"]
    makers = {tensor["id"]: i for i, node in enumerate(nodes) for tensor in node["outputs"]}
    return [(node["kind"], [makers.get(tensor["id"], -1) for tensor in node["inputs"]]) for node in nodes]


def is_quantised(layers: list[Layer], at: int) -> bool:
    """The value that this layer makes was integers of few bits."""
    for _ in range(16):
        if at < 0:
            return False
        kind, inputs = layers[at]
        if FROM_INTEGERS.fullmatch(kind):
            return True
        if not HANDS_ON.fullmatch(kind) or not inputs:
            return False
        at = inputs[0]
    return False


def explained(path: pathlib.Path, *arguments: str) -> list[dict]:
    inputs = path.with_suffix(".npz")  # sizes that the model leaves open
    given = ["--inputs", str(inputs)] if inputs.exists() else []
    done = subprocess.run([TOOL, "explain", str(path), "--no-run", "--json", "-", *given, *arguments], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise AssertionError(f"{path}: {done.stderr}")
    layers: list[dict] = json.loads(done.stdout)["layers"]
    return layers


def runs_in_integers(layer: dict) -> bool:
    return any(PRODUCTS.match(node["operators"]) and node.get("precision", "")[:2] in ("u8", "i8") for node in layer["nodes"])


def has_reason(layer: dict) -> bool:
    refused = [entry["rule"] for entry in layer["history"] if entry["kind"] == "refused"]
    kernels = [offer["kernel"] for node in layer["nodes"] for offer in node.get("lost", [])]
    kernels += [f"{refusal['kernel']} {refusal['reason']}" for node in layer["nodes"] for refusal in node.get("refused", [])]
    return any(INTEGER.search(name) for name in refused + kernels)


def products(path: pathlib.Path, *arguments: str) -> Iterator[tuple[dict, bool]]:
    """Products with a quantised operand that run, and whether they have a reason for f32 or need none."""
    readers = {".onnx": onnx_layers, ".xml": ir_layers, ".json": graph_layers}
    layers = readers[path.suffix](path)
    of_file = explained(path, *arguments)
    if path.suffix == ".xml":  # what is no operator is no layer
        layers_by_type = [i for i, (kind, _) in enumerate(layers) if kind not in ("Parameter", "Result", "Const", "Input")]
        of_file = [layer for layer in of_file if layer["type"] not in ("Parameter", "Result", "Const", "Input")]
    else:
        layers_by_type = list(range(len(layers)))
    if [layers[i][0] for i in layers_by_type] != [layer["type"] for layer in of_file]:
        raise AssertionError(f"{path}: the layers are others than those of the file")
    for i, layer in zip(layers_by_type, of_file, strict=True):
        kind, inputs = layers[i]
        if not PRODUCTS.fullmatch(kind) or layer["fate"] not in ("runs", "fused"):
            continue
        if OF_INTEGERS.fullmatch(kind) or any(is_quantised(layers, at) for at in inputs[:2]):
            yield layer, runs_in_integers(layer) or has_reason(layer)


@unittest.skipUnless(MODELS.is_dir(), f"skipped: {MODELS} is not there")
class Reasons(unittest.TestCase):
    def test_what_stays_in_floats_says_why(self) -> None:
        for name in TRIED:
            for limits in ((), ("--max-isa", "avx2"), ("--max-isa", "sse41")):
                with self.subTest(model=name, limits=limits):
                    found = list(products(MODELS / name, *limits))
                    self.assertTrue(found)
                    self.assertEqual([layer["name"] for layer, ok in found if not ok], [])


def listed(paths: list[str]) -> None:
    for path in paths:
        for isa in ("", "avx2", "sse41"):
            try:
                found = list(products(pathlib.Path(path), *(("--max-isa", isa) if isa else ())))
            except AssertionError as error:
                print(f"{path} {isa}: {error}")
                continue
            wide = [layer for layer, _ in found if not runs_in_integers(layer)]
            print(f"{path} {isa}: {len(found)} quantised products, {len(wide)} in floats")
            for layer, ok in found:
                if not ok:
                    print(f"    no reason: {layer['name']} ({layer['type']}): {layer['text']}")


if __name__ == "__main__":
    listed(sys.argv[1:]) if len(sys.argv) > 1 else unittest.main()
