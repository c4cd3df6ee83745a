"""Completions and manual pages, which the command makes of its options."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = os.environ["LAMINA_TOOL"]


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = Path(cls.folder.name)
        subprocess.run([TOOL, "--write-pages", str(cls.root / "share")], check=True)
        (cls.root / "models").mkdir()
        (cls.root / "models/a model.onnx").touch()
        (cls.root / "labels.txt").touch()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def completed(self, *words: str) -> list[str]:
        """What bash offers for the last word."""
        script = f"""
source {self.root}/share/bash-completion/completions/lamina
compopt() {{ :; }}
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_lamina
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        command = ["bash", "-euo", "pipefail", "-c", script, "bash", "lamina", *words]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=self.root, check=False)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""), words)
        return sorted(ran.stdout.split("\n"))[1:] if ran.stdout.strip() else []

    def test_verbs(self):
        self.assertEqual(self.completed("c"), ["cache", "check", "compile"])
        self.assertEqual(self.completed("--v"), ["--version"])
        self.assertEqual(self.completed("help", "ben"), ["benchmark"])

    def test_options(self):
        self.assertEqual(self.completed("run", "--by"), ["--by-position"])
        self.assertIn("-o", self.completed("graph", "-"))
        self.assertNotIn("--by-position", self.completed("graph", "--"))

    def test_values(self):
        self.assertEqual(self.completed("run", "--color", ""), ["bgr", "rgb"])
        self.assertEqual(self.completed("run", "--color", "=", "b"), ["bgr"])
        self.assertEqual(self.completed("run", "--color", "="), ["bgr", "rgb"])
        self.assertEqual(self.completed("run", "--seed", ""), [])
        self.assertEqual(self.completed("run", "--labels", "la"), ["labels.txt"])

    def test_models(self):
        self.assertEqual(self.completed("run", "mod"), ["models"])
        self.assertEqual(self.completed("cache", ""), ["list", "prune", "verify"])
        self.assertEqual(self.completed("cache", "list", ""), ["models", "share"])
        zsh = next((self.root / "share/zsh").glob("*/_lamina")).read_text()
        self.assertIn("':folder:_files -/'", zsh)
        self.assertEqual(self.completed("run", "models/a"), ["models/a model.onnx"])

    def test_zsh_reads_its_file(self):
        if not shutil.which("zsh"):
            self.skipTest("there is no zsh")
        ran = subprocess.run(["zsh", "-n", str(self.root / "share/zsh/site-functions/_lamina")], check=False)
        self.assertEqual(ran.returncode, 0)

    def test_a_page_for_each_verb(self):
        pages = {page.stem for page in (self.root / "share/man/man1").iterdir()}
        help_of_all = subprocess.run([TOOL, "--help"], capture_output=True, text=True, check=True).stdout
        verbs = [line.split()[0] for line in help_of_all.partition("Subcommands:")[2].splitlines()[1:] if line[:2] == "  "]
        self.assertGreater(len(verbs), 10)
        self.assertEqual(pages, {"lamina", *(f"lamina-{verb}" for verb in verbs)})

    def test_pages_name_every_option(self):
        listed = subprocess.run([TOOL, "run", "--help"], capture_output=True, text=True, check=True).stdout
        page = (self.root / "share/man/man1/lamina-run.1").read_text().replace("\\-", "-")
        for word in listed.replace(",", " ").split():
            if word.startswith("--") and len(word) > 2:
                self.assertIn(f"\\fB{word}\\fR", page)

    def test_groff_reads_the_pages(self):
        if not shutil.which("groff"):
            self.skipTest("there is no groff")
        for page in (self.root / "share/man/man1").iterdir():
            ran = subprocess.run(["groff", "-man", "-ww", "-z", str(page)], capture_output=True, text=True, check=False)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""), page.name)


if __name__ == "__main__":
    unittest.main()
