"""Inferences that tasks of asyncio wait for.

Threads of the library put inferences that have ended on a list of each event loop, without the GIL, and wake the loop
once for all that came since it took the last ones.
"""

import asyncio
import atexit
import contextlib
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lamina import _lamina, _process
from lamina.outputs import Outputs

if TYPE_CHECKING:
    from lamina.compiled import CompiledModel


class _EndedCalls:
    """The ended calls of one event loop. The list is watched while inferences are under way."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.calls = _lamina.EndedCalls()
        self.descriptor = self.calls.fileno()
        self.waiting = 0
        self.loop = weakref.ref(loop)

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.waiting == 0:
            loop.add_reader(self.descriptor, self.take)
        self.waiting += 1

    def end(self) -> None:
        self.waiting -= 1
        loop = self.loop()
        if self.waiting == 0 and loop is not None and not loop.is_closed():
            loop.remove_reader(self.descriptor)

    def take(self) -> None:
        for call in self.calls.take():
            self.end()
            future: asyncio.Future[Outputs] = call.__dict__.pop("future")
            if future.done():  # its task was cancelled
                call.end()
                continue
            try:
                future.set_result(call.result())
            except BaseException as error:
                future.set_exception(error)


class _Loops:
    """The lists of all event loops."""

    def __init__(self) -> None:
        self._ended: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _EndedCalls] = weakref.WeakKeyDictionary()
        _process.tell_forks(self)

    def __iter__(self) -> Iterator[_EndedCalls]:
        return iter(list(self._ended.values()))

    def of(self, loop: asyncio.AbstractEventLoop) -> _EndedCalls:
        ended = self._ended.get(loop)
        if ended is None:
            ended = self._ended[loop] = _EndedCalls(loop)
        return ended

    def after_fork_in_child(self) -> None:
        """The loops are the parent's, and so are the inferences that they wait for, and the descriptors that wake them."""
        for ended in self:
            ended.calls.after_fork_in_child()
        self._ended = weakref.WeakKeyDictionary()


_loops = _Loops()


def _at_exit() -> None:
    """Inferences whose loops are gone: nobody takes them."""
    for ended in _loops:
        ended.calls.close()
    _lamina.release()


atexit.register(_at_exit)


async def run(model: "CompiledModel", args: tuple[Any, ...], named: dict[str, Any]) -> Outputs:
    loop = asyncio.get_running_loop()
    call = _lamina.Call(model, *args, **named)
    if model.streams == 0:  # the callers' threads do the work
        return await _in_executor(loop, call)
    ended = _loops.of(loop)
    future: asyncio.Future[Outputs] = loop.create_future()
    call.__dict__["future"] = future
    ended.begin(loop)
    try:
        call.start(ended.calls)
    except BaseException:
        ended.end()
        raise
    try:
        return await future
    except asyncio.CancelledError:
        call.cancel()
        raise


async def _in_executor(loop: asyncio.AbstractEventLoop, call: _lamina.Call) -> Outputs:
    def work() -> Outputs:
        call.run()
        return call.result()

    future = loop.run_in_executor(None, work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        call.cancel()
        with contextlib.suppress(BaseException):
            future.cancel()
        raise
