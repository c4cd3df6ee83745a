"""Whole Caffe networks, written by caffe_networks, against the same ones in ONNX Runtime.

caffe_test.py [NETWORK...]
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable

if any(importlib.util.find_spec(name) is None for name in ("numpy", "onnx", "onnxruntime")):
    print("numpy, onnx or onnxruntime is not there: skipped")
    sys.exit(77)

import numpy as np
import onnxruntime
from caffe_networks import Network, Value, googlenet, inception_stem, mobilenet, preactivated, resnet
from caffe_ssd import detections, ssd

TOOL = os.environ.get("LAMINA_TOOL", "build/release/bin/lamina")

NETWORKS: dict[str, Callable[[], tuple[Network, Value]]] = {
    "resnet50": lambda: resnet((3, 4, 6, 3), 8, 64),
    "preactivated": preactivated,
    "inception_stem": inception_stem,
    "googlenet": googlenet,
    "mobilenet": mobilenet,
}


def lamina(*words: object) -> str:
    done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def run_caffe(model: pathlib.Path, x: np.ndarray, *more: str) -> list[np.ndarray]:
    feed, out = model.with_name("in.npz"), model.with_name("out.npz")
    np.savez(feed, in0=x)
    lamina("run", model, "--by-position", "--inputs", feed, "--output", out, "--quiet", "--threads", 2, *more)
    results = np.load(out)
    return [results[name] for name in results.files]


def run_onnx(n: Network, x: np.ndarray, outputs: list[Value]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(n.onnx_model(*outputs), providers=["CPUExecutionProvider"])
    return session.run(None, {n.inputs[0].name: x})


def write(n: Network, folder: pathlib.Path) -> pathlib.Path:
    (folder / "net.prototxt").write_text(n.prototxt())
    (folder / "net.caffemodel").write_bytes(n.caffemodel())
    return folder / "net.prototxt"


def compare(name: str, got: np.ndarray, wanted: np.ndarray) -> None:
    if got.shape != wanted.shape:
        raise AssertionError(f"{name}: {got.shape}, wanted {wanted.shape}")
    error = np.abs(got - wanted).max() / max(np.abs(wanted).max(), 1e-6)
    if not error < 1e-4:
        raise AssertionError(f"{name}: off by {error:.3g} of the largest")


def check_network(name: str, folder: pathlib.Path) -> None:
    n, output = NETWORKS[name]()
    model = write(n, folder)
    x = n.floats(*n.inputs[0].shape)
    wanted = run_onnx(n, x, [output])[0]
    compare(name, run_caffe(model, x)[0], wanted)
    compare(name + ", by its caffemodel", run_caffe(model.with_suffix(".caffemodel"), x)[0], wanted)
    (folder / "net.caffemodel").rename(folder / "other.bin")
    lamina("inspect", model, "--weights", folder / "other.bin")


def check_training_file(folder: pathlib.Path) -> None:
    """A data base instead of an input, labels and losses: the sizes come from the command line."""
    n, output = mobilenet()
    data = 'layer { name: "data" type: "Data" top: "data" top: "label" '
    n.text[0] = data + "include { phase: TEST } }\n" + data + "include { phase: TRAIN } }"
    n.text.append('layer { name: "loss" type: "SoftmaxWithLoss" bottom: "fc7" bottom: "label" top: "loss" }')
    n.text.append(
        'layer { name: "accuracy" type: "Accuracy" bottom: "prob" bottom: "label" top: "accuracy" }'
    )
    x = n.floats(*n.inputs[0].shape)
    shape = ",".join(map(str, x.shape))
    got = run_caffe(write(n, folder), x, "--shape", f"data={shape}")
    if len(got) != 1:
        raise AssertionError(f"training file: {len(got)} outputs, wanted prob alone")
    compare("training file", got[0], run_onnx(n, x, [output])[0])


def check_ssd(folder: pathlib.Path) -> None:
    n, heads, boxes = ssd()
    x = n.floats(*n.inputs[0].shape)
    wanted = detections(*run_onnx(n, x, heads), boxes)
    rows = run_caffe(write(n, folder), x)[0].reshape(-1, 7)
    rows = rows[: int(np.argmax(rows[:, 0] < 0)) if (rows[:, 0] < 0).any() else len(rows), 1:]
    if len(wanted) < 5:
        raise AssertionError(f"ssd: {len(wanted)} boxes only")
    order = np.argsort(-rows[:, 1], kind="stable")
    compare("ssd", rows[order], wanted)


def main() -> int:
    special = {"ssd": check_ssd, "training_file": check_training_file}
    asked = sys.argv[1:] or [*NETWORKS, *special]
    for name in asked:
        with tempfile.TemporaryDirectory() as folder:
            if name in special:
                special[name](pathlib.Path(folder))
            else:
                check_network(name, pathlib.Path(folder))
        print(f"{name}: as in ONNX Runtime")
    return 0


if __name__ == "__main__":
    sys.exit(main())
