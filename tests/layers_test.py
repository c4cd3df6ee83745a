"""Layers point down: checks what the files of src/ and include/ include.

- A module includes only itself, the modules below it by src/CMakeLists.txt, and the public headers.
- Public headers include the standard library and each other, nothing else.
- Only src/base includes POSIX headers.
- Every quoted include exists, and so does every source file that a page of docs or a comment names.
Files of more than 400 lines are listed, as a hint. Usage: layers_test.py ROOT
"""

import re
import sys
from pathlib import Path

MODULE = re.compile(r"^ *lamina_module\((\w+)(?: (?:BELOW|CALLS) ([\w ]+?))?(?: USES [^)]*)?\)", re.MULTILINE)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
POSIX = re.compile(
    r"^(unistd|fcntl|pthread|sched|dirent|dlfcn|poll|signal|termios|netdb|glob|syslog|strings|ftw|pwd"
    r"|sys/.*|netinet/.*|arpa/.*|linux/.*)(\.h)?$"
)
POSIX_MODULES = ("base",)
C_HEADERS = ("c.h", "extension.h")
C_LIBRARY = ("stddef.h", "stdint.h")
LONG = 400
# A source file by its name or the end of its path: "judge.h", "check/judge.h", "tests/check/judge_test.cc".
NAMED = re.compile(r"(?<![\w./*<-])((?:[\w+-]+/)*[\w+-]+(?:\.simd)?\.(?:h|hpp|cc|py|test))(?![\w*])")
PLACEHOLDER = re.compile(r"(^|[/_])[A-Z]{2,}")  # src/rules/NAME.cc, legalise_FAMILY.cc
ELSEWHERE = re.compile(r"hwy/|mo_caffe\.py")  # of other projects


def modules_below(root):
    """By module: all modules that it may include, from what src/CMakeLists.txt says of its neighbours."""
    below = {}
    for name, neighbours in MODULE.findall((root / "src/CMakeLists.txt").read_text(encoding="utf-8")):
        below[name] = set(neighbours.split()).union(*(below[n] for n in neighbours.split()))
    return below


def without_comments(text):
    """The text with comments blanked, so that an include in a comment does not count."""

    def keep_lines(match):
        return "\n" * match.group().count("\n")

    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", keep_lines, text, flags=re.DOTALL))


def includes(path):
    text = without_comments(path.read_text(encoding="utf-8"))
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1) == '"', match.group(2)


def faults_of_module(root, path, module, below):
    for line, quoted, name in includes(path):
        where = f"{path.relative_to(root)}:{line}"
        if not quoted:
            if POSIX.match(name) and module not in POSIX_MODULES:
                yield f"{where}: <{name}> is POSIX, which only {' and '.join(POSIX_MODULES)} may use"
            continue
        top = name.split("/")[0]
        if top == "lamina":
            if not (root / "include" / name).is_file():
                yield f'{where}: "{name}" does not exist'
        elif top not in below:
            yield f'{where}: "{name}" names no module'
        elif top != module and top not in below[module]:
            yield f'{where}: "{name}" is not below {module}'
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


def faults_of_names(root):
    """Files that pages and comments name, but that do not exist."""
    folders = ("src", "include", "tests", "bench", "examples", "scripts", "cmake", "python")
    files = [path.relative_to(root).as_posix() for folder in folders for path in (root / folder).rglob("*.*")]
    ends = {path[at + 1 :] for path in files for at in [-1, *(i for i, c in enumerate(path) if c == "/")]}

    def missing(text):
        for name in NAMED.findall(text):
            if name not in ends and not PLACEHOLDER.search(name) and not ELSEWHERE.match(name):
                yield name

    for page in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]:
        for line, text in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            yield from (f"{page.relative_to(root)}:{line}: there is no {name}" for name in missing(text))
    for path in sources(root / "src") + sources(root / "include") + sources(root / "tests"):
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if text.lstrip().startswith("#"):
                continue
            comment = text.partition("//")[2]
            yield from (f"{path.relative_to(root)}:{line}: there is no {name}" for name in missing(comment))


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".h", ".cc"))


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    faults, long_files, count = [], [], 0
    below = modules_below(root)
    for path in sources(root / "src") + sources(root / "include"):
        count += 1
        parts = path.relative_to(root).parts
        if parts[0] == "include":
            faults += faults_of_public(root, path)
        elif parts[1] in below:
            faults += faults_of_module(root, path, parts[1], below)
        else:
            faults.append(f"{path.relative_to(root)}: '{parts[1]}' is no module")
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > LONG:
            long_files.append(f"{path.relative_to(root)}: {lines} lines")
    faults += faults_of_names(root)
    for text in long_files:
        print("long:", text)
    for text in faults:
        print("fault:", text)
    print(f"{count} files, {len(faults)} faults")
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
