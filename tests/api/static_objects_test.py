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
ALLOWED = ("AtClose::~AtClose", "pugi::xpath_node_set::~xpath_node_set")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
REGISTERS = re.compile(r"<__cxa_atexit(@plt)?>$")
NAMED = re.compile(r"<([^>].*)>$")


def registrations(library):
    """For each call of __cxa_atexit: the function that has it, and what the lines before the call name."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", library], check=True, capture_output=True, text=True
    ).stdout
    function, before = "", []
    for line in text.splitlines():
        if match := FUNCTION.match(line):
            function, before = match[1], []
        elif REGISTERS.search(line) and function != "__cxa_atexit@plt":
            yield function, [match[1] for one in before[-10:] if (match := NAMED.search(one))]
        else:
            before.append(line)


def plain(text):
    return subprocess.run(["c++filt"], input=text, check=True, capture_output=True, text=True).stdout.strip()


def main():
    library = Path(os.environ["LAMINA_BUILD"]) / "lib/liblamina.so"
    if not library.exists():
        sys.exit(f"{library}: no such file, wanted the shared library (target lamina)")
    found = 0
    faults = []
    for function, names in registrations(library):
        if function == "atexit":
            continue
        known = plain("\n".join(names))
        found += 1
        if not any(one in known for one in ALLOWED):
            faults.append(f"{plain(function)} registers a destructor; near it: {known.splitlines()}")
    if found == 0:
        faults.append("no call of __cxa_atexit was found, wanted that of AtClose")
    for fault in faults:
        print(fault)
    if faults:
        sys.exit(1)
    print(f"{found} destructors, as wanted")


if __name__ == "__main__":
    main()
