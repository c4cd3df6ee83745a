"""Compiled models."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lamina import _lamina
from lamina.check import CheckReport, report_of
from lamina.explain import LayerExplanation, StepTime
from lamina.graph import Drawing
from lamina.outputs import Outputs
from lamina.ports import Port, ports_of
from lamina.request import Request

if TYPE_CHECKING:
    import os


class Property(NamedTuple):
    """A setting or a fact, as it is used."""

    key: str
    value: str  #: what is used
    asked: str  #: what was given; empty when nothing was
    reason: str  #: why they differ, or why the machine decided so
    read_only: bool


class CompiledModel(_lamina.CompiledBase):
    """A model made ready for this processor; `load()` makes one. Immutable; for all threads at the same time.

    Calling it runs one inference: `m(x)`, `m(a, b)`, `m({"a": x})` or `m(a=x, b=y)` return Outputs. Inputs are arrays
    of NumPy, or anything with DLPack or the buffer protocol on the CPU (torch tensors), of exactly the port's type. They
    are shared, not copied, if they are contiguous. `out=[y]` gives memory for the outputs, with None for those that need
    none. Variables begin with their initial values. An input that is called `out` is given by position or in a mapping.

    The GIL is released during the inference, and Ctrl-C raises KeyboardInterrupt. Raises BadInput for an array that does
    not fit, which names the port, what was given and the line that mends it.
    """

    _name: str = "model"
    _recipe: tuple[Any, ...] | None = None
    _ports: tuple[tuple[Port, ...], tuple[Port, ...]] | None = None

    if TYPE_CHECKING:

        def __call__(
            self,
            *args: Any,
            out: Sequence[Any | None] | None = None,
            **named: Any,
        ) -> Outputs:
            """One inference."""

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs, in the model's order."""
        return self._both_ports()[0]

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs, in the model's order."""
        return self._both_ports()[1]

    @property
    def variables(self) -> tuple[Port, ...]:
        """Values that a request keeps from run to run; most models have none."""
        return ports_of(self.variable_rows())

    def _both_ports(self) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        if self._ports is None:
            self._ports = ports_of(self.input_rows()), ports_of(self.output_rows())
        return self._ports

    def outputs_for(self, *shapes: Sequence[int]) -> tuple[Port, ...]:
        """The outputs for inputs of these shapes, found without running; sizes that depend on values stay open.

        Raises BadInput when the model cannot run on these shapes.
        """
        return ports_of(self.rows_for_shapes([list(shape) for shape in shapes]))

    def plan(self, *shapes: Sequence[int]) -> None:
        """Plans for inputs of these shapes now, so that the first run with them need not, and save() writes the plan.

        Sizes that only a run finds, of parts that depend on values and of variables without a fixed size, are planned
        in that run. The GIL is released, and Ctrl-C is noticed. Raises BadInput when the model cannot run on these shapes.
        """
        self.plan_shapes([list(shape) for shape in shapes])

    def request(self) -> Request:
        """A new request, to which arrays can be bound. One for each thread."""
        return Request(self)

    async def run_async(self, *args: Any, **named: Any) -> Outputs:
        """Runs one inference in a thread of lamina's, for asyncio; arguments as of a call, without `out`.

        Any number of tasks may wait at the same time; their inferences run in the order of the calls, as many at once as
        the model has streams. A task that is cancelled cancels its inference.
        """
        from lamina._async import run

        return await run(self, args, named)

    @property
    def properties(self) -> list[Property]:
        """All settings and facts, as they are used, with the reasons."""
        return [Property(*row) for row in self.property_rows()]

    def graph(
        self,
        stage: Literal["original", "before", "optimized", "after", "both", "runtime"] = "optimized",
        *inputs: Any,
        format: Literal["svg", "html", "dot"] = "svg",
        columns: int = 0,
        seconds: float = 0.3,
    ) -> Drawing:
        """A drawing of the model: a str, which a notebook shows as a picture.

        stage: "original" or "before" for the graph of the file, "optimized" or "after" for what optimisation made of
        it, "both" for these two side by side, with equal numbers and colours for what belongs together, "runtime" for
        the plan with kernels, layouts and times. inputs: as of a call; "runtime" runs on them for about that many
        `seconds`, at least three times, and the other stages are drawn for their shapes (without inputs: for the sizes
        in the file). format: "svg", "html" (a page with search and zoom) or "dot" (for Graphviz). columns: of long
        graphs, at most; 0: as many as fit a page.

        The GIL is released, and Ctrl-C is noticed. Raises BadOption for another stage or format, BadInput for inputs
        that do not fit, or are missing for "runtime".
        """
        return Drawing(_lamina.draw(self, inputs, stage, format, columns, seconds))

    def check(
        self,
        *inputs: Any,
        expected: Mapping[str, Any] | Sequence[Any] | Any | None = None,
        steps: int = 1,
        bisect: bool = False,
        progress: Callable[[str, float], object] | None = None,
    ) -> CheckReport:
        """Compares one run with the reference interpreter: every rewritten value, every layer's kernel, the outputs.

        inputs: as of a call. expected: the outputs as they were elsewhere on these inputs, such as those of another
        engine: by name, or in the model's order with None for those that are not compared. steps: checks that run of a
        model with variables; the interpreter makes the runs before it. bisect: names the first rewrite that changes the
        results, if any does. progress(stage, done) is called with the GIL; its exceptions end the work.

        It takes far more time than a run: the model is compiled once more, to have its original weights, and the
        interpreter is slow. Custom layers are tried first, each in a process of its own. The GIL is released, and Ctrl-C
        is noticed. Raises BadInput for inputs or expected outputs that do not fit, BadFile for the file of a compiled
        model that does not have the original weights, OverLimit.
        """
        return report_of(*_lamina.check(self, inputs, expected, steps, bisect, progress))

    def explain(
        self,
        *inputs: Any,
        shapes: Sequence[Sequence[int]] | None = None,
        seconds: float | None = None,
    ) -> list[LayerExplanation]:
        """What became of each layer of the file, and why: a row for each, in its order. pandas.DataFrame() takes them.

        inputs: as of a call; they say for which sizes the model is planned, and so do `shapes`, one for each input. With
        neither it is planned for the sizes in the file. seconds: runs the model on the inputs for about that long, at
        least three times, and adds times; None: nothing runs.

        A model that was loaded from a compiled file or a cache is compiled once more for this, since such files do not
        hold what was chosen, and why. The GIL is released, and Ctrl-C is noticed. Raises BadInput for inputs and shapes
        that do not fit, or are missing although sizes are not known.
        """
        wanted = [list(shape) for shape in shapes or ()]
        return [LayerExplanation(*row) for row in _lamina.explain(self, inputs, wanted, seconds)]

    def profile(self, *inputs: Any, seconds: float = 0.3) -> list[StepTime]:
        """How long each step takes: the means of runs on these inputs (as of a call) for about that many seconds.

        The model runs at least three times, after a run that is not counted. The rest of the inference's time passes
        between the steps: the shares do not add up to 1. The GIL is released, and Ctrl-C is noticed. Raises BadInput
        for inputs that do not fit, or are missing.
        """
        return [StepTime(*row) for row in _lamina.profile(self, inputs, seconds)]

    def save(self, path: "str | os.PathLike[str]") -> None:  # type: ignore[override]
        """Writes the compiled model into a file, which `load()` opens without compiling it again.

        Raises BadFile when it cannot be written, or the model's own file has changed.
        """
        import os

        super().save(os.fsencode(path))

    def __reduce__(self) -> tuple[Any, ...]:
        if self._recipe is None:
            raise TypeError(f"{self!r} cannot be pickled: it was read from memory, only models of files can")
        from lamina.model import _restore

        return _restore, self._recipe

    def __repr__(self) -> str:
        from lamina.model import _signature

        fusions = sum(self.fusions.values())
        return (
            f"<CompiledModel {self._name}: {_signature(self.inputs, self.outputs)}, "
            f"{self.threads} thread{'s' * (self.threads != 1)}, {fusions} fusion{'s' * (fusions != 1)}>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: ports, fusions, memory."""
        import html

        rows = [("input", str(port)) for port in self.inputs]
        rows += [("output", str(port)) for port in self.outputs]
        rows.append(("threads", f"{self.threads} of each of {self.streams} streams"))
        rows.append(("weights", f"{self.weight_memory / 2**20:.1f} MiB packed"))
        rows += [("fusion", f"{rule}: {count}") for rule, count in _most(self.fusions)]
        body = "".join(f"<tr><th>{what}</th><td>{html.escape(value)}</td></tr>" for what, value in rows)
        return f"<table><caption>{html.escape(self._name)}</caption>{body}</table>"


def _most(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:20]
