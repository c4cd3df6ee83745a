"""Single layers of IR, seeded and random, compared with OpenVINO: what the openvino_*_test.py share.

OpenVINO comes from this interpreter's packages, else from the environment of bench/compare; without it the tests say so,
and ctest shows them as skipped.
"""

import argparse
import importlib.util
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import numpy as np

TOOL = os.environ.get("LAMINA_TOOL", "build/release/bin/lamina")
DEPS = os.environ.get("LAMINA_DEPS", ".deps")
# OpenVINO computes what the model says, on every processor: without bf16, and quantised layers in f32, since its integers
# saturate where a processor has no VNNI.
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": False}


class Cases:
    """Methods of a subclass make one layer each, by chance: a node, or a node and the outputs wanted of it."""

    tolerance = 1e-4
    strict = True  # what OpenVINO refuses is wrong
    names: tuple[str, ...] = ()

    def __init__(self, seed: int) -> None:
        self.draw, self.rng = random.Random(seed), np.random.RandomState(seed)
        self.parameters: list = []
        self.values: list[np.ndarray] = []
        self.comparable = lambda outputs: outputs  # what is left to chance made equal

    def opset(self, version: int):
        return importlib.import_module(f"openvino.opset{version}")

    def input(self, value: np.ndarray, unknown: tuple[int, ...] = ()):
        """A parameter with this value; sizes along these axes are unknown in every third case."""
        import openvino

        free = unknown if self.draw.random() < 0.33 else ()
        shape = openvino.PartialShape([-1 if i in free else size for i, size in enumerate(value.shape)])
        self.parameters.append(self.opset(15).parameter(shape, value.dtype, name=f"x{len(self.values)}"))
        self.values.append(value)
        return self.parameters[-1]

    def constant(self, value: np.ndarray):
        return self.opset(15).constant(value)

    def uniform(self, *shape: int, low: float = -1, high: float = 1) -> np.ndarray:
        return self.rng.uniform(low, high, shape).astype("f4")


def difference(got: np.ndarray, wanted: np.ndarray, tolerance: float) -> str:
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{got.dtype}{list(got.shape)}, wanted {wanted.dtype}{list(wanted.shape)}"
    if not np.allclose(got, wanted, rtol=tolerance, atol=tolerance / 10, equal_nan=True):
        at = np.flatnonzero(~np.isclose(got.ravel(), wanted.ravel(), rtol=tolerance, atol=tolerance / 10, equal_nan=True))
        return f"element {at[0]} and {len(at) - 1} more of {got.size}: {got.ravel()[at[0]]}, wanted {wanted.ravel()[at[0]]}"
    return ""


def run_lamina(xml: str, values: list[np.ndarray], folder: pathlib.Path) -> dict[str, np.ndarray] | str:
    out = str(folder / "out.npz")
    arguments = [TOOL, "run", xml, "--by-position", "--output", out, "--quiet"]
    for i, value in enumerate(values):
        np.save(folder / f"{i}.npy", value)
        arguments += ["--input", f"x{i}={folder / f'{i}.npy'}"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    return done.stderr.strip() if done.returncode else dict(np.load(out))


def run_openvino(core, model, case: Cases) -> list[np.ndarray]:
    """With known sizes: not all of its layers can do without."""
    import openvino

    model.reshape({i: openvino.PartialShape(list(v.shape)) for i, v in enumerate(case.values)})
    request = core.compile_model(model, "CPU", EXACT).create_infer_request()
    request.infer(case.values)
    return [np.array(request.get_output_tensor(i).data) for i in range(len(model.outputs))]


def check(core, kind: type[Cases], name: str, seed: int, folder: pathlib.Path) -> str:
    """What is wrong; nothing when both agree."""
    import openvino

    case = kind(seed)
    made = getattr(case, name)()
    node, wanted = made if isinstance(made, tuple) else (made, None)
    outputs = [node.output(i) for i in range(node.get_output_size())]
    model = openvino.Model(outputs, case.parameters, "m")
    xml = str(folder / "m.xml")
    openvino.serialize(model, xml, str(folder / "m.bin"))
    if wanted is None:
        try:
            wanted = run_openvino(core, model, case)
        except RuntimeError as error:  # some layers refuse to find nothing
            why = " ".join(str(error).split())[-200:]
            return f"OpenVINO: {why}" if case.strict else ""
    results = run_lamina(xml, case.values, folder)
    if isinstance(results, str):
        return results
    results = case.comparable([results[f"out{i}"] for i in range(len(outputs))])
    for i, value in enumerate(case.comparable(wanted)):
        if why := difference(results[i], value, case.tolerance):
            return f"output {i}: {why}"
    return ""


def use_openvino() -> bool:
    """Whether it is there; starts the program anew where only the other environment has it.

    OpenVINO's own oneDNN reads ONEDNN_MAX_CPU_ISA too, and crashes where that is below the processor: the variable is
    taken away. LAMINA_MAX_ISA still limits lamina and its oneDNN.
    """
    os.environ.pop("ONEDNN_MAX_CPU_ISA", None)
    if importlib.util.find_spec("openvino"):
        return True
    other = pathlib.Path(DEPS) / "compare/bin/python3"
    if other.exists() and not os.environ.get("LAMINA_OPENVINO"):
        found = subprocess.run([other, "-c", "import openvino, numpy"], capture_output=True).returncode == 0
        if found:
            os.execve(other, [str(other), *sys.argv], os.environ | {"LAMINA_OPENVINO": "1"})
    return False


def skipped(what: str = "OpenVINO") -> int:
    """The code of a program that tests nothing (tests/CMakeLists.txt)."""
    print(f"skipped: {what} is not installed (bench/compare installs OpenVINO)")
    return 77


def main(kind: type[Cases]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=20, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=15, help="when to stop")
    options = parser.parse_args()
    if not use_openvino():
        return skipped()
    import openvino

    core, wrong, done, end = openvino.Core(), 0, 0, time.monotonic() + options.seconds
    for seed in range(options.seed, options.seed + options.cases):
        for name in kind.names:
            if options.only not in name or time.monotonic() > end:
                continue
            with tempfile.TemporaryDirectory() as folder:
                why = check(core, kind, name, seed, pathlib.Path(folder))
            done += 1
            if why:
                wrong += 1
                print(f"{name} seed {seed}: {why}")
    print(f"{done} cases, {wrong} wrong")
    return 1 if wrong else 0
