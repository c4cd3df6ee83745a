"""The archive and the Debian package: made of the build, looked at, and run where they are unpacked."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import elf

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["LAMINA_BUILD"])
# Below the prefix of both.
FILES = [
    "bin/lamina",
    "include/lamina/lamina.h",
    "include/lamina/extension.h",
    "lib/cmake/lamina/laminaConfig.cmake",
    "lib/lamina/libdnnl.so.3",
    "lib/liblamina.so",
    "lib/liblamina.so.0.1",
    "lib/pkgconfig/lamina.pc",
    "share/bash-completion/completions/lamina",
    "share/doc/lamina/CHANGELOG.md",
    "share/doc/lamina/LICENSE",
    "share/doc/lamina/libraries/fmt.txt",
    "share/doc/lamina/onednn/LICENSE",
    "share/man/man1/lamina.1",
    "share/man/man1/lamina-run.1",
]
MODEL = """<net name="relu" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/><output><port id="0"><dim>2</dim></port></output></layer>
<layer id="1" name="y" type="ReLU" version="opset1"><input><port id="0"><dim>2</dim></port></input><output><port id="1"><dim>2</dim></port></output></layer>
<layer id="2" name="r" type="Result" version="opset1"><input><port id="0"><dim>2</dim></port></input></layer></layers><edges>
<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"""


class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def made(self, generator: str) -> Path:
        subprocess.run([str(ROOT / "scripts/package"), generator, str(self.folder / "made")], check=True, capture_output=True)
        (file,) = (self.folder / "made").iterdir()
        return file

    def check(self, prefix: Path, bundled: bool):
        missing = [name for name in FILES if not (prefix / name).exists()]
        self.assertEqual(missing, [])
        self.assertFalse(list(prefix.rglob("*.py")), "parts of the wheel")
        inside = {path.name for path in (prefix / "lib").rglob("*.so*")}
        self.assertEqual("libtbb.so.12" in inside, bundled)
        for path in filter(elf.is_elf, sorted(prefix.rglob("*"))):
            self.assertTrue(elf.is_stripped(path), path)
            self.assertEqual(elf.too_new(path), [], path)
            self.assertEqual([folder for folder in elf.run_paths(path) if not folder.startswith("$ORIGIN")], [], path)
            if bundled:
                self.assertLessEqual(set(elf.needed(path)) - elf.OF_THE_SYSTEM, inside, path)
        self.runs(prefix)

    def runs(self, prefix: Path):
        """In another folder, without the environment of the tests."""
        model = self.folder / "model.xml"
        model.write_text(MODEL)
        model.with_suffix(".bin").touch()
        for words in (["--version"], ["run", str(model), "--steps", "2"], ["check", str(model)]):
            command = [str(prefix / "bin/lamina"), *words]
            ran = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env={}, check=False)
            self.assertEqual(ran.returncode, 0, f"{words}: {ran.stderr}")
        environment = {"LD_TRACE_LOADED_OBJECTS": "1"}
        loaded = subprocess.run([str(prefix / "bin/lamina")], capture_output=True, text=True, env=environment, check=True)
        self.assertNotIn(str(ROOT), loaded.stdout)

    def test_archive(self):
        archive = self.made("TGZ")
        self.assertRegex(archive.name, r"^lamina-[0-9.]+-linux-x86_64\.tar\.gz$")
        home = self.folder / "elsewhere"
        home.mkdir()
        subprocess.run(["tar", "-xf", str(archive), "-C", str(home)], check=True)
        (prefix,) = home.iterdir()
        self.assertEqual(prefix.name, archive.name.removesuffix(".tar.gz"))
        self.check(prefix, bundled=True)
        for name in ("onetbb", "libpng", "libjpeg-turbo"):
            self.assertTrue((prefix / f"share/doc/lamina/libraries/{name}.txt").exists(), name)

    @unittest.skipUnless(shutil.which("dpkg-shlibdeps"), "there is no dpkg-shlibdeps: scripts/bootstrap --packages")
    def test_debian_package(self):
        package = self.made("DEB")
        self.assertRegex(package.name, r"^lamina_[0-9.]+_amd64\.deb$")
        subprocess.run(["dpkg-deb", "-x", str(package), str(self.folder / "root")], check=True)
        prefix = self.folder / "root/usr"
        self.check(prefix, bundled=False)
        self.assertTrue((prefix / "share/zsh/vendor-completions/_lamina").exists())
        self.assertTrue((prefix / "share/doc/lamina/copyright").exists())
        depends = self.field(package, "Depends")
        for name in ("libc6", "libtbb12", "libfmt9", "libre2-9", "libxxhash0", "zlib1g", "libpng16-16", "libjpeg62-turbo"):
            self.assertIn(name, depends)
        self.assertNotIn("dnnl", depends)

    def field(self, package: Path, name: str) -> str:
        return subprocess.run(["dpkg-deb", "-f", str(package), name], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    if BUILD.name != "release":
        print("skipped: packages are made of build/release")
        sys.exit(77)
    unittest.main()
