"""Whole Caffe networks that `lamina optimize` writes as IR: OpenVINO gives what `lamina run` gives of them.

caffe_ir_test.py [NETWORK...]; needs OpenVINO and onnx, of which caffe_networks makes parts.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

import openvino_cases

TOOL = os.environ.get("LAMINA_TOOL", "build/release/bin/lamina")


def lamina(*words: object) -> None:
    done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {done.stderr.strip()}")


def check(core, network, folder: pathlib.Path) -> str:
    import numpy as np

    model = folder / "net.prototxt"
    model.write_text(network.prototxt())
    (folder / "net.caffemodel").write_bytes(network.caffemodel())
    x = network.floats(*network.inputs[0].shape)
    np.savez(folder / "in.npz", in0=x)
    lamina(
        "run",
        model,
        "--by-position",
        "--inputs",
        folder / "in.npz",
        "--output",
        folder / "out.npz",
        "--quiet",
    )
    stored = np.load(folder / "out.npz")
    for version in (11, 10):
        xml = folder / f"v{version}.xml"
        lamina("optimize", model, "-o", xml, "--ir_version", version, "--silent")
        compiled = core.compile_model(core.read_model(str(xml)), "CPU", openvino_cases.EXACT)
        results = compiled([x])
        for i, output in enumerate(compiled.outputs):
            wanted, got = stored[f"out{i}"], np.array(results[output])
            if got.shape != wanted.shape:
                return f"IR {version}, output {i}: {got.shape}, wanted {wanted.shape}"
            if not np.abs(got - wanted).max() < 1e-4 * max(np.abs(wanted).max(), 1e-6):
                return f"IR {version}, output {i} is off by {np.abs(got - wanted).max():.3g}"
    return ""


def main() -> int:
    if not openvino_cases.use_openvino():
        return openvino_cases.skipped()
    if importlib.util.find_spec("onnx") is None:
        return openvino_cases.skipped("onnx")
    import openvino
    from caffe_networks import googlenet, inception_stem, mobilenet, preactivated, resnet
    from caffe_ssd import ssd

    networks = {
        "resnet50": lambda: resnet((3, 4, 6, 3), 8, 64)[0],
        "preactivated": lambda: preactivated()[0],
        "inception_stem": lambda: inception_stem()[0],
        "googlenet": lambda: googlenet()[0],
        "mobilenet": lambda: mobilenet()[0],
        "ssd": lambda: ssd()[0],
    }
    core, wrong = openvino.Core(), 0
    asked = sys.argv[1:] or list(networks)
    for name in asked:
        with tempfile.TemporaryDirectory() as folder:
            try:
                why = check(core, networks[name](), pathlib.Path(folder))
            except RuntimeError as error:
                why = " ".join(str(error).split())[-200:]
        if why:
            wrong += 1
            print(f"{name}: {why}")
    print(f"{len(asked)} networks, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
