"""Calls of a compiled model: inputs by position, name and mapping, outputs, memory for outputs, errors."""

import pickle
import re

import lamina
import models
import numpy as np
import pytest

A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = np.ones((2, 4), np.float32)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m(A, B),
        lambda m: m(A, b=B),
        lambda m: m(a=A, b=B),
        lambda m: m(b=B, a=A),
        lambda m: m({"a": A, "b": B}),
        lambda m: m({0: A, 1: B}),
        lambda m: m({"a": A}, b=B),
    ],
)
def test_inputs(sums, call):
    total, difference = call(sums)
    assert np.array_equal(total, A + B)
    assert np.array_equal(difference, A - B)


def test_outputs(sums):
    outputs = sums(A, B)
    assert isinstance(outputs, tuple) and isinstance(outputs, lamina.Outputs)
    assert outputs.names == ("sum", "difference")
    assert outputs["difference"] is outputs[1] is outputs[-1]
    assert outputs[:1] == (outputs[0],)
    assert set(outputs.asdict()) == {"sum", "difference"}
    assert outputs[0].flags.writeable and outputs[0].ctypes.data % 64 == 0
    with pytest.raises(KeyError, match='"sum", "difference"'):
        outputs["x"]
    again = pickle.loads(pickle.dumps(outputs))
    assert np.array_equal(again["sum"], A + B)


def test_outputs_are_kept(sums):
    """A later call, of the same or another shape, does not write into the results of an earlier one."""
    kept = [sums(A[:n] + i, B[:n])[0] for i in range(5) for n in (1, 2)]
    wanted = [A[:n] + i + B[:n] for i in range(5) for n in (1, 2)]
    assert all(np.array_equal(k, w) for k, w in zip(kept, wanted, strict=True))
    assert len({k.ctypes.data for k in kept}) == len(kept)


def test_shapes_that_depend_on_values():
    model = lamina.load(models.non_zeros())
    first = model(np.array([1, 0, 0, 2, 0, 3], np.float32))[0]
    second = model(np.array([0, 1, 0, 0, 0, 0], np.float32))[0]
    none = model(np.zeros(6, np.float32))[0]
    assert first.tolist() == [[0, 3, 5]] and second.tolist() == [[1]] and none.shape == (1, 0)


def test_names_that_python_uses():
    model = lamina.load(models.sums("out", "self"))
    assert np.array_equal(model({"out": A, "self": B})["sum"], A + B)
    assert np.array_equal(model(A, B)["sum"], A + B)
    assert np.array_equal(model(A, self=B)["sum"], A + B)
    mine = np.zeros_like(A)
    model(A, B, out=[mine, None])
    assert np.array_equal(mine, A + B)


def test_memory_for_outputs(sums):
    total, wide = np.zeros_like(A), np.zeros((2, 8), np.float32)
    outputs = sums(A, B, out=[total, wide[:, ::2]])
    assert outputs[0] is total
    assert np.array_equal(total, A + B)
    assert np.array_equal(wide[:, ::2], A - B) and not wide[:, 1::2].any()
    fresh = sums(A + 1, B)
    assert np.array_equal(total, A + B) and fresh[0] is not total


REFUSED = [
    (lambda m: m(A), "bad_input", '"b"'),
    (lambda m: m(A, B, B), "bad_input", "3 inputs given, the model has 2"),
    (lambda m: m(A, B, a=A), "bad_input", "given twice"),
    (lambda m: m(A, c=B), "bad_input", 'no input "c", there are: "a", "b"'),
    (lambda m: m({"a": A, 2: B}), "bad_input", "input 2: the model has 2"),
    (lambda m: m({"a": A, 0.5: B}), "bad_input", "not by a float"),
    (lambda m: m(A, B[:, :3]), "bad_input", "wanted f32[n,4]"),
    (lambda m: m(A, None), "bad_input", "None given"),
    (lambda m: m(A.tolist(), B), "bad_input", "a list given, wanted f32[n,4]: np.asarray(x, np.float32)"),
    (lambda m: m(A, 1.0), "bad_input", "a float given, wanted f32[n,4]: np.asarray(x, np.float32)"),
    (lambda m: m(A, True), "bad_input", "a bool given"),
    (lambda m: m(A.astype(np.float64), B), "bad_input", "float64 given, wanted f32[n,4]: x.astype(np.float32)"),
    (lambda m: m(A.astype(">f4"), B), "bad_input", 'x.astype(x.dtype.newbyteorder("="))'),
    (lambda m: m(np.array([["a"] * 4]), B), "bad_input", "lamina has no tensors of strings"),
    (lambda m: m(np.array([[b"a"] * 4]), B), "bad_input", "lamina has no tensors of strings"),
    (lambda m: m("picture.png", B), "bad_input", "text is no array"),
    (lambda m: m(np.array([[None] * 4]), B), "bad_input", "np.asarray(x, np.float32)"),
    (lambda m: m(A.astype(np.complex64), B), "bad_input", "complex64"),
    (lambda m: m(np.zeros((2, 4), "f4,i4"), B), "bad_input", "wanted f32[n,4]"),
    (lambda m: m(A, B, out=A), "bad_input", "wanted a sequence of 2 arrays"),
    (lambda m: m(A, B, out=[A.copy()]), "bad_input", "1 arrays given, the model has 2 outputs"),
    (lambda m: m(A, B, out=[A.astype(int), None]), "bad_input", "int64"),
    (lambda m: m(A, B, out=[[0], None]), "bad_input", "a list given"),
    (lambda m: m(A, B, out=[A[:1].copy(), None]), "bad_input", "f32[1,4]"),
    (lambda m: m(A, B, out=[np.zeros((3, 8), np.float32)[:, ::2], None]), "bad_input", "f32[3,4] given"),
    (lambda m: m(A, B, out=[A, None]), "bad_input", "overlaps"),
]


@pytest.mark.parametrize("call, code, text", REFUSED)
def test_refused(sums, call, code, text):
    with pytest.raises(lamina.Error, match=re.escape(text)) as caught:
        call(sums)
    assert caught.value.code == code
    assert isinstance(caught.value, lamina.BadInput) and isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value) and len(str(caught.value)) <= 300
    assert np.array_equal(sums(A, B)[0], A + B)  # usable as before


def test_read_only_output_is_refused(sums):
    mine = np.zeros_like(A)
    mine.flags.writeable = False
    with pytest.raises(lamina.BadInput, match="only to be read"):
        sums(A, B, out=[mine, None])


def test_settable_input():
    model = models.sums()
    model.graph.initializer.append(models.numpy_helper.from_array(B[:1], "b"))
    for port in model.graph.input:
        port.type.tensor_type.shape.dim[0].dim_value = 1
    compiled = lamina.load(model, settable=["b"])
    assert np.array_equal(compiled.inputs[1].value, B[:1])
    assert np.array_equal(compiled(A[:1])[0], A[:1] + B[:1])
    assert np.array_equal(compiled(A[:1], b=2 * B[:1])[0], A[:1] + 2)
    assert np.array_equal(compiled(A[:1], None)[0], A[:1] + 1)  # its default again


def test_variables_begin_with_initial_values():
    model = lamina.load(models.COUNTER.encode(), weights=bytes(16))
    for _ in range(3):
        assert model(np.ones(4, np.float32))[0].tolist() == [1, 1, 1, 1]
