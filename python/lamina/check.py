"""What check() finds."""

import json
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True)
class CheckedValue:
    """A value that the model has before and after its rewriting, made by the reference interpreter on both graphs.

    `made_by` are the operators that make it now; `problem` says why they cannot. `within`: there is no fault. `max` and
    `mean` are of the differences, `limit` is what `max` may be; `mismatches` counts integers that differ, and numbers
    that are finite on one side only; `undecided` counts elements beyond the limit by what rounding explains. Numbers
    that are not finite are None.
    """

    name: str
    made_by: str
    within: bool
    max: float | None
    mean: float | None
    limit: float | None
    mismatches: int
    undecided: int
    problem: str


@dataclass(frozen=True)
class CheckedLayer:
    """An output of a layer's kernel on the interpreter's own inputs; figures as of CheckedValue. `note` says why it is
    not compared.
    """

    name: str
    op: str
    kernel: str
    within: bool
    max: float | None
    mean: float | None
    limit: float | None
    mismatches: int
    undecided: int
    note: str


@dataclass(frozen=True)
class RankingAgreement:
    """How often the best classes agree: in how many of the rows the best one is the same (`top1`), or is among the
    other side's five best (`top5`).
    """

    rows: int
    top1: int
    top5: int


@dataclass(frozen=True)
class StoredAgreement:
    """An output against the expected one. Signal to noise is in decibel, None where both are the same; `at` is the
    place of the largest error. What must hold at least or at most is 0 where nothing is asked for. `score_loss` is for
    indices that were chosen by scores: how much worse the score at one is than the best for its place. `fault` says
    what is wrong; it is empty if nothing is.
    """

    snr_db: float | None
    wanted_snr_db: float | None
    cosine: float | None
    largest_error: float | None
    allowed_error: float | None
    at: list[int]
    mismatches: int
    count: int
    fault: str
    score_loss: float | None
    allowed_score_loss: float | None
    ranking: RankingAgreement | None


@dataclass(frozen=True)
class CheckedOutput:
    """A whole output; figures as of CheckedValue. `against`: "interpreter", "interpreter with bf16", "layers one by one"
    or "stored output" (the expected one, with `agreement`). `note` says why it is not compared.
    """

    name: str
    against: str
    within: bool
    max: float | None
    mean: float | None
    limit: float | None
    mismatches: int
    undecided: int
    note: str
    agreement: StoredAgreement | None


@dataclass(frozen=True)
class PrecisionDrift:
    """How far an output with bf16 is from that in f32, which is not judged. `largest` is the output's largest element."""

    name: str
    against: str
    max: float | None
    mean: float | None
    largest: float | None
    mismatches: int


@dataclass(frozen=True)
class BisectedRewrite:
    """The first of `total` rewrites that changes the results, and a value that it changes."""

    number: int
    total: int
    value: str
    rewrite: str


@dataclass(frozen=True)
class CustomLayerTrial:
    """A trial of a custom layer, in a process of its own. `problem` says what is wrong, `note` what was not tried."""

    node: str
    op: str
    tried: str
    within: bool
    skipped: bool
    problem: str
    note: str


@dataclass(frozen=True)
class CheckReport:
    """What CompiledModel.check() found. `clean`: nothing is wrong. `layers`, `values` and the like are lists of
    dataclasses, which pandas takes. `bisect` is None if it was not asked for or no rewrite changes the results,
    "planning" if only the planning after them does. If a custom layer failed its trials (`extensions`), nothing else
    was done. `lines` is what the command prints.
    """

    model: str
    clean: bool
    layers: list[CheckedLayer]
    values: list[CheckedValue]
    outputs: list[CheckedOutput]
    drifts: list[PrecisionDrift]
    extensions: list[CustomLayerTrial]
    precision: str
    bisect: BisectedRewrite | Literal["planning"] | None
    lines: list[str]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        return f"<CheckReport {self.lines[-1]}>"


def report_of(document: str, lines: list[str]) -> CheckReport:
    """The report of which the library gives JSON."""
    found = json.loads(document)
    bisect = found.get("bisect")
    return CheckReport(
        model=found["model"],
        clean=found["clean"],
        layers=_rows(CheckedLayer, found.get("layers")),
        values=_rows(CheckedValue, found.get("rewriting")),
        outputs=[_output(row) for row in found.get("outputs", ())],
        drifts=_rows(PrecisionDrift, found.get("drift")),
        extensions=_rows(CustomLayerTrial, found["extensions"]),
        precision=found.get("precision", ""),
        bisect=BisectedRewrite(**bisect) if isinstance(bisect, dict) else bisect,
        lines=lines,
    )


def _row(kind: type[Row], row: dict[str, Any]) -> Row:
    return kind(**{field.name: row.get(field.name) for field in fields(kind)})  # type: ignore[arg-type]


def _rows(kind: type[Row], rows: list[dict[str, Any]] | None) -> list[Row]:
    return [_row(kind, row) for row in rows or ()]


def _output(row: dict[str, Any]) -> CheckedOutput:
    agreement = row.get("agreement")
    if agreement is not None:
        ranking = agreement.get("ranking")
        agreement = _row(StoredAgreement, {**agreement, "ranking": ranking and _row(RankingAgreement, ranking)})
    return _row(CheckedOutput, {**row, "agreement": agreement})
