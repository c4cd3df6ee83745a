"""Arrays of every type, order, stride, alignment and byte order go in and come out right, or give one clear error."""

import array
import ctypes

import lamina
import ml_dtypes
import models
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

TYPES = [name for name in models.ONNX_TYPES]
_loaded: dict[tuple[str, int], lamina.CompiledModel] = {}


def identity(dtype: str, rank: int) -> lamina.CompiledModel:
    """y = x of any sizes."""
    if (dtype, rank) not in _loaded:
        shape = [f"d{i}" for i in range(rank)]
        _loaded[dtype, rank] = lamina.load(models.identity(dtype, shape), threads=1)
    return _loaded[dtype, rank]


def numpy_type(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def bits(a: np.ndarray) -> bytes:
    return a.tobytes()


@pytest.mark.parametrize("name", TYPES)
def test_every_type(name):
    dtype = numpy_type(name)
    x = np.arange(6).astype(dtype).reshape(2, 3)
    model = identity(name, 2)
    assert model.inputs[0].numpy_dtype == dtype == model.outputs[0].numpy_dtype
    (y,) = model(x)
    assert y.dtype == dtype and y.shape == x.shape and bits(y) == bits(x)
    request = model.request()
    request.set_input(0, x)
    request.run()
    assert request.copies == 0 and bits(request.output(0)) == bits(x)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("other", TYPES)
def test_types_are_never_converted(name, other):
    x = np.zeros((2, 3), numpy_type(other))
    bits_of = {"bfloat16": "uint16", "float8_e4m3fn": "uint8"}
    if other in (name, bits_of.get(name)):
        identity(name, 2)(x)
        return
    with pytest.raises(lamina.BadInput, match="astype"):
        identity(name, 2)(x)


def altered(draw, x: np.ndarray) -> tuple[np.ndarray, bool]:
    """The same values in other memory; whether they are refused for their byte order."""
    ways = ["same", "fortran", "reversed", "strided", "unaligned", "read-only", "swapped", "broadcast"]
    how = draw(st.sampled_from(ways))
    if how == "fortran" and x.ndim:
        return np.asfortranarray(x), False
    if how == "reversed":
        return np.ascontiguousarray(x[..., ::-1])[..., ::-1] if x.ndim else x, False
    if how == "strided" and x.ndim:
        wide = np.zeros((*x.shape[:-1], 3 * x.shape[-1]), x.dtype)
        wide[..., ::3] = x
        return wide[..., ::3], False
    if how == "unaligned":
        memory = np.zeros(x.nbytes + 1, np.uint8)
        view = memory[1:].view(x.dtype).reshape(x.shape)
        view[...] = x
        return view, False
    if how == "read-only":
        x = x.copy()
        x.flags.writeable = False
        return x, False
    if how == "swapped":
        swapped = x.astype(x.dtype.newbyteorder())
        return swapped, swapped.dtype.byteorder == ">"
    if how == "broadcast" and x.ndim and x.shape[0]:
        return np.broadcast_to(x[:1], x.shape), False
    return x, False


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_array(data):
    name = data.draw(st.sampled_from([t for t in TYPES if t not in ("bfloat16", "float8_e4m3fn")]))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    x = data.draw(hnp.arrays(np.dtype(name), shape))
    given_array, refused = altered(data.draw, x)
    model = identity(name, len(shape))
    if refused:
        with pytest.raises(lamina.BadInput, match="newbyteorder"):
            model(given_array)
        return
    (y,) = model(given_array)
    assert y.dtype == given_array.dtype and y.shape == given_array.shape and bits(y) == bits(given_array)
    request = model.request()
    request.set_input("x", given_array)
    request.run()
    in_place = given_array.flags.c_contiguous and given_array.flags.aligned
    assert request.copies == (0 if in_place else 1)
    assert bits(request.output(0)) == bits(given_array)
    for target in (np.empty_like(x), np.empty_like(x, order="F"), np.empty((*x.shape, 2), x.dtype)[..., 0]):
        model(given_array, out=[target])
        assert bits(target) == bits(given_array)


def test_inputs_and_outputs_share_memory():
    model = identity("float32", 1)
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    request = model.request()
    request.set_input(0, x)
    request.set_output(0, y)
    request.run()
    x += 1
    assert request.output(0) is y and not np.array_equal(x, y)
    request.run()
    assert np.array_equal(x, y) and request.copies == 0
    request.set_output(0, None)
    request.run()
    view = request.output(0)
    assert view is not y and not view.flags.writeable
    address = view.ctypes.data
    x += 1
    request.run()
    assert request.output(0).ctypes.data == address and np.array_equal(view, x)


def test_strided_array_is_copied_again_at_each_run():
    request = identity("float32", 1).request()
    wide = np.zeros(10, np.float32)
    request.set_input(0, wide[::2])
    for i in range(3):
        wide[:] = i
        request.run()
        assert request.output(0).tolist() == [i] * 5 and request.copies == 1


def test_other_arrays():
    model = identity("float32", 1)
    wanted = [1.0, -2.0, 3.0]
    assert model(array.array("f", wanted))[0].tolist() == wanted
    assert model(memoryview(array.array("f", wanted)))[0].tolist() == wanted
    assert model((ctypes.c_float * 3)(*wanted))[0].tolist() == wanted
    assert identity("uint8", 1)(b"\1\2")[0].tolist() == [1, 2]
    assert identity("uint8", 1)(bytearray(b"\1\2"))[0].tolist() == [1, 2]
    assert identity("float32", 0)(np.float32(3))[0] == 3
    with pytest.raises(lamina.BadInput, match="float64 given"):
        model(array.array("d", wanted))


class OnlyDLPack:
    def __init__(self, a, device=(1, 0)):
        self.a, self.device = a, device

    def __dlpack__(self, **options):
        return self.a.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


class Refuses:
    def __dlpack__(self, **_):
        raise BufferError("cannot export a tensor that requires a gradient")


def test_dlpack():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    model = identity("float32", 2)
    for a in (x, x.T, x[::2, 1:], x[:0]):
        request = model.request()
        request.set_input(0, OnlyDLPack(a))
        request.run()
        assert np.array_equal(request.output(0), a) and request.copies == (not a.flags.c_contiguous)
    target = np.zeros((3, 4), np.float32)
    model(x, out=[OnlyDLPack(target)])
    assert np.array_equal(target, x)
    with pytest.raises(lamina.BadInput, match="requires a gradient"):
        model(Refuses())
    with pytest.raises(lamina.BadInput, match="wanted f32"):
        model(OnlyDLPack(x.astype(np.float64)))


def test_torch():
    torch = pytest.importorskip("torch")
    model = identity("float32", 2)
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    assert np.array_equal(model(x)[0], x.numpy())
    assert np.array_equal(model(x.T)[0], x.T.numpy())
    b = x.to(torch.bfloat16)
    assert bits(identity("bfloat16", 2)(b)[0]) == b.view(torch.uint16).numpy().tobytes()
    with pytest.raises(lamina.BadInput, match="grad"):
        model(x.requires_grad_())


def test_memory_lives_as_long_as_it_is_used():
    model = identity("float32", 1)
    request = model.request()
    request.set_input(0, np.arange(100000, dtype=np.float32))
    request.run()
    view = request.output(0)
    del request, model
    assert np.array_equal(view, np.arange(100000))


def test_empty():
    a = lamina.empty((3, 5), np.float16)
    assert a.shape == (3, 5) and a.dtype == np.float16 and a.ctypes.data % 64 == 0 and a.flags.writeable
    assert lamina.empty(7).shape == (7,) and lamina.empty((), "i8").shape == ()
    assert lamina.empty((2,), ml_dtypes.bfloat16).dtype == ml_dtypes.bfloat16
    with pytest.raises(lamina.BadInput):
        lamina.empty((2,), np.complex64)
    with pytest.raises(lamina.BadInput):
        lamina.empty((-1,))
