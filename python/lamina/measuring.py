"""Measurements of models: benchmark()."""

import json
import time
from collections.abc import Sequence
from typing import Any, Literal

from lamina import _lamina
from lamina.compiled import CompiledModel
from lamina.model import Model, Progress
from lamina.offline import AnyModel
from lamina.request import LayerCounter


def benchmark(
    model: CompiledModel | AnyModel,
    inputs: Any = None,
    /,
    *,
    groups: Sequence[Any] = (),
    batch: int | Sequence[int] = 1,
    seconds: float | None = None,
    iterations: int = 0,
    requests: int = 0,
    api: Literal["sync", "async"] | None = None,
    copy_inputs: bool = False,
    warm_up: bool = True,
    frames_per_second: float = 0,
    percentile: int = 50,
    layers: bool = False,
    counters: bool = False,
    trace: bool = False,
    runtime_graph: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Measures latency, throughput and memory of a model, as `lamina benchmark` does; returns its JSON as a dict.

    model: a CompiledModel, or what load() takes; then the time and memory of loading are measured, too, and further
    keyword arguments are those of load(). inputs: an array, a tuple or list of arrays in the model's order, or a
    mapping by name; None: random values, the same ones each time. groups: several of these, which may have other
    shapes and run in turn, in the place of inputs. batch: frames of one inference (of each group), for throughput.

    seconds: how long to measure, by default 3; iterations: how many inferences, with both until both are reached.
    requests: that are in flight at the same time; 0: as many as keep all streams busy. api: "sync" for one inference
    after another, "async" for requests that are started again when they end; by default "sync" for one request, else
    "async". copy_inputs: inputs are copied in before each inference. warm_up: first inferences are not measured.
    frames_per_second: the most that are started; 0: no limit. percentile: a further one of the latencies.
    progress(stage, done) is called with done from 0 to 1; its exceptions end the work and are raised here.

    The dict has "latency_ms" (min, median, mean, p90, p99, max), "throughput_fps", "count", "load_ms",
    "first_inference_ms", "memory", "threads", "streams", "requests", "properties" and more. layers adds "layers",
    "kernels", "profile" and "machine": times, rates, and shares of the machine's limits. counters adds "counters":
    for each request a list of LayerCounter. trace adds "trace", a text for Perfetto; runtime_graph adds
    "runtime_graph", an OpenVINO runtime graph (XML). For a CompiledModel load_ms is what the model counted itself.

    The GIL is released, and Ctrl-C ends the measurement. Raises BadInput for inputs that do not fit, and for sizes
    that nothing says; BadOption; and what load() raises.
    """
    if inputs is not None and len(groups) > 0:
        raise TypeError("inputs and groups given, wanted one of them")
    chosen = [_arguments(one) for one in groups] or [_arguments(inputs)]
    batches = [batch] * len(chosen) if isinstance(batch, int) else list(batch)
    if len(batches) != len(chosen):
        raise TypeError(f"{len(batches)} batches given, wanted one for each of {len(chosen)} groups")
    loading = [0.0, 0.0, 0.0]
    if isinstance(model, CompiledModel):
        if options:
            raise TypeError(f"{next(iter(options))}: is an option of load(), and the model is compiled already")
        compiled = model
    else:
        compiled, loading = _loaded(model, progress, options)
    wanted = {"layers": layers, "counters": counters, "trace": trace, "runtime_graph": runtime_graph}
    document, tables, events, graph = _lamina.benchmark(
        compiled,
        chosen,
        batches,
        seconds=seconds,
        iterations=iterations,
        requests=requests,
        api=api or "",
        copy_inputs=copy_inputs,
        warm_up=warm_up,
        frames_per_second=frames_per_second,
        percentile=percentile,
        records=[name for name, on in wanted.items() if on],
        progress=progress,
        load=loading,
    )
    result: dict[str, Any] = json.loads(document)
    if counters:
        result["counters"] = [[LayerCounter(*row) for row in table] for table in tables]
    if trace:
        result["trace"] = events
    if runtime_graph:
        result["runtime_graph"] = graph
    return result


def _loaded(model: Any, progress: Progress | None, options: dict[str, Any]) -> tuple[CompiledModel, list[float]]:
    """The compiled model, and the milliseconds of reading and compiling, and MiB in memory before."""
    before = _resident_mib()
    began = time.perf_counter()
    if isinstance(model, Model):
        compiled = model.compile(progress=progress, **options)
        return compiled, [0.0, 1e3 * (time.perf_counter() - began), before]
    reading = {name: options.pop(name) for name in _READING if name in options}
    read = Model(model, **reading)
    middle = time.perf_counter()
    compiled = read.compile(progress=progress, **options)
    return compiled, [1e3 * (middle - began), 1e3 * (time.perf_counter() - middle), before]


_READING = ("settable", "extensions", "weights", "external_data", "limits")


def _arguments(inputs: Any) -> tuple[Any, ...]:
    """As of a call of the model; an empty tuple: values are made up."""
    if inputs is None:
        return ()
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def _resident_mib() -> float:
    try:
        with open("/proc/self/status") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0
