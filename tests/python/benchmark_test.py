"""lamina.benchmark(): the figures of the command's verb, records, inputs, errors."""

import json
import os
import subprocess
from pathlib import Path

import lamina
import models
import numpy as np
import pytest

A = np.arange(8, dtype=np.float32).reshape(2, 4)
B = np.ones((2, 4), np.float32)


def test_a_compiled_model(sums):
    result = lamina.benchmark(sums, (A, B), iterations=20)
    assert result["count"] == 20 and result["interrupted"] is False
    latency = result["latency_ms"]
    assert 0 < latency["min"] <= latency["median"] <= latency["p90"] <= latency["p99"] <= latency["max"]
    assert result["throughput_fps"] > 0 and result["threads"] == 1 and result["requests"] == 1
    assert result["properties"]["NUM_STREAMS"]["value"] == "1"
    assert not {"layers", "counters", "trace", "runtime_graph"} & set(result)
    sums_of, _ = sums(A, B)
    np.testing.assert_array_equal(sums_of, A + B)


@pytest.mark.parametrize("inputs", [(A, B), [A, B], {"a": A, "b": B}, None])
def test_forms_of_inputs(sums, inputs):
    assert lamina.benchmark(sums, inputs, iterations=2)["count"] == 2


def test_one_input_need_not_be_in_a_list(relu):
    assert lamina.benchmark(relu, np.ones(4, np.float32), seconds=0.05)["count"] >= 1


def test_a_path_is_loaded_and_its_loading_measured(tmp_path):
    path = tmp_path / "relu.onnx"
    path.write_bytes(models.relu().SerializeToString())
    for model in (path, path.read_bytes(), models.relu(), lamina.Model(path)):
        result = lamina.benchmark(model, iterations=3, threads=1)
        assert result["load_ms"] > 0 and result["before_mb"] > 0
    assert lamina.benchmark(path, iterations=1, threads=1)["model"] == str(path)
    assert lamina.benchmark(path, iterations=1)["load_phases_ms"]["read"] > 0


def test_records(sums):
    result = lamina.benchmark(sums, (A, B), iterations=5, layers=True, counters=True, trace=True, runtime_graph=True)
    assert result["profile"]["runs"] == 5
    assert abs(sum(row["us"] for row in result["layers"]) - result["profile"]["us"]) < 1e-3
    (table,) = result["counters"]
    assert all(isinstance(row, lamina.LayerCounter) for row in table)
    assert any(row.status == "executed" and row.runs >= 5 for row in table)
    assert json.loads(result["trace"])["traceEvents"]
    assert result["runtime_graph"].startswith("<?xml") and "execTimeMcs" in result["runtime_graph"]


def test_groups_and_batches(sums):
    result = lamina.benchmark(sums, groups=[(A, B), (A[:1], B[:1])], batch=[2, 1], iterations=6)
    assert [group["count"] for group in result["groups"]] == [3, 3]
    assert [group["batch"] for group in result["groups"]] == [2, 1]
    with pytest.raises(TypeError, match="one of them"):
        lamina.benchmark(sums, A, groups=[(A, B)])
    with pytest.raises(TypeError, match="one for each of 1 group"):
        lamina.benchmark(sums, (A, B), batch=[1, 2])


def test_requests_in_flight():
    model = lamina.load(models.sums(), threads=2, properties={"NUM_STREAMS": 2})
    result = lamina.benchmark(model, (A, B), iterations=40, requests=4, counters=True)
    assert result["requests"] == 4 and result["count"] == 40 and len(result["counters"]) == 4
    assert lamina.benchmark(model, (A, B), iterations=4, api="sync")["requests"] == 1
    result = lamina.benchmark(model, (A, B), iterations=4, api="async", frames_per_second=100, percentile=75)
    assert result["latency_ms"]["percentile_75"] > 0 and result["throughput_fps"] < 101


def test_errors(sums):
    with pytest.raises(lamina.BadInput):
        lamina.benchmark(sums, A)
    with pytest.raises(lamina.BadInput, match="float32"):
        lamina.benchmark(sums, (A, B.astype(np.float64)))
    for wrong in ({"seconds": -1}, {"percentile": 0}, {"api": "sync", "requests": 2}, {"api": "turbo"}):
        with pytest.raises(lamina.BadOption):
            lamina.benchmark(sums, (A, B), **wrong)
    with pytest.raises(TypeError, match="threads: is an option of load"):
        lamina.benchmark(sums, threads=2)
    with pytest.raises(lamina.BadFile):
        lamina.benchmark("no/such.onnx")


def test_progress(sums):
    seen = []
    lamina.benchmark(sums, (A, B), seconds=0.4, progress=lambda stage, done: seen.append((stage, done)))
    assert seen[-1] == ("reporting", 1)
    assert {stage for stage, _ in seen[:-1]} == {"measuring"} and all(0 <= done <= 1 for _, done in seen)
    assert [done for _, done in seen] == sorted(done for _, done in seen)

    def fail(stage, done):
        raise KeyError(stage)

    with pytest.raises(KeyError, match="measuring"):
        lamina.benchmark(sums, (A, B), seconds=60, progress=fail)


@pytest.mark.skipif("LAMINA_TOOL" not in os.environ, reason="LAMINA_TOOL does not name the command")
def test_keys_are_those_of_the_command(tmp_path):
    path = tmp_path / "sums.onnx"
    path.write_bytes(models.sums().SerializeToString())
    words = [os.environ["LAMINA_TOOL"], "benchmark", path, "--iterations", "2", "--json", "-", "-pc", "--quiet"]
    run = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True)
    command = json.loads(run.stdout)
    result = lamina.benchmark(Path(path), iterations=2, layers=True)
    assert set(result) == set(command)
    assert set(result["latency_ms"]) == set(command["latency_ms"])
    assert set(result["layers"][0]) == set(command["layers"][0])


def test_ctrl_c():
    code = """
import os, signal, threading, time
import numpy as np, lamina, models
x, forever = np.ones((32, 32), np.float32), np.array(90_000_000, np.int64)
slow, quick = lamina.load(models.endless(), threads=1), lamina.load(models.relu(), threads=1)
streams = lamina.load(models.relu(), threads=2, properties={"NUM_STREAMS": 2})
for work in (
    lambda: lamina.benchmark(slow, (x, forever)),
    lambda: lamina.benchmark(slow, (x, forever), warm_up=False),
    lambda: lamina.benchmark(slow, (x, forever), warm_up=False, api="async"),
    lambda: lamina.benchmark(quick, seconds=60),
    lambda: lamina.benchmark(quick, seconds=60, progress=lambda stage, done: None),
    lambda: lamina.benchmark(streams, seconds=60),
    lambda: lamina.benchmark(streams, seconds=60, frames_per_second=3),
):
    sent = []
    def send():
        time.sleep(0.5)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        work()
    except KeyboardInterrupt:
        print("took", time.monotonic() - sent[0])
    else:
        raise SystemExit("no KeyboardInterrupt")
    thread.join()
    assert quick(np.array([-1, 2, -3, 4], np.float32))[0].tolist() == [0, 2, 0, 4]
    assert slow(x, np.array(1))[0].shape == (32, 32)
"""
    here = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    done = models.python(here + code)
    assert done.returncode == 0, done.stderr
    took = [float(line.split()[1]) for line in done.stdout.splitlines()]
    assert len(took) == 7 and max(took) < 100, took  # a third of a second, unless the machine is busy
