"""What an ONNX file says about itself, read from its bytes without the package onnx, and without its tensors."""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field

#: The fields of onnx.proto that are read here, by message.
_PRODUCER, _DOMAIN, _VERSION, _DOC, _GRAPH, _METADATA = 2, 4, 5, 6, 7, 14
_GRAPH_NAME, _INITIALIZER, _GRAPH_DOC, _INPUT = 2, 5, 10, 11
_TENSOR_NAME, _VALUE_NAME, _KEY, _VALUE = 8, 1, 1, 2


@dataclass
class OnnxHeader:
    """Names and texts of an ONNX model."""

    producer_name: str = ""
    domain: str = ""
    version: int | None = None
    doc_string: str = ""
    has_graph: bool = False
    graph_name: str = ""
    graph_doc_string: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    initializers: set[str] = field(default_factory=set)

    @property
    def overridable(self) -> list[str]:
        """Inputs that have a value in the model."""
        return [name for name in self.inputs if name in self.initializers]


def header_of_file(path: str) -> OnnxHeader:
    """The header of a file. Raises ValueError when it is no ONNX model, OSError when it cannot be read."""
    with open(path, "rb") as file:
        if not file.seek(0, 2):
            return OnnxHeader()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            view = memoryview(data)
            try:
                return header_of(view)
            finally:
                view.release()


def header_of(data: "memoryview | bytes") -> OnnxHeader:
    """The header of a model in memory. Raises ValueError when it is no ONNX model."""
    header = OnnxHeader()
    for number, value in _fields(data, 0, len(data)):
        if number == _PRODUCER:
            header.producer_name = _text(data, value)
        elif number == _DOMAIN:
            header.domain = _text(data, value)
        elif number == _VERSION and isinstance(value, int):
            header.version = value
        elif number == _DOC:
            header.doc_string = _text(data, value)
        elif number == _METADATA:
            entry = {n: _text(data, v) for n, v in _fields(data, *_range(value))}
            header.metadata[entry.get(_KEY, "")] = entry.get(_VALUE, "")
        elif number == _GRAPH:
            header.has_graph = True
            _read_graph(data, header, *_range(value))
    return header


def _read_graph(data: "memoryview | bytes", header: OnnxHeader, begin: int, end: int) -> None:
    for number, value in _fields(data, begin, end):
        if number == _GRAPH_NAME:
            header.graph_name = _text(data, value)
        elif number == _GRAPH_DOC:
            header.graph_doc_string = _text(data, value)
        elif number == _INITIALIZER:
            header.initializers.add(_name(data, value, _TENSOR_NAME))
        elif number == _INPUT:
            header.inputs.append(_name(data, value, _VALUE_NAME))


def _name(data: "memoryview | bytes", value: "int | tuple[int, int]", wanted: int) -> str:
    return next((_text(data, v) for n, v in _fields(data, *_range(value)) if n == wanted), "")


def _range(value: "int | tuple[int, int]") -> tuple[int, int]:
    if isinstance(value, int):
        raise ValueError("no ONNX model: a number where a message is wanted")
    return value


def _text(data: "memoryview | bytes", value: "int | tuple[int, int]") -> str:
    begin, end = _range(value)
    return bytes(data[begin:end]).decode("utf-8", "replace")


def _fields(data: "memoryview | bytes", begin: int, end: int) -> Iterator[tuple[int, "int | tuple[int, int]"]]:
    """Numbers of fields and their values, or for texts and messages where these begin and end."""
    at = begin
    while at < end:
        tag, at = _varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("no ONNX model: a field without a number")
        if kind == 0:
            number_value, at = _varint(data, at, end)
            yield number, number_value
            continue
        if kind == 2:
            size, at = _varint(data, at, end)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"no ONNX model: a field of wire type {kind}")
        if at + size > end:
            raise ValueError("no ONNX model: a field goes beyond the end")
        if kind == 2:
            yield number, (at, at + size)
        at += size


def _varint(data: "memoryview | bytes", at: int, end: int) -> tuple[int, int]:
    value, shift = 0, 0
    while at < end and shift < 64:
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("no ONNX model: a number that does not end")
