"""What lamina writes as IR, run by OpenVINO: an example of every operator, and the models of ../shared/models.

formats_tests writes the files (IrWriter.writes_files_for_others). OpenVINO is found as openvino_cases.py says; without
it the test says so and is skipped.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import openvino_cases

TESTS = pathlib.Path(os.environ.get("LAMINA_BUILD", "build/release")) / "bin/formats_tests"
SHARED = pathlib.Path(os.environ.get("LAMINA_SHARED", "../shared")) / "models"
TOLERANCE = 1e-4

# Examples that OpenVINO 2026.4 itself does not run, by the layer's type.
KNOWN = {
    "AdaptiveMaxPool": "i64 of oneDNN",
    "BinaryConvolution": "wants a FakeQuantize of two levels before it",
    "MulticlassNms": "boxes whose corners are exchanged",
    "Proposal": "crashes",
    "RDFT": "signals longer than the input",
}


def write_files(
    folder: pathlib.Path, version: int, halves: bool, models: list[pathlib.Path], as_read: bool = False
) -> str:
    """What the writer says of files that it refuses."""
    environment = os.environ | {"LAMINA_IR_FOLDER": str(folder), "LAMINA_IR_VERSION": str(version)}
    if models:
        environment["LAMINA_IR_MODELS"] = ":".join(map(str, models))
    if halves:
        environment["LAMINA_IR_HALVES"] = "1"
    if as_read:
        environment["LAMINA_IR_AS_READ"] = "1"
    command = [str(TESTS), "--gtest_filter=IrWriter.writes_files_for_others", "--gtest_brief=1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def run(core, xml: pathlib.Path, values: list[np.ndarray]) -> list[np.ndarray]:
    model = core.read_model(str(xml))
    request = core.compile_model(model, "CPU", openvino_cases.EXACT).create_infer_request()
    request.infer(values)
    return [np.array(request.get_output_tensor(i).data) for i in range(len(model.outputs))]


def numbered(arrays, prefix: str) -> list[np.ndarray]:
    count = sum(1 for name in arrays.files if name.startswith(prefix))
    return [arrays[f"{prefix}{i}"] for i in range(count)]


def check_example(core, xml: pathlib.Path) -> str:
    arrays = np.load(xml.with_suffix(".npz"))
    try:
        got = run(core, xml, numbered(arrays, "in"))
    except RuntimeError as error:
        return " ".join(str(error).split())[-300:]
    for i, wanted in enumerate(numbered(arrays, "out")):
        if why := openvino_cases.difference(got[i].astype(wanted.dtype), wanted, TOLERANCE):
            return f"output {i}: {why}"
    return ""


def types_in(xml: pathlib.Path) -> list[str]:
    parts = xml.read_text().split(' type="')[1:]
    kinds = [p.split('"')[0] for p in parts]
    return [k for k in kinds if k not in ("Parameter", "Result", "Const")]


def check_examples(core, version: int) -> int:
    wrong = done = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        print(write_files(folder, version, False, []), end="")
        for xml in sorted(folder.glob("*.xml"), key=lambda p: int(p.stem)):
            kinds = types_in(xml)
            if any(kind in KNOWN for kind in kinds) or kinds == ["Divide"]:  # integers by 0
                continue
            why = check_example(core, xml)
            done += 1
            if why:
                wrong += 1
                print(f"IR {version}, example {xml.stem} ({', '.join(types_in(xml)[:6])}): {why}")
    print(f"IR {version}: {done} examples, {wrong} wrong")
    return wrong


def check_models(core, version: int, halves: bool, only: str, as_read: bool = False) -> int:
    if not SHARED.is_dir():
        print(f"skipped: {SHARED} is not there, so no whole models were tried")
        return 0
    sys.path.insert(0, str(SHARED))
    import check_outputs  # type: ignore[import-not-found]

    cases = [
        c
        for c in json.loads((SHARED / "models.json").read_text())["cases"]
        if c["model"].split("/")[0] in ("onnx", "ir")
    ]
    cases = [c for c in cases if only in c["name"]]
    if version == 10:  # whose f16 is how a file stores f32
        cases = [c for c in cases if not c["name"].startswith("onnx/squeezenet_fp16")]
    models = sorted({SHARED / c["model"] for c in cases})
    what = f"IR {version}{' in halves' if halves else ''}{' as read' if as_read else ''}"
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        print(write_files(folder, version, halves, models, as_read), end="")
        for case in cases:
            xml = folder / (pathlib.Path(case["model"]).stem + ".xml")
            why = check_model(core, check_outputs, case, xml, folder, halves)
            if why:
                wrong += 1
                print(f"{what}, {case['name']}: {why}")
    print(f"{what}: {len(cases)} models, {wrong} wrong")
    return wrong


def is_run_by_peer(core, model: pathlib.Path, values: list[np.ndarray]) -> bool:
    try:
        run(core, model, values)
    except RuntimeError:
        return False
    return True


def agree(check_outputs, case: dict, got: list[np.ndarray], halves: bool) -> tuple[bool, str]:
    """By the stored outputs' rule; in halves numbers are off by their rounding, which networks amplify."""
    if not halves:
        return check_outputs.check(case, got)
    for i, wanted in enumerate(numbered(np.load(SHARED / case["npz"]), "out")):
        if got[i].shape != wanted.shape:
            return False, f"out{i}: shape {got[i].shape}, wanted {wanted.shape}"
        off = np.abs(got[i].astype("f8") - wanted).mean()
        if (
            wanted.dtype.kind == "f"
            and case["outputs"][i]["rule"] in ("f32", "f16")
            and off > 0.02 * np.abs(wanted).max() + 1e-3
        ):
            return False, f"out{i}: off by {off:.3g} in the mean"
    return True, ""


def check_model(
    core, check_outputs, case: dict, xml: pathlib.Path, folder: pathlib.Path, halves: bool
) -> str:
    if not xml.exists():
        return "was not written"
    values = numbered(np.load(SHARED / case["npz"]), "in")
    try:
        got = run(core, xml, values)
    except RuntimeError as error:
        model = SHARED / case["model"]
        if model.suffix != ".onnx" or is_run_by_peer(core, model, values):
            return "OpenVINO: " + " ".join(str(error).split())[-300:]
        print(f"{case['name']}: OpenVINO does not run the model itself, either")
        got = []
    if got:
        ok, text = agree(check_outputs, case, got, halves)
        if not ok:
            return f"OpenVINO: {text}"
    out = folder / "out.npz"
    command = [
        openvino_cases.TOOL,
        "run",
        str(xml),
        "--by-position",
        "--inputs",
        str(SHARED / case["npz"]),
        "--output",
        str(out),
    ]
    done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, timeout=300)
    if done.returncode:
        return f"lamina: {done.stderr.strip()}"
    ok, text = agree(check_outputs, case, check_outputs.arrays(np.load(out), "out"), halves)
    return "" if ok else f"lamina: {text}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="models whose names have this in them")
    parser.add_argument("--all", action="store_true", help="all ways to write every model")
    options = parser.parse_args()
    if not openvino_cases.use_openvino():
        return openvino_cases.skipped()
    import openvino

    core = openvino.Core()
    wrong = 0
    if not options.only:
        wrong = check_examples(core, 11) + check_examples(core, 10)
    wrong += check_models(core, 11, False, options.only)
    if not options.only and not options.all:  # detectors of old IR
        wrong += check_models(core, 10, False, ".v3") + check_models(core, 10, False, ".v4")
    if options.all:
        wrong += check_models(core, 11, True, options.only) + check_models(core, 10, False, options.only)
        wrong += check_models(core, 11, False, options.only, as_read=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
