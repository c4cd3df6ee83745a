"""Queue: futures, order, callbacks, bounded reading ahead, closing."""

import contextlib
import os
import select
import threading
import time

import lamina
import models
import numpy as np
import pytest
from forks import begin_child, held_by_another_thread, in_child, status_of
from lamina import _lamina

STREAMS = [0, 1, 2]


@pytest.fixture(scope="module", params=STREAMS)
def model(request):
    return lamina.load(models.sums(), properties={"NUM_STREAMS": request.param})


def pair(i: int) -> dict[str, np.ndarray]:
    return {"a": np.full((1, 4), i, np.float32), "b": np.ones((1, 4), np.float32)}


def test_futures(model):
    with lamina.Queue(model, jobs=3) as queue:
        assert queue.jobs == 3
        futures = [queue.submit(pair(i)) for i in range(200)]
        queue.wait_all()
        assert all(future.done() for future in futures)
        assert [future.result()["sum"][0, 0] for future in futures] == [i + 1 for i in range(200)]


def test_jobs_of_the_model(model):
    with lamina.Queue(model) as queue:
        assert queue.jobs == model.optimal_requests
    with pytest.raises(ValueError, match="jobs"):
        lamina.Queue(model, jobs=-1)


def test_positional_inputs(model):
    with lamina.Queue(model) as queue:
        assert queue.submit((pair(1)["a"], pair(1)["b"])).result()[0][0, 0] == 2


def test_callback(model):
    seen, inside, most = [], 0, 0

    def callback(outputs, userdata):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        seen.append((userdata, float(outputs["sum"][0, 0])))
        inside -= 1
        if userdata == 7:
            raise ZeroDivisionError("seven")

    with lamina.Queue(model, jobs=2, callback=callback) as queue:
        futures = [queue.submit(pair(i), userdata=i) for i in range(50)]
        queue.wait_all()
    assert sorted(seen) == [(i, i + 1.0) for i in range(50)] and most == 1
    assert isinstance(futures[7].exception(), ZeroDivisionError)
    assert all(future.exception() is None for i, future in enumerate(futures) if i != 7)


def test_map_is_in_order_and_reads_at_most_twice_the_jobs_ahead(model):
    taken = 0

    def source():
        nonlocal taken
        for i in range(100):
            taken += 1
            yield pair(i)

    with lamina.Queue(model, jobs=3) as queue:
        for i, outputs in enumerate(queue.map(source())):
            assert outputs["sum"][0, 0] == i + 1
            assert taken <= i + 2 * queue.jobs
    assert taken == 100


def test_errors_go_to_the_future():
    model = lamina.load(models.endless(), threads=1)
    x = np.ones((32, 32), np.float32)
    with lamina.Queue(model, jobs=2) as queue:
        with pytest.raises(lamina.BadInput):
            queue.submit({"x": x.astype(int), "count": np.array(1)})
        with pytest.raises(lamina.BadInput):
            queue.submit({"x": x})
        assert queue.submit({"x": x, "count": np.array(1)}).result()[0].shape == (32, 32)


def test_closed(model):
    queue = lamina.Queue(model)
    future = queue.submit(pair(3))
    queue.close()
    queue.close()
    assert future.result()["sum"][0, 0] == 4
    with pytest.raises(lamina.BadCall, match="closed"):
        queue.submit(pair(1))
    with pytest.raises(lamina.BadCall, match="closed"):
        next(queue.map([pair(1)]))
    assert "lamina-queue" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("jobs", [1, 3])
def test_callbacks_submit_the_next_inference(model, jobs):
    left, seen, lock = [100], [], threading.Lock()

    def again(future):
        seen.append(future.result()["sum"][0, 0])
        with lock:
            left[0] -= 1
            if left[0] < 0:
                return
        queue.submit(pair(1)).add_done_callback(again)

    with lamina.Queue(model, jobs) as queue:
        for _ in range(2 * jobs):
            queue.submit(pair(1)).add_done_callback(again)
        queue.wait_all()
    assert seen == [2] * (100 + 2 * jobs)


def test_callbacks_that_would_wait_for_themselves(model):
    said = []

    def callback(outputs, queue):
        try:
            queue.wait_all()
        except lamina.Busy as error:
            said.append(str(error))
        queue.close()

    queue = lamina.Queue(model, 1, callback)
    assert queue.submit(pair(1), queue).result()["sum"][0, 0] == 2
    assert len(said) == 1 and "wait for the callback" in said[0]
    queue.close()
    with pytest.raises(lamina.BadCall, match="closed"):
        queue.map([])


@pytest.mark.parametrize("streams", [0, 1])
def test_an_exception_in_a_with_block_cancels(streams):
    model = lamina.load(models.endless(), threads=1, properties={"NUM_STREAMS": streams})
    with pytest.raises(ZeroDivisionError), lamina.Queue(model, 2) as queue:
        futures = [queue.submit((np.ones((32, 32), np.float32), np.array(10**9))) for _ in range(2)]
        raise ZeroDivisionError
    for future in futures:
        with pytest.raises(lamina.Canceled):
            future.result()


def test_dropped_without_closing(model):
    """The futures of a queue that is dropped are done all the same, and its thread ends."""
    futures = []
    for _ in range(5):
        queue = lamina.Queue(model, jobs=2)
        futures += [queue.submit(pair(i)) for i in range(4)]
        del queue
    assert [future.result(timeout=60)["sum"][0, 0] for future in futures] == [1, 2, 3, 4] * 5


def test_many_threads_submit(model):
    wrong = []
    with lamina.Queue(model, jobs=4) as queue:

        def submit(t):
            for i in range(50):
                if queue.submit(pair(100 * t + i)).result()["sum"][0, 0] != 100 * t + i + 1:
                    wrong.append((t, i))

        threads = [threading.Thread(target=submit, args=(t,)) for t in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_a_child_takes_no_lock_of_the_parent(model):
    """Threads of the parent hold the locks of a queue and of its future, whose inference is under way."""
    parent, begun, go, told = os.getpid(), threading.Event(), threading.Event(), []

    def callback(*_):
        if os.getpid() == parent:
            begun.set()
            go.wait()

    def child():
        assert not told  # os.fork() calls no done-callback
        assert isinstance(future.exception(60), lamina.Canceled)
        queue.wait_all()
        assert queue.submit(pair(2)).result(60)["sum"][0, 0] == 3
        queue.close()

    queue = lamina.Queue(model, jobs=2, callback=callback)
    future = queue.submit(pair(1))
    future.add_done_callback(told.append)
    begun.wait()
    with held_by_another_thread(future._condition, queue._state.changed):
        status = in_child(child)
    go.set()
    assert status == 0
    assert future.result(60)["sum"][0, 0] == 2
    queue.close()
    assert told == [future]


def test_a_child_of_the_thread_that_holds_the_locks(model):
    """As when a handler of a signal forks: the thread goes on inside them, in the child, too."""
    with lamina.Queue(model, jobs=2) as queue, contextlib.ExitStack() as held:
        future = queue.submit(pair(1))
        future.result(60)
        queue.wait_all()

        def child():
            held.close()
            assert queue.submit(pair(2)).result(60)["sum"][0, 0] == 3

        held.enter_context(future._condition)
        held.enter_context(queue._state.changed)
        assert in_child(child) == 0


def test_parent_and_child_use_a_queue_at_once(model):
    """Each in its own process: nobody is woken for the other's inferences, or takes them."""

    def use():
        for i in range(50):
            assert queue.submit(pair(i)).result(60)["sum"][0, 0] == i + 1

    with lamina.Queue(model, jobs=2) as queue:
        use()
        child = begin_child(use)
        use()
        assert status_of(child) == 0


def test_a_child_does_not_wake_its_parent():
    ended = _lamina.EndedCalls()

    def child():
        ended.after_fork_in_child()
        ended.wake()
        assert not ended.wait(60) and ended.take() == []

    assert in_child(child) == 0
    assert not select.select([ended.fileno()], [], [], 0)[0]


def test_fork_while_queues_work():
    """Calls end in threads of the library while the process forks; a queue's list of them is free in each child."""
    model = lamina.load(models.sums(), threads=2, properties={"NUM_STREAMS": 2})
    over = threading.Event()

    def work():
        with lamina.Queue(model) as queue:
            while not over.is_set():
                for future in [queue.submit(pair(i)) for i in range(6)]:
                    future.result()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    statuses = [in_child(lambda: None) for _ in range(200)]
    over.set()
    for thread in threads:
        thread.join()
    assert statuses == [0] * 200
