"""What a program or a shared library needs, by readelf of binutils."""

import re
import subprocess
from pathlib import Path

# The newest version of each that a system with glibc 2.34 and the libstdc++ of its time has: manylinux_2_34.
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}
# Libraries that packages leave to the system, as manylinux does.
OF_THE_SYSTEM = {
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
    "libstdc++.so.6",
    "libz.so.1",
}


def is_elf(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def readelf(path: Path, *options: str) -> str:
    return subprocess.run(["readelf", "-W", *options, str(path)], capture_output=True, text=True, check=True).stdout


def too_new(path: Path) -> list[str]:
    """Versions of symbols that are newer than NEWEST, or of a library that is not in it."""
    needs = readelf(path, "-V").partition("Version needs section")[2]
    found = []
    for name, version in sorted(set(re.findall(r"Name: ([A-Z]+)_([0-9.]+)", needs))):
        if name in NEWEST and tuple(map(int, version.split("."))) > NEWEST[name]:
            found.append(f"{name}_{version}: " + ", ".join(symbols(path, f"{name}_{version}")))
    return found


def symbols(path: Path, version: str) -> list[str]:
    return re.findall(rf"(\S+)@{re.escape(version)}\b", readelf(path, "--dyn-syms"))


def needed(path: Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(path, "-d"))


def run_paths(path: Path) -> list[str]:
    found = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", readelf(path, "-d"))
    return found[0].split(":") if found else []


def is_stripped(path: Path) -> bool:
    return ".symtab" not in readelf(path, "-S")
