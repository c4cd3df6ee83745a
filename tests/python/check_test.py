"""Checks of compiled models: reports, expected outputs, errors, Ctrl-C."""

import dataclasses

import lamina
import models
import numpy as np
import pytest

A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = np.ones((2, 4), np.float32)


def expect_clean(report):
    assert isinstance(report, lamina.CheckReport)
    assert report.clean, str(report)
    assert report.layers and all(layer.within and layer.kernel for layer in report.layers)
    assert report.lines[-1].startswith("clean: ")
    assert repr(report).startswith("<CheckReport clean: ")


def test_a_model_that_is_right(sums):
    report = sums.check(A, B)
    expect_clean(report)
    assert [output.name for output in report.outputs] == ["sum", "difference"]
    assert report.bisect is None and report.extensions == []
    assert report.precision == "f32: 2 layers"
    assert {"name", "kernel", "within", "max", "limit"} <= set(dataclasses.asdict(report.layers[0]))
    assert np.array_equal(sums(A, B)[0], A + B)


def test_inputs_by_name(sums):
    expect_clean(sums.check({"b": B, "a": A}))


def test_saved_models_and_those_of_a_cache(tmp_path):
    """Their original weights are read again."""
    proto = models.endless(4)
    inputs = np.ones((4, 4), np.float32), np.array(3, np.int64)
    loaded = lamina.load(proto, threads=1)
    expect_clean(loaded.check(*inputs))
    file = tmp_path / "m.onnx"
    file.write_bytes(proto.SerializeToString())
    lamina.load(file, threads=1).save(tmp_path / "m.lamina")
    expect_clean(lamina.load(tmp_path / "m.lamina").check(*inputs))
    for _ in range(2):
        expect_clean(lamina.load(file, threads=1, properties={"CACHE_DIR": tmp_path / "cache"}).check(*inputs))


def test_expected_outputs(sums):
    right = sums(A, B)
    for expected in (right, list(right), right.asdict(), [right[0], None], {"difference": right[1]}):
        expect_clean(sums.check(A, B, expected=expected))
    report = sums.check(A, B, expected={"sum": right[0] + 1})
    assert not report.clean
    (row,) = [output for output in report.outputs if output.agreement]
    assert (row.name, row.against, row.within) == ("sum", "stored output", False)
    assert row.agreement.fault and row.agreement.largest_error == 1
    assert repr(report).startswith("<CheckReport NOT clean: ")
    for wrong in ([right[0]], right[0], 3, {"none": right[0]}, [right[0].astype(np.float64), None]):
        with pytest.raises(lamina.BadInput):
            sums.check(A, B, expected=wrong)


def test_bisect_and_progress(relu):
    stages = []
    report = relu.check(A[0], bisect=True, progress=lambda stage, done: stages.append((stage, done)))
    expect_clean(report)
    assert report.bisect is None
    assert any(line.startswith("bisect: none of the ") for line in report.lines)
    assert stages[-1][0] == "checking" and 0 <= stages[-1][1] <= 1


def test_errors(sums):
    with pytest.raises(lamina.BadInput):
        sums.check(A)
    with pytest.raises(lamina.BadInput):
        sums.check(A, B.astype(np.float64))
    with pytest.raises(lamina.BadOption, match="steps 0"):
        sums.check(A, B, steps=0)

    def fails(stage, done):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sums.check(A, B, progress=fails)
    expect_clean(sums.check(A, B))
