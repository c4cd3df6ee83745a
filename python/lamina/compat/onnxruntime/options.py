"""SessionOptions, RunOptions and the enumerations."""

import enum
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from lamina import _process
from lamina.compat.onnxruntime.errors import unavailable


class _Enumeration(enum.IntEnum):
    __str__ = enum.Enum.__str__


class ExecutionMode(_Enumeration):
    """Without a meaning in lamina, which runs independent layers as it finds best."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Enumeration):
    """Without a meaning in lamina."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class GraphOptimizationLevel(_Enumeration):
    """ORT_DISABLE_ALL turns lamina's optimisations off; all others turn them on."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class OrtAllocatorType(_Enumeration):
    """Without a meaning in lamina."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(_Enumeration):
    """Without a meaning in lamina."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    DEFAULT = 0
    CPU = -1


class _Attributes:
    """Attributes of fixed names and types: others are refused as ONNX Runtime refuses them."""

    _defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        for name, value in self._defaults.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_entries", {})

    def __setattr__(self, name: str, value: object) -> None:
        if name not in self._defaults:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        wanted = type(self._defaults[name])
        right = isinstance(value, wanted) and (wanted is not int or not isinstance(value, bool))
        if not right and not (wanted is int and hasattr(value, "__index__")):
            raise TypeError(f"{type(self).__name__}.{name}: {value!r} given, wanted {wanted.__name__}")
        object.__setattr__(self, name, value)


class SessionOptions(_Attributes):
    """Options of a session.

    `intra_op_num_threads`, `graph_optimization_level`, `enable_profiling` and `profile_file_prefix` have an effect; so
    have entries "lamina.KEY", which are lamina's options by their keys. Attributes of ONNX Runtime's memory, logs and
    schedule are there and have none: lamina has its own.
    """

    _entries: dict[str, str]
    intra_op_num_threads: int
    graph_optimization_level: GraphOptimizationLevel
    enable_profiling: bool
    profile_file_prefix: str
    optimized_model_filepath: str
    _defaults = {
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": True,
        "enable_mem_reuse": True,
        "enable_profiling": False,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
        "execution_order": ExecutionOrder.DEFAULT,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
        "inter_op_num_threads": 0,
        "intra_op_num_threads": 0,
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "optimized_model_filepath": "",
        "profile_file_prefix": "onnxruntime_profile_",
        "use_deterministic_compute": False,
        "use_per_session_threads": True,
    }

    def __init__(self) -> None:
        """Options as ONNX Runtime's are at first."""
        super().__init__()
        object.__setattr__(self, "_sizes", {})
        object.__setattr__(self, "_external", {})
        object.__setattr__(self, "_providers", [])

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry. "lamina.KEY" is an option of lamina; those of ONNX Runtime have no effect."""
        self._entries[str(key)] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added; RuntimeError when it was not."""
        if key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Gives a dimension that has a name in the model its size: that is what get_inputs() says. Runs take other sizes, too."""
        self.__dict__["_sizes"][name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Has no effect: lamina takes all sizes of such a dimension."""

    def add_external_initializers_from_files_in_memory(
        self, names: Sequence[str], files: Sequence[bytes], lengths: Sequence[int]
    ) -> None:
        """Data that a model in memory has in other files, by their names."""
        for name, data, length in zip(names, files, lengths, strict=True):
            self.__dict__["_external"][str(name)] = bytes(data[:length])

    def add_provider(self, name: str, options: dict[str, str]) -> None:
        """As an element of InferenceSession's `providers`."""
        self.__dict__["_providers"].append((name, dict(options)))

    def has_providers(self) -> bool:
        """Whether add_provider() was called."""
        return bool(self.__dict__["_providers"])

    def register_custom_ops_library(self, path: str) -> None:
        """Not available."""
        raise unavailable(
            "register_custom_ops_library", "lamina has its own libraries of layers: lamina.load(model, extensions=[path])"
        )

    def add_initializer(self, name: str, value: object) -> None:
        """Not available."""
        raise unavailable("add_initializer", "lamina.load(model, external_data={file: bytes}) gives weights in memory")

    def add_external_initializers(self, names: object, values: object) -> None:
        """Not available."""
        raise unavailable(
            "add_external_initializers", "lamina.load(model, external_data={file: bytes}) gives weights in memory"
        )

    def add_provider_for_devices(self, devices: object, options: object) -> None:
        """Not available."""
        raise unavailable("add_provider_for_devices", "lamina runs on the CPU, without providers")

    def set_provider_selection_policy(self, policy: object) -> None:
        """Has no effect: there is only the CPU."""

    def set_provider_selection_policy_delegate(self, delegate: object) -> None:
        """Has no effect: there is only the CPU."""

    def set_load_cancellation_flag(self, value: bool) -> None:
        """Has no effect: Ctrl-C ends the loading of a model."""


class RunOptions(_Attributes):
    """Options of a run. `terminate = True`, in any thread, ends the runs that have them; the rest has no effect."""

    _entries: dict[str, str]
    terminate: bool
    _defaults = {
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "only_execute_path_to_fetches": False,
        "terminate": False,
        "training_mode": False,
    }

    def __init__(self) -> None:
        """Options that change nothing."""
        super().__init__()
        object.__setattr__(self, "_lock", _process.Lock())
        object.__setattr__(self, "_running", [])

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if name == "terminate" and value:
            with self.__dict__["_lock"]:
                for cancel in self.__dict__["_running"]:
                    cancel()

    def _begin(self, cancel: Callable[[], object]) -> None:
        with self.__dict__["_lock"]:
            self.__dict__["_running"].append(cancel)

    def _end(self, cancel: Callable[[], object]) -> None:
        with self.__dict__["_lock"]:
            self.__dict__["_running"].remove(cancel)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry; it has no effect."""
        self._entries[str(key)] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        """An entry that was added; RuntimeError when it was not."""
        if key not in self._entries:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_active_adapter(self, adapter: object) -> None:
        """Not available."""
        raise unavailable("add_active_adapter", "merge adapters into the model's weights")
