"""lamina optimize: what it prints, and its page of documentation."""

import json
import pathlib
import re
import subprocess
import unittest

from optimize_case import TOOL, Base, lamina


class Console(Base):
    def test_of_the_model_optimizer(self) -> None:
        out = self.path / "ir" / "deep"
        done = self.done("--input_model", self.model, "--output_dir", out, "--model_name", "other")
        for line in (
            "Model Optimizer arguments:",
            "Common parameters:",
            f"\t- Path to the Input Model: \t{self.model}",
            "\t- IR output name: \tother",
            "\t- Batch: \tNot specified, inherited from the model",
            "\t- Precision of IR: \tFP32",
            "\t- Enable fusing: \tTrue",
            "\t- Enable grouped convolutions fusing: \tTrue",
            "\t- Reverse input channels: \tFalse",
        ):
            self.assertIn(line, done.stdout.splitlines())
        self.assertRegex(done.stdout, r"(?m)^Model Optimizer version: \t\S+")
        self.assertIn(
            f"\n\n[ SUCCESS ] Generated IR version 11 model.\n[ SUCCESS ] XML file: {out}/other.xml\n[ SUCCESS ] BIN file: {out}/other.bin\n",
            done.stdout,
        )
        self.assertRegex(
            done.stdout,
            r"\[ SUCCESS \] Total execution time: \d+\.\d\d seconds\. \n\[ SUCCESS \] Memory consumed: \d+ MB\. \n$",
        )
        self.assertTrue((out / "other.xml").exists() and (out / "other.bin").exists())

    def test_silent_says_success_only(self) -> None:
        for words in (["--silent"], ["--silent=True"], ["--silent", "true"]):
            done = self.done("-m", self.model, "-o", self.path / "ir", *words)
            self.assertTrue(done.stdout.lstrip().startswith("[ SUCCESS ]"), done.stdout)
        self.assertIn(
            "Common parameters", self.done("-m", self.model, "-o", self.path / "ir", "--silent=False").stdout
        )

    def test_the_current_folder_is_where_it_goes(self) -> None:
        (self.path / "here").mkdir()
        done = lamina("optimize", "--input_model", self.model, "--silent", cwd=self.path / "here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(p.name for p in (self.path / "here").iterdir()), ["net.bin", "net.xml"])

    def test_own_form(self) -> None:
        done = self.done(self.model, "-o", self.path / "x.xml")
        self.assertNotIn("Common parameters", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^rewrites +\d+: .*\noperators +\d+ -> \d+\nmultiply-adds .*")
        self.assertIn(f"[ SUCCESS ] XML file: {self.path}/x.xml", done.stdout)
        self.assertEqual(self.done(self.model, "-o", self.path / "x.xml", "--quiet").stdout, "")
        document = json.loads(self.done(self.model, "-o", self.path / "x.xml", "--json", "-").stdout)
        self.assertEqual((document["version"], document["xml"]), (11, str(self.path / "x.xml")))
        self.assertGreater(document["before"]["operators"], document["after"]["operators"])

    def test_version_progress_levels(self) -> None:
        self.assertRegex(self.done("--version").stdout, r"^Version of Model Optimizer is: lamina \d")
        lines = self.done(
            "-m", self.model, "-o", self.path, "-n", "p", "--stream_output", "--silent"
        ).stdout.splitlines()
        self.assertIn("Progress: [....................] 100.00% done", lines)
        words = [TOOL, "optimize", "-m", self.model, "-o", self.path, "-n", "p", "--progress"]
        self.assertIn(b"\rProgress: [", subprocess.run(words, check=True, capture_output=True).stdout)
        for level in ("CRITICAL", "ERROR", "WARN", "WARNING", "INFO", "DEBUG", "NOTSET"):
            self.done("-m", self.model, "-o", self.path, "-n", "p", "--log_level", level)
        self.refused(2, "-m", self.model, "--log_level", "LOUD", says="LOUD")

    def test_help_has_an_example_that_works(self) -> None:
        text = lamina("optimize", "--help").stdout
        example = text[text.index("Example:") :].splitlines()[1].split()
        self.assertEqual(example[0], "lamina")
        (self.path / "model.onnx").write_bytes(self.model.read_bytes())
        done = lamina(*example[1:], cwd=self.path)
        self.assertEqual(done.returncode, 0, done.stderr)


class Documentation(Base):
    def test_every_option_has_its_line(self) -> None:
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "optimize.md").read_text()
        options = set(re.findall(r"(?<![\w-])--[a-zA-Z_][\w-]*", lamina("optimize", "--help").stdout))
        self.assertGreater(len(options), 40)
        self.assertEqual(sorted(o for o in options if f"`{o}" not in page), ["--help", "--help-all"])


if __name__ == "__main__":
    unittest.main()
