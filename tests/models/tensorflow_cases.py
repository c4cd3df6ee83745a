"""Frozen TensorFlow graphs of one operator, with its options, seeded: what the tensorflow_*_cases.py share."""

import numpy as np
from tensorflow_graph import Graph, Type


class Case:
    """A graph, values for its inputs, and who is known to be wrong about it."""

    def __init__(self, name: str, seed: int = 1, openvino: bool = True, tolerance: float = 1e-4) -> None:
        self.name, self.graph, self.feeds = name, Graph(seed), {}
        self.openvino, self.tolerance = openvino, tolerance
        self.rng = self.graph.rng

    def input(self, value: np.ndarray, unknown: tuple[int, ...] = ()) -> str:
        shape = tuple(-1 if i in unknown else n for i, n in enumerate(value.shape))
        name = self.graph.input(shape, f"x{len(self.feeds)}" if self.feeds else "x", value.dtype.name)
        self.feeds[name] = value
        return name

    def uniform(self, *shape: int, low: float = -2, high: float = 2) -> np.ndarray:
        return self.rng.uniform(low, high, shape).astype("f4")


class Constant:
    """An operand that is a constant of the graph."""

    def __init__(self, value: object, dtype: str = "") -> None:
        self.value, self.dtype = value, dtype


C = Constant


def single(
    name: str,
    op: str,
    *operands: object,
    openvino: bool = True,
    tolerance: float = 1e-4,
    **attributes: object,
) -> Case:
    """One operator: arrays are inputs of the graph, Constants are constants."""
    case = Case(name, openvino=openvino, tolerance=tolerance)
    inputs = []
    for i, operand in enumerate(operands):
        if isinstance(operand, Constant):
            inputs.append(case.graph.constant(operand.value, f"c{i}", operand.dtype))
        else:
            inputs.append(case.input(operand))
    case.graph.node(op, inputs, "y", **attributes)
    return case


rng = np.random.RandomState(7)


def f(*shape: int, low: float = -2, high: float = 2) -> np.ndarray:
    return rng.uniform(low, high, shape).astype("f4")


def i(*shape: int, low: int = -5, high: int = 6) -> np.ndarray:
    return rng.randint(low, high, shape).astype("i4")


def t(a: np.ndarray) -> Type:
    return Type(a.dtype.name)


FLOAT = Type("float32")
