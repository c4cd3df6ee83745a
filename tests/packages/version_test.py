"""The version has one place, and the changelog has an entry for it."""

import os
import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.search(r"project\(lamina VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


class Version(unittest.TestCase):
    def test_of_the_command(self):
        ran = subprocess.run([os.environ["LAMINA_TOOL"], "--version"], capture_output=True, text=True, check=True)
        self.assertEqual(ran.stdout.split()[:2], ["lamina", VERSION])

    def test_of_the_changelog(self):
        first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE).group(1).rstrip(",")
        self.assertEqual(first, VERSION)

    def test_no_other_file_of_the_build_has_it(self):
        for name in ("pyproject.toml", "src/CMakeLists.txt", "cmake/Packages.cmake", "python/wheel.cmake"):
            self.assertNotIn(VERSION, (ROOT / name).read_text(), name)


if __name__ == "__main__":
    unittest.main()
