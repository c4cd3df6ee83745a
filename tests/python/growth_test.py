"""Memory and references: nothing grows over many calls, and nothing is left at the end."""

import gc
import os
import sys

import lamina
import models
import numpy as np
import pytest

if "LAMINA_PYTHON_PRELOAD" in os.environ:
    pytest.skip("a sanitizer has memory of its own", allow_module_level=True)

X = np.array([[1, 2, 3, 4]], np.float32)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_a_hundred_thousand_calls(sums):
    request = sums.request()
    out = np.zeros((1, 4), np.float32)

    def calls(n):
        for _ in range(n):
            sums(X, b=X)
            sums({"a": X, "b": X}, out=[out, None])
            request.set_input(0, X)
            request.set_input(1, X)
            request.run()
            request.output(0)

    calls(2000)
    gc.collect()
    before = resident(), sys.getrefcount(X), sys.getrefcount(out), sys.getrefcount(sums), len(gc.get_objects())
    calls(100_000)
    gc.collect()
    after = resident(), sys.getrefcount(X), sys.getrefcount(out), sys.getrefcount(sums), len(gc.get_objects())
    assert after[0] - before[0] < 4 << 20
    assert after[1:4] == before[1:4] and abs(after[4] - before[4]) < 50


def test_errors_release_what_they_were_given(sums):
    def wrong():
        for call in (
            lambda: sums(X, [1]),
            lambda: sums(X, X.astype(np.float64)),
            lambda: sums(X, c=X),
            lambda: sums(X, X, out=[X]),
            lambda: sums(X),
        ):
            with pytest.raises(lamina.BadInput):
                call()

    wrong()
    gc.collect()
    before = sys.getrefcount(X)
    for _ in range(200):
        wrong()
    gc.collect()
    assert sys.getrefcount(X) == before


def test_models_come_and_go():
    text = models.sums().SerializeToString()

    def cycle():
        model = lamina.load(text, log=lambda level, line: None, progress=lambda stage, done: None)
        model(X, X)
        request = model.request()
        request.set_input(0, X)
        with lamina.Queue(model) as queue:
            queue.submit((X, X)).result()

    for _ in range(20):
        cycle()
    gc.collect()
    before = resident(), sys.getrefcount(text), sys.getrefcount(X)
    for _ in range(200):
        cycle()
    gc.collect()
    lamina.load(text)  # what other threads let go of is released at the next load
    assert sys.getrefcount(text) <= before[1] + 2 and sys.getrefcount(X) == before[2]
    assert resident() - before[0] < 16 << 20


def test_a_callback_that_refers_to_the_model_is_collected():
    class Log:
        model = None

        def __call__(self, level, line):
            pass

    import weakref

    log = Log()
    log.model = lamina.load(models.sums(), log=log)
    log.model(X, X)
    ref = weakref.ref(log)
    del log
    gc.collect()
    assert ref() is None


AT_END = """
import sys; sys.path.insert(0, {folder!r})
import asyncio, numpy as np, lamina, models
m = lamina.load(models.sums(), log=lambda level, line: None)
x = np.ones((1, 4), np.float32)
request = m.request()
request.set_input(0, x)
{what}
"""
ENDS = {
    "nothing": "",
    "module globals": "keep = [m, request, m(x, x), request]",
    "cycle": "m.itself = m",
    "an error": "\ntry:\n    m(x)\nexcept lamina.BadInput as e:\n    kept = e",
    "async": "async def one():\n    return await m.run_async(x, x)\nprint(asyncio.run(one()))",
    "queue": "q = lamina.Queue(m); f = q.submit((x, x)); f.result()",
    "queue that is not empty": "q = lamina.Queue(m); fs = [q.submit((x, x)) for _ in range(5)]",
    "thread": "import threading; t = threading.Thread(target=lambda: [m(x, x) for _ in range(1000)]); t.start()",
}


@pytest.mark.parametrize("what", ENDS)
def test_end_of_the_process(what):
    from pathlib import Path

    code = AT_END.format(folder=str(Path(__file__).parent), what=ENDS[what])
    ran = models.python(code)
    assert ran.returncode == 0 and ran.stderr == "", ran.stderr
