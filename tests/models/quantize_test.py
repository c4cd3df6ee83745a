"""What `lamina quantize` writes, run by ONNX Runtime and OpenVINO: QDQ ONNX and FakeQuantize IR.

Models of ../shared/models, calibrated with their stored inputs and paler ones. Each peer must load the file and give what
lamina gives; OpenVINO must run its layers in 8 bits. Peers are found as openvino_cases.py says; what is missing is said and
left out, and without any of them the test is skipped.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import openvino_cases

MODELS = pathlib.Path(os.environ.get("LAMINA_SHARED", "../shared")) / "models/onnx"

# How far peers may be off, relative to the whole output: where a rounding of sums decides a level, the levels behind it
# follow, and deep networks amplify that.
NAMES = {"mnist": 1e-5, "samplenet": 1e-5, "superres_espcn": 1e-2, "yunet_n_dynamic": 0.15, "ppocr_cls": 0.15}


def lamina(*arguments: object) -> None:
    done = subprocess.run([openvino_cases.TOOL, *map(str, arguments), "--quiet"], capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(done.stderr)


def run_lamina(model: pathlib.Path, inputs: pathlib.Path, folder: pathlib.Path) -> list[np.ndarray]:
    lamina("run", model, "--inputs", inputs, "--output", folder / "out.npz", "--by-position")
    arrays = np.load(folder / "out.npz")
    return [arrays[f"out{i}"] for i in range(len(arrays.files))]


def run_runtime(model: pathlib.Path, value: np.ndarray) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # ONNX Runtime's fusions saturate sums on processors without VNNI; without them it computes what the file says.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: value})


def run_openvino(model: pathlib.Path, value: np.ndarray) -> tuple[list[np.ndarray], list[str]]:
    """The outputs of what the model says, and convolutions and products that would not run in 8 bits."""
    import openvino

    exact = openvino.Core().compile_model(str(model), "CPU", openvino_cases.EXACT)
    results = exact(value)
    eight_bit = openvino.Core().compile_model(str(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    wide = []
    for node in eight_bit.get_runtime_model().get_ops():
        info = {key: item.astype(str) for key, item in node.get_rt_info().items() if key in ("layerType", "runtimePrecision")}
        if info["layerType"] in ("Convolution", "FullyConnected") and info["runtimePrecision"] not in ("u8", "i8"):
            wide.append(node.get_friendly_name())
    return [results[output] for output in exact.outputs], wide


def difference(got: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """The difference of all outputs together."""
    a, b = (np.concatenate([x.ravel().astype(float) for x in list_]) for list_ in (got, wanted))
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def check(name: str, peers: list[str], folder: pathlib.Path) -> list[str]:
    value = np.load(MODELS / f"{name}.npz")["in0"]
    data = folder / "data"
    data.mkdir()
    for i in range(2):
        np.save(data / f"{i}.npy", (value * (1 - 0.1 * i)).astype(value.dtype))
    np.savez(folder / "in.npz", in0=value)
    wrong = []
    for kind in ("onnx", "xml"):
        model = folder / f"model.{kind}"
        decided = ["--calibration", "min-max", "--no-equalize"]  # deciding takes four times as long
        lamina("quantize", MODELS / f"{name}.onnx", "--data", data, "-o", model, *decided)
        wanted = run_lamina(model, folder / "in.npz", folder)
        results: dict[str, list[np.ndarray]] = {}
        if "onnxruntime" in peers and kind == "onnx":
            results["ONNX Runtime"] = run_runtime(model, value)
        if "openvino" in peers:
            results["OpenVINO"], wide = run_openvino(model, value)
            if wide:
                wrong.append(f"{name}.{kind}: OpenVINO runs in f32: {', '.join(wide)}")
        for peer, got in results.items():
            off = difference(got, wanted)
            print(f"{name}.{kind}: {peer} {off:.2g}")
            if not off <= NAMES[name]:
                wrong.append(f"{name}.{kind}: {peer} is {off:.3g} off, wanted {NAMES[name]:.3g} at most")
    return wrong


def main() -> int:
    openvino_cases.use_openvino()
    peers = [peer for peer in ("onnxruntime", "openvino") if importlib.util.find_spec(peer)]
    if not peers:
        return openvino_cases.skipped("neither ONNX Runtime nor OpenVINO")
    if not MODELS.is_dir():
        print(f"skipped: {MODELS} is not there")
        return 77
    print(f"with {', '.join(peers)}")
    wrong: list[str] = []
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            wrong += check(name, peers, pathlib.Path(folder))
    for text in wrong:
        print("wrong:", text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
