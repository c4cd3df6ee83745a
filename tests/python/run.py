#!/usr/bin/env python3
"""Runs a test file with pytest, on the package of the build (or LAMINA_PACKAGE), in the Python of scripts/bootstrap
--python (or LAMINA_TEST_PYTHON). Status 77: there is no such Python, or no package."""

import os
import sys
from pathlib import Path

root = Path(__file__).resolve().parents[2]
python = Path(os.environ.get("LAMINA_TEST_PYTHON", root / ".deps/python/bin/python3"))
package = os.environ.get("LAMINA_PACKAGE", "")
if not python.exists():
    print(f"skipped: no {python}, run scripts/bootstrap --python")
    sys.exit(77)
if package and not list(Path(package, "lamina").glob("_lamina.*so")):
    print(f"skipped: no compiled module in {package}, build the target lamina_python (LAMINA_PYTHON=ON)")
    sys.exit(77)
environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
if package:
    environment["PYTHONPATH"] = package
files = sys.argv[1:]
os.execve(python, [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", *files], environment)
