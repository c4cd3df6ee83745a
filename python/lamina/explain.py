"""What became of the layers of a model, and how long its steps take."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LayerExplanation:
    """A layer of the model's file: a row of CompiledModel.explain(). What does not apply is None."""

    layer: str
    type: str  #: of the operation, as the file says
    #: "runs": it is a step of its own; "fused": it runs in the step of the layer `into`; "free": nothing runs, the same
    #: memory has another shape; "removed"; "constant"; "body": in a body of control flow; "variable"; "waiting": not
    #: planned, it comes after a shape that is known at run time only; "untaken": in a branch that is not taken.
    status: str
    into: str | None
    rule: str | None  #: the optimisation that fused or removed it
    reason: str  #: why it has this kernel, or why it is no step of its own
    kernel: str | None
    layout: str | None
    precision: str | None  #: "f32", "u8 -> f32"
    estimate: float | None  #: microseconds on one thread
    microseconds: float | None  #: measured, if there was a run
    share: float | None  #: of the whole inference, from 0 to 1
    history: tuple[str, ...]  #: what optimisations did and refused there, in order


@dataclass(frozen=True)
class StepTime:
    """A step of the inference, in the order of execution: a row of CompiledModel.profile()."""

    layer: str  #: that the step is named after
    operators: str  #: "Convolution+Relu"; "(reorder)" and "(copy)" for what only moves data
    kernel: str
    layout: str
    precision: str
    microseconds: float  #: the mean of the measured runs
    share: float  #: of the whole inference, from 0 to 1
    estimate: float  #: microseconds on one thread
    flops: float
    bytes: float  #: read and written
