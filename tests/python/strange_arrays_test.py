"""Any array that NumPy can make, as input and as memory for an output: right to the bit, or one clear error."""

import asyncio
import mmap

import lamina
import ml_dtypes
import models
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

TYPES = list(models.ONNX_TYPES)
#: Types of NumPy that no port has, and a word of what is said of them.
OTHERS = {
    "complex64": "complex64",
    "complex128": "complex128",
    "longdouble": np.dtype("longdouble").name,
    "object": "Python objects",
    "U3": "strings",
    "S3": "strings",
    "M8[s]": "datetime64",
    "m8[s]": "timedelta64",
    "f4,f4": "void64",
    "V4": "void32",
    "float4_e2m1fn": "float4_e2m1fn",
    "int4": "int4",
}
RANKS = range(5)
_loaded: dict[tuple[str, int], lamina.CompiledModel] = {}
_profile = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def identity(dtype: str, rank: int) -> lamina.CompiledModel:
    """y = x of any sizes."""
    if (dtype, rank) not in _loaded:
        _loaded[dtype, rank] = lamina.load(models.identity(dtype, [f"d{i}" for i in range(rank)]), threads=1)
    return _loaded[dtype, rank]


def numpy_type(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def shapes(least: int = 0):
    return st.lists(st.integers(least, 5), min_size=0, max_size=4).map(tuple)


def in_memory(draw, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A new array in memory of some kind, C-contiguous, perhaps not aligned."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    kind = draw(st.sampled_from(["numpy", "lamina", "bytearray", "mmap"]))
    offset = draw(st.sampled_from([0, 0, 1, 2, 3, 4, 8, 13, 64]))
    if kind == "lamina":
        memory = lamina.empty((size + offset,), np.uint8)
    elif kind == "mmap":
        memory = np.frombuffer(mmap.mmap(-1, size + offset or 1), np.uint8)
    elif kind == "bytearray":
        memory = np.frombuffer(bytearray(size + offset), np.uint8)
    else:
        memory = np.zeros(size + offset, np.uint8)
    return memory[offset : offset + size].view(dtype).reshape(shape)


def elements(shape: tuple[int, ...], dtype: np.dtype, seed: int) -> np.ndarray:
    """Elements of any bits; of a bool 0 and 1. There is one NaN only: copies by way of f32 make signalling ones quiet."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    codes = np.random.default_rng(seed).integers(0, 2 if dtype.kind == "b" else 256, size).astype(np.uint8)
    values = codes.view(dtype).reshape(shape)
    if not np.issubdtype(dtype, np.integer) and dtype.kind != "b":
        with np.errstate(invalid="ignore"):
            values[np.isnan(values)] = np.nan
    return values


@st.composite
def views(draw, dtype: np.dtype, least: int = 0, writable: bool = False) -> np.ndarray:
    """Arrays made by a few steps, each of which changes the order or the strides of the one before."""
    x = in_memory(draw, draw(shapes(least)), dtype)
    seed = draw(st.integers(0, 2**32 - 1))
    x[...] = elements(x.shape, dtype, seed)
    steps = ["transpose", "reverse", "step", "row", "new axis", "fortran", "squeeze"]
    steps += [] if writable else ["broadcast", "read-only", "field", "subclass"]
    for step in draw(st.lists(st.sampled_from(steps), max_size=4)):
        axis = draw(st.integers(0, x.ndim - 1)) if x.ndim else 0
        if step == "transpose":
            x = x.transpose(draw(st.permutations(range(x.ndim))))
        elif step == "reverse" and x.ndim:
            x = np.flip(x, axis)
        elif step == "step" and x.ndim:
            index = [slice(None)] * x.ndim
            index[axis] = slice(draw(st.integers(0, 2)), None, draw(st.integers(1, 3)))
            x = x[tuple(index)]
        elif step == "row" and x.ndim and x.shape[axis]:
            at = draw(st.integers(0, x.shape[axis] - 1))
            x = x[(slice(None),) * axis + (slice(at, at + 1),)]
        elif step == "new axis" and x.ndim < 4:
            x = np.expand_dims(x, draw(st.integers(0, x.ndim)))
        elif step == "fortran":
            x = np.asfortranarray(x)
        elif step == "squeeze":
            x = x.squeeze()
        elif step == "broadcast" and x.ndim < 4:
            x = np.broadcast_to(x, (draw(st.integers(0, 4)), *x.shape))
        elif step == "read-only":
            x = x.view()
            x.flags.writeable = False
        elif step == "field":
            pairs = np.zeros(x.shape, [("before", "u1"), ("x", x.dtype), ("after", "u2")])
            pairs["x"] = x
            x = pairs["x"]
        elif step == "subclass":
            x = x.view(np.recarray) if draw(st.booleans()) else x.view(Subclass)
    return x


class Subclass(np.ndarray):
    """Has nothing of its own."""


def bits(a: np.ndarray) -> tuple[str, tuple[int, ...], bytes]:
    return a.dtype.name, a.shape, np.ascontiguousarray(a).tobytes()


def is_shared(x: np.ndarray) -> bool:
    """Whether lamina may use the memory as it is."""
    return x.flags.c_contiguous and x.flags.aligned


@_profile
@given(data=st.data())
@pytest.mark.parametrize("name", TYPES)
def test_inputs(name, data):
    x = data.draw(views(numpy_type(name)))
    model = identity(name, x.ndim)
    before = bits(x)
    (y,) = model(x)
    assert bits(y) == before and type(y) is np.ndarray and y.flags.c_contiguous
    request = model.request()
    request.set_input(0, x)
    for _ in range(2):
        request.run()
        assert bits(request.output(0)) == before
        if x.size:
            assert request.copies == (not is_shared(x))
    assert bits(x) == before


@_profile
@given(data=st.data())
@pytest.mark.parametrize("name", TYPES)
def test_memory_for_outputs(name, data):
    dtype = numpy_type(name)
    target = data.draw(views(dtype, writable=True))
    x = elements(target.shape, dtype, 1)
    (y,) = identity(name, x.ndim)(x, out=[target])
    assert bits(target) == bits(x) == bits(y)
    request = identity(name, x.ndim).request()
    request.set_input(0, x)
    request.set_output(0, target)
    target[...] = np.zeros((), dtype)
    request.run()
    assert bits(target) == bits(x)


@_profile
@given(data=st.data())
@pytest.mark.parametrize("name", [name for name in TYPES if numpy_type(name).itemsize > 1])
def test_the_other_byte_order(name, data):
    dtype = numpy_type(name)
    if dtype.name == "bfloat16":
        pytest.skip("ml_dtypes has it in the processor's order only")
    x = data.draw(views(dtype)).astype(dtype.newbyteorder("S"))
    with pytest.raises(lamina.BadInput, match=r'input "x": bytes in the other order .*x\.astype\(x\.dtype\.newbyteorder\("="\)\)'):
        identity(name, x.ndim)(x)
    (y,) = identity(name, x.ndim)(x.astype(x.dtype.newbyteorder("=")))
    assert y.dtype == dtype and np.array_equal(y.view(f"u{dtype.itemsize}"), x.astype(dtype).view(f"u{dtype.itemsize}"))


def refusal(call) -> str:
    """The text of a BadInput: one line, which names the port and what was wanted."""
    with pytest.raises(lamina.BadInput) as raised:
        call()
    text = str(raised.value)
    assert "\n" not in text and text.startswith(('input "x"', 'output "y"')), text
    assert "wanted" in text or "given" in text, text
    return text


@_profile
@given(data=st.data(), other=st.sampled_from([*OTHERS]), name=st.sampled_from(TYPES), shape=shapes())
def test_types_that_no_port_has(data, other, name, shape):
    x = np.zeros(shape, numpy_type(other))
    for call in (lambda m: m(x), lambda m: m.request().set_input(0, x), lambda m: asyncio.run(m.run_async(x))):
        assert OTHERS[other] in refusal(lambda call=call: call(identity(name, x.ndim)))


@_profile
@given(shape=shapes(), rank=st.sampled_from(RANKS))
@example(shape=(), rank=1)
@example(shape=(0,), rank=0)
def test_wrong_ranks(shape, rank):
    x = np.zeros(shape, np.float32)
    if len(shape) == rank:
        assert bits(identity("float32", rank)(x)[0]) == bits(x)
    else:
        assert "wanted f32[" in refusal(lambda: identity("float32", rank)(x))


@_profile
@given(data=st.data())
def test_wrong_memory_for_outputs(data):
    x = np.zeros(data.draw(shapes(1)), np.float32)
    ways = ["type", "shape", "read-only", "order", "list"]
    how = data.draw(st.sampled_from(ways))
    target = np.zeros_like(x)
    if how == "type":
        target = target.astype(data.draw(st.sampled_from(["float64", "int32", "float16", "complex64", "object"])))
    elif how == "shape":
        target = np.zeros((*x.shape, 2), np.float32)
    elif how == "read-only":
        target.flags.writeable = False
    elif how == "order":
        target = target.astype(">f4")
    else:
        target = [target]
    refusal(lambda: identity("float32", x.ndim)(x, out=[target]))


def test_great_strides_and_no_strides():
    rows = 5
    memory = np.zeros(rows * 1_000_003, np.float32)
    x = as_strided(memory, (rows, 3), (1_000_003 * 4, 4))
    x[...] = np.arange(15).reshape(rows, 3)
    assert bits(identity("float32", 2)(x)[0]) == bits(x)
    same = as_strided(np.array([7], np.float32), (1000, 1000), (0, 0))
    assert (identity("float32", 2)(same)[0] == 7).all()
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(10, dtype=np.float32), 4)
    assert bits(identity("float32", 2)(windows)[0]) == bits(windows)


def test_input_and_output_in_the_same_memory():
    memory = np.arange(12, dtype=np.float32)
    model = identity("float32", 1)
    assert "overlaps" in refusal(lambda: model(memory[:8], out=[memory[4:]]))
    model(memory[:8:2], out=[memory[1:8:2]])
    assert memory.tolist() == [0, 0, 2, 2, 4, 4, 6, 6, 8, 9, 10, 11]


def test_a_file_in_memory(tmp_path):
    x = np.memmap(tmp_path / "x", np.float32, "w+", shape=(3, 4))
    x[...] = np.arange(12).reshape(3, 4)
    assert bits(identity("float32", 2)(x)[0]) == bits(np.asarray(x))
    read = np.memmap(tmp_path / "x", np.float32, "r", shape=(3, 4))
    assert bits(identity("float32", 2)(read)[0]) == bits(np.asarray(x))
