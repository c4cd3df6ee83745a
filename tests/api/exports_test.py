"""The shared object exports what the public headers say, and nothing else: tests/api/exports.txt.

A difference is either a leak (a template that was instantiated, a function without LAMINA_API that is reached) or
a change of the interface: then the list, docs/api.md and tests/api/guard_test.cc change, too.
"""

import os
import subprocess
import sys
from pathlib import Path

LIST = Path(__file__).with_name("exports.txt")


def exports(library):
    mangled = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", library], check=True, capture_output=True, text=True
    ).stdout
    names = "\n".join(line.split()[0] for line in mangled.splitlines() if line)
    plain = subprocess.run(["c++filt"], input=names, check=True, capture_output=True, text=True).stdout
    return set(plain.splitlines())


def main():
    library = Path(os.environ["LAMINA_BUILD"]) / "lib" / "liblamina.so"
    if not library.exists():
        sys.exit(f"{library}: no such file, wanted the shared library (target lamina)")
    found, wanted = exports(library), set(LIST.read_text().splitlines())
    for name in sorted(found - wanted):
        print(f"exported, but not in {LIST.name}: {name}")
    for name in sorted(wanted - found):
        print(f"in {LIST.name}, but not exported: {name}")
    if found != wanted:
        sys.exit(1)
    print(f"{len(found)} names, as the list says")


if __name__ == "__main__":
    main()
