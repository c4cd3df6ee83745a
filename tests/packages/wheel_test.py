"""The contents of the wheel that scripts/wheel has made: dist/lamina-*.whl."""

import re
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import elf

ROOT = Path(__file__).resolve().parents[2]
WHEELS = list((ROOT / "dist").glob("lamina-*.whl"))
MOST_BYTES = 25_000_000
# By the beginning of its name: which licence a library has that auditwheel put in.
LICENCES = {
    "libdnnl": "onednn",
    "libdnnl_intel_shim": None,  # lamina's own
    "libfmt": "fmt",
    "libjpeg": "libjpeg-turbo",
    "libpng16": "libpng",
    "libre2": "re2",
    "libtbb": "onetbb",
    "libxxhash": "xxhash",
}
COMPILED_IN = {"CLI11", "highway", "nanobind", "nlohmann_json", "onednn-third-party", "protozero", "pugixml"}


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = Path(cls.folder.name)
        with zipfile.ZipFile(WHEELS[0]) as wheel:
            wheel.extractall(cls.root)
        cls.binaries = [path for path in sorted(cls.root.rglob("*")) if elf.is_elf(path)]
        (cls.info,) = cls.root.glob("lamina-*.dist-info")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_one_wheel_serves_every_python(self):
        version = re.search(r"project\(lamina VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        self.assertEqual(
            [wheel.name for wheel in WHEELS], [f"lamina-{version}-cp310-abi3-manylinux_2_34_x86_64.whl"]
        )
        self.assertTrue((self.root / "lamina/_lamina.abi3.so").exists())

    def test_size(self):
        self.assertLessEqual(WHEELS[0].stat().st_size, MOST_BYTES)

    def test_all_parts_are_there(self):
        for name in ("__init__.py", "py.typed", "_lamina.pyi", "lib/liblamina.so.0.1", "bin/lamina"):
            self.assertTrue((self.root / "lamina" / name).exists(), name)
        sources = {path.relative_to(ROOT / "python") for path in (ROOT / "python/lamina").rglob("*.py")}
        packed = {path.relative_to(self.root) for path in (self.root / "lamina").rglob("*.py")}
        self.assertEqual(packed, sources)
        self.assertEqual(list(self.root.rglob("__pycache__")), [])

    def test_every_library_is_inside_under_a_name_of_its_own(self):
        inside = {path.name for path in self.binaries}
        for path in self.binaries:
            for name in elf.needed(path):
                if name not in elf.OF_THE_SYSTEM:
                    self.assertIn(name, inside, f"{path.name} needs {name}")
            for folder in elf.run_paths(path):
                self.assertTrue(folder.startswith("$ORIGIN"), f"{path.name}: {folder}")
        bundled = [path.name for path in self.binaries if path.parent.name == "lamina.libs"]
        for name in bundled:
            self.assertRegex(name, r"^[\w+-]+-[0-9a-f]{8}\.so", f"{name}: another package may have one of that name")
        for name in ("libdnnl", "libtbb"):
            self.assertTrue([lib for lib in bundled if lib.startswith(f"{name}-")], f"no {name} in {bundled}")

    def test_it_runs_with_glibc_2_34(self):
        for path in self.binaries:
            self.assertEqual(elf.too_new(path), [], path.name)

    def test_it_is_stripped(self):
        for path in self.binaries:
            self.assertTrue(elf.is_stripped(path), path.name)

    def test_the_licences_of_all_parts_are_inside(self):
        licences = {path.stem for path in (self.info / "licenses/libraries").glob("*.txt")}
        wanted = set(COMPILED_IN)
        for path in self.binaries:
            if path.parent.name == "lamina.libs":
                wanted.add(LICENCES[path.name.partition("-")[0]])
        self.assertLessEqual(wanted - {None}, licences)
        self.assertEqual((self.info / "licenses/LICENSE").read_text(), (ROOT / "LICENSE").read_text())

    def test_metadata(self):
        metadata = (self.info / "METADATA").read_text()
        for line in ("Requires-Python: >=3.10", "Requires-Dist: numpy>=1.24", "Requires-Dist: nanobind-backend>=1.0"):
            self.assertIn(line, metadata)
        self.assertIn("lamina = _lamina_command:main", (self.info / "entry_points.txt").read_text())


if __name__ == "__main__":
    if not WHEELS:
        print("skipped: no wheel in dist, run make wheel")
        sys.exit(77)
    unittest.main()
