"""Instruction sets: nothing compiled for a higher one is reached without its feature bits.

The build's objects are disassembled. Functions of an instruction set stand in its namespace (Highway's N_AVX2 and
N_AVX3; ours, N_VPOPCNTDQ, and N_VNNI and N_AVX_VNNI inside of those) or, templates, have an argument from there; all
others, templates of the standard library in the same units too, are x86-64-v2.

- No function has instructions beyond its namespace: a linker may take any unit's copy of an inline function for all.
- No code names functions of a higher set: only tables do, from which PerIsa takes what the processor has.
- What runs at start-up counts as x86-64-v2.

That the checks find such faults is tested with small planted ones.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LEVELS = {"SSE4": 0, "AVX2": 1, "AVX_VNNI": 2, "AVX3": 3, "VNNI": 4, "VPOPCNTDQ": 5}
NONE = 9  # instructions that no level has
NAMESPACE = re.compile(r"\d+N_(SSE4|AVX2|AVX_VNNI|AVX3|VNNI|VPOPCNTDQ)(?=[A-Z0-9])")

# By mnemonic, what encodings do not tell. tzcnt is missing: older processors run it as bsf, which compilers know.
BEYOND = re.compile(
    r"lzcnt|movbe|aes|pclmul|sha1|sha256|gf2p8|adcx|adox|rdrand|rdseed|vaes|vpclmul|vgf2p8|vpdp(?!busd$)|vpmadd52|vperm(b|i2b|t2b)$"
    r"|vpmultishift|vpsh[lr]d|vp(compress|expand)[bw]$|vpopcnt[bw]$|vpshufbitqmb|vcvtne|vdpbf16|vfm\w+(ph|sh)$|t(ile|dp)"
)
ENCODED = re.compile(r"(?:(?:2e|36|3e|26|64|65|67) )*(c4|c5|62) ")
SYMBOL = re.compile(r"([0-9a-f]{16}) (.{7}) (\S+)\t([0-9a-f]{16})\s+(?:\.hidden |\.protected )?(\S+)$")
FUNCTION = re.compile(r"[0-9a-f]+ <(.+)>:$")
NAMED = re.compile(r"<([^>+]+)(?:\+0x[0-9a-f]+)?>")
RELOCATION = re.compile(r"R_X86_64_(\w+)\t(\S+?)(?:([+-])0x([0-9a-f]+))?(?=\t|$)")


def level_of_name(symbol):
    if symbol.startswith("_GLOBAL__"):  # runs at start-up; compilers name it after any function of the unit
        return 0
    return max((LEVELS[found] for found in NAMESPACE.findall(symbol)), default=0)


def level_of_instruction(code, mnemonic):
    encoded = ENCODED.match(code)
    if BEYOND.match(mnemonic):
        return NONE
    if not encoded:
        return LEVELS["SSE4"]
    if mnemonic in ("vpopcntd", "vpopcntq"):
        return LEVELS["VPOPCNTDQ"]
    if encoded.group(1) == "62" or mnemonic.startswith("k"):
        return LEVELS["VNNI" if mnemonic == "vpdpbusd" else "AVX3"]
    return LEVELS["AVX_VNNI" if mnemonic == "vpdpbusd" else "AVX2"]


class Objects:
    """What was found: faults, and how many functions there are of each level."""

    def __init__(self, paths):
        self.faults, self.functions = [], Counter()
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            for faults, functions in pool.map(look_at, paths):
                self.faults += faults
                self.functions += functions


def look_at(path):
    command = ["objdump", "-tdrw", path]
    lines = iter(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())
    sections = symbols_by_section(lines)
    faults, functions = set(), Counter()
    function, level = "", 0

    def name(target):
        if level_of_name(target) > level:
            faults.add(f"{path.name}: {function} names {target}")

    for line in lines:
        if line.startswith(" "):
            parts = line.split("\t")
            if len(parts) < 3:
                continue
            mnemonic = parts[2].split(" ", 1)[0]
            needed = level_of_instruction(parts[1], mnemonic)
            if needed > level:
                faults.add(f"{path.name}: {function} has {mnemonic}")
            relocations = list(RELOCATION.finditer(line))
            for found in relocations:
                name(target_of(found, sections))
            if not relocations and (found := NAMED.search(parts[2])):  # else the place is not yet known
                name(found.group(1))
        elif found := FUNCTION.match(line):
            function = found.group(1)
            level = level_of_name(function)
            functions[level] += 1
    return sorted(faults), functions


def symbols_by_section(lines):
    sections = {}
    for line in lines:
        if line.startswith("Disassembly of"):
            break
        if (found := SYMBOL.match(line)) and found.group(2)[-1] == "F":
            sections.setdefault(found.group(3), []).append((int(found.group(1), 16), found.group(5)))
    for symbols in sections.values():
        symbols.sort()
    return sections


def target_of(relocation, sections):
    """The function that a relocation names: by itself, or as a place in a section; none: something else."""
    kind, symbol, sign, offset = relocation.groups()
    if symbol not in sections:
        return symbol
    at = int(offset or "0", 16) * (-1 if sign == "-" else 1)
    if "PC32" in kind or "PLT32" in kind:  # counted from behind the operand
        at += 4
    inside = [name for begin, name in sections[symbol] if begin <= at]
    return inside[-1] if inside else ""


def compiled(folder, text):
    source, out = folder / "planted.cc", folder / "planted.o"
    source.write_text(text)
    compiler = os.environ.get("CXX") or shutil.which("c++") or "g++"
    subprocess.run([compiler, "-std=c++20", "-O2", "-fPIC", "-march=x86-64-v2", "-c", source, "-o", out], check=True)
    return Objects([out])


class Planted(unittest.TestCase):
    AVX2 = """
        namespace N_AVX2 { __attribute__((target("avx2"), noinline)) float sum(const float* x, long n) {
          float s = 0; for (long i = 0; i < n; ++i) s += x[i] * x[i]; return s; } }"""

    def faults(self, text):
        with tempfile.TemporaryDirectory() as folder:
            return "\n".join(compiled(Path(folder), text).faults)

    def test_what_is_right(self):
        table = "using F = float (*)(const float*, long); extern F const table[1]; F const table[1] = {N_AVX2::sum};"
        self.assertEqual(self.faults(self.AVX2 + table), "")

    def test_calls_and_addresses(self):
        call = "float all(const float* x) { return N_AVX2::sum(x, 9); }"
        self.assertIn("names _ZN6N_AVX23sum", self.faults(self.AVX2 + call))
        address = "using F = float (*)(const float*, long); F best() { return N_AVX2::sum; }"
        self.assertIn("names _ZN6N_AVX23sum", self.faults(self.AVX2 + address))
        hidden = self.AVX2.replace("namespace N_AVX2 {", "namespace N_AVX2 { namespace {").replace("return s; }", "return s; } }")
        self.assertIn("sum", self.faults(hidden + call))

    def test_inline_functions_of_all(self):
        text = """template <class T> __attribute__((target("avx2"), noinline)) T twice(T x) { return x + x; }
            namespace N_AVX2 { __attribute__((target("avx2"))) double f(double x) { return twice(x); } }"""
        self.assertIn("has vaddsd", self.faults(text))

    def test_too_much_for_its_namespace(self):
        text = """namespace N_AVX2 { __attribute__((target("avx2,lzcnt"))) int f(unsigned x) { return __builtin_clz(x); } }"""
        self.assertIn("has lzcnt", self.faults(text))
        text = """typedef float V __attribute__((vector_size(64)));
            namespace N_AVX2 { __attribute__((target("avx512f"))) void f(V& x) { x += x; } }"""
        self.assertRegex(self.faults(text), "has v(add|mova)ps")

    def test_start_up(self):
        text = self.AVX2 + "extern float x[9]; float y = N_AVX2::sum(x, 9);"
        self.assertIn("names _ZN6N_AVX23sum", self.faults(text))


class Build(unittest.TestCase):
    def test_objects(self):
        build = Path(os.environ["LAMINA_BUILD"])
        objects = Objects(sorted((build / "src").rglob("*.o")))
        print(f"functions by level: {dict(sorted(objects.functions.items()))}", file=sys.stderr)
        for level in LEVELS.values():
            self.assertGreater(objects.functions[level], 0, f"no function of level {level} in {build}/src")
        self.assertEqual(objects.faults[:20], [], f"{len(objects.faults)} faults")


if __name__ == "__main__":
    if not shutil.which("objdump"):
        print("skipped: there is no objdump (Debian's binutils)")
        sys.exit(0)
    unittest.main()
