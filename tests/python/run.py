#!/usr/bin/env python3
"""Runs a test file with pytest, on the package of the build (or LAMINA_PACKAGE), in the Python of scripts/bootstrap
--python (or LAMINA_TEST_PYTHON). With LAMINA_INSTALLED_PYTHON: in that Python, on the wheel that is installed there
(scripts/wheel-environments). LAMINA_PYTHON_PRELOAD: the library of the address sanitizer that the module was built with.
Status 77: there is no such Python, or no package, or the file skips itself as a whole
(pytest.skip(allow_module_level=True)). Objects of the compiled module that are left at the end are a failure."""

import os
import subprocess
import sys
from pathlib import Path

root = Path(__file__).resolve().parents[2]
python = Path(os.environ.get("LAMINA_TEST_PYTHON", root / ".deps/python/bin/python3"))
package = os.environ.get("LAMINA_PACKAGE", "")
if "LAMINA_INSTALLED_PYTHON" in os.environ:
    python, package = Path(os.environ["LAMINA_INSTALLED_PYTHON"]), ""
if not python.exists():
    print(f"skipped: no {python}, run scripts/bootstrap --python")
    sys.exit(77)
if package and not list(Path(package, "lamina").glob("_lamina.*so")):
    print(f"skipped: no compiled module in {package}, build the target lamina_python (LAMINA_PYTHON=ON)")
    sys.exit(77)
environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
if package:
    environment["PYTHONPATH"] = package
if preload := os.environ.get("LAMINA_PYTHON_PRELOAD"):
    # The sanitizer looks for the functions that throw when it begins: the C++ library must be there by then. Python keeps
    # objects until the end of the process, which are no leaks of ours.
    environment["LD_PRELOAD"] = f"{preload} libstdc++.so.6"
    environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # the last one counts
    environment["PYTHONMALLOC"] = "malloc"  # Python's own allocator hides what is freed
files = sys.argv[1:]
command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", *files]
ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
sys.stdout.write(ran.stdout)
sys.stderr.write(ran.stderr)
if "nanobind: leaked" in ran.stderr:
    print("failed: nanobind found objects that were never released")
    sys.exit(1)
nothing_collected = 5  # pytest's status, also for a file without tests
skips_itself = ran.returncode == nothing_collected and "1 skipped" in ran.stdout
sys.exit(77 if skips_itself else ran.returncode)
