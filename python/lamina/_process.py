"""What happens when the process forks."""

import os
import threading
import weakref
from typing import Protocol

from lamina import _lamina


class _Forked(Protocol):
    def after_fork_in_child(self) -> None: ...


_told: "weakref.WeakSet[_Forked]" = weakref.WeakSet()


def tell_forks(one: _Forked) -> None:
    """Calls `one.after_fork_in_child()` in the child of each fork, as long as `one` exists."""
    _told.add(one)


def free(condition: threading.Condition) -> threading.Condition:
    """In a child: the condition, or another one if a thread of the parent holds it, which the child does not have."""
    if not condition.acquire(blocking=False):
        return threading.Condition()
    condition.release()
    return condition


class Lock:
    """A lock that a child of a fork finds free, unless the thread that forked holds it.

    A thread may take it again while it holds it.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        tell_forks(self)

    def after_fork_in_child(self) -> None:
        self._condition = free(self._condition)

    def __enter__(self) -> None:
        self._condition.acquire()

    def __exit__(self, *_: object) -> None:
        self._condition.release()


def _after_fork_in_child() -> None:
    _lamina.after_fork_in_child()
    for one in list(_told):
        one.after_fork_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)
