"""`lamina check --against` on models that ONNX Runtime's own tools quantise: the noise it reports is what ONNX Runtime has,
and leaving out the nodes that it names gives less.

Small seeded networks, in which some layers are hard to quantise, in all forms that these tools write; and models of
../shared/models where they are there. Without onnxruntime the test is skipped.
"""

import contextlib
import importlib.util
import io
import json
import logging
import math
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TOOL = os.environ.get("LAMINA_TOOL", "build/release/bin/lamina")
SHARED = pathlib.Path(os.environ.get("LAMINA_SHARED", "../shared")) / "models/onnx"
VARIANTS = ((0, 1), (9, 0.9), (-14, 0.8), (31, 1), (4, 0.95), (-9, 0.85), (20, 0.9), (-31, 1))  # of one stored input
FORMS = ("qdq", "qdq_pc", "qdq_s8", "qop", "dynamic")


class Network:
    """Nodes in a row, with seeded weights."""

    def __init__(self, seed: int, shape: list[int]) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.shape, self.last, self.channels = shape, "x", shape[1]

    def constant(self, value: np.ndarray) -> str:
        name = f"c{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(value.astype("f4"), name))
        return name

    def node(self, kind: str, *inputs: str, count: int = 1, **attributes: object) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        outputs = [f"{name}_out"] + [f"{name}_more{i}" for i in range(1, count)]
        self.nodes.append(helper.make_node(kind, [self.last, *inputs], outputs, name, **attributes))
        self.last = outputs[0]
        return self.last

    def conv(self, channels: int, outlier: float = 1, groups: int = 1) -> str:
        weights = self.random.standard_normal((channels, self.channels // groups, 3, 3)) / (3 * self.channels / groups) ** 0.5
        weights[0] *= outlier
        self.channels = channels
        return self.node("Conv", self.constant(weights), self.constant(self.random.standard_normal(channels) / 9), pads=[1] * 4, group=groups)

    def normalise(self) -> str:
        n = self.channels
        parts = [self.random.uniform(0.5, 2, n), self.random.standard_normal(n) / 3, self.random.standard_normal(n) / 3, self.random.uniform(0.5, 2, n)]
        return self.node("BatchNormalization", *map(self.constant, parts))

    def product(self, rows: int, columns: int, outlier: float = 1) -> str:
        weights = self.random.standard_normal((rows, columns)) / rows**0.5
        weights[0, 0] *= outlier
        return self.node("MatMul", self.constant(weights))

    def model(self) -> onnx.ModelProto:
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "g", [value("x", TensorProto.FLOAT, self.shape)], [value(self.last, TensorProto.FLOAT, None)], self.tensors
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)


def convolutions() -> Network:
    """The third convolution has a channel of very large weights."""
    n = Network(1, [1, 3, 24, 24])
    n.conv(16), n.normalise(), n.node("Relu")
    first = n.last
    n.conv(16, groups=16), n.node("Relu")
    n.conv(16, outlier=60), n.normalise(), n.node("Relu")
    n.conv(16), n.node("Add", first), n.node("Relu"), n.node("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    n.conv(8)
    return n


def products() -> Network:
    """The second product has one very large weight."""
    n = Network(2, [4, 32])
    n.product(32, 48), n.node("Tanh"), n.product(48, 48, outlier=200), n.node("Tanh"), n.product(48, 40), n.node("Tanh")
    n.product(40, 10)
    return n


def recurrent() -> Network:
    """LSTM, GRU, a product."""
    n = Network(3, [12, 2, 16])
    for kind, gates in (("LSTM", 4), ("GRU", 3)):
        weights = [n.random.standard_normal((1, gates * 16, 16)) / 3 for _ in range(2)]
        weights[0][0, 0, 0] *= 40
        n.node(kind, *map(n.constant, weights), count=1, hidden_size=16)
        n.node("Squeeze", axis_of(n))
    n.product(16, 8)
    return n


def axis_of(n: Network) -> str:
    n.tensors.append(numpy_helper.from_array(np.array([1], "i8"), f"c{len(n.tensors)}"))
    return n.tensors[-1].name


def inputs_of(model: onnx.ModelProto, count: int, seed: int) -> list[dict[str, np.ndarray]]:
    random = np.random.default_rng(seed)
    port = model.graph.input[0]
    shape = [d.dim_value for d in port.type.tensor_type.shape.dim]
    return [{port.name: random.standard_normal(shape).astype("f4")} for _ in range(count)]


def quantised(f32: pathlib.Path, to: pathlib.Path, form: str, samples: list[dict[str, np.ndarray]], exclude: list[str]) -> None:
    import onnxruntime.quantization as q

    class Reader(q.CalibrationDataReader):
        def __init__(self) -> None:
            self.left = iter(samples)

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self.left, None)

    with contextlib.redirect_stdout(io.StringIO()):
        if form == "dynamic":
            q.quantize_dynamic(f32, to, nodes_to_exclude=exclude)
            return
        q.quantize_static(
            f32,
            to,
            Reader(),
            quant_format=q.QuantFormat.QOperator if form == "qop" else q.QuantFormat.QDQ,
            per_channel=form == "qdq_pc",
            activation_type=q.QuantType.QInt8 if form == "qdq_s8" else q.QuantType.QUInt8,
            weight_type=q.QuantType.QInt8,
            nodes_to_exclude=exclude,
        )


def run(model: pathlib.Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Its own fusions saturate sums on processors without VNNI; literally, it means what the file says.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"]).run(None, inputs)


def snr(model: pathlib.Path, f32: pathlib.Path, samples: list[dict[str, np.ndarray]]) -> float:
    """Of the worst output, over all samples."""
    pairs = [(run(model, inputs), run(f32, inputs)) for inputs in samples]
    least = math.inf
    for i in range(len(pairs[0][0])):
        noise = sum(float(np.square(got[i].astype("f8") - wanted[i]).sum()) for got, wanted in pairs)
        signal = sum(float(np.square(wanted[i].astype("f8")).sum()) for _, wanted in pairs)
        if noise > 0:
            least = min(least, 10 * math.log10(signal / noise))
    return least


def check(model: pathlib.Path, f32: pathlib.Path, samples: list[dict[str, np.ndarray]]) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        for i, inputs in enumerate(samples):
            np.savez(pathlib.Path(folder) / f"{i}.npz", **inputs)
        data = ["--data", folder] if len(samples) > 1 else ["--inputs", f"{folder}/0.npz"]
        done = subprocess.run(
            [TOOL, "check", str(model), "--against", str(f32), *data, "--json", "-"], capture_output=True, text=True, timeout=300
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def try_one(
    name: str, f32: pathlib.Path, form: str, folder: pathlib.Path, samples: list[dict[str, np.ndarray]], base: pathlib.Path | None = None, *, hard: bool = False
) -> str:
    """`base`: what the tools are given, if they are not given the f32 model itself. `hard`: a layer is hard to quantise, so something must be
    proposed. -> what is wrong, or nothing"""
    measured = samples[: len(samples) // 2]
    before, after = folder / "before.onnx", folder / "after.onnx"
    quantised(base or f32, before, form, samples[len(measured) :], [])
    report = check(before, f32, measured)
    real = snr(before, f32, measured)
    if abs(real - report["sqnr_db"]) > 1.5:
        return f"{real:.1f} dB in ONNX Runtime, {report['sqnr_db']:.1f} dB reported"
    if report["layers_matched"] != report["layers_with_weights"]:
        return f"{report['layers_matched']} of {report['layers_with_weights']} layers have a counterpart"
    if not report["leave_out"]:
        print(f"{name} {form}: {real:.1f} dB, nothing to leave out")
        return "no layer is proposed" if hard else ""
    quantised(base or f32, after, form, samples[len(measured) :], report["leave_out"])
    better = snr(after, f32, measured)
    print(f"{name} {form}: {real:.1f} dB, without {', '.join(report['leave_out'])} {better:.1f} dB, estimated {report['sqnr_without_db']:.1f} dB")
    gain = report["sqnr_without_db"] - report["sqnr_db"]
    return "" if better >= real + min(3, gain / 3) else f"leaving out {report['leave_out']} gives {better:.1f} dB, not more than {real:.1f} dB"


def preprocessed(f32: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    """Batch normalisation folded, and what else ONNX Runtime does before it quantises."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    quant_pre_process(f32, to, skip_symbolic_shape=True)
    return to


def named(f32: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    """Nodes without a name get that of their first output, as lamina calls them: the tools exclude by names only."""
    model = onnx.load(f32)
    for node in model.graph.node:
        node.name = node.name or node.output[0]
    onnx.save(model, to)
    return to


def renamed(f32: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    """The same model with other names inside."""
    model = onnx.load(f32)
    borders = {v.name for v in [*model.graph.input, *model.graph.output]}
    for node in model.graph.node:
        node.name = "r_" + node.name
        node.input[:] = [n if n in borders or not n else "r_" + n for n in node.input]
        node.output[:] = [n if n in borders or not n else "r_" + n for n in node.output]
    for tensor in model.graph.initializer:
        tensor.name = "r_" + tensor.name
    onnx.save(model, to)
    return to


def seeded(folder: pathlib.Path, failures: list[str]) -> None:
    networks: list[tuple[Callable[[], Network], tuple[str, ...]]] = [
        (convolutions, FORMS),
        (products, ("qdq", "qdq_pc", "qop", "dynamic")),
        (recurrent, ("qdq", "dynamic")),
    ]
    for make, forms in networks:
        model = make().model()
        f32 = folder / f"{make.__name__}.onnx"
        onnx.save(model, f32)
        samples = inputs_of(model, 8, 7)
        for form in forms:
            wrong = try_one(make.__name__, f32, form, folder, samples, hard=True)
            failures += [f"{make.__name__} {form}: {wrong}"] if wrong else []
    model = convolutions().model()
    f32 = folder / "convolutions.onnx"
    folded = preprocessed(f32, folder / "folded.onnx")
    for name, base in (("folded", folded), ("folded and renamed", renamed(folded, folder / "renamed.onnx"))):
        for form in ("qdq_pc", "qop"):
            before = folder / "before.onnx"
            quantised(base, before, form, inputs_of(model, 5, 7)[1:], [])
            inputs = inputs_of(model, 1, 7)
            report = check(before, f32, inputs)
            real = snr(before, f32, inputs)
            print(f"{name} {form}: {real:.1f} dB, {report['sqnr_db']:.1f} dB reported, leave out {report['leave_out']}")
            if report["layers_matched"] != report["layers_with_weights"] or abs(real - report["sqnr_db"]) > 1.5:
                failures.append(f"{name} {form}: {report['layers_matched']} of {report['layers_with_weights']} layers, {report['sqnr_db']} dB, {real} dB")


def equalised() -> onnx.ModelProto:
    """Convolutions in a row, one of them depthwise, with channels of very different ranges: `lamina quantize` equalises them."""
    n = Network(4, [1, 3, 12, 12])
    for channels, groups in ((8, 1), (8, 8), (8, 1)):
        n.conv(channels, groups=groups)
        weights = numpy_helper.to_array(n.tensors[-2]) * np.array([1, 8, 0.1, 1, 3, 0.3, 1, 20], "f4").reshape(8, 1, 1, 1)
        n.tensors[-2].CopyFrom(numpy_helper.from_array(weights, n.tensors[-2].name))
        n.node("Relu")
    n.conv(4)
    return n.model()


def by_lamina(folder: pathlib.Path, failures: list[str]) -> None:
    model = equalised()
    f32, data = folder / "equalised.onnx", folder / "data"
    onnx.save(model, f32)
    data.mkdir()
    samples = inputs_of(model, 4, 7)
    for i, inputs in enumerate(samples):
        np.savez(data / f"{i}.npz", **inputs)
    for granularity in ("per-channel", "per-tensor"):
        for kind in ("onnx", "xml"):
            to = folder / f"equalised_int8.{kind}"
            command = [TOOL, "quantize", str(f32), "--data", str(data), "-o", str(to), "--granularity", granularity]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
            if done.returncode or "channels equalised" not in done.stdout:
                failures.append(f"lamina {granularity} {kind}: not equalised: {done.stdout}{done.stderr}")
                continue
            report = check(to, f32, samples)
            own = min(layer["own_sqnr_db"] or math.inf for layer in report["layers"])
            output = min(layer["sqnr_db"] for layer in report["layers"])
            print(f"lamina {granularity} {kind}: {report['sqnr_db']:.1f} dB, own noise {own:.1f} dB at most, outputs of layers {output:.1f} dB")
            if own < 30 or output < 25:
                failures.append(f"lamina {granularity} {kind}: own noise {own} dB, outputs of layers {output} dB")
            other = check(to, renamed(f32, folder / "equalised_renamed.onnx"), samples)
            if other["layers_matched"] != report["layers_matched"] or min(layer["own_sqnr_db"] or math.inf for layer in other["layers"]) < 30:
                failures.append(f"lamina {granularity} {kind}, other names: {other['layers']}")
            if kind == "onnx" and abs(snr(to, f32, samples) - report["sqnr_db"]) > 1.5:
                failures.append(f"lamina {granularity}: {snr(to, f32, samples)} dB in ONNX Runtime, {report['sqnr_db']} dB reported")


def reordered(folder: pathlib.Path, failures: list[str]) -> None:
    """Inputs and outputs of one shape, listed in another order in the quantised file."""
    random = np.random.default_rng(5)
    value = helper.make_tensor_value_info
    nodes, tensors = [], []
    for side in "ab":
        tensors.append(numpy_helper.from_array(random.standard_normal((16, 16)).astype("f4"), f"w{side}"))
        nodes.append(helper.make_node("MatMul", [f"x{side}", f"w{side}"], [f"m{side}"], f"product_{side}"))
    nodes.append(helper.make_node("Tanh", ["ma"], ["ya"], "ya"))
    nodes.append(helper.make_node("Mul", ["ma", "mb"], ["yb"], "yb"))
    ports = [[value(f"{k}{side}", TensorProto.FLOAT, [4, 16]) for side in "ab"] for k in "xy"]
    f32, q, turned = folder / "order.onnx", folder / "order_int8.onnx", folder / "turned_int8.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", *ports, tensors), opset_imports=[helper.make_opsetid("", 13)], ir_version=7), f32)
    samples = [{f"x{side}": random.standard_normal((4, 16)).astype("f4") for side in "ab"} for _ in range(4)]
    quantised(f32, q, "qdq", samples, [])
    model = onnx.load(q)
    for field in (model.graph.input, model.graph.output):
        both = list(field)[::-1]
        del field[:]
        field.extend(both)
    onnx.save(model, turned)
    wanted, got = check(q, f32, samples), check(turned, f32, samples)
    for report in (wanted, got):
        report["outputs"].sort(key=lambda output: output["name"])
    for name in ("outputs", "layers", "leave_out"):
        if wanted[name] != got[name]:
            failures.append(f"in another order: {name} {got[name]}, wanted {wanted[name]}")


def shared(folder: pathlib.Path, failures: list[str]) -> None:
    for name, form in (("squeezenet_f32", "qdq"), ("squeezenet_f32", "qop"), ("face_landmark", "qdq_s8"), ("ultraface_rfb_320", "qdq"), ("superres_espcn", "qdq"), ("dtln_1", "dynamic"), ("dtln_2", "dynamic")):
        f32 = SHARED / f"{name}.onnx"
        if not f32.exists():
            print(f"{name}: not there, left out")
            continue
        graph = onnx.load(f32).graph
        ports = [p.name for p in graph.input if p.name not in {t.name for t in graph.initializer}]
        stored = np.load(f32.with_suffix(".npz"))
        sample = {port: stored[f"in{i}"] for i, port in enumerate(ports)}
        samples = [{k: (np.roll(v, shift, -1) * factor).astype(v.dtype) for k, v in sample.items()} for shift, factor in VARIANTS]
        base = named(preprocessed(f32, folder / "folded.onnx") if form != "dynamic" else f32, folder / "named.onnx")
        wrong = try_one(name, f32, form, folder, samples, base)
        failures += [f"{name} {form}: {wrong}"] if wrong else []


def main() -> None:
    if importlib.util.find_spec("onnxruntime") is None:
        print("skipped: no onnxruntime")
        sys.exit(77)
    logging.disable(logging.WARNING)
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        seeded(folder, failures)
        by_lamina(folder, failures)
        reordered(folder, failures)
        shared(folder, failures)
    if failures:
        raise SystemExit("\n".join(failures))


if __name__ == "__main__":
    main()
