"""What optimize() and quantize() did."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GraphFigures:
    """What a graph amounts to. `complete` is false if some sizes are not known, `for_batch_1` true if only the batch
    is not known and was taken for 1.
    """

    operators: int
    multiply_adds: float
    flops: float
    complete: bool
    for_batch_1: bool


@dataclass(frozen=True)
class OptimizeReport:
    """What optimize() did. `rules` says how often each optimisation fired. Warnings of the conversion, about the model's
    files, and about the IR are in lists of their own. `page` is HTML with drawings of each rewrite, if it was asked for.
    """

    model: str
    format: str
    xml: str
    bin: str
    ir_version: int
    compressed_to_fp16: bool
    keeps_halves: bool
    layers: int
    constants: int
    shared_constants: int
    xml_bytes: int
    bin_bytes: int
    rewrites: int
    rules: dict[str, int]
    before: GraphFigures
    after: GraphFigures
    unused_inputs: list[str]
    dropped_inputs: list[str]
    exempt: list[str]
    notes: list[str]
    warnings: list[str]
    reading_warnings: list[str]
    writing_warnings: list[str]
    seconds: float
    page: str


@dataclass(frozen=True)
class QuantizedLayer:
    """A convolution or matrix product. `reason` says why it stays f32; it is None for a layer that is quantised.
    Signal to noise is in decibel, and None where nothing differs or it is not known.
    """

    name: str
    type: str
    precision: str
    sqnr_db: float | None
    reason: str | None
    weights_sqnr_db: float | None
    input_type: str | None
    input_scale: float | None
    input_zero_point: int | None


@dataclass(frozen=True)
class QuantizedOutput:
    """How far an output is from that of the f32 model: signal to noise in decibel (None: nothing differs), relative
    error, and the absolute differences.
    """

    name: str
    sqnr_db: float | None
    relative: float | None
    max: float
    mean: float
    not_comparable: int


@dataclass(frozen=True)
class QuantizeReport:
    """What quantize() did. `lines` is what the command prints; `html` is a page, which notebooks show."""

    model: str
    output: str
    bytes_before: int
    bytes: int
    settings: str
    samples: int
    measured_with: int
    held_out: bool
    quantised_layers: int
    quantised_values: int
    normalisations_folded: int
    pairs_equalised: int
    evaluations: int
    others_in_f32: list[str]
    outputs: list[QuantizedOutput]
    layers: list[QuantizedLayer]
    warnings: list[str]
    lines: list[str]
    html: str

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        quantised = f"{self.quantised_layers} of {len(self.layers)} layers"
        return f"<QuantizeReport {self.output}: {quantised}, {self.bytes} bytes>"

    def _repr_html_(self) -> str:
        return self.html
