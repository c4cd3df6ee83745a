"""Arrays that stay bound to a session's inputs and outputs."""

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lamina.compat.onnxruntime.types import dtype_of_number
from lamina.compat.onnxruntime.values import Array, OrtValue, OrtValueVector, check_device
from lamina.errors import Error

if TYPE_CHECKING:
    from lamina.compat.onnxruntime.options import RunOptions
    from lamina.compat.onnxruntime.session import InferenceSession


class IOBinding:
    """Inputs and outputs of a session, for run_with_iobinding(). One thread at a time."""

    def __init__(self, session: "InferenceSession") -> None:
        """A binding without inputs and outputs."""
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Array | None] = {}
        self._results: list[OrtValue] = []

    @property
    def _iobinding(self) -> "IOBinding":
        """What ONNX Runtime's own class wraps; some packages reach for it."""
        return self

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Binds an array, which is shared: later changes of its elements are seen by later runs."""
        self._inputs[self._input(name)] = arr_on_cpu

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Binds memory by its address; it has to stay as long as it is bound."""
        check_device(device_type)
        self._inputs[self._input(name)] = _array_at(buffer_ptr, element_type, shape)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a tensor."""
        self._inputs[self._input(name)] = ortvalue

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Asks for an output: in new memory of each run, or at an address, which has to stay as long as it is bound."""
        check_device(device_type)
        if buffer_ptr is None:
            self._outputs[name] = None
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        self._outputs[name] = _array_at(buffer_ptr, element_type, shape)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Asks for an output in the memory of a tensor."""
        self._outputs[name] = ortvalue.numpy()

    def synchronize_inputs(self) -> None:
        """Does nothing: there is only the CPU."""

    def synchronize_outputs(self) -> None:
        """Does nothing: there is only the CPU."""

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return list(self._results)

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        """The outputs of the last run, in the order in which they were bound."""
        return OrtValueVector(self._results)

    def copy_outputs_to_cpu(self) -> list[Array]:
        """The outputs of the last run as arrays, which share the tensors' memory."""
        return [value.numpy() for value in self._results]

    def clear_binding_inputs(self) -> None:
        """Lets go of the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Lets go of the outputs, and of the results of the last run."""
        self._outputs.clear()
        self._results = []

    def _input(self, name: str) -> str:
        if name not in self._session._input_ports and name not in self._session._overridable():
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list")
        return name

    def _run(self, options: "RunOptions | None") -> None:
        if not self._outputs:
            raise RuntimeError("Error in execution: At least one output should be requested.")
        order = [port.name for port in self._session._model.outputs]
        for name in self._outputs:
            if name not in order:
                raise RuntimeError(f"Error in execution: Invalid output name: {name}")
        try:
            model, feed = self._session._model_and_feed(self._inputs)
            if options is None:
                results = model(feed, out=[self._outputs.get(name) for name in order]).asdict()
            else:
                results = self._session._until_terminated(model, feed, options)
                for name, array in self._outputs.items():
                    if array is not None:
                        np.copyto(array, results[name], casting="no")
        except Error as error:
            raise RuntimeError(f"Error in execution: {error}") from error
        except Exception as error:
            raise RuntimeError(f"Error in execution: {str(error).split(' : ', 3)[-1]}") from error
        self._results = [OrtValue(results[name] if array is None else array) for name, array in self._outputs.items()]


def _array_at(address: int, element_type: Any, shape: Sequence[int]) -> Array:
    """An array of foreign memory."""
    dtype = dtype_of_number(element_type) if isinstance(element_type, int) else np.dtype(element_type)
    sizes = tuple(int(size) for size in shape)
    count = int(np.prod(sizes, dtype=np.int64))
    if not count:
        return np.empty(sizes, dtype)
    memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(int(address))
    array: Array = np.frombuffer(memoryview(memory), dtype, count).reshape(sizes)
    return array
