"""What kernel_bench measures: an offer a row, from a file where it was kept."""

import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
ISAS = ("sse41", "avx2", "avx512")


@dataclass
class Row:
    """One offer, measured."""

    problem: str
    op: str
    label: str
    layout: str
    work: float
    bytes: float
    cost: float
    microseconds: float

    @property
    def rows(self) -> int:
        """Rows of a matrix product's left operand."""
        found = re.search(r" a=\w+\[([\d,]+)\]", self.problem)
        sizes = found.group(1).split(",") if found else ["2", "1"]
        return math.prod(int(s) for s in sizes[:-1]) if len(sizes) > 1 else 1

    @property
    def grouped(self) -> bool:
        return " groups=" in self.problem


def add_arguments(p: argparse.ArgumentParser) -> None:
    """Which problems, which program, how long, and where measurements are kept."""
    p.add_argument(
        "files", nargs="*", type=pathlib.Path, help="files of problems (default: all of bench/problems)"
    )
    p.add_argument("--bench", type=pathlib.Path, default=HERE.parent / "build/release/bin/kernel_bench")
    p.add_argument("--keep", type=pathlib.Path, help="where measurements are kept, or read from")
    p.add_argument("--seconds", type=float, default=0.03, help="length of one measurement (0.03)")
    p.add_argument("--repetitions", type=int, default=3)


def measured(options: argparse.Namespace, isa: str) -> list[Row]:
    """What kernel_bench says, from the kept file where there is one."""
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        file = (options.keep or pathlib.Path(folder)) / f"{isa}.json"
        if not file.exists():
            command = [
                options.bench,
                *options.files,
                "--max-isa",
                isa,
                "--seconds",
                options.seconds,
                "--repetitions",
                options.repetitions,
                "--json",
                file,
            ]
            print(f"measuring {isa} ...", file=sys.stderr)
            subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
        names = Row.__dataclass_fields__
        return [
            Row(**{k: v for k, v in row.items() if k in names})
            for row in json.loads(file.read_text())["rows"]
        ]
