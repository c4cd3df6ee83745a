"""lamina as a backend of the package onnx: its interface onnx.backend.base, on which its own tests run.

    import lamina.backend
    from onnx.backend.test import BackendTest

    globals().update(BackendTest(lamina.backend, __name__).test_cases)

    rep = lamina.backend.prepare(onnx.load("model.onnx"), threads=2)
    (y,) = rep.run([x])

It needs the package onnx. Programs of their own do better with lamina.load(): a backend copies elements below a byte,
takes sequences apart, and compiles a model again for each value of an input that lamina takes only as a constant.
"""

import unittest
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto
from onnx.backend.base import Backend as _Backend
from onnx.backend.base import BackendRep as _BackendRep
from onnx.backend.base import namedtupledict

from lamina import _backend_models as _models
from lamina._packed import PACKED, pack, unpack
from lamina.compiled import CompiledModel
from lamina.errors import BadInput, BadOption, Unsupported
from lamina.model import load

_VARIANTS = 8  #: Compiled variants of a model that are kept: as many as a compiled model keeps plans.


class Refused(Unsupported, unittest.SkipTest):
    """A model that lamina does not run, with the reason: a lamina.Unsupported. ONNX's test runner skips the case."""


class BackendRep(_BackendRep):
    """A model that lamina has prepared; Backend.prepare() makes one. For all threads at the same time."""

    def __init__(self, model: ModelProto, options: Mapping[str, Any]) -> None:
        """Compiles `model` with the options of lamina.load(). Raises Refused when it cannot be run with any inputs."""
        self._model = model
        self._options = dict(options)
        self._inputs = _models.given_inputs(model)
        self._names = [port.name for port in model.graph.output]
        self._variants: OrderedDict[object, CompiledModel] = OrderedDict()
        self._compiled: CompiledModel | None = None
        self._refusal: Unsupported | None = None
        try:
            self._compiled = load(model, **self._options)
        except Unsupported as refusal:
            # Another form of it may be accepted, which is known when the inputs are.
            if not _models.has_sequences(model) and not _models.could_have_constants(model):
                raise Refused(*refusal.args) from None
            self._refusal = refusal

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model: `inputs` in the order of the model's inputs that have no initial value, or by name.

        Gives a named tuple of arrays, and of lists where an output is a sequence. Raises BadInput for inputs that do
        not fit, Refused when lamina does not run the model on them.
        """
        if kwargs:
            raise BadOption(f"run() has no options, {', '.join(kwargs)} given")
        given = self._by_name(inputs)
        if self._compiled is not None:
            results = _run(self._compiled, given)
        elif _models.has_sequences(self._model) or any(isinstance(one, list) for one in given.values()):
            results = self._run_with_elements(given)
        else:
            results = self._run_with_constants(given)
        return namedtupledict("Outputs", self._names)(*(results[name] for name in self._names))

    def _by_name(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, Mapping):
            rows = [(port, inputs[port.name]) for port in self._inputs if port.name in inputs]
            unknown = set(inputs) - {port.name for port in self._inputs}
            if unknown:
                raise BadInput(f'the model has no input "{sorted(unknown)[0]}"')
        else:
            if isinstance(inputs, (np.ndarray, np.generic)):
                inputs = [inputs]
            if len(inputs) > len(self._inputs):
                raise BadInput(f"{len(inputs)} inputs given, the model has {len(self._inputs)}")
            rows = list(zip(self._inputs, inputs, strict=False))
        return {port.name: _value_of(port, value) for port, value in rows if value is not None}

    def _variant(self, key: object, make: Callable[[], ModelProto]) -> CompiledModel:
        """The compiled model of a key; one that is refused gives the reason for which the model itself was."""
        found = self._variants.get(key)
        if found is None:
            try:
                found = load(make(), **self._options)
            except Unsupported as refusal:
                raise Refused(*(self._refusal or refusal).args) from None
            while len(self._variants) >= _VARIANTS:
                self._variants.popitem(last=False)
            self._variants[key] = found
        return found

    def _run_with_constants(self, given: dict[str, Any]) -> dict[str, Any]:
        constants = {name: value for name, value in given.items() if _models.may_be_constant(value)}
        key = tuple((name, value.dtype.str, value.shape, value.tobytes()) for name, value in constants.items())
        compiled = self._variant(key, lambda: _models.with_constants(self._model, constants))
        return _run(compiled, {name: value for name, value in given.items() if name not in constants})

    def _run_with_elements(self, given: dict[str, Any]) -> dict[str, Any]:
        sequences = [port.name for port in self._model.graph.output if _models.sequence_type(port.type)]
        shapes = tuple((name, _types_and_shapes(value)) for name, value in given.items())
        lengths: dict[str, int] | None = None
        for known in range(2 if sequences else 1):
            model, feed = _models.with_elements(self._model, given, lengths)
            key = (shapes, known, tuple((lengths or {}).items()))
            results = _run(self._variant(key, lambda model=model: model), feed)  # type: ignore[misc]
            if known == 0:
                lengths = {name: int(results[f"{name}.length"]) for name in sequences}
        for name in sequences:
            results[name] = [results[f"{name}.{i}"] for i in range((lengths or {})[name])]
        return results


class Backend(_Backend):
    """The backend: `prepare`, `run_model`, `run_node`, `supports_device` and `is_compatible`, also as functions."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether lamina runs the model, as far as can be said without inputs."""
        try:
            cls.prepare(model, device, **kwargs)
        except Unsupported:
            return False
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Compiles a ModelProto (or a path, or bytes) for any number of runs; kwargs are options of lamina.load().

        Raises Refused when lamina does not run it, BadFile when it is damaged, BadOption for another device than CPU.
        """
        if not cls.supports_device(device):
            raise BadOption(f'device "{device}": lamina has only CPU')
        if isinstance(model, BackendRep):
            return model
        if isinstance(model, (bytes, bytearray, memoryview)):
            model = onnx.load_from_string(bytes(model))
        elif not isinstance(model, ModelProto):
            model = onnx.load(model)
        return BackendRep(model, kwargs)

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Compiles a model and runs it once: prepare(...).run(inputs)."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Runs one node on arrays: of the operator set `opset_version`, or of the newest one of the package onnx.

        outputs_info: types and shapes of the outputs, which are inferred without it.
        """
        values = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
        values = [value if isinstance(value, list) else np.asarray(value) for value in values]
        newest = onnx.defs.onnx_opset_version()
        if node.domain:
            newest = onnx.defs.get_schema(node.op_type, domain=node.domain).since_version
        opset = kwargs.pop("opset_version", newest)
        names = [name for name in node.output if name]
        known = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
            for name, (dtype, shape) in zip(names, outputs_info or (), strict=False)
        ]
        return cls.run_model(_models.model_of_node(node, values, opset, known), values, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Only "CPU", also with a number."""
        return device.partition(":")[0] == "CPU"


def _value_of(port: onnx.ValueInfoProto, value: Any) -> Any:
    """An array, or a list of arrays for a sequence; numbers get the type of the port."""
    if _models.sequence_type(port.type) is not None and isinstance(value, (list, tuple)):
        if any(one is None for one in value):
            raise Refused(f'input "{port.name}": an absent element of a sequence')
        return [np.asarray(one) for one in value]
    if isinstance(value, np.ndarray):
        return value
    kind = port.type.tensor_type.elem_type
    if isinstance(value, np.generic) or not kind:
        return np.asarray(value)
    wanted, given = onnx.helper.tensor_dtype_to_np_dtype(kind), np.asarray(value)
    is_real_or_complex, wants_integers = given.dtype.kind in "fc", wanted.kind in "biu"  # numpy's letters
    if given.size and is_real_or_complex and wants_integers:
        raise BadInput(f'input "{port.name}" is {given.dtype}, wanted {wanted}')
    return np.asarray(value, wanted)


def _types_and_shapes(value: Any) -> tuple[Any, ...]:
    return tuple(map(_types_and_shapes, value)) if isinstance(value, list) else (value.dtype.str, value.shape)


def _run(compiled: CompiledModel, given: Mapping[str, Any]) -> dict[str, Any]:
    """One inference, with elements below a byte as NumPy has them."""
    feed = dict(given)
    for port in compiled.inputs:
        if port.dtype in PACKED and port.name in feed:
            feed[port.name] = pack(feed[port.name], port.dtype)
    try:
        outputs = compiled(feed).asdict()
    except Unsupported as refusal:
        raise Refused(*refusal.args) from None
    for i, port in enumerate(compiled.outputs):
        if port.dtype in PACKED:
            outputs[port.name] = unpack(outputs[port.name], port.dtype, _shape_of(compiled, i, given))
    return outputs


def _shape_of(compiled: CompiledModel, output: int, given: Mapping[str, Any]) -> tuple[int, ...]:
    port = compiled.outputs[output]
    for shape in (port.shape, compiled.outputs_for(*(given[one.name].shape for one in compiled.inputs))[output].shape):
        if shape is not None and all(isinstance(size, int) for size in shape):
            return tuple(size for size in shape if isinstance(size, int))
    raise Refused(f'output "{port.name}": {port.dtype} of a shape that depends on values')


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
