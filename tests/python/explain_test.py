"""What became of layers, and times of steps: rows, inputs, errors, Ctrl-C."""

import dataclasses
import subprocess
import sys
import textwrap
from pathlib import Path

import lamina
import models
import numpy as np
import pytest

A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = np.ones((2, 4), np.float32)
STATUSES = {"runs", "fused", "free", "removed", "constant", "body", "variable", "waiting", "untaken"}


def test_rows_of_layers(sums):
    rows = sums.explain(A, B)
    assert type(rows) is list and rows
    for row in rows:
        assert dataclasses.is_dataclass(row) and isinstance(row, lamina.LayerExplanation)
        assert row.status in STATUSES and row.reason
        assert (row.status == "runs") == bool(row.kernel) == bool(row.precision) == (row.estimate is not None)
        assert row.microseconds is None and row.share is None
        with pytest.raises(dataclasses.FrozenInstanceError):
            row.layer = "another"
    assert any(row.status == "runs" for row in rows)
    assert sums.explain({"a": A, "b": B}) == rows
    assert sums.explain(shapes=[(2, 4), (2, 4)]) == rows


def test_fused_layers_say_where_they_run():
    m = lamina.load(models.long_to_quantize(3), threads=1)
    rows = {row.layer: row for row in m.explain()}
    fused = [row for row in rows.values() if row.status == "fused"]
    assert fused
    for row in fused:
        assert rows[row.into].status in ("runs", "free") and row.rule.startswith("fuse-")
        assert any(line.startswith(row.rule) for line in row.history)
        assert row.kernel is None


def test_pandas(sums):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(sums.explain(A, B))
    wanted = {"layer", "status", "rule", "reason", "kernel", "precision", "estimate"}
    assert wanted <= set(table.columns)


def test_times_of_layers(sums):
    timed = [row for row in sums.explain(A, B, seconds=0) if row.status == "runs"]
    assert all(row.microseconds > 0 and 0 < row.share < 1 for row in timed)


def test_profile(sums):
    rows = sums.profile(A, B, seconds=0.01)
    assert type(rows) is list and rows and all(isinstance(row, lamina.StepTime) for row in rows)
    assert all(row.layer and row.kernel and row.microseconds > 0 for row in rows)
    assert 0 < sum(row.share for row in rows) < 1
    assert [row.kernel for row in sums.profile({"b": B, "a": A}, seconds=0)] == [row.kernel for row in rows]
    assert np.array_equal(sums(A, B)[0], A + B)


def test_models_of_compiled_files(tmp_path, relu):
    relu.save(tmp_path / "relu.lamina")
    assert lamina.load(tmp_path / "relu.lamina", threads=1).explain() == relu.explain()


def test_errors(sums):
    with pytest.raises(lamina.BadInput, match='sizes of input "a"'):
        sums.explain()
    with pytest.raises(lamina.BadInput, match='"b"'):
        sums.explain(A)
    with pytest.raises(lamina.BadInput, match="missing"):
        sums.profile()
    with pytest.raises(lamina.BadInput):
        sums.explain(shapes=[(2, 4)])
    with pytest.raises(lamina.BadInput):
        sums.explain(shapes=[(2, 4), (2, 5)])
    with pytest.raises(lamina.BadInput):
        sums.explain(A.astype(np.float64), B)
    with pytest.raises(lamina.BadOption):
        sums.profile(A, B, seconds=-1)
    with pytest.raises(lamina.BadOption):
        sums.explain(A, B, shapes=[(2, 4), (2, 4)])


def test_ctrl_c():
    program = """
        import os, signal, sys, threading, time
        sys.path.insert(0, FOLDER)
        import numpy as np
        import models, lamina
        m = lamina.load(models.sums(), threads=1)
        x = np.ones((2, 4), np.float32)
        for work in (lambda: m.profile(x, x, seconds=100), lambda: m.explain(x, x, seconds=100)):
            sent = []
            def send():
                time.sleep(0.3)
                sent.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            thread = threading.Thread(target=send)
            thread.start()
            try:
                work()
            except KeyboardInterrupt:
                assert time.monotonic() - sent[0] < 50  # of 100, however busy the machine is
            else:
                raise SystemExit("no KeyboardInterrupt")
            thread.join()
            assert m.profile(x, x, seconds=0)
        print("done")
    """
    text = textwrap.dedent(program).replace("FOLDER", repr(str(Path(__file__).parent)))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=100)
    assert done.stdout == "done\n", done.stdout + done.stderr
