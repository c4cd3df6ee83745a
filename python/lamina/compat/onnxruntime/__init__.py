"""The interface of ONNX Runtime, on lamina: for programs and packages that call ONNX Runtime.

    import lamina.compat.onnxruntime as onnxruntime

    session = onnxruntime.InferenceSession("model.onnx")
    (scores,) = session.run(None, {"data": x})

For packages that import onnxruntime themselves, `install()` puts this one in its place, if it is called before they are
imported. Nothing else does. docs/python.md says what is there and what is not.
"""

import importlib
import sys
from typing import Any

from lamina import _lamina
from lamina.compat.onnxruntime.binding import IOBinding
from lamina.compat.onnxruntime.checks import PROVIDERS
from lamina.compat.onnxruntime.errors import unavailable as _unavailable
from lamina.compat.onnxruntime.options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtAllocatorType,
    OrtMemType,
    RunOptions,
    SessionOptions,
)
from lamina.compat.onnxruntime.session import InferenceSession, ModelMetadata, NodeArg
from lamina.compat.onnxruntime.values import OrtDevice, OrtValue, OrtValueVector, SparseTensor
from lamina.errors import BadCall

#: Of the ONNX Runtime whose interface this is; packages compare it with what they need.
__version__ = "1.31.1"

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtDevice",
    "OrtMemType",
    "OrtValue",
    "OrtValueVector",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "SparseTensor",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_ep_devices",
    "get_version_string",
    "has_collective_ops",
    "install",
    "preload_dlls",
    "print_debug_info",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
    "uninstall",
]

SessionIOBinding = IOBinding

_MODULES = (
    "",
    ".capi",
    ".capi._pybind_state",
    ".capi.onnxruntime_inference_collection",
    ".capi.onnxruntime_pybind11_state",
)
_INSTEAD = {
    "AdapterFormat": "merge adapters into the model's weights",
    "LoraAdapter": "merge adapters into the model's weights",
    "ModelCompiler": "lamina.CompiledModel.save() writes a compiled model",
    "OrtSyncStream": "lamina runs on the CPU",
    "copy_tensors": "lamina's tensors are arrays: a[...] = b",
    "register_execution_provider_library": "lamina runs on the CPU, without providers",
    "unregister_execution_provider_library": "lamina runs on the CPU, without providers",
}


def install() -> None:
    """Makes `import onnxruntime` import this package, in this process from now on.

    Raises BadCall when ONNX Runtime itself was imported before: modules that did so would go on with it.
    """
    ours = sys.modules[__name__]
    if sys.modules.get("onnxruntime", ours) is not ours:
        raise BadCall("onnxruntime was imported already: call lamina.compat.onnxruntime.install() before that")
    for name in _MODULES:
        sys.modules["onnxruntime" + name] = importlib.import_module(__name__ + name)


def uninstall() -> None:
    """Undoes install(): a later `import onnxruntime` imports ONNX Runtime, if it is there."""
    ours = sys.modules[__name__]
    if sys.modules.get("onnxruntime") is ours:
        for name in [one for one in sys.modules if one == "onnxruntime" or one.startswith("onnxruntime.")]:
            del sys.modules[name]


def get_available_providers() -> list[str]:
    """ "LaminaExecutionProvider", and "CPUExecutionProvider", which is lamina as well."""
    return list(PROVIDERS)


def get_all_providers() -> list[str]:
    """As get_available_providers()."""
    return list(PROVIDERS)


def get_device() -> str:
    """ "CPU"."""
    return "CPU"


def get_version_string() -> str:
    """The version of ONNX Runtime whose interface this is."""
    return __version__


def get_build_info() -> str:
    """What this is."""
    return f"{_lamina.version()}, with the interface of ONNX Runtime {__version__}"


def get_ep_devices() -> list[object]:
    """None: lamina has no providers in libraries."""
    return []


def has_collective_ops() -> bool:
    """False: models are not distributed."""
    return False


def print_debug_info() -> None:
    """Prints what this is."""
    print(get_build_info())


def disable_telemetry_events() -> None:
    """Does nothing: lamina sends nothing."""


def enable_telemetry_events() -> None:
    """Does nothing: lamina sends nothing."""


def set_default_logger_severity(severity: int) -> None:
    """Does nothing: lamina.load(log=...) takes lamina's messages."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Does nothing: lamina.load(log=...) takes lamina's messages."""


def set_seed(seed: int) -> None:
    """Does nothing: random operators have the seeds of the model."""


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """Does nothing: SessionOptions.intra_op_num_threads is for a session."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Does nothing: lamina needs no such libraries."""


def create_and_register_allocator(*args: object) -> None:
    """Does nothing: lamina has its own memory."""


def create_and_register_allocator_v2(*args: object) -> None:
    """Does nothing: lamina has its own memory."""


def __getattr__(name: str) -> Any:
    if name in _INSTEAD:

        def refuse(*args: object, **named: object) -> None:
            raise _unavailable(name, _INSTEAD[name])

        return refuse
    if name == "capi":
        return importlib.import_module(__name__ + ".capi")
    raise AttributeError(f"lamina.compat.onnxruntime has no {name}: docs/python.md says what it has")
