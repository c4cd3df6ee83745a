"""Tests and models on processors that are not here: qemu-user's Nehalem (x86-64-v2) and Haswell (AVX2), and Haswells of
which a virtual machine hides features. What runs an instruction that its processor lacks, dies.

Usage: emulated.py BUILD [PROCESSOR...]; `make isa` calls it. qemu has no AVX-512 processor.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
from tolerance import ABSOLUTE, RELATIVE

ROOT = pathlib.Path(__file__).resolve().parent.parent
QEMU = shutil.which("qemu-x86_64")
MOST_BYTES = 6 << 20  # of a model and its weights
SHAPES = {"ch_ppocr_mobile_v2.0_cls": ["x=1,3,48,192"], "ppocr_cls": ["x=1,3,48,192"], "ch_PP-OCRv4_det": ["x=1,3,64,64"], "ppocr_v4_det": ["x=1,3,64,64"], "bodypix": ["input=1,65,65,3"], "superres_espcn": ["_ppp5_expanded=1,1,32,32"], "yunet_n_dynamic": ["input=1,3,160,160"], "silero_vad.": ["input=1,576", "state=2,1,128"], "silero_vad_": ["input=1,576"]}

# What `lamina version` has to say there. (Without BMI1 the C library itself does not run there.)
WHOLE = {"Nehalem": "sse41", "Haswell": "avx2"}
MASKED = {
    "Haswell,-bmi2": "sse41",
    "Haswell,-f16c": "sse41",
    "Haswell,-fma": "sse41",
    "Haswell,-avx2": "sse41",
    "Haswell,-avx": "sse41",
    "Haswell,-xsave": "sse41",  # registers of AVX are not kept
}
TOO_OLD = "Penryn"  # no POPCNT: an error in one line

# Programs of tests, and those of their tests that emulation, 40 times as slow, runs in minutes. None of them gathers:
# qemu 7.2 takes number 4 as the index register of vgatherdps for no index at all.
PROGRAMS = {
    "base_tests": "-Npz.*:Npy.*:Subprocess.*",  # the emulator ends a process by signals of its own
    "kernels_tests": "Attention.masks:Binary.one_and_three_dimensions:Gemm.batches_that_broadcast:Kernels.convolution_epilogues"
    ":Kernels.convolutions_in_one_and_three_dimensions:Kernels.transposed_convolutions",
    "plan_tests": "Memory.*:Plan.*",
    "quantised_tests": "Pattern.ties*:Pattern.at_random",
}


def emulated(processor: str, *command: object, timeout: float = 1200) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "QEMU_CPU": processor}
    return subprocess.run([QEMU, *map(str, command)], capture_output=True, text=True, timeout=timeout, env=environment)


def small_models() -> list[pathlib.Path]:
    shared = ROOT.parent / "shared" / "models"
    found = sorted((ROOT / ".deps" / "models").glob("*.onnx"))
    found += sorted(shared.glob("onnx/*.onnx"))
    found += [xml for xml in sorted(shared.glob("ir/*.xml")) if not any(w in xml.name for w in ("NEGATIVE", ".v3.", ".v4.", "int8"))]
    if not shared.is_dir():
        print(f"skipped: models of {shared}, which is not there")

    def size(path: pathlib.Path) -> int:
        weights = path.with_suffix(".bin")
        return path.stat().st_size + (weights.stat().st_size if weights.exists() else 0)

    return [path for path in found if size(path) <= MOST_BYTES]


def same(got: np.ndarray, wanted: np.ndarray) -> bool:
    if got.shape != wanted.shape or wanted.dtype.kind in "iub":
        return np.array_equal(got, wanted)
    limit = ABSOLUTE + 2 * RELATIVE * np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
    return bool(np.all((np.abs(got - wanted) <= limit) | (got == wanted) | (np.isnan(got) & np.isnan(wanted))))


class Report:
    def __init__(self) -> None:
        self.failed: list[str] = []

    def tell(self, what: str, ok: bool, seconds: float, why: str = "") -> None:
        print(f"{'ok    ' if ok else 'FAILED'} {what} ({seconds:.0f} s){'' if ok else ': ' + why[-2000:]}", flush=True)
        if not ok:
            self.failed.append(what)


def shapes_of(model: pathlib.Path) -> list[str]:
    return [word for start, shapes in SHAPES.items() for shape in shapes if model.name.startswith(start) for word in ("--shape", shape)]


def run_model(report: Report, tool: pathlib.Path, processor: str, model: pathlib.Path, folder: str) -> None:
    isa = WHOLE.get(processor, "sse41")  # limited to it, this processor makes the same kernels
    arguments = ["run", model, "--by-position", "--quiet", "--max-isa", isa]
    arguments += [*shapes_of(model), "--output"]
    native = pathlib.Path(folder) / f"{model.parent.name}.{model.stem}.{isa}.npz"
    if not native.exists():
        done = subprocess.run([tool, *arguments, native], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:  # for random inputs: no matter of processors
            print(f"skipped {model.name}: {done.stderr.strip()}")
            return
    begin, out = time.monotonic(), pathlib.Path(folder) / "emulated.npz"
    done = emulated(processor, tool, *arguments, out)
    ok, why = done.returncode == 0, f"status {done.returncode} {done.stderr}"
    if ok:
        got, wanted = np.load(out), np.load(native)
        wrong = [name for name in wanted.files if not same(got[name], wanted[name])]
        ok, why = not wrong, f"other values in {', '.join(wrong)}"
    report.tell(f"{processor} {model.name}", ok, time.monotonic() - begin, why)


def main() -> int:
    if not QEMU:
        print("skipped: there is no qemu-x86_64 (Debian's qemu-user): scripts/bootstrap --isa")
        return 0
    build = pathlib.Path(sys.argv[1])
    tool, chosen, report = build / "bin" / "lamina", sys.argv[2:] or list(WHOLE), Report()
    done = emulated(TOO_OLD, tool, "version", "--verbose")
    report.tell(TOO_OLD, done.returncode == 1 and "lacks" in done.stderr and done.stderr.count("\n") == 1, 0, done.stderr)
    models = small_models()
    with tempfile.TemporaryDirectory() as folder:
        for processor, isa in {**WHOLE, **MASKED}.items():
            if processor not in chosen and (processor in WHOLE or sys.argv[2:]):
                continue
            said = emulated(processor, tool, "version", "--verbose").stdout
            report.tell(f"{processor} is {isa}", isa in said.partition("instructions ")[2].splitlines()[0].split(), 0, said)
            if models and isa != "avx512":
                # --max-isa of more than there is: it says so, and runs.
                arguments = shapes_of(models[0])
                done = emulated(processor, tool, "run", models[0], *arguments, "--max-isa", "avx512")
                report.tell(f"{processor} has no avx512", done.returncode == 0 and f"this processor has {isa} at most" in done.stderr, 0, done.stderr)
            for model in models if processor in WHOLE else models[:1]:
                run_model(report, tool, processor, model, folder)
            for program, tests in PROGRAMS.items() if processor in WHOLE else ():
                begin = time.monotonic()
                done = emulated(processor, build / "bin" / program, "--gtest_brief=1", f"--gtest_filter={tests}", timeout=3600)
                report.tell(f"{processor} {program}", done.returncode == 0, time.monotonic() - begin, done.stdout + done.stderr)
    print(f"{len(report.failed)} failed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
