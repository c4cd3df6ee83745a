"""Frozen TensorFlow graphs that `lamina optimize` writes as IR: the same in `lamina run` and in OpenVINO.

Whole networks and each seventh single operator; --all for all of them.
"""

import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import tensorflow_reference as reference
from openvino_cases import EXACT, use_openvino
from tensorflow_cases import Case
from tensorflow_oracles import TOOL, difference, run_lamina
from tensorflow_test import all_cases, all_networks

# What OpenVINO 2026.4.1 computes differently from what its operators are documented to do, or loses.
WRONG_THERE = (
    "FakeQuantPerChannel {'narrow_range': True}",
    "FloorDiv i32",  # towards zero
    "CropAndResize (14, 14) nearest 0.5",  # a sample on the border is beyond it by a rounding
    "transposed computed SAME",  # sizes that are computed do not compile
    "transposed computed VALID",
    "IdentityN",  # the name of an input that is a result
    *(f"{op} of nothing" for op in ("Mean", "Sum", "Max", "Min", "Prod")),
)


def run_in_openvino(core: object, model: pathlib.Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    import openvino

    read = core.read_model(model)
    read.reshape({p: openvino.PartialShape(list(feeds[p.any_name].shape)) for p in read.inputs})
    request = core.compile_model(read, "CPU", EXACT).create_infer_request()
    request.infer(feeds)
    return [np.array(request.get_output_tensor(i).data) for i in range(len(read.outputs))]


def check(case: Case, core: object) -> list[str]:
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        (folder / "m.pb").write_bytes(case.graph.bytes())
        model = folder / "m.xml"
        arguments = [TOOL, "optimize", str(folder / "m.pb"), "-o", str(model)]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
        if done.returncode:
            return [f"optimize: {(done.stderr or done.stdout).strip()[-200:]}"]
        got = run_lamina(model, case.feeds, folder)
        if isinstance(got, str):
            return [got]
        with np.errstate(all="ignore"):
            wanted = reference.run(case.graph, case.feeds, list(got))
        values = [("run", got.values())]
        if core and case.name not in WRONG_THERE:
            try:
                values.append(("OpenVINO", run_in_openvino(core, model, case.feeds)))
            except Exception as error:
                return [f"OpenVINO: {' '.join(str(error).split())[-200:]}"]
        wrong = []
        for who, results in values:
            for name, value, right in zip(got, results, wanted, strict=True):
                if why := difference(value, right, case.tolerance):
                    wrong.append(f"{name} in {who}: {why}")
        return wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    core = None
    if use_openvino():
        import openvino

        core = openvino.Core()
    else:
        print("OpenVINO is not installed (bench/compare installs it): the IR is run by lamina only")
    cases = list(all_cases())
    if not options.all:
        cases = [*all_networks(), *cases[::7]]
    cases = [c for c in cases if options.only in c.name]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, wrong in zip(cases, pool.map(lambda c: check(c, core), cases), strict=True):
            failed += bool(wrong)
            for why in wrong:
                print(f"{case.name}: {why}")
    print(f"{len(cases)} cases, {failed} wrong")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
