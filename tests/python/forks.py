"""Children of forks, and locks that a thread of the parent holds meanwhile."""

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any


def status_of(child: int, seconds: float = 60) -> int:
    """The exit status of a child; of one that does not end in time: -SIGKILL."""
    end = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            end = float("inf")
        time.sleep(0.005)


def begin_child(work: Callable[[], object]) -> int:
    """A child of a fork that does the work: 0, or 1 if it raises."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    return child


def in_child(work: Callable[[], object]) -> int:
    """The exit status of a child of a fork that does the work."""
    return status_of(begin_child(work))


@contextlib.contextmanager
def held_by_another_thread(*locks: Any) -> Iterator[None]:
    """Another thread holds the locks inside the block."""
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with contextlib.ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        yield
    finally:
        over.set()
        thread.join()
