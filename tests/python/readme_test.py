"""The lines of Python at the top of the README do what is written beside them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_first_lines_of_the_readme():
    pytest.importorskip("PIL")
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1)
    models = re.findall(r'"(\.deps/[^"]+)"', code)
    assert models and "lamina" in code
    if not all((ROOT / model).exists() for model in models):
        pytest.skip("there are no models: scripts/bootstrap --demo")
    wanted = re.search(r"print\(.*\)\s+# (\w+)", code).group(1)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, env=dict(os.environ))
    assert (ran.returncode, ran.stderr, ran.stdout.strip()) == (0, "", wanted)
