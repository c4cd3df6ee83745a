"""What happens when the process forks."""

import os
import weakref
from typing import Protocol

from lamina import _lamina


class _Forked(Protocol):
    def after_fork_in_child(self) -> None: ...


_told: "weakref.WeakSet[_Forked]" = weakref.WeakSet()


def tell_forks(one: _Forked) -> None:
    """Calls `one.after_fork_in_child()` in the child of each fork, as long as `one` exists."""
    _told.add(one)


def _after_fork_in_child() -> None:
    _lamina.after_fork_in_child()
    for one in list(_told):
        one.after_fork_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)
