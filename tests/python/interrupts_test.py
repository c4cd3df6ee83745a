"""Ctrl-C comes through while the library works, and the model can be used afterwards. Each case is a process."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

BEGIN = """
import os, signal, sys, threading, time
sys.path.insert(0, FOLDER)
import numpy as np
import models, lamina
x, forever = np.ones((32, 32), np.float32), np.array(90_000_000, np.int64)
relu = lamina.load(models.relu(), threads=1)

def interrupted(work, after=0.3, number=signal.SIGINT):
    "Seconds from the signal to its exception."
    sent = []
    def send():
        time.sleep(after)
        sent.append(time.monotonic())
        os.kill(os.getpid(), number)
    thread = threading.Thread(target=send)
    thread.start()
    try:
        work()
    except KeyboardInterrupt:
        took = time.monotonic() - sent[0]
    else:
        raise SystemExit("no KeyboardInterrupt")
    thread.join()
    assert relu(np.array([-1, 2, -3, 4], np.float32))[0].tolist() == [0, 2, 0, 4]
    print("after", took)
    return took
"""

CASES = {
    "call": """
        m = lamina.load(models.endless(), threads=1)
        interrupted(lambda: m(x, forever))
        interrupted(lambda: m(x, forever), after=0.01)
        assert m(x, np.array(1))[0].shape == (32, 32)
    """,
    "call with helper threads": """
        m = lamina.load(models.endless(512), threads=2)
        big = np.ones((512, 512), np.float32)
        interrupted(lambda: m(big, forever))
        assert m(big, np.array(1))[0].shape == (512, 512)
    """,
    "call without streams": """
        m = lamina.load(models.endless(), properties={"NUM_STREAMS": 0})
        interrupted(lambda: m(x, forever))
        assert m(x, np.array(1))[0].shape == (32, 32)
    """,
    "run": """
        m = lamina.load(models.endless(), threads=1)
        request = m.request()
        request.set_input(0, x)
        request.set_input(1, forever)
        interrupted(request.run)
        interrupted(lambda: request.run(timeout=100))
        request.set_input(1, np.array(1))
        request.run()
    """,
    "wait": """
        m = lamina.load(models.endless(), threads=1)
        request = m.request()
        request.set_input(0, x)
        request.set_input(1, forever)
        request.start()
        interrupted(request.wait)
        request.cancel()
        try:
            request.wait()
        except lamina.Canceled:
            pass
        request.set_input(1, np.array(1))
        request.run()
    """,
    "check": """
        m = lamina.load(models.endless(), threads=1)
        interrupted(lambda: m.check(x, forever))
        interrupted(lambda: m.check(x, np.array(100_000)), after=3)
        assert m.check(x, np.array(1)).clean
    """,
    "wait_all": """
        m = lamina.load(models.endless(), threads=1)
        queue = lamina.Queue(m, jobs=2)
        slow = m.request()
        calls = [queue.submit((x, np.array(3_000_000))) for _ in range(2)]
        interrupted(queue.wait_all)
        interrupted(lambda: queue.submit((x, forever)), after=0.1)
        os._exit(0)
    """,
    "wait_all in a with block": """
        m = lamina.load(models.endless(), threads=1)
        def block():
            with lamina.Queue(m, jobs=2) as queue:
                queue.submit((x, forever))
                queue.wait_all()
        interrupted(block)
        assert m(x, np.array(1))[0].shape == (32, 32)
    """,
    "load": """
        text = models.long_to_compile(20000)
        m = None
        def load():
            for _ in range(100):
                lamina.load(text)
        interrupted(load)
        interrupted(load, after=1.0)
        interrupted(lambda: [lamina.Model(text) for _ in range(1000)])
    """,
    "graph, plan and profile": """
        m = lamina.load(models.long_to_compile(8000, "rows"), threads=1)
        rows = lambda count: np.zeros((count, 8), np.float32)
        interrupted(lambda: m.graph("both"))
        interrupted(lambda: [m.plan([count, 8]) for count in range(100, 200)])
        interrupted(lambda: m.profile(rows(5), seconds=1000))
        interrupted(lambda: m.graph("runtime", rows(6), seconds=1000))
        assert "<svg" in m.graph("after") and m(rows(7))[0].shape == (7, 8)
    """,
    "optimize": """
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            xml, text = folder + "/m.xml", models.long_to_compile(8000)
            def optimize():
                while True:
                    lamina.optimize(text, xml)
            lamina.optimize(models.relu(), xml)
            interrupted(optimize)
            lamina.load(xml)  # the old one or a whole new one
            assert sorted(os.listdir(folder)) == ["m.bin", "m.xml"]
    """,
    "a handler that raises nothing": """
        seen = []
        signal.signal(signal.SIGINT, lambda *_: seen.append(1))
        m = lamina.load(models.endless(), threads=1)
        threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT)).start()
        request = m.request()
        request.set_input(0, x)
        request.set_input(1, np.array(20_000))
        request.run()
        assert request.output(0).shape == (32, 32) and m(x, np.array(10))
        while not seen:
            time.sleep(0.01)
        assert seen == [1]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupted(lambda: m(x, forever))
    """,
    "a handler of before the import is kept": """
        m = lamina.load(models.endless(), threads=1)
        interrupted(lambda: m(x, forever))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        interrupted(lambda: time.sleep(100))
        interrupted(lambda: m(x, forever))
    """,
    "a thread of Python is not interrupted": """
        m = lamina.load(models.endless(), threads=2, properties={"NUM_STREAMS": 2})
        done = []
        thread = threading.Thread(target=lambda: done.append(m(x, np.array(20_000))))
        thread.start()
        interrupted(lambda: m(x, forever))
        thread.join()
        assert len(done) == 1
    """,
    "inside a callback": """
        text = models.long_to_compile(300)
        stages = []
        def progress(stage, done):
            stages.append(stage)
            relu(np.zeros(4, np.float32))
            if len(stages) == 2:
                raise KeyError("enough")
        try:
            lamina.load(text, progress=progress)
        except KeyError as error:
            assert error.args == ("enough",) and len(stages) >= 2
        else:
            raise SystemExit("no error")
        m = lamina.load(models.endless(), threads=1)
        interrupted(lambda: m(x, forever))
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_interrupt(name):
    code = f"FOLDER = {str(Path(__file__).parent)!r}\n" + BEGIN + textwrap.dedent(CASES[name])
    ran = subprocess.run([sys.executable, "-X", "faulthandler", "-c", code], capture_output=True, text=True, timeout=500)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr and "leaked" not in ran.stderr, ran.stderr
    for line in ran.stdout.splitlines():
        if line.startswith("after"):
            assert float(line.split()[1]) < 100  # a third of a second, unless the machine is busy
