"""Drawings of compiled models: stages, formats, inputs, errors, Ctrl-C."""

import lamina
import numpy as np
import pytest

A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = np.ones((2, 4), np.float32)


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        ("original", "original, "),
        ("before", "original, "),
        ("optimized", "optimized, "),
        ("after", "optimized, "),
        ("both", " after optimisation"),
    ],
)
def test_stages(sums, stage, says):
    drawing = sums.graph(stage)
    assert isinstance(drawing, str) and isinstance(drawing, lamina.Drawing)
    assert says in drawing
    assert drawing._repr_html_().startswith("<svg")


def test_names_of_a_stage_draw_the_same(sums):
    assert sums.graph("before") == sums.graph("original")
    assert sums.graph("after") == sums.graph("optimized") == sums.graph()


def test_runtime(sums):
    assert "mean of 3 runs" in sums.graph("runtime", A, B, seconds=0)
    assert " at run time" in sums.graph("runtime", {"a": A, "b": B}, seconds=0)
    with pytest.raises(lamina.BadInput, match="runtime"):
        sums.graph("runtime")
    with pytest.raises(lamina.BadInput, match='"b"'):
        sums.graph("runtime", A)
    assert np.array_equal(sums(A, B)[0], A + B)


def test_formats(sums):
    page = sums.graph(format="html")
    assert page.startswith("<!DOCTYPE html>")
    assert page._repr_html_().startswith("<iframe")
    text = sums.graph(format="dot")
    assert text.startswith("digraph")
    assert text._repr_html_() is None


def test_errors(sums):
    with pytest.raises(lamina.BadOption, match='"later".*original'):
        sums.graph("later")
    with pytest.raises(lamina.BadOption, match="svg"):
        sums.graph(format="png")
    with pytest.raises(lamina.BadOption):
        sums.graph(seconds=-1)
    with pytest.raises(lamina.BadInput):
        sums.graph("both", A.astype(np.float64), B)
