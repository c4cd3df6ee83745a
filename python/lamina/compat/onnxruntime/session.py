"""InferenceSession, and what it says about a model."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from lamina import _lamina, _process
from lamina import errors as _errors
from lamina._onnx_header import OnnxHeader, header_of, header_of_file
from lamina.compat.onnxruntime import errors
from lamina.compat.onnxruntime.binding import IOBinding
from lamina.compat.onnxruntime.checks import PROVIDERS, Providers, check_input, provider_rows
from lamina.compat.onnxruntime.options import GraphOptimizationLevel, RunOptions, SessionOptions
from lamina.compat.onnxruntime.profile import Profile
from lamina.compat.onnxruntime.types import type_of
from lamina.compat.onnxruntime.values import OrtValue, array_of
from lamina.compiled import CompiledModel
from lamina.model import load
from lamina.ports import Port


class NodeArg(NamedTuple):
    """An input or output."""

    name: str
    type: str  #: "tensor(float)"
    shape: list[int | str | None]  #: sizes, names of dimensions, None for a size without a name


class ModelMetadata(NamedTuple):
    """What the model's file says about itself."""

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


class Session:
    """What InferenceSession has in common with other sessions of ONNX Runtime, of which there are none here."""


class InferenceSession(Session):
    """A model, ready for any number of inferences in any number of threads: ONNX Runtime's interface on lamina.

    `model` is the lamina.CompiledModel behind it.
    """

    def __init__(
        self,
        path_or_bytes: "str | bytes | os.PathLike[str]",
        sess_options: SessionOptions | None = None,
        providers: Providers | None = None,
        provider_options: Sequence[dict[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        """Reads a model and compiles it.

        Providers are noted, and lamina runs the model whichever they are; options of "LaminaExecutionProvider" are
        lamina's, by their keys. kwargs are ignored. Raises the exceptions of ONNX Runtime: NoSuchFile,
        InvalidProtobuf, InvalidGraph, NotImplemented (operators that lamina does not have), Fail.
        """
        self._model_path: str | None = None
        self._model_bytes: bytes | None = None
        if isinstance(path_or_bytes, (str, os.PathLike)):
            self._model_path = os.fspath(path_or_bytes)
        elif isinstance(path_or_bytes, bytes):
            self._model_bytes = path_or_bytes
        else:
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        options = SessionOptions() if sess_options is None else sess_options
        self._sess_options = options
        if options.optimized_model_filepath:
            raise errors.unavailable("optimized_model_filepath", 'lamina.optimize(model, "out.xml") writes a model')
        self._set_providers(providers, provider_options)
        self._header: OnnxHeader | None = None
        self._identity = _identity_of(self._model_path)
        self._lock = _process.Lock()
        self._variants: dict[tuple[str, ...], CompiledModel] = {}
        self._executor: ThreadPoolExecutor | None = None  # of this process
        _process.tell_forks(self)
        self._profile = Profile(options.profile_file_prefix) if options.enable_profiling else None
        self._model = self._variant(())
        try:
            self._read_header()  # now: the file may go
        except (ValueError, OSError):  # no ONNX
            self._header = OnnxHeader()
        self._input_ports = {port.name: port for port in self._model.inputs}
        self._output_names = [port.name for port in self._model.outputs]
        self._inputs_meta = [self._node_arg(port) for port in self._model.inputs]
        self._outputs_meta = [self._node_arg(port) for port in self._model.outputs]

    @property
    def model(self) -> CompiledModel:
        """The compiled model behind the session."""
        return self._model

    @property
    def _sess(self) -> "InferenceSession":
        """What ONNX Runtime's own class wraps; some packages reach for it."""
        return self

    # -- the model

    def _variant(self, settable: tuple[str, ...]) -> CompiledModel:
        """The model with some of its inputs settable that have a value in it."""
        with self._lock:
            if settable not in self._variants:
                if self._identity != _identity_of(self._model_path):
                    raise errors.Fail.of(f"{self._model_path} was changed since the session was made")
                self._variants[settable] = self._compile(settable)
            return self._variants[settable]

    def _compile(self, settable: Sequence[str]) -> CompiledModel:
        options = self._sess_options
        entries = options.__dict__["_entries"]
        properties = {key.removeprefix("lamina."): value for key, value in entries.items() if key.startswith("lamina.")}
        properties |= self._provider_options.get(PROVIDERS[0], {})
        external = options.__dict__["_external"]
        try:
            return load(
                self._model_path if self._model_bytes is None else self._model_bytes,  # type: ignore[arg-type]
                threads=max(options.intra_op_num_threads, 0),
                disable=["all"] if options.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL else [],
                profile=options.enable_profiling,
                properties=properties,
                settable=settable,
                external_data=external if external and self._model_bytes is not None else None,
            )
        except _errors.Error as error:
            raise self._load_error(error) from error

    def _load_error(self, error: _errors.Error) -> Exception:
        if isinstance(error, _errors.Unsupported):
            return errors.NotImplemented.of(str(error))
        if isinstance(error, (_errors.OutOfMemory, _errors.Internal)):
            return errors.RuntimeException.of(str(error))
        if not isinstance(error, _errors.BadFile):
            return errors.Fail.of(str(error))
        path = self._model_path
        if path is not None and not os.path.exists(path):
            return errors.NoSuchFile.of(f"Load model from {path} failed:Load model {path} failed. File doesn't exist")
        try:
            header = self._read_header()
        except (ValueError, OSError):
            return errors.InvalidProtobuf.of(f"Protobuf parsing failed. {error}")
        if not header.has_graph:
            return errors.InvalidArgument.of(f"No graph was found in the protobuf. {error}")
        return errors.InvalidGraph.of(f"This is an invalid model. {error}")

    def _read_header(self) -> OnnxHeader:
        if self._header is None:
            if self._model_bytes is not None:
                self._header = header_of(self._model_bytes)
            else:
                self._header = header_of_file(self._model_path or "")
        return self._header

    def _overridable(self) -> list[str]:
        return self._read_header().overridable

    def _node_arg(self, port: Port) -> NodeArg:
        sizes = self._sess_options.__dict__["_sizes"]
        shape = [sizes.get(size, size) if isinstance(size, str) else size for size in port.shape or ()]
        return NodeArg(port.name, type_of(port.dtype), shape)

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, without those that have a value in the model."""
        return self._inputs_meta

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        return self._outputs_meta

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs that have a value in the model; a run may give another one."""
        names = self._overridable()
        ports = {port.name: port for port in self._variant(tuple(sorted(names))).inputs} if names else {}
        return [self._node_arg(ports[name]) for name in names if name in ports]

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says about itself."""
        header = self._read_header()
        return ModelMetadata(
            header.producer_name,
            header.graph_name,
            header.domain,
            header.doc_string,
            header.graph_doc_string,
            2**63 - 1 if header.version is None else header.version,
            dict(header.metadata),
        )

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._sess_options

    # -- providers

    def get_providers(self) -> list[str]:
        """The providers that were asked for and are known here, and "CPUExecutionProvider"."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of these, by their names."""
        return {name: dict(self._provider_options.get(name, {})) for name in self._providers}

    def set_providers(self, providers: Providers | None = None, provider_options: Any = None) -> None:
        """Notes other providers. The model is compiled again, with the options of "LaminaExecutionProvider"."""
        self._set_providers(providers, provider_options)
        with self._lock:
            self._variants.clear()
        self._model = self._variant(())

    def _set_providers(self, providers: Providers | None, provider_options: Sequence[dict[Any, Any]] | None) -> None:
        given = providers if providers is not None else list(self._sess_options.__dict__["_providers"])
        rows = provider_rows(given, provider_options) if given else [(name, {}) for name in PROVIDERS]
        self._provider_options = {name: options for name, options in rows if name in PROVIDERS}
        self._providers = [name for name, _ in rows if name in PROVIDERS]
        if PROVIDERS[1] not in self._providers:
            self._providers.append(PROVIDERS[1])

    def disable_fallback(self) -> None:
        """Does nothing: there is no other provider to fall back to."""

    def enable_fallback(self) -> None:
        """Does nothing: there is no other provider to fall back to."""

    # -- inferences

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None
    ) -> list[Any]:
        """One inference: the outputs in the order of `output_names`, or all of them for None.

        input_feed: arrays by name; lists, which become arrays of the input's type; OrtValues. Raises ValueError for a
        missing input, InvalidArgument for one that does not fit or a name that the model does not have, Fail when the
        inference fails or is terminated by `run_options`.
        """
        results = self._results(input_feed, run_options)
        if not output_names:
            return [results[name] for name in self._output_names]
        if isinstance(output_names, str):
            raise TypeError(f'run(): output_names is the text "{output_names}", wanted a list of names')
        for name in output_names:
            if name not in results:
                raise errors.InvalidArgument.of(f"Invalid output name:{name}")
        return [results[name] for name in output_names]

    def _results(self, feed: Mapping[str, Any], options: RunOptions | None) -> dict[str, Any]:
        try:
            if options is None and self._profile is None:
                try:
                    return self._model(feed).asdict()
                except (_errors.BadInput, TypeError):
                    pass  # something that lamina takes only when it is converted, or that needs ONNX Runtime's words
            model, converted = self._model_and_feed(feed)
            if options is not None:
                return run_until_terminated(model, converted, options)
            if self._profile is not None:
                return self._profile.run(model, converted)
            return model(converted).asdict()
        except _errors.Unsupported as error:
            raise errors.NotImplemented.of(str(error)) from error
        except (_errors.OutOfMemory, _errors.Internal) as error:
            raise errors.RuntimeException.of(str(error)) from error
        except _errors.Error as error:
            raise errors.Fail.of(str(error)) from error

    def _model_and_feed(self, feed: Mapping[str, Any]) -> tuple[CompiledModel, dict[str, Any]]:
        """The values as lamina takes them, and the model that has an input for each; or an exception of theirs."""
        given = list(feed.keys())
        missing = [p.name for p in self._input_ports.values() if p.name not in feed and p.value is None]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({given}).")
        others = [name for name in given if name not in self._input_ports]
        overridable = self._overridable() if others else []
        for name in others:
            if name not in overridable:
                raise errors.InvalidArgument.of(f"Invalid input name: {name}")
        model = self._variant(tuple(sorted(others)))
        ports = {port.name: port for port in model.inputs}
        converted = {}
        for name, value in feed.items():
            array = converted[name] = array_of(value, name, ports[name].numpy_dtype)
            if isinstance(array, np.ndarray):
                if ports[name].shape == () and array.size == 1:  # of no dimension, which is "any" in ONNX Runtime
                    array = converted[name] = array.reshape(())
                check_input(array, ports[name])
        return model, converted

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], object],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Begins one inference, and calls callback(outputs, user_data, error) in another thread; no error is ""."""

        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as raised:
                results, error = [], str(raised).split(" : ", 3)[-1] or type(raised).__name__
            try:
                callback(results, user_data, error)
            except Exception:
                sys.excepthook(*sys.exc_info())

        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(max(1, self._model.streams), "lamina.run_async")
        self._executor.submit(work)

    def after_fork_in_child(self) -> None:
        """For the package alone: a child has no threads of the parent's executor."""
        self._executor = None

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """As run(), with OrtValues in and out."""
        return [OrtValue(one) for one in self.run(output_names, input_dict_ort_values, run_options)]

    def io_binding(self) -> IOBinding:
        """A binding for run_with_iobinding()."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """One inference with what is bound. Raises RuntimeError when that does not fit."""
        iobinding._run(run_options)

    def _until_terminated(self, model: CompiledModel, feed: dict[str, Any], options: RunOptions) -> dict[str, Any]:
        return run_until_terminated(model, feed, options)

    def end_profiling(self) -> str:
        """Writes the times of the runs into a file, and gives its name; "" without enable_profiling."""
        return self._profile.write() if self._profile is not None else ""

    def get_profiling_start_time_ns(self) -> int:
        """When the profile began."""
        return self._profile.began if self._profile is not None else 0


def _identity_of(path: str | None) -> tuple[int, ...] | None:
    """By which a file is known to be the same; None: there is no file."""
    if path is None:
        return None
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def run_until_terminated(model: CompiledModel, feed: dict[str, Any], options: RunOptions) -> dict[str, Any]:
    """The outputs by name; Fail when `options` terminate the run before or while it is under way."""
    call = _lamina.Call(model, feed)
    cancel = call.cancel  # one object: each look-up makes another, and they are not equal
    options._begin(cancel)
    try:
        if options.terminate:
            raise errors.Fail.of("Exiting due to terminate flag being set to true.")
        call.run()
        outputs: dict[str, Any] = call.result().asdict()
        return outputs
    except _errors.Canceled as error:
        if options.terminate:
            raise errors.Fail.of("Exiting due to terminate flag being set to true.") from error
        raise
    finally:
        options._end(cancel)
