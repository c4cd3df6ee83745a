"""Requests: bound arrays, variables, time limits, cancelling, times of layers, refusals while an inference runs."""

import threading
import time

import lamina
import models
import numpy as np
import pytest

X = np.array([-1, 2, -3, 4], np.float32)
LONG = np.array(90_000_000, np.int64)


def long_request(endless) -> lamina.Request:
    request = endless.request()
    request.set_input("x", np.ones((32, 32), np.float32))
    request.set_input("count", LONG)
    return request


def usable(request: lamina.Request) -> bool:
    request.set_input("count", np.array(2, np.int64))
    request.run()
    return request.output(0).shape == (32, 32)


def test_run(relu):
    request = relu.request()
    assert request.status == "idle"
    with pytest.raises(lamina.BadCall, match="nothing has run yet"):
        request.output(0)
    with pytest.raises(lamina.BadInput):
        request.run()  # without its input
    request.set_input("x", X)
    request.run()
    assert request.status == "done" and request.output("y").tolist() == [0, 2, 0, 4]
    assert request.memory >= 0
    request.set_input(0, None)
    with pytest.raises(lamina.BadInput):
        request.run()


def test_names_and_indices(sums):
    request = sums.request()
    for which, text in (("c", 'no input "c"'), (2, "input 2: the model has 2"), (-1, "input -1"), (0.5, "a float")):
        with pytest.raises(lamina.BadInput, match=text):
            request.set_input(which, X.reshape(1, 4))
    with pytest.raises(lamina.BadInput, match='there is no output "q", there are: "sum", "difference"'):
        request.set_output("q", X)
    with pytest.raises(lamina.BadInput, match=r"wanted f32\[n,4\]: np.asarray\(x, np.float32\)"):
        request.set_input("a", [1.0])


def test_start_and_wait(relu):
    request = relu.request()
    request.set_input("x", X)
    request.start()
    assert request.wait() is True
    assert request.output(0).tolist() == [0, 2, 0, 4]
    target = np.zeros(8, np.float32)
    request.set_output(0, target[::2])
    request.start()
    request.wait(10)
    assert target.tolist() == [0, 0, 2, 0, 0, 0, 4, 0] and request.copies == 1


def test_timeout(endless):
    request = long_request(endless)
    begin = time.monotonic()
    with pytest.raises(lamina.Timeout, match="more than 0.1 s") as caught:
        request.run(timeout=0.1)
    assert isinstance(caught.value, TimeoutError) and isinstance(caught.value, lamina.Canceled)
    assert time.monotonic() - begin < 200 and usable(request)
    request.run(timeout=1000)


@pytest.mark.parametrize("seconds", [0, 1e-6, 1e-5, 1e-4, 1e-3])
def test_a_time_that_is_over_while_the_inference_begins(endless, seconds):
    request = long_request(endless)
    for _ in range(300):
        with pytest.raises(lamina.Timeout):
            request.run(timeout=seconds)
    assert usable(request)


def test_cancel_from_another_thread(endless):
    request = long_request(endless)
    timer = threading.Timer(0.1, request.cancel)
    timer.start()
    with pytest.raises(lamina.Canceled) as caught:
        request.run()
    assert caught.value.code == "canceled" and usable(request)
    timer.join()


def test_busy(endless):
    """A second thread cannot run or change a request that runs; waiting and cancelling are for all."""
    request = long_request(endless)
    errors = []

    def run():
        with pytest.raises(lamina.Canceled):
            request.run()

    thread = threading.Thread(target=run)
    thread.start()
    while request.status != "running":
        time.sleep(0.001)
    for call in (
        request.run,
        request.start,
        request.reset_state,
        lambda: request.set_input("count", LONG),
        lambda: request.set_output(0, np.zeros((32, 32), np.float32)),
        lambda: request.output(0),
    ):
        try:
            call()
        except lamina.Busy as error:
            errors.append(error.code)
    assert request.wait(0.01) is False
    request.cancel()
    thread.join()
    assert errors == ["busy"] * 6 and usable(request)


def test_request_is_destroyed_while_it_runs(endless):
    request = long_request(endless)
    request.start()
    del request  # cancels, and waits for the end


def test_variables():
    model = lamina.load(models.COUNTER.encode(), weights=bytes(16))
    assert [port.name for port in model.variables] == ["total"]
    request = model.request()
    ones = np.ones(4, np.float32)
    request.set_input("x", ones)
    for i in range(1, 4):
        request.run()
        assert request.output("y").tolist() == [i] * 4
        assert request.variables["total"].tolist() == [i] * 4
    request.set_variable("total", 10 * ones)
    request.run()
    assert request.output("y").tolist() == [11] * 4
    request.reset_state()
    request.run()
    assert request.output("y").tolist() == [1] * 4
    with pytest.raises(lamina.BadInput):
        request.set_variable("total", ones[:2])
    with pytest.raises(lamina.BadInput, match="float64 given"):
        request.set_variable("total", ones.astype(np.float64))
    with pytest.raises(lamina.BadInput, match="other"):
        request.set_variable("other", ones)


def test_times():
    model = lamina.load(models.sums(), profile=True)
    request = model.request()
    assert request.layer_times == []
    a = np.ones((2, 4), np.float32)
    request.set_input("a", a)
    request.set_input("b", a)
    request.run()
    times = request.layer_times
    assert times and all(isinstance(t, lamina.LayerTime) and t.kernel and t.microseconds >= 0 for t in times)
    counters = request.counters
    assert {c.status for c in counters} <= {"executed", "optimized_out", "not_run"}
    assert any(c.runs == 1 for c in counters)
    request.set_profile(False)
    request.run()
    assert request.layer_times == []
    with pytest.raises(lamina.BadOption):
        _ = request.counters


def test_output_overlaps_input(relu):
    request = relu.request()
    x = X.copy()
    request.set_input(0, x)
    request.set_output(0, x)
    with pytest.raises(lamina.BadInput, match="overlaps"):
        request.run()
    request.set_output(0, None)
    request.run()
    request.set_input(0, request.output(0))  # a result is the next input
    request.run()
    assert request.output(0).tolist() == [0, 2, 0, 4]
