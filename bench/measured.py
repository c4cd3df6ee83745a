"""What kernel_bench measures: an offer a row, with times from a file where they were kept."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
ISAS = ("sse41", "avx2", "avx512")

Counts = list[float]  # of a family: calls, work, bytes


@dataclass
class Row:
    """One offer, measured."""

    problem: str
    op: str
    label: str
    layout: str
    cost: float  # as estimated
    parts: dict[str, Counts]  # what the estimate is made of
    microseconds: float


@dataclass
class Measured:
    """All offers for the problems, with one instruction set."""

    rows: list[Row]
    table: dict[str, dict]  # microseconds of each family's units, here and where rates are 1


def add_arguments(p: argparse.ArgumentParser) -> None:
    """Adds arguments for the problems, the program, the time, and the folder of measurements."""
    p.add_argument(
        "files", nargs="*", type=pathlib.Path, help="files of problems (default: all of bench/problems)"
    )
    p.add_argument("--bench", type=pathlib.Path, default=HERE.parent / "build/release/bin/kernel_bench")
    p.add_argument("--keep", type=pathlib.Path, help="where times are kept, or read from")
    p.add_argument("--seconds", type=float, default=0.03, help="length of one measurement (0.03)")
    p.add_argument("--repetitions", type=int, default=3)


def asked(options: argparse.Namespace, isa: str, file: pathlib.Path, *more: object) -> dict:
    """What kernel_bench writes."""
    command = [options.bench, *options.files, "--max-isa", isa, "--json", file, *more]
    subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL)
    return json.loads(file.read_text())


def key_of(row: dict) -> tuple[str, ...]:
    return tuple(row[name] for name in ("problem", "op", "label", "layout"))


def measured(options: argparse.Namespace, isa: str) -> Measured:
    """Estimates are those of now, times from the kept file where there is one."""
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        file = (options.keep or pathlib.Path(folder)) / f"{isa}.json"
        if not file.exists():
            print(f"measuring {isa} ...", file=sys.stderr)
            asked(options, isa, file, "--seconds", options.seconds, "--repetitions", options.repetitions)
        said = asked(options, isa, pathlib.Path(folder) / "now.json", "--no-run")
        times = {key_of(r): r["microseconds"] for r in json.loads(file.read_text())["rows"]}
        rows = [
            Row(**row | {"microseconds": times[key_of(row)]}) for row in said["rows"] if key_of(row) in times
        ]
        return Measured(rows, {family["family"]: family for family in said["table"]})
