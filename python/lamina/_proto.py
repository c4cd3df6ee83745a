"""Models in memory: bytes, and objects of the packages onnx and torch, which are known by their methods, not imported."""

from typing import Any, Protocol, TypeAlias, runtime_checkable

from lamina.errors import BadFile

Buffer: TypeAlias = bytes | bytearray | memoryview


@runtime_checkable
class ModelProto(Protocol):
    """A model of the package onnx, or anything that serialises to one."""

    def SerializeToString(self) -> bytes: ...


class ONNXProgram(Protocol):
    """What torch.onnx.export gives."""

    @property
    def model_proto(self) -> ModelProto: ...


def bytes_of_model(model: object) -> bytes:
    """The bytes of a model in memory. Raises BadFile for one that is too large to be serialised."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    # A class is no model, though a class of messages has the methods of its objects.
    try:
        proto: Any = None if isinstance(model, type) else getattr(model, "model_proto", model)
        if not isinstance(proto, ModelProto):
            raise TypeError(f"a {type(model).__name__} given, wanted a path, bytes or an onnx.ModelProto")
        data = proto.SerializeToString()
    except (MemoryError, TypeError):
        raise
    except Exception as error:  # protobuf's EncodeError in most versions, ValueError in others
        raise BadFile(
            f"{type(model).__name__}: cannot be serialised ({error}); a ModelProto has at most 2 GB. Save larger models "
            "with their tensors in a second file and load the path: onnx.save(model, path, save_as_external_data=True), "
            "or program.save(path, external_data=True) of torch's ONNXProgram"
        ) from error
    if not isinstance(data, bytes):
        raise TypeError(f"a {type(model).__name__} given, whose SerializeToString gives no bytes")
    return data
