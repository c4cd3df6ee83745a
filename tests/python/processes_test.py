"""Fork, spawn, pickle, threads."""

import multiprocessing
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import lamina
import models
import numpy as np
import onnx
import pytest
from forks import in_child

X = np.array([[-1, 2, -3, 4]], np.float32)
_model: lamina.CompiledModel | None = None


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "sums.onnx"
    onnx.save(models.sums(), file)
    return file


def work(i: int) -> float:
    assert _model is not None
    return float(_model(X + i, X)["sum"][0, 1])


def work_with(model: lamina.CompiledModel, i: int) -> float:
    return float(model(X + i, X)["sum"][0, 1])


def test_prefork(sums):
    """A server that loads its model, then forks its workers."""
    global _model
    _model = sums
    sums(X, X)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map(work, range(100)) == [4.0 + i for i in range(100)]
    assert work(0) == 4


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_models_go_to_other_processes(path, method):
    model = lamina.load(path, threads=1, profile=True)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        assert list(pool.map(work_with, [model] * 20, range(20))) == [4.0 + i for i in range(20)]


def test_pickle(path):
    model = lamina.load(path, threads=2, properties={"NUM_STREAMS": 2})
    again = pickle.loads(pickle.dumps(model))
    assert again.threads == 1 and again.streams == model.streams == 2 and repr(again) == repr(model)
    text = pickle.dumps(model)
    path.write_bytes(path.read_bytes() + b"\n\0")
    with pytest.raises(lamina.BadFile, match="changed"):
        pickle.loads(text)
    path.unlink()
    with pytest.raises(lamina.BadFile, match="No such file"):
        pickle.loads(text)
    with pytest.raises(TypeError, match="memory"):
        pickle.dumps(lamina.load(models.sums()))


def test_errors_are_pickled():
    error = pickle.loads(pickle.dumps(lamina.BadInput("what")))
    assert type(error) is lamina.BadInput and str(error) == "what" and error.code == "bad_input"


def test_fork_while_all_kinds_of_work_run(sums):
    """The child has the model, a queue without work, and its own threads; the parent goes on."""
    stop = threading.Event()
    wrong = []

    def run():
        while not stop.is_set():
            if sums(X, X)[0][0, 1] != 4:
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    queue = lamina.Queue(sums, jobs=2)
    futures = [queue.submit((X, X)) for _ in range(20)]

    def child():
        import asyncio

        assert sums(X, X)[0][0, 1] == 4
        assert queue.submit((X, X)).result(60)[0][0, 1] == 4
        queue.wait_all()

        async def one():
            return (await sums.run_async(X, X))[0][0, 1]

        assert asyncio.run(one()) == 4
        request = sums.request()
        request.set_input(0, X)
        request.set_input(1, X)
        request.run(timeout=60)

    statuses = [in_child(child) for _ in range(10)]
    stop.set()
    for thread in threads:
        thread.join()
    assert statuses == [0] * 10 and not wrong
    assert [f.result()[0][0, 1] for f in futures] == [4] * 20
    queue.close()


def test_destroyed_in_the_child():
    model = lamina.load(models.sums(), threads=2)
    request = model.request()
    request.set_input(0, X)
    request.set_input(1, X)
    request.run()

    def child():
        nonlocal model, request
        del model, request

    assert in_child(child) == 0
    request.run()


def test_child_exits_normally(sums):
    """Through exit handlers, not os._exit."""
    context = multiprocessing.get_context("fork")
    process = context.Process(target=work_with, args=(sums, 1))
    process.start()
    process.join(60)
    assert process.exitcode == 0


def test_sixty_four_threads(sums):
    def run(i):
        for k in range(100):
            a = np.full((1 + (i + k) % 3, 4), i, np.float32)
            total, difference = sums(a, b=a)
            if not (np.array_equal(total, a + a) and not difference.any()):
                return False
        return True

    with ThreadPoolExecutor(64) as pool:
        assert all(pool.map(run, range(64)))


def test_a_thread_of_each_request(sums):
    def run(i):
        request = sums.request()
        a = np.zeros((2, 4), np.float32)
        request.set_input(0, a)
        request.set_input(1, a)
        for k in range(200):
            a[:] = i + k
            request.run()
            if not np.array_equal(request.output(0), 2 * a):
                return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(run, range(16)))
