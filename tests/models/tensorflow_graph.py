"""Frozen TensorFlow graphs (GraphDef) written message by message: no TensorFlow is needed."""

import struct

import numpy as np

TYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "str": 7, "int64": 9, "bool": 10,
    "bfloat16": 14, "uint16": 17, "float16": 19, "uint32": 22, "uint64": 23, "complex64": 8,
}  # fmt: skip


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: bytes | str | int | float) -> bytes:
    """A field: texts and messages with their length, integers as varints, floats in 4 bytes."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


class Type(str):
    """An element type as an attribute, by numpy's name."""

    @property
    def number(self) -> int:
        return TYPES[self]


class Shape(tuple):
    """A shape as an attribute; -1 is an unknown size."""


UNKNOWN = object()  # a shape of unknown rank


def shape_proto(sizes: object) -> bytes:
    if sizes is UNKNOWN:
        return field(3, 1)
    return b"".join(field(2, field(1, int(s)) if s else b"") for s in sizes)  # 0 is a default, not written


def tensor_proto(value: np.ndarray, type_name: str = "") -> bytes:
    name = type_name or value.dtype.name
    return field(1, TYPES[name]) + field(2, shape_proto(value.shape)) + field(4, value.tobytes())


def list_value(values: list) -> bytes:
    if values and isinstance(values[0], bool):
        return field(5, b"".join(varint(v) for v in values))
    if values and isinstance(values[0], int):
        return field(3, b"".join(varint(v) for v in values))
    if values and isinstance(values[0], float):
        return field(4, struct.pack(f"<{len(values)}f", *values))
    if values and isinstance(values[0], Type):
        return field(6, b"".join(varint(v.number) for v in values))
    return b"".join(field(2, v) for v in values)


def attr_value(value: object) -> bytes:
    if isinstance(value, bool):
        return field(5, int(value))
    if isinstance(value, int):
        return field(3, value)
    if isinstance(value, float):
        return field(4, value)
    if isinstance(value, Type):
        return field(6, value.number)
    if isinstance(value, Shape) or value is UNKNOWN:
        return field(7, shape_proto(value))
    if isinstance(value, np.ndarray):
        return field(8, tensor_proto(value))
    if isinstance(value, list):
        return field(1, list_value(value))
    if isinstance(value, bytes):  # a TensorProto as it is
        return field(8, value)
    return field(2, str(value))


class Graph:
    """A GraphDef that grows. Functions return the node's name, by which others read it."""

    def __init__(self, seed: int = 1) -> None:
        self.nodes: list[bytes] = []
        self.records: list[tuple[str, str, list[str], dict]] = []  # operator, name, inputs, attributes
        self.names: set[str] = set()
        self.rng = np.random.RandomState(seed)

    def fresh(self, wanted: str) -> str:
        name, count = wanted, 0
        while name in self.names:
            count += 1
            name = f"{wanted}_{count}"
        self.names.add(name)
        return name

    def node(self, op: str, inputs: list[str] | str = (), name: str = "", **attributes: object) -> str:
        name = self.fresh(name or op.lower())
        inputs = [inputs] if isinstance(inputs, str) else inputs
        body = field(1, name) + field(2, op) + b"".join(field(3, i) for i in inputs)
        for key, value in attributes.items():
            body += field(5, field(1, key) + field(2, attr_value(value)))
        self.nodes.append(field(1, body))
        self.records.append((op, name, list(inputs), attributes))
        return name

    def input(self, shape: tuple | object, name: str = "x", dtype: str = "float32") -> str:
        shape = shape if shape is UNKNOWN else Shape(shape)
        return self.node("Placeholder", name=name, dtype=Type(dtype), shape=shape)

    def constant(self, value: object, name: str = "const", dtype: str = "") -> str:
        value = np.asarray(value, dtype or None)
        if not dtype and value.dtype == np.int64:
            value = value.astype("int32")
        if not dtype and value.dtype == np.float64:
            value = value.astype("float32")
        return self.node("Const", name=name, dtype=Type(value.dtype.name), value=value)

    def weights(self, *shape: int, name: str = "weights", scale: float = 0.0) -> str:
        """Seeded, of a size that keeps activations near 1; frozen variables are read through an Identity."""
        fan_in = max(int(np.prod(shape[:-1])), 1)
        value = self.rng.normal(0, scale or (1.5 / fan_in) ** 0.5, shape).astype("float32")
        return self.node("Identity", self.constant(value, name), name + "/read", T=Type("float32"))

    def bytes(self, producer: int = 1087) -> bytes:
        return b"".join(self.nodes) + field(4, field(1, producer))
