"""The pieces of code in docs/api.md are those that tests/api/docs_test.cc compiles and runs."""

import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTED = re.compile(r"^ *// piece: (\w+)\n(.*?)^ *// end$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^<!-- piece: (\w+) -->\n```cpp\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pieces(pattern, path):
    return {name: textwrap.dedent(code).strip() for name, code in pattern.findall(path.read_text())}


def main():
    page, test = ROOT / "docs/api.md", ROOT / "tests/api/docs_test.cc"
    shown, tested = pieces(SHOWN, page), pieces(TESTED, test)
    faults = [f"{name}: only in {'the page' if name in shown else 'the test'}" for name in sorted(shown.keys() ^ tested.keys())]
    faults += [f"{name}: the page differs from the test" for name in sorted(shown.keys() & tested.keys()) if shown[name] != tested[name]]
    if page.read_text().count("```cpp") != len(shown):
        faults.append("a piece of C++ on the page has no name")
    for fault in faults:
        print(fault)
    if faults or not shown:
        sys.exit(1)
    print(f"{len(shown)} pieces, as they are tested")


if __name__ == "__main__":
    main()
