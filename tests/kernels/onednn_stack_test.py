"""oneDNN's stack pointer: no implementation that lamina takes moves it out of the thread's stack.

A signal's frame is written below the stack pointer, wherever that is: in memory of the heap it destroys what lies
there. oneDNN makes its code at run time, so all code of every implementation for small problems (tests/stack) is
written to files and disassembled: an instruction that sets the stack pointer from anything but itself or the frame
pointer is found whatever branches a run takes, and whenever a signal would come. What has one is run again
instruction by instruction, which shows that it happens. Such an implementation must be a row of
src/kernels/onednn/refused.cc.

Usage: onednn_stack_test.py, or onednn_stack_test.py --all for every problem on every instruction set that oneDNN
knows, as a table.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections import defaultdict
from pathlib import Path

PROGRAM = Path(os.environ.get("LAMINA_BUILD", "build/release")) / "bin" / "onednn_stack"
SHORT = ("SSE41", "AVX2", "DEFAULT")
ALL = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_BF16", "AVX512_CORE_FP16", "AVX512_CORE_AMX", "DEFAULT")
GAP = b"\x90" * 32  # between codes, so that the disassembler begins each anew

# What sets %esp clears the upper half of the pointer: that is no code but a table behind it.
SETS = re.compile(r"^(?:mov|lea|xchg|pop|add|sub|and|or|cmov\w+)\w*\s+(?:(.*),)?%rsp$|^xchg\w*\s+%rsp,(.*)$|^leave")
# What keeps the pointer in the stack that it is in: of itself, by numbers, back to the frame that it came from. Room of
# a size in a register is taken where a sum of so many numbers is short; returning it adds the same.
STAYS = re.compile(r"^(?:(?:add|sub|and)\w*\s+(?:\$\S+|%r\w+),%rsp|mov\w*\s+%rbp,%rsp|lea\w*\s+-?(?:0x)?[0-9a-f]*\((?:%rsp|%rbp)\),%rsp|leave.*)$")


def leaves_the_stack(instruction: str) -> bool:
    """Whether it may set the stack pointer to something else."""
    return bool(SETS.match(instruction)) and not STAYS.match(instruction)


def disassembled(code: bytes, folder: Path) -> list[tuple[int, str]]:
    """The instructions of the code with their offsets."""
    path = folder / "code"
    path.write_bytes(code)
    command = ["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "--no-show-raw-insn", str(path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = (re.match(r"\s*([0-9a-f]+):\s+(.*?)\s*(?:[#<].*)?$", line) for line in lines)
    return [(int(m[1], 16), re.sub(r"\s+", " ", m[2]).strip()) for m in found if m]


def without_tables(instructions: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Those that can be reached: constants lie behind the return beyond which no branch leads. Where a branch goes to an
    address in a register, all stay."""
    furthest = 0
    for index, (_, instruction) in enumerate(instructions):
        if branch := re.match(r"(?:j\w+|call\w*|loop\w*) (\*)?(?:0x)?([0-9a-f]+)", instruction):
            if branch[1]:
                return instructions
            furthest = max(furthest, int(branch[2], 16))
        elif re.match(r"(?:j\w+|call\w*) \*", instruction):
            return instructions
        ends = instruction.startswith(("ret", "jmp "))
        if ends and (index + 1 == len(instructions) or furthest < instructions[index + 1][0]):
            return instructions[: index + 1]
    return instructions


def codes_that_leave(codes: dict[bytes, str], folder: Path) -> dict[bytes, set[str]]:
    """The `codes` (with their names) that may leave the stack, with the instructions."""
    order, starts, joined = list(codes), [], bytearray()
    for code in order:
        starts.append(len(joined))
        joined += code + GAP
    of_each: list[list[tuple[int, str]]] = [[] for _ in order]
    at = 0
    for offset, instruction in disassembled(bytes(joined), folder):
        while at + 1 < len(order) and starts[at + 1] <= offset:
            at += 1
        of_each[at].append((offset, instruction))
    found: dict[bytes, set[str]] = {}
    for code, instructions in zip(order, of_each, strict=True):
        for _, instruction in without_tables(instructions):
            if leaves_the_stack(instruction):
                found.setdefault(code, set()).add(f"{instruction} in {codes[code]}")
    return found


class Implementation:
    def __init__(self) -> None:
        self.problems = 0
        self.verdicts: set[str] = set()
        self.leaving: dict[int, set[str]] = {}  # instructions by number of the problem

    def first(self) -> str:
        return min(min(instructions) for instructions in self.leaving.values())


def look(isa: str, options: list[str]) -> dict[str, Implementation]:
    """All implementations, "FAMILY: NAME", with what their code does."""
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": isa}
    environment.pop("ONEDNN_JIT_DUMP", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        done = subprocess.run([PROGRAM, "code", folder, *options], capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            raise AssertionError(f"onednn_stack: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr}")
        codes: dict[bytes, str] = {}
        codes_of: dict[int, set[bytes]] = defaultdict(set)
        for path in folder.glob("*/*.bin"):
            code = path.read_bytes()
            label = re.sub(r"^dnnl_dump_cpu_|\.\d+\.bin$", "", path.name)
            codes[code] = min(codes.get(code, label), label)
            codes_of[int(path.parent.name)].add(code)
        leaving = codes_that_leave(codes, folder)
    result: defaultdict[str, Implementation] = defaultdict(Implementation)
    for line in done.stdout.splitlines():
        number, verdict, family, implementation = re.match(r"(\d+) (\w+) ([^:]+): (.+?): ", line).groups()
        row = result[f"{family}: {implementation}"]
        row.problems += 1
        row.verdicts.add(verdict)
        if instructions := set().union(*(leaving.get(c, set()) for c in codes_of[int(number)])):
            row.leaving[int(number)] = instructions
    return dict(result)


def also_in(rows: dict[str, Implementation], again: dict[str, Implementation]) -> dict[str, Implementation]:
    """The `rows`, with what leaves the stack in `again`, too, which another process has looked at. Code has addresses
    among its constants, and those are other ones there: what a disassembler takes for an instruction of them goes,
    and every instruction stays."""
    for name, row in rows.items():
        both = {number: found & again[name].leaving.get(number, set()) for number, found in row.leaving.items()}
        row.leaving = {number: found for number, found in both.items() if found}
    return rows


def stepped(isa: str, number: int, options: list[str]) -> str:
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": isa}
    return subprocess.run([PROGRAM, "step", str(number), *options], capture_output=True, text=True, env=environment).stdout.strip()


def seen_outside(isa: str, row: Implementation, options: list[str], most: int = 6) -> str:
    """What is seen while its problems run, from the first on that leave the stack."""
    said = ""
    for number in sorted(row.leaving)[:most]:
        said = stepped(isa, number, options)
        if not re.search(r" 0 with the stack pointer", said):
            return said
    return said


class Stack(unittest.TestCase):
    def test_what_leaves_the_stack_is_told(self):
        for instruction in ("mov 0x68(%rsp),%rsp", "mov %rax,%rsp", "lea (%rax,%rcx,1),%rsp", "pop %rsp", "xchg %rax,%rsp", "xchg %rsp,%rax"):
            self.assertTrue(leaves_the_stack(instruction), instruction)
        for instruction in (
            "sub $0x40,%rsp",
            "and $0xfffffffffffff000,%rsp",
            "add %rax,%rsp",
            "mov %rbp,%rsp",
            "lea 0x8(%rsp),%rsp",
            "leave",
            "mov %rsp,%rax",
            "pop %rbp",
            "mov (%rsp),%rax",
            "mov $0xbcfca780,%esp",
        ):
            self.assertFalse(leaves_the_stack(instruction), instruction)

    def test_code_is_told_apart(self):
        stays, leaves = b"\x48\x83\xec\x40\xc3", b"\x48\x89\xc4\xc3"  # sub $0x40,%rsp; mov %rax,%rsp
        with tempfile.TemporaryDirectory() as folder:
            found = codes_that_leave({stays: "one", leaves: "other", stays + b"\x00": "third"}, Path(folder))
        self.assertEqual(found, {leaves: {"mov %rax,%rsp in other"}})

    def test_constants_behind_code_are_no_code(self):
        table = b"\x5c" * 64  # pop %rsp, if it were code
        returns, branches = b"\xc3" + table, b"\x74\x02\xc3\x90" + table + b"\xc3"  # ret; je over it
        with tempfile.TemporaryDirectory() as folder:
            found = codes_that_leave({returns: "one", branches: "other"}, Path(folder))
        self.assertEqual(found, {branches: {"pop %rsp in other"}})

    def test_what_is_made_of_addresses_does_not_last(self):
        first, second = Implementation(), Implementation()
        first.leaving = {1: {"mov %rax,%rsp in a", "pop %rsp in a"}, 2: {"pop %rsp in b"}, 3: {"pop %rsp in c"}}
        second.leaving = {1: {"mov %rax,%rsp in a"}, 3: {"mov %rcx,%rsp in c"}}
        self.assertEqual(also_in({"name": first}, {"name": second})["name"].leaving, {1: {"mov %rax,%rsp in a"}})

    def test_every_implementation_that_lamina_takes_stays_in_the_stack(self):
        for isa in SHORT:
            with self.subTest(isa=isa):
                rows = look(isa, [])
                self.assertGreater(len(rows), 15)
                for _ in range(2):
                    if any(row.leaving and "taken" in row.verdicts for row in rows.values()):
                        rows = also_in(rows, look(isa, []))
                for name, row in rows.items():
                    if row.leaving:
                        self.assertNotIn("taken", row.verdicts, f"{name}: {row.first()}")


def report() -> int:
    status = 0
    for isa in ALL:
        rows = look(isa, ["--all"])
        print(f"== ONEDNN_MAX_CPU_ISA={isa}: {len(rows)} implementations, {sum(r.problems for r in rows.values())} problems")
        for name, row in sorted(rows.items()):
            if not row.leaving:
                continue
            verdict = "/".join(sorted(row.verdicts))
            print(f"{'NOT REFUSED ' if 'taken' in row.verdicts else ''}{verdict}  {name}: {len(row.leaving)} of {row.problems} problems: {row.first()}")
            print(f"    {seen_outside(isa, row, ['--all'])}")
            status |= "taken" in row.verdicts
        clean = sorted(name for name, row in rows.items() if not row.leaving and "other" not in row.verdicts)
        print(f"in the stack: {', '.join(clean)}", flush=True)
    return int(status)


if __name__ == "__main__":
    if not PROGRAM.exists() or not shutil.which("objdump"):
        print(f"skipped: there is no {'objdump (binutils)' if PROGRAM.exists() else PROGRAM}")
        sys.exit(77)
    if sys.argv[1:] == ["--all"]:
        sys.exit(report())
    unittest.main()
