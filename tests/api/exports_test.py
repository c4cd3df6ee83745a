"""The shared object exports what the public headers say, and nothing else: tests/api/exports.txt.

A difference is either a leak (a template that was instantiated, a function without LAMINA_API that is reached) or
a change of the interface: then the list, docs/api.md and tests/api/public_entries.cc change, too; for lamina/c.h also
docs/c-api.md and tests/c_interface/abi.txt.
"""

import os
import subprocess
import sys
from pathlib import Path

LIST = Path(__file__).with_name("exports.txt")


def exports(library):
    table = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", library], check=True, capture_output=True, text=True
    ).stdout
    names = [line.split()[0].split("@@") for line in table.splitlines() if line and line.split()[1] != "A"]
    mangled = "\n".join(name for name, *_ in names)
    plain = subprocess.run(["c++filt"], input=mangled, check=True, capture_output=True, text=True).stdout
    for name, (_, *node) in zip(plain.splitlines(), names, strict=True):
        wanted = ["LAMINA_C_1" if name.startswith("lamina_c_") else "LAMINA_CXX"]
        yield name if node == wanted else f"{name} in the version {' '.join(node) or 'none'}"


def main():
    library = Path(os.environ["LAMINA_BUILD"]) / "lib" / "liblamina.so"
    if not library.exists():
        sys.exit(f"{library}: no such file, wanted the shared library (target lamina)")
    found, wanted = set(exports(library)), set(LIST.read_text().splitlines())
    for name in sorted(found - wanted):
        print(f"exported, but not in {LIST.name}: {name}")
    for name in sorted(wanted - found):
        print(f"in {LIST.name}, but not exported: {name}")
    if found != wanted:
        sys.exit(1)
    print(f"{len(found)} names, as the list says")


if __name__ == "__main__":
    main()
