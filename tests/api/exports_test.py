"""The shared object exports what the public headers say (tests/api/exports.txt), and what the command calls besides
(tests/api/exports_for_command.txt, the functions that src/base marks with LAMINA_COMMAND_API); nothing else.

A difference is either a leak (a template that was instantiated, a function without LAMINA_API that is reached) or
a change of the interface: then the list, docs/api.md and tests/api/public_entries.cc change, too; for lamina/c.h also
docs/c-api.md and tests/c_interface/abi.txt; for the command cmake/lamina.map.
"""

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
LISTS = {"LAMINA_C_1": "exports.txt", "LAMINA_CXX": "exports.txt", "LAMINA_COMMAND": "exports_for_command.txt"}


def symbols(program):
    """Name and version of what a file defines for others."""
    table = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", program], check=True, capture_output=True, text=True
    ).stdout
    return [line.split()[0].split("@@") for line in table.splitlines() if line and line.split()[1] != "A"]


def plain(names):
    text = subprocess.run(["c++filt"], input="\n".join(names), check=True, capture_output=True, text=True).stdout
    return text.splitlines()


def exports(library):
    """By list: the names that it should have."""
    found = {name: set() for name in LISTS.values()}
    names = symbols(library)
    for name, (_, *node) in zip(plain([name for name, *_ in names]), names, strict=True):
        version = " ".join(node) or "none"
        if version not in LISTS or (version == "LAMINA_C_1") != name.startswith("lamina_c_"):
            name = f"{name} in the version {version}"
        found[LISTS.get(version, "exports.txt")].add(name)
    return found


def differences(name, found):
    wanted = set((FOLDER / name).read_text().splitlines())
    yield from (f"exported, but not in {name}: {one}" for one in sorted(found - wanted))
    yield from (f"in {name}, but not exported: {one}" for one in sorted(wanted - found))


def copies(library, command):
    """What the command has although the library has it."""
    return sorted({name for name, *_ in symbols(library)} & {name for name, *_ in symbols(command)})


def main():
    build = Path(os.environ["LAMINA_BUILD"])
    library, command = build / "lib/liblamina.so", build / "bin/lamina"
    if not library.exists():
        sys.exit(f"{library}: no such file, wanted the shared library (target lamina)")
    found = exports(library)
    faults = [fault for name, names in found.items() for fault in differences(name, names)]
    if command.exists():
        # Variables and functions of the library that the command has copies of would be used in place of the library's.
        faults += [f"the command has a copy of {name}" for name in plain(copies(library, command))]
    for fault in faults:
        print(fault)
    if faults:
        sys.exit(1)
    print(f"{sum(map(len, found.values()))} names, as the lists say")


if __name__ == "__main__":
    main()
