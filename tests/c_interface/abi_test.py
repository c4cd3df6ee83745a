"""The binary interface of lamina/c.h is what programs were compiled with: tests/c_interface/abi.txt.

The file has a line for each symbol with its version node, each function's types, each struct's members with offset and
size, and each number. Nothing in it may go or change; a struct may grow at its end, and functions and numbers may come.
What is new fails the test, too, until `abi_test.py --write` has added it to the file; it never changes a line that is
there. The test plants both kinds of faults, to see that they are found.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from header import PATH, Header, library_path, signature

STORED = Path(__file__).with_name("abi.txt")
NODE = re.compile(r"^(lamina_c_\w+)@@(\w+)$")


def layout_program(header):
    lines = ["#include <stddef.h>", "#include <stdio.h>", "#include <lamina/c.h>", "int main(void) {"]
    for struct, members in header.structs.items():
        lines.append(f'  printf("struct {struct} %d\\n", (int)sizeof({struct}));')
        for _, name in members:
            place = f"(int)offsetof({struct}, {name}), (int)sizeof((({struct}*)0)->{name})"
            lines.append(f'  printf("member {struct}.{name} %d %d\\n", {place});')
    for name in header.numbers:
        lines.append(f'  printf("number {name} %d\\n", (int){name});')
    lines.append('  printf("number LAMINA_C_NONE %d\\n", LAMINA_C_NONE == (size_t)-1 ? -1 : 0);')
    return "\n".join([*lines, "  return 0;", "}", ""])


def layout(text):
    """What a C compiler makes of the header's text: the lines of structs, members and numbers."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "lamina").mkdir()
        (folder / "lamina/c.h").write_text(text)
        (folder / "layout.c").write_text(layout_program(Header(text)))
        subprocess.run(
            ["gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{folder}", folder / "layout.c", "-o", folder / "layout"],
            check=True,
        )
        return subprocess.run([folder / "layout"], check=True, capture_output=True, text=True).stdout.splitlines()


def declared(text):
    header = Header(text)
    yield from (f"function {name} {signature(*types)}" for name, types in sorted(header.functions.items()))
    yield from (f"callback {name} {signature(*types)}" for name, types in sorted(header.callbacks.items()))


def symbols(table):
    """The lines of symbols in what `nm -D --defined-only --format=posix` prints."""
    names = (line.split()[0] for line in table.splitlines() if line)
    return sorted(f"symbol {match.group(1)} {match.group(2)}" for match in map(NODE.match, names) if match)


def key(line):
    """What a line is about."""
    return tuple(line.split()[:2])


def compare(stored, found):
    """(faults, additions): what would break programs that are there; what is new."""
    old, new = {key(line): line for line in stored}, {key(line): line for line in found}
    faults = [f"gone: {line}" for what, line in old.items() if what not in new]
    additions = [line for what, line in new.items() if what not in old]
    for what, line in old.items():
        if what not in new or new[what] == line:
            continue
        grown = what[0] == "struct" and int(new[what].split()[2]) > int(line.split()[2])
        if not grown:
            faults.append(f"changed: {line} -> {new[what]}")
    ends = {line.split()[1]: int(line.split()[2]) for line in stored if line.startswith("struct ")}
    for line in additions:
        if line.startswith("member "):
            struct, _, member = line.split()[1].partition(".")
            if struct in ends and int(line.split()[2]) < ends[struct]:
                faults.append(f"in the middle of {struct}: {member}")
    return faults, additions


def planted(text, table, stored):
    """Faults and additions that are made on purpose, and what compare() should say of each."""

    def found(header=text, names=table):
        return [*symbols(names), *declared(header), *layout(header)]

    def replaced(old, new):
        assert text.count(old) >= 1, old
        return text.replace(old, new, 1)

    member = "  const char* weights;\n"
    yield "a symbol goes", found(names=re.sub(r"^lamina_c_request_run@@.*\n", "", table, flags=re.M)), "gone: symbol lamina_c_request_run "
    yield "a symbol has another node", found(names=table.replace("lamina_c_compile@@LAMINA_C_1", "lamina_c_compile@@LAMINA_C_2")), "changed: symbol lamina_c_compile "
    yield "a symbol has no node", found(names=table.replace("lamina_c_compile@@LAMINA_C_1", "lamina_c_compile")), "gone: symbol lamina_c_compile "
    yield "a member in the middle", found(replaced(member, member + "  const char* middle;\n")), "in the middle of lamina_c_read_options: middle"
    yield "a member goes", found(replaced(member, "")), "gone: member lamina_c_read_options.weights"
    yield "a member becomes smaller", found(replaced("  double microseconds;", "  float microseconds;")), "changed: member lamina_c_layer_time.microseconds"
    yield "a struct becomes shorter", found(replaced("  double cpu_us;\n", "")), "changed: struct lamina_c_counter"
    yield "a number changes", found(replaced("LAMINA_C_F32 = 4", "LAMINA_C_F32 = 44")), "changed: number LAMINA_C_F32"
    yield "a number goes", found(replaced("  LAMINA_C_NF4 = 25", "  LAMINA_C_NF5 = 25")), "gone: number LAMINA_C_NF4"
    yield "an argument changes", found(replaced("size_t rank, const int64_t* dims, size_t* count", "int32_t rank, const int64_t* dims, size_t* count")), "changed: function lamina_c_element_count"
    yield "a callback changes", found(replaced("(void* user, int32_t level, const char* line)", "(void* user, const char* line)")), "changed: callback lamina_c_log"
    yield "a member at the end", found(replaced("  double cpu_us;\n", "  double cpu_us;\n  double most_us;\n")), None
    yield "a function comes", found(replaced("LAMINA_C_API const char* lamina_c_version(void);", "LAMINA_C_API const char* lamina_c_version(void);\nLAMINA_C_API int32_t lamina_c_more(void);")), None
    yield "a number comes", found(replaced("  LAMINA_C_NF4 = 25", "  LAMINA_C_NF4 = 25,\n  LAMINA_C_NF5 = 26")), None


def main():
    library = library_path() if "LAMINA_BUILD" in os.environ else Path(sys.argv[-1])
    if not library.exists():
        sys.exit(f"{library}: no such file, wanted the shared library (target lamina)")
    table = subprocess.run(
        ["nm", "-D", "--defined-only", "--format=posix", library], check=True, capture_output=True, text=True
    ).stdout
    text = PATH.read_text()
    found = [*symbols(table), *declared(text), *layout(text)]
    stored = STORED.read_text().splitlines() if STORED.exists() else []
    faults, additions = compare(stored, found)
    if "--write" in sys.argv and not faults:
        grown = {key(line): line for line in found}
        STORED.write_text("\n".join([grown[key(line)] for line in stored] + additions) + "\n")
        print(f"{len(additions)} lines added to {STORED.name}")
        return
    faults += [f"new, add it with --write: {line}" for line in additions]
    exported, functions = {line.split()[1] for line in symbols(table)}, set(Header(text).functions)
    faults += [f"declared, but not exported: {name}" for name in sorted(functions - exported)]
    faults += [f"exported, but not declared: {name}" for name in sorted(exported - functions)]
    tried = 0
    for what, altered, wanted in planted(text, table, stored) if not faults else ():
        tried += 1
        seen, come = compare(stored, altered)
        if wanted is None and (seen or not come):
            faults.append(f"planted: {what}: {seen}, {come}, wanted an addition only")
        if wanted is not None and not any(fault.startswith(wanted) for fault in seen):
            faults.append(f'planted: {what}: {seen}, wanted "{wanted}"')
    for fault in faults:
        print(fault)
    if faults:
        sys.exit(1)
    print(f"{len(stored)} lines, as they were; {tried} planted changes told apart")


if __name__ == "__main__":
    main()
