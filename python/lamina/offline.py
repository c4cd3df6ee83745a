"""From a model to the files of another one: optimize() and quantize()."""

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from lamina import _lamina
from lamina._proto import Buffer, ModelProto, ONNXProgram
from lamina.model import Model, Progress, StrPath, _settings_of_limits, _text_of
from lamina.offline_reports import (
    GraphFigures,
    OptimizeReport,
    QuantizedLayer,
    QuantizedOutput,
    QuantizeReport,
)
from lamina.ports import Shape, sizes_of

#: Numbers for each channel: of the only input or of all in their order, or of inputs by name.
ChannelValues: TypeAlias = Sequence[float] | Mapping[str, Sequence[float]] | str
AnyModel: TypeAlias = StrPath | Buffer | ModelProto | ONNXProgram | Model


class InputCut(NamedTuple):
    """A place where the network is to begin, or that becomes a constant: for optimize()."""

    #: Of a layer or tensor; "NAME:PORT" is an output of a layer, "PORT:NAME" what it reads by an input.
    name: str
    shape: Shape | None = None
    #: The type of the input that is written ("u8"); None: the model's own.
    dtype: str | None = None
    #: What it is frozen to: a number, a bool, or an array with as many numbers as the input has elements.
    value: object | None = None


def optimize(
    model: AnyModel,
    xml: StrPath,
    /,
    *,
    input: Sequence[InputCut | str] | str = (),
    output: Sequence[str] | str = (),
    freeze_placeholder_with_value: Mapping[str, object] | str = "",
    input_shape: Sequence[Shape] | str = (),
    shape: Mapping[str, Shape] | None = None,
    batch: int | None = None,
    layout: Mapping[str, str] | str = "",
    mean_values: ChannelValues = (),
    scale_values: ChannelValues = (),
    scale: float | None = None,
    reverse_input_channels: bool = False,
    mean_file: StrPath | None = None,
    mean_file_offsets: tuple[int, int] | None = None,
    disable_fusing: bool = False,
    disable_gfusing: bool = False,
    disable_resnet_optimization: bool = False,
    disable_weights_compression: bool = False,
    disable: Sequence[str] = (),
    exempt: Sequence[str] = (),
    finegrain_fusing: Sequence[str] = (),
    model_name: str = "",
    ir_version: Literal[10, 11] = 11,
    compress_to_fp16: bool | None = None,
    rt_info: Mapping[str, str] | None = None,
    page: bool = False,
    settable: Sequence[str] = (),
    extensions: Sequence[StrPath] = (),
    weights: StrPath | None = None,
    limits: Mapping[str, object] | None = None,
    progress: Progress | None = None,
) -> OptimizeReport:
    """Writes a model of any format as an optimised OpenVINO IR: `xml`, which ends with .xml, and a .bin beside it.

    model: a path, bytes, an onnx.ModelProto, or a lamina.Model (which was read with its own settable, extensions,
    weights and limits). Options have the names of OpenVINO's Model Optimizer, and take its texts, too:

    input: where the network begins, as InputCuts or names, or "conv2[1,8,4,4]{f16}"; output: where it ends.
    freeze_placeholder_with_value: inputs that become constants, {"training": False}. input_shape: shapes of the inputs in
    their order, shape: by name; a size may be None or (least, most). batch: of all inputs. layout: {"data": "nhwc->nchw"}.
    mean_values are subtracted, scale_values and scale divide; mean_file is Caffe's image of means, and
    mean_file_offsets x and y of its window. disable: optimisations to leave out. exempt: nodes that stay, by name or
    expression; finegrain_fusing: by expressions for a part of the name. compress_to_fp16: None keeps f16 numbers that
    the model has. page: makes OptimizeReport.page. progress(stage, done) is called with done from 0 to 1.

    Files are written completely or not at all, and the model is never overwritten. The GIL is released, and Ctrl-C is
    noticed. Raises BadFile, BadInput, BadOption, Unsupported, OverLimit; errors that the Model Optimizer has a question
    for in its FAQ have its number in their attribute `question`.
    """
    texts: dict[str, str] = {}
    options: dict[str, Any] = {}
    for name, value in (
        ("input", input),
        ("output", output),
        ("freeze_placeholder_with_value", freeze_placeholder_with_value),
        ("input_shape", input_shape),
        ("layout", layout),
        ("mean_values", mean_values),
        ("scale_values", scale_values),
    ):
        if isinstance(value, str):
            if value:
                texts[name] = value
        elif len(value):
            options[name] = _TYPED[name](value)
    reading: dict[str, Any] = {}
    if settable:
        reading["settable"] = list(settable)
    if extensions:
        reading["extensions"] = [os.fspath(one) for one in extensions]
    if limits:
        reading["limits"] = limits
    if weights is not None:
        reading["weights"] = weights
    read, path = _model_to_read(model, reading)
    if read is None:
        options.update(reading)
        if limits:
            options["limits"] = _settings_of_limits(limits)
        if weights is not None:
            options["weights"] = os.fsencode(weights)
    options.update(
        (name, value)
        for name, value in {
            "shape": {key: sizes_of(one) for key, one in (shape or {}).items()},
            "batch": batch,
            "scale": scale,
            "mean_file": None if mean_file is None else os.fsencode(mean_file),
            "mean_file_offsets": mean_file_offsets,
            "compress_to_fp16": compress_to_fp16,
        }.items()
        if value is not None
    )
    options |= {
        "reverse_input_channels": reverse_input_channels,
        "disable_fusing": disable_fusing,
        "disable_gfusing": disable_gfusing,
        "disable_resnet_optimization": disable_resnet_optimization,
        "disable_weights_compression": disable_weights_compression,
        "disable": list(disable),
        "exempt": list(exempt),
        "finegrain_fusing": list(finegrain_fusing),
        "model_name": model_name,
        "ir_version": ir_version,
        "rt_info": dict(rt_info or {}),
        "page": page,
    }
    text, html, reading_warnings, writing_warnings = _lamina.optimize(
        read, path, os.fsencode(xml), texts, options, progress
    )
    document = json.loads(text)
    document["ir_version"] = document.pop("version")
    for name in ("before", "after"):
        figures = document[name]
        figures["complete"] = figures.pop("flops_complete")
        figures["for_batch_1"] = figures.pop("flops_of_one")
        document[name] = GraphFigures(**figures)
    return OptimizeReport(
        **document, page=html, reading_warnings=reading_warnings, writing_warnings=writing_warnings
    )


def quantize(
    model: AnyModel,
    data: Iterable[Any],
    output: StrPath,
    /,
    *,
    samples: int = 128,
    held_out: int = 32,
    calibration: Literal["auto", "min-max", "percentile", "entropy", "mse"] = "auto",
    percentile: float = 99.99,
    symmetric_activations: bool = False,
    per_channel: bool = True,
    weight_bits: Literal[7, 8] = 8,
    exclude: Sequence[str] = (),
    exclude_types: Sequence[str] = (),
    equalize: bool | None = None,
    correct_bias: bool = True,
    max_drop: float | None = None,
    shape: Mapping[str, Sequence[int]] | None = None,
    threads: int = 0,
    properties: Mapping[str, object] | None = None,
    progress: Callable[[int], object] | None = None,
) -> QuantizeReport:
    """Quantises an f32 model to 8 bits by samples of its inputs, and writes `output`: FILE.onnx (of ONNX models) with
    QuantizeLinear and DequantizeLinear, or FILE.xml, an IR with FakeQuantize.

    model: a path, bytes, an onnx.ModelProto, or a lamina.Model. data: any iterable, a generator or a DataLoader too: each
    item is a sample, as a dict of arrays by input, a tuple or list of arrays in the order of the inputs, or one array.
    The first `samples` items are used for calibration, the next `held_out` for measuring the drift (without any, those of
    the calibration); arrays are copied, and further items are not asked for.

    calibration: how ranges are chosen; "auto": min-max or mse, whichever brings the outputs nearer to f32. percentile: for
    that method. symmetric_activations: i8 without zero points. per_channel: a scale of weights for each output channel.
    weight_bits: 7 for engines whose 16-bit sums saturate. exclude, exclude_types: layers and operators that stay f32.
    equalize: whether channels are scaled between layers; None: if it helps. max_drop: largest relative error of an output;
    layers that harm most stay f32 until it holds. shape: of inputs of the IR. threads, properties: of the runs.
    progress(n) is called after each n further steps, as `tqdm.update` takes them; a step is a run on a sample.

    The file is written completely or not at all, and the model is never overwritten. The GIL is released during the work,
    and Ctrl-C is noticed. Exceptions of `data` and `progress` are raised as they are. Raises BadInput for samples that do
    not fit, BadFile, BadOption, Unsupported (quantised already, nothing to quantise, max_drop out of reach), OverLimit.
    """
    if not isinstance(model, Model):
        model = Model(model)
    if samples < 1 or held_out < 0:
        raise ValueError(f"samples {samples}, held_out {held_out}: wanted numbers from 1 and from 0 on")
    options: dict[str, Any] = {
        "samples": samples,
        "held_out": held_out,
        "percentile": percentile,
        "symmetric_activations": symmetric_activations,
        "per_channel": per_channel,
        "weight_bits": weight_bits,
        "exclude": list(exclude),
        "exclude_types": list(exclude_types),
        "correct_bias": correct_bias,
        "shape": [(name, list(sizes)) for name, sizes in (shape or {}).items()],
        "threads": threads,
        "properties": {str(key): _text_of(value) for key, value in (properties or {}).items()},
    }
    if calibration != "auto":
        options["calibration"] = calibration
    if equalize is not None:
        options["equalize"] = equalize
    if max_drop is not None:
        options["max_drop"] = max_drop
    text, html, lines, warnings = _lamina.quantize(model, data, os.fsencode(output), options, progress)
    document = json.loads(text)
    del document["notes"]
    unknown = dict.fromkeys(field.name for field in fields(QuantizedLayer))
    document["layers"] = [QuantizedLayer(**(unknown | row)) for row in document["layers"]]
    document["outputs"] = [QuantizedOutput(**row) for row in document["outputs"]]
    return QuantizeReport(**document, warnings=warnings, lines=lines, html=html)


def _model_to_read(model: AnyModel, reading: Mapping[str, Any]) -> tuple[Model | None, bytes]:
    """A model that is read already, or the path of one that is to be read."""
    if isinstance(model, (str, os.PathLike)):
        return None, os.fsencode(model)
    if isinstance(model, Model):
        if reading:
            raise TypeError(f"{', '.join(reading)}: wanted without a lamina.Model, which was read with its own")
        return model, b""
    return Model(model, **reading), b""


def _text_of_value(value: object) -> str:
    """A value that something is frozen to, as the Model Optimizer has it."""
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    numbers = [str(one) for one in array.ravel().tolist()]
    return f"[{' '.join(numbers)}]" if array.ndim else numbers[0]


def _cuts(cuts: Sequence[InputCut | str]) -> list[tuple[str, list[tuple[int, int]] | None, str, str | None]]:
    rows = []
    for cut in cuts:
        name, shape, dtype, value = InputCut(cut) if isinstance(cut, str) else InputCut(*cut)
        rows.append(
            (
                name,
                None if shape is None else sizes_of(shape),
                dtype or "",
                None if value is None else _text_of_value(value),
            )
        )
    return rows


def _channel_values(values: Sequence[float] | Mapping[str, Sequence[float]]) -> list[tuple[str, list[float]]]:
    rows = values.items() if isinstance(values, Mapping) else [("", values)]
    out = [(name, [float(one) for one in numbers]) for name, numbers in rows]
    if not all(math.isfinite(one) for _, numbers in out for one in numbers):
        raise ValueError("means and scales: wanted finite numbers")
    return out


def _layouts(layouts: Mapping[str, str]) -> list[tuple[str, str, str]]:
    out = []
    for name, text in layouts.items():
        source, _, target = text.partition("->")
        out.append((name, source.strip(), target.strip()))
    return out


_TYPED: dict[str, Callable[[Any], object]] = {
    "input": _cuts,
    "output": list,
    "freeze_placeholder_with_value": lambda values: _cuts(
        [InputCut(name, value=value) for name, value in values.items()]
    ),
    "input_shape": lambda shapes: [sizes_of(shape) for shape in shapes],
    "layout": _layouts,
    "mean_values": _channel_values,
    "scale_values": _channel_values,
}
