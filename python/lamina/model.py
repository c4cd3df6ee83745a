"""Models as they were read, and the function that most programs need: load()."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from lamina import _lamina
from lamina._proto import Buffer, ModelProto, ONNXProgram, bytes_of_model
from lamina.compiled import CompiledModel
from lamina.ports import Port, Shape, ports_of, sizes_of

StrPath: TypeAlias = str | os.PathLike[str]
Precision: TypeAlias = Literal["model", "f32", "bf16", "f16"]
Log: TypeAlias = Callable[[str, str], object]
Progress: TypeAlias = Callable[[str, float], object]


def _settings_of_limits(limits: Mapping[str, object] | None) -> dict[str, str]:
    """Limits by their field in lamina::ModelLimits ("memory") or key ("LIMIT_MEMORY"), as key and value."""
    settings = {}
    for name, value in (limits or {}).items():
        key = name.upper()
        if not key.startswith("LIMIT_") and not key.endswith(("_OPERATORS", "_FILES")):
            key = "LIMIT_" + key
        if isinstance(value, (list, tuple, set, frozenset)):
            value = ",".join(str(one) for one in value)
        settings[key] = str(value)
    return settings


class Model(_lamina.ModelBase):
    """A model that was read: ONNX, OpenVINO IR, Caffe, a frozen TensorFlow graph, oneDNN Graph, a compiled model.

    Immutable; all functions may be called from several threads. `inputs`, `outputs` and `variables` are tuples of Port.
    """

    def __init__(
        self,
        model: "StrPath | Buffer | ModelProto | ONNXProgram",
        /,
        *,
        settable: Sequence[str] = (),
        extensions: Sequence[StrPath] = (),
        weights: StrPath | Buffer | None = None,
        external_data: Mapping[str, Buffer] | None = None,
        limits: Mapping[str, object] | None = None,
        input_shapes: Mapping[str, Shape] | None = None,
    ) -> None:
        """Reads a model from a path, from bytes, from an onnx.ModelProto, or from what torch.onnx.export() gives.

        settable: inputs of an ONNX model that have a value in it and are to be inputs nevertheless.
        extensions: libraries of custom layers. weights: the second file of an IR or a Caffe network, as a path if
        `model` is a path, as bytes if it is bytes. external_data: data of an ONNX model in memory, by the location
        that its tensors give. limits: for untrusted models, by the names in lamina::ModelLimits ("memory",
        "run_seconds", "denied_operators", ...). input_shapes: shapes of inputs in place of the file's, by name; a size
        may be None (any) or (least, most): {"image": [1, 3, None, (1, 640)]}.

        The GIL is released, and Ctrl-C is noticed. Raises BadFile when the file is missing or damaged, BadOption for a
        settable input that does not exist, BadInput for shapes that the layers do not take, OverLimit, and Extension for
        a library that fails. A model with operators that lamina does not have can be read; compiling it raises
        Unsupported.
        """
        path, data, second = b"", None, None
        if isinstance(model, (str, os.PathLike)):
            path = os.fsencode(model)
            if weights is not None:
                if not isinstance(weights, (str, os.PathLike)):
                    raise TypeError("weights: bytes given for a model in a file, wanted a path")
                second = os.fsencode(weights)
            if external_data is not None:
                raise TypeError("external_data is for models in memory: those of a file lie beside it")
        else:
            data = bytes_of_model(model)
            if weights is not None:
                if isinstance(weights, (str, os.PathLike)):
                    raise TypeError("weights: a path given for a model in memory, wanted bytes")
                second = bytes(weights)
        self._path = os.fsdecode(path)
        self._reading: dict[str, Any] = {
            "settable": list(settable),
            "extensions": [os.fspath(one) for one in extensions],
            "weights": weights,
            "limits": dict(limits or {}),
            "input_shapes": dict(input_shapes or {}),
        }
        super().__init__(
            path,
            data,
            second,
            {location: bytes(part) for location, part in (external_data or {}).items()},
            self._reading["settable"],
            self._reading["extensions"],
            _settings_of_limits(limits),
            {name: sizes_of(shape) for name, shape in (input_shapes or {}).items()},
        )
        self._stamp = _stamp_of(self._path) if self._path else None

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs, in the model's order."""
        return ports_of(self.input_rows())

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs, in the model's order."""
        return ports_of(self.output_rows())

    @property
    def variables(self) -> tuple[Port, ...]:
        """Values that a request keeps from run to run (ReadValue and Assign of OpenVINO); most models have none."""
        return ports_of(self.variable_rows())

    def outputs_for(self, shapes: Mapping[str, Shape]) -> tuple[Port, ...]:
        """The outputs if inputs have these shapes, by the layers' rules alone; sizes that depend on values stay open.

        Sizes are as for `input_shapes`; an input that is not named keeps its own. Raises BadInput when the layers do not
        take these shapes.
        """
        return ports_of(self.rows_for_shapes({name: sizes_of(shape) for name, shape in shapes.items()}))

    def compile(
        self,
        *,
        threads: int = 0,
        precision: Precision = "model",
        disable: Sequence[str] = (),
        exempt: Sequence[str] = (),
        max_isa: str = "native",
        profile: bool = False,
        cached_plans: int = 8,
        properties: Mapping[str, object] | None = None,
        log: Log | None = None,
        progress: Progress | None = None,
    ) -> CompiledModel:
        """Makes the model ready for this processor.

        threads: of all streams together; 0: as many as the process may use. precision: "model" (the model's own types),
        "f32", or "bf16" where the processor has it. disable: optimisations to leave out, "all" for every one; exempt:
        nodes that no optimisation touches. max_isa: "sse41", "avx2", "avx512" or "native"; it is for the whole process
        and fixed by the first compilation. profile: time every layer. cached_plans: plans kept, one per combination of
        input shapes. properties: options by their keys, as of `lamina run --config` ({"NUM_STREAMS": "2"}).
        log(level, line) and progress(stage, done) are called from any thread that compiles or plans, with the GIL; an
        exception from `progress` ends the work and is raised here, one from `log` goes to sys.unraisablehook.

        The GIL is released, and Ctrl-C is noticed. Raises Unsupported, BadOption, OverLimit.
        """
        options: dict[str, Any] = {
            "threads": threads,
            "precision": precision,
            "disable": list(disable),
            "exempt": list(exempt),
            "max_isa": max_isa,
            "profile": profile,
            "cached_plans": cached_plans,
            "properties": {str(key): _text_of(value) for key, value in (properties or {}).items()},
        }
        compiled = CompiledModel(self, **options, log=log, progress=progress)
        compiled._name = os.path.splitext(os.path.basename(self._path))[0] or "model in memory"
        if self._stamp is not None:
            compiled._recipe = (os.path.abspath(self._path), self._stamp, self._reading, options)
        return compiled

    def __repr__(self) -> str:
        name = os.path.basename(self._path) or "model in memory"
        return f"<Model {name}: {self.format}, {_signature(self.inputs, self.outputs)}>"


def load(
    model: "StrPath | Buffer | ModelProto | ONNXProgram",
    /,
    *,
    threads: int = 0,
    precision: Precision = "model",
    disable: Sequence[str] = (),
    exempt: Sequence[str] = (),
    max_isa: str = "native",
    profile: bool = False,
    cached_plans: int = 8,
    properties: Mapping[str, object] | None = None,
    log: Log | None = None,
    progress: Progress | None = None,
    settable: Sequence[str] = (),
    extensions: Sequence[StrPath] = (),
    weights: StrPath | Buffer | None = None,
    external_data: Mapping[str, Buffer] | None = None,
    limits: Mapping[str, object] | None = None,
    input_shapes: Mapping[str, Shape] | None = None,
) -> CompiledModel:
    """Reads a model and makes it ready for this processor: `Model(model, ...).compile(...)`, which explain the options.

    Raises BadFile, Unsupported (which names the operators), BadOption, OverLimit and Extension.
    """
    read = Model(
        model,
        settable=settable,
        extensions=extensions,
        weights=weights,
        external_data=external_data,
        limits=limits,
        input_shapes=input_shapes,
    )
    return read.compile(
        threads=threads,
        precision=precision,
        disable=disable,
        exempt=exempt,
        max_isa=max_isa,
        profile=profile,
        cached_plans=cached_plans,
        properties=properties,
        log=log,
        progress=progress,
    )


def _text_of(value: object) -> str:
    return ("YES" if value else "NO") if isinstance(value, bool) else str(value)


def _stamp_of(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _signature(inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    return f"{', '.join(map(str, inputs))} -> {', '.join(map(str, outputs))}"


def _restore(path: str, stamp: tuple[int, int], reading: dict[str, Any], options: dict[str, Any]) -> CompiledModel:
    """What pickle calls."""
    from lamina.errors import BadFile

    try:
        now = _stamp_of(path)
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}, but the pickled model was read from it") from None
    if now != stamp:
        raise BadFile(f"{path}: was changed since the model was pickled")
    return load(path, **reading, **options)
