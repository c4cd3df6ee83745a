"""run_async: many tasks on one model, cancelling, several loops, errors."""

import asyncio
import threading
import time

import lamina
import models
import numpy as np
import pytest
from forks import in_child


@pytest.fixture(scope="module", params=[0, 1, 2])
def sums_model(request):
    return lamina.load(models.sums(), properties={"NUM_STREAMS": request.param})


@pytest.fixture(scope="module", params=[0, 1])
def endless_model(request):
    return lamina.load(models.endless(), threads=1, properties={"NUM_STREAMS": request.param})


def test_a_thousand_tasks(sums_model):
    async def one(i):
        a, b = np.full((1 + i % 3, 4), i, np.float32), np.full((1 + i % 3, 4), 2 * i, np.float32)
        outputs = await sums_model.run_async(a, b=b)
        return np.array_equal(outputs["sum"], a + b) and np.array_equal(outputs["difference"], a - b)

    async def all_of_them():
        return await asyncio.gather(*(one(i) for i in range(1000)))

    assert all(asyncio.run(all_of_them()))


def test_several_loops(sums_model):
    async def one():
        return (await sums_model.run_async(np.ones((1, 4), np.float32), np.ones((1, 4), np.float32)))[0][0, 0]

    assert [asyncio.run(one()) for _ in range(20)] == [2] * 20


def test_errors(sums_model):
    async def wrong():
        with pytest.raises(lamina.BadInput, match="a list given"):
            await sums_model.run_async([1], [2])
        with pytest.raises(lamina.BadInput):
            await sums_model.run_async(np.ones((1, 4), np.float32))
        ones = np.ones((3, 4), np.float32)
        with pytest.raises(lamina.BadInput):
            await sums_model.run_async(ones, np.ones((2, 4), np.float32))
        return (await sums_model.run_async(ones, ones))[0][0, 0]

    assert asyncio.run(wrong()) == 2


def test_a_cancelled_task_cancels_its_inference(endless_model):
    x = np.ones((32, 32), np.float32)

    async def cancelled():
        tasks = [
            asyncio.create_task(endless_model.run_async(x, np.array(90_000_000, np.int64))) for _ in range(3)
        ]
        await asyncio.sleep(0.1)
        begin = time.monotonic()
        for task in tasks:
            task.cancel()
        assert all(
            isinstance(e, asyncio.CancelledError) for e in await asyncio.gather(*tasks, return_exceptions=True)
        )
        # The only stream is free again: the inferences have ended.
        await asyncio.wait_for(endless_model.run_async(x, np.array(1, np.int64)), 60)
        return time.monotonic() - begin

    assert asyncio.run(cancelled()) < 60


@pytest.mark.skipif(not hasattr(asyncio, "timeout"), reason="asyncio.timeout() came with Python 3.11")
def test_timeout_of_asyncio(endless_model):
    async def limited():
        async with asyncio.timeout(0.1):
            await endless_model.run_async(np.ones((32, 32), np.float32), np.array(90_000_000, np.int64))

    with pytest.raises(TimeoutError):
        asyncio.run(limited())


def test_the_loop_goes_on_meanwhile(endless_model):
    async def ticks():
        task = asyncio.create_task(
            endless_model.run_async(np.ones((32, 32), np.float32), np.array(90_000_000, np.int64))
        )
        for _ in range(10):
            await asyncio.sleep(0.001)
        done = task.done()
        task.cancel()
        return done

    assert asyncio.run(ticks()) is False


def test_a_child_has_none_of_the_loops():
    """They are the parent's, and so is what they wait for; a loop of the child's works."""
    model = lamina.load(models.sums(), properties={"NUM_STREAMS": 1})
    ones = np.ones((1, 4), np.float32)
    up, over = threading.Event(), threading.Event()

    async def run():
        return (await model.run_async(ones, ones))[0][0, 0]

    async def keep():
        assert await run() == 2
        up.set()
        await asyncio.to_thread(over.wait)
        return await run()

    def child():
        from lamina import _async

        assert not list(_async._loops)
        assert asyncio.run(run()) == 2
        _async._at_exit()

    results = []
    thread = threading.Thread(target=lambda: results.append(asyncio.run(keep())))
    thread.start()
    up.wait()
    status = in_child(child)
    over.set()
    thread.join()
    assert status == 0 and results == [2]


def test_fork_while_loops_work():
    """Inferences end in threads of the library while the process forks; a child's handler of its exit does not wait."""
    model = lamina.load(models.sums(), threads=2, properties={"NUM_STREAMS": 2})
    ones = np.ones((1, 4), np.float32)
    over = threading.Event()

    async def one():
        while not over.is_set():
            await model.run_async(ones, ones)

    async def some():
        await asyncio.gather(*(one() for _ in range(4)))

    from lamina import _async

    threads = [threading.Thread(target=lambda: asyncio.run(some())) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    statuses = [in_child(_async._at_exit) for _ in range(200)]
    over.set()
    for thread in threads:
        thread.join()
    assert statuses == [0] * 200
