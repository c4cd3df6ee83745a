"""Library, command and Python module of the build run with glibc 2.34 and the libstdc++ of its time."""

import os
import unittest
from pathlib import Path

import elf

BUILD = Path(os.environ["LAMINA_BUILD"])


class Symbols(unittest.TestCase):
    def test_no_symbol_is_too_new(self):
        for path in (BUILD / "lib/liblamina.so", BUILD / "bin/lamina", *(BUILD / "python/lamina").glob("_lamina*.so")):
            with self.subTest(path.name):
                self.assertEqual(elf.too_new(path.resolve()), [])


if __name__ == "__main__":
    unittest.main()
