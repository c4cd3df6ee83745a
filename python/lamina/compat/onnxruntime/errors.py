"""The exceptions of ONNX Runtime, which programs catch; the lamina.Error behind one is its __cause__."""

from typing import ClassVar


class _OrtError(Exception):
    number: ClassVar[int]
    status: ClassVar[str]

    @classmethod
    def of(cls, text: str) -> "_OrtError":
        """An exception whose text has the form of ONNX Runtime's."""
        return cls(f"[ONNXRuntimeError] : {cls.number} : {cls.status} : {text}")


class Fail(_OrtError):
    """The inference has failed, or was terminated."""

    number, status = 1, "FAIL"


class InvalidArgument(_OrtError):
    """An input's name, type or shape, or an output's name, is not what the model has."""

    number, status = 2, "INVALID_ARGUMENT"


class NoSuchFile(_OrtError):
    """The model's file does not exist."""

    number, status = 3, "NO_SUCHFILE"


class NoModel(_OrtError):
    """Not raised by lamina."""

    number, status = 4, "NO_MODEL"


class EngineError(_OrtError):
    """Not raised by lamina."""

    number, status = 5, "ENGINE_ERROR"


class RuntimeException(_OrtError):
    """Memory is exhausted, or there is an error in lamina itself."""

    number, status = 6, "RUNTIME_EXCEPTION"


class InvalidProtobuf(_OrtError):
    """The bytes are no ONNX model."""

    number, status = 7, "INVALID_PROTOBUF"


class ModelLoaded(_OrtError):
    """Not raised by lamina."""

    number, status = 8, "MODEL_LOADED"


class NotImplemented(_OrtError):  # noqa: A001 - the name is theirs
    """The model has operators that lamina does not have; the text names them."""

    number, status = 9, "NOT_IMPLEMENTED"


class InvalidGraph(_OrtError):
    """The model can be read, but is not right."""

    number, status = 10, "INVALID_GRAPH"


class EPFail(_OrtError):
    """Not raised by lamina."""

    number, status = 11, "EP_FAIL"


class ModelLoadCanceled(_OrtError):
    """Not raised by lamina."""

    number, status = 12, "MODEL_LOAD_CANCELED"


class ModelRequiresCompilation(_OrtError):
    """Not raised by lamina."""

    number, status = 13, "MODEL_REQUIRES_COMPILATION"


class NotFound(_OrtError):
    """Not raised by lamina."""

    number, status = 14, "NOT_FOUND"


class DeviceReset(_OrtError):
    """Not raised by lamina."""

    number, status = 15, "DEVICE_RESET"


def unavailable(what: str, instead: str) -> NotImplementedError:
    """For what lamina does another way."""
    return NotImplementedError(f"{what}: not in lamina's form of ONNX Runtime; {instead}")
