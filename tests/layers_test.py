"""Layers point down: checks what the files of src/ and include/ include.

- A room includes only itself, rooms below it and the public headers.
- Public headers include the standard library and each other, nothing else.
- POSIX headers stand in src/base only.
- Every quoted include exists.
Files of more than 400 lines are listed, as a hint. Usage: layers_test.py ROOT
"""

import re
import sys
from pathlib import Path

# What each room may include. The tool, above all, may include every room.
BELOW = {"base": []}
BELOW["graph"] = ["base"]
BELOW["ops"] = ["graph"] + BELOW["graph"]
for room in ("extension", "interpreter", "rewrite"):
    BELOW[room] = ["ops"] + BELOW["ops"]
BELOW["formats"] = ["extension"] + BELOW["extension"]
BELOW["kernels"] = ["interpreter", "extension"] + BELOW["ops"] + ["ops"]  # the reference kernel and thresholds ask it
BELOW["rules"] = ["rewrite", "extension"] + BELOW["ops"] + ["ops"]
BELOW["plan"] = ["kernels", "rewrite"] + BELOW["kernels"]  # a plan keeps the ledger of its rewriting
BELOW["exec"] = ["plan"] + BELOW["plan"]
BELOW["saved"] = ["formats"] + ["exec"] + BELOW["exec"]
BELOW["api"] = [room for room in BELOW]
BELOW["check"] = [room for room in BELOW]
BELOW["offline"] = ["rules"] + BELOW["rules"] + ["formats"]
BELOW["quantise"] = BELOW["api"] + ["api"]
BELOW["tool"] = [room for room in BELOW]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
POSIX = re.compile(
    r"^(unistd|fcntl|pthread|sched|dirent|dlfcn|poll|signal|termios|netdb|glob|syslog|strings|ftw|pwd"
    r"|sys/.*|netinet/.*|arpa/.*|linux/.*)(\.h)?$"
)
POSIX_ROOMS = ("base",)
C_HEADERS = ("extension.h",)
C_LIBRARY = ("stddef.h", "stdint.h")
LONG = 400


def without_comments(text):
    """The text with comments blanked, so that an include in a comment does not count."""

    def keep_lines(match):
        return "\n" * match.group().count("\n")

    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", keep_lines, text, flags=re.DOTALL))


def includes(path):
    text = without_comments(path.read_text(encoding="utf-8"))
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1) == '"', match.group(2)


def faults_of_room(root, path, room):
    allowed = [room] + BELOW[room]
    for line, quoted, name in includes(path):
        where = f"{path.relative_to(root)}:{line}"
        if not quoted:
            if POSIX.match(name) and room not in POSIX_ROOMS:
                yield f"{where}: <{name}> is POSIX, which only {' and '.join(POSIX_ROOMS)} may use"
            continue
        top = name.split("/")[0]
        if top == "lamina":
            if not (root / "include" / name).is_file():
                yield f'{where}: "{name}" does not exist'
        elif top not in BELOW:
            yield f'{where}: "{name}" names no room'
        elif top not in allowed:
            yield f'{where}: "{name}" is not below {room}'
        elif not (root / "src" / name).is_file():
            yield f'{where}: "{name}" does not exist'


def faults_of_public(root, path):
    for line, quoted, name in includes(path):
        where = f"{path.relative_to(root)}:{line}"
        if quoted:
            if not name.startswith("lamina/") or not (root / "include" / name).is_file():
                yield f'{where}: "{name}" is no public header'
        elif not re.fullmatch(r"[a-z_]+", name) and not (path.name in C_HEADERS and name in C_LIBRARY):
            yield f"{where}: <{name}> is not of the standard C++ library"


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".h", ".cc"))


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    faults, long_files, count = [], [], 0
    for path in sources(root / "src") + sources(root / "include"):
        count += 1
        parts = path.relative_to(root).parts
        if parts[0] == "include":
            faults += faults_of_public(root, path)
        elif parts[1] in BELOW:
            faults += faults_of_room(root, path, parts[1])
        else:
            faults.append(f"{path.relative_to(root)}: '{parts[1]}' is no room")
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > LONG:
            long_files.append(f"{path.relative_to(root)}: {lines} lines")
    for text in long_files:
        print("long:", text)
    for text in faults:
        print("fault:", text)
    print(f"{count} files, {len(faults)} faults")
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
