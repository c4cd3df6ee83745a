"""Requests: one inference at a time, with arrays that stay bound."""

from typing import TYPE_CHECKING, NamedTuple

from lamina import _lamina

if TYPE_CHECKING:
    from lamina.compiled import CompiledModel


class LayerTime(NamedTuple):
    """The time of a layer in the last run."""

    name: str  #: of the layer that remained after fusing
    kernel: str  #: "jit_avx512_1x1_f32"
    microseconds: float


class LayerCounter(NamedTuple):
    """Times of a layer of the model's file, or of a reorder that was inserted between two layers."""

    name: str  #: in the file; of a reorder "SOURCE_LAYOUT_LAYOUT_TARGET"
    type: str  #: of the operation
    kernel: str  #: "undef" unless executed
    into: str  #: the layer that does its work; may be empty
    status: str  #: "executed", "optimized_out" or "not_run"
    runs: int  #: number of counted inferences; 0 unless executed
    last_us: float
    average_us: float
    min_us: float
    cpu_us: float  #: average processor time of the stream's thread


class Request(_lamina.RequestBase):
    """Runs one inference at a time of a compiled model, which it keeps alive; `CompiledModel.request()` makes one.

    Arrays are bound once and shared: `set_input`, `set_output`, then `run` as often as you like. Then a run allocates
    nothing. `run`, `start` and the setters are for one thread at a time, a second one gets Busy; `wait`, `cancel` and
    `status` are for any thread.
    """

    def __init__(self, model: "CompiledModel") -> None:
        """A request of `model`."""
        super().__init__(model)

    @property
    def layer_times(self) -> list[LayerTime]:
        """Times of the layers in the last run, if it was timed (`load(..., profile=True)`, `set_profile`)."""
        return [LayerTime(*row) for row in self.layer_time_rows()]

    @property
    def counters(self) -> list[LayerCounter]:
        """Times of the file's layers, then of reorders, over all timed runs. Raises BadOption when timing is off."""
        return [LayerCounter(*row) for row in self.counter_rows()]
