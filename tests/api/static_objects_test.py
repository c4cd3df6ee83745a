"""No static object of the library has a destructor that exit() calls: other threads may use it to the very end of
the process. NoDestructor, ProcessLifetime (src/base/no_destructor.h) and constexpr tables have none.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

# Destructors that may be registered: the one that looks whether the library is closed, and one of pugixml for a set of
# nodes that nobody uses.
ALLOWED = ("AtClose::~AtClose()", "pugi::xpath_node_set::~xpath_node_set()")
# The register of a function's first argument, which is the destructor.
DESTRUCTOR = re.compile(r"%rdi +# [0-9a-f]+ <([^>].*)>$")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
# atexit() registers functions, and the other one is the way to the C library's __cxa_atexit.
NO_DESTRUCTORS = ("atexit", "__cxa_atexit@plt")
REGISTERS = re.compile(r"<__cxa_atexit(@plt)?>$")


def registrations(library):
    """For each call of __cxa_atexit: the function that has it, and the destructor that it registers."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", library], check=True, capture_output=True, text=True
    ).stdout
    function = destructor = ""
    for line in text.splitlines():
        if match := FUNCTION.match(line):
            function, destructor = match[1], ""
        elif match := DESTRUCTOR.search(line):
            destructor = match[1]
        elif REGISTERS.search(line) and function not in NO_DESTRUCTORS:
            yield function, destructor
            destructor = ""


def plain(text):
    return subprocess.run(["c++filt"], input=text, check=True, capture_output=True, text=True).stdout.strip()


def main():
    library = Path(os.environ["LAMINA_BUILD"]) / "lib/liblamina.so"
    if not library.exists():
        sys.exit(f"{library}: no such file, wanted the shared library (target lamina)")
    found = [(plain(function), plain(destructor)) for function, destructor in registrations(library)]
    faults = [
        f"{function} registers {destructor or 'a destructor'}"
        for function, destructor in found
        if not destructor.endswith(ALLOWED)
    ]
    if not found:
        faults.append("no call of __cxa_atexit was found, wanted that of AtClose")
    for fault in faults:
        print(fault)
    if faults:
        sys.exit(1)
    print(f"{len(found)} destructors, as wanted")


if __name__ == "__main__":
    main()
