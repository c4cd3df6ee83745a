"""The end of the interpreter while threads of the library, or of Python's in the library, wait for the GIL: the exit
status is the program's. Each case is a process.

The main thread keeps the GIL until the interpreter has begun to end. Then it gives the GIL away for a while, in the
destructor of a global object: so other threads meet the end where they wait for it.
"""

import textwrap
from pathlib import Path

import models
import pytest

BEGIN = """
import asyncio, sys, threading, time
sys.path.insert(0, FOLDER)
import numpy as np
import models, lamina
text = models.long_to_compile(400, "n")  # the first run of a new size tells its progress more than a thousand times
x = np.ones((3, 8), np.float32)

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.5)

sys.slow = Slow()  # of the last module that the end of the interpreter clears

def keep():
    "Keeps the GIL from now on, but where it is given away."
    sys.setswitchinterval(1000)

def end():
    "Ends the program after some time, in which others come and wait for the GIL."
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        pass
    sys.exit(3)

def start(model):
    request = model.request()
    request.set_input(0, x)
    keep()
    request.start()
    return request

def in_daemon_thread(work):
    "Does the work again and again, the first time before this returns."
    begun = threading.Event()
    def loop():
        while True:
            work()
            begun.set()
    threading.Thread(target=loop, daemon=True).start()
    begun.wait()
"""

CASES = {
    "progress of a request": """
        request = start(lamina.load(text, threads=1, progress="{} {}".format))
        end()
    """,
    "progress of asyncio's inferences": """
        model = lamina.load(text, threads=1, progress="{} {}".format)
        async def go():
            task = asyncio.ensure_future(model.run_async(x))
            await asyncio.sleep(0)
            keep()
        loop = asyncio.new_event_loop()
        loop.run_until_complete(go())
        end()
    """,
    "inside a callback": """
        begun, told = threading.Event(), []
        def progress(*_, sleep=time.sleep):
            while told:
                begun.set()
                sleep(0.01)
        model = lamina.load(text, threads=1, progress=progress)
        told.append(True)
        request = start(model)
        begun.wait()
        end()
    """,
    "inside a callback for the log": """
        begun = threading.Event()
        def log(*_, sleep=time.sleep):
            while True:
                begun.set()
                sleep(0.01)
        threading.Thread(target=lambda: lamina.load(text, log=log), daemon=True).start()
        begun.wait()
        end()
    """,
    "progress of load()": """
        in_daemon_thread(lambda: lamina.load(text, progress="{} {}".format))
        keep()
        end()
    """,
    "calls": """
        model = lamina.load(text, threads=1)
        in_daemon_thread(lambda: model(x))
        keep()
        end()
    """,
}


@pytest.mark.parametrize("name", CASES)
def test_exit_status(name):
    code = f"FOLDER = {str(Path(__file__).parent)!r}\n" + BEGIN + textwrap.dedent(CASES[name])
    ran = models.python(code)
    assert ran.returncode == 3, ran.stdout + ran.stderr
