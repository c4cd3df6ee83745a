"""Many inferences at once, with bounded memory."""

import atexit
import contextlib
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from lamina import _lamina, _process
from lamina.errors import BadCall, Busy, Canceled
from lamina.outputs import Outputs

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from lamina.compiled import CompiledModel

    OutputsFuture: TypeAlias = "Future[Outputs]"

Callback: TypeAlias = Callable[[Outputs, Any], object]


class _State:
    """What a queue and its thread share: the thread does not keep the queue alive."""

    def __init__(self, jobs: int, callback: Callback | None, has_streams: bool) -> None:
        self.jobs = jobs
        self.callback = callback
        self.has_streams = has_streams
        self.pool: ThreadPoolExecutor | None = None  # of models without streams: threads do the work
        self.callbacks = threading.Lock()
        self.pid = os.getpid()
        self.closed = False
        self.running = 0  # inferences
        self.under_way = 0  # inferences, and those whose futures are not done yet
        self.changed = threading.Condition()
        self.ended = _lamina.EndedCalls()
        self.thread: threading.Thread | None = None
        self.calls: dict[OutputsFuture, _lamina.Call] = {}

    def reserve(self) -> None:
        """Waits for a free place. Callbacks do not wait, since nothing ends during them: their own inference has ended."""
        with self.changed:
            self.check()
            while self.running >= self.jobs and not self.calls_back_here():
                self.changed.wait()
                self.check()
            self.running += 1
            self.under_way += 1
            if self.has_streams and self.thread is None:
                self.thread = threading.Thread(target=_serve, args=(self,), name="lamina-queue", daemon=True)
                self.thread.start()

    def check(self) -> None:
        if self.closed:
            raise BadCall("the queue is closed")

    def start(self, call: _lamina.Call) -> None:
        if self.has_streams:
            call.start(self.ended)
            return
        if self.pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self.pool = ThreadPoolExecutor(self.jobs, "lamina-queue")
        self.pool.submit(self.run, call)

    def run(self, call: _lamina.Call) -> None:
        with contextlib.suppress(BaseException):  # finish() gets it again
            call.run()
        self.finish(call)

    def calls_back_here(self) -> bool:
        """The calling thread is in a callback of this queue or of a future of it."""
        return getattr(_here, "finishing", None) is self

    def release_place(self) -> None:
        with self.changed:
            self.running -= 1
            self.changed.notify_all()

    def release(self) -> None:
        with self.changed:
            self.under_way -= 1
            self.changed.notify_all()

    def wait_all(self) -> None:
        if self.calls_back_here():
            raise Busy("wait_all() would wait for the callback that it is called in")
        with self.changed:
            while self.under_way:
                self.changed.wait()

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self.changed.notify_all()
        self.ended.wake()

    def cancel(self) -> None:
        for call in list(self.calls.values()):
            call.cancel()

    def finish(self, call: _lamina.Call) -> None:
        """Gives the results of a call to its future and the callback."""
        future: OutputsFuture = call.__dict__.pop("future")
        userdata = call.__dict__.pop("userdata", None)
        before, _here.finishing, pid = getattr(_here, "finishing", None), self, os.getpid()
        try:
            try:
                try:
                    outputs = call.result()
                finally:
                    self.release_place()
                if self.callback is not None:
                    with self.callbacks:
                        self.callback(outputs, userdata)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(outputs)
        finally:
            _here.finishing = before
            self.calls.pop(future, None)
            if pid == os.getpid():  # a child of fork() begins to count anew
                self.release()

    def after_fork_in_child(self) -> None:
        """In the child there is no thread of the queue, and no inference is under way."""
        futures, self.calls = list(self.calls), {}
        self.callbacks = threading.Lock()
        self.ended.after_fork_in_child()
        self.changed = _process.free(self.changed)
        with self.changed:
            self.pid, self.running, self.under_way = os.getpid(), 0, 0
            self.thread = self.pool = None
            self.changed.notify_all()
        for future in futures:
            _end_in_child(future)


_here = threading.local()  # finishing: the queue that the thread calls back for


def _end_in_child(future: "OutputsFuture") -> None:
    """Ends a future whose inference runs in the parent.

    set_exception() would wait for locks that threads of the parent may hold: the future's own, and those of
    as_completed() and wait(). It would also call the done-callbacks, inside os.fork(). The parent calls them.
    """
    future._condition = _process.free(future._condition)
    with future._condition:
        if future.done():
            return
        future._done_callbacks = []  # type: ignore[attr-defined]
        future._exception = Canceled("the process was forked: the inference runs in the parent")
        future._state = "FINISHED"
        future._condition.notify_all()


def _serve(state: _State) -> None:
    """The thread of a queue."""
    while True:
        state.ended.wait(60)
        for call in state.ended.take():
            state.finish(call)
            del call
        with state.changed:
            if state.closed and not state.under_way:
                return


_states: "weakref.WeakSet[_State]" = weakref.WeakSet()


def _at_exit() -> None:
    """Ends the threads of all queues: they could not get the GIL any more."""
    for state in list(_states):
        if state.pid != os.getpid():
            continue
        state.close()
        state.cancel()
        if state.thread is not None:
            state.thread.join()


atexit.register(_at_exit)


class Queue:
    """Runs many inferences of a model, `jobs` at most at the same time.

    jobs: 0 means as many as keep all streams of the model busy (`load(..., properties={"PERFORMANCE_HINT":
    "THROUGHPUT"})` makes as many streams as suit the processor). callback(outputs, userdata) is called in a thread of
    the queue for each inference that succeeded, one at a time; its exceptions go to the future. Every function may be
    called from any thread. The callback, and those of the futures, may submit the next inference without waiting for a
    place; wait_all() raises Busy there, and close() does not wait.

    Used in a `with` block, the queue is closed at its end. An exception of the block cancels what is under way.
    """

    def __init__(self, model: "CompiledModel", jobs: int = 0, callback: Callback | None = None) -> None:
        """A queue of `model`. Raises ValueError when `jobs` is negative."""
        if jobs < 0:
            raise ValueError(f"jobs: {jobs} given, wanted 0 or more")
        self._model = model
        self._state = _State(jobs or model.optimal_requests, callback, model.streams != 0)
        _states.add(self._state)
        _process.tell_forks(self._state)

    @property
    def jobs(self) -> int:
        """Number of inferences that are under way at most."""
        return self._state.jobs

    def submit(self, inputs: Any, userdata: Any = None) -> "OutputsFuture":
        """Starts an inference, and waits for a free place if there is none. Returns a concurrent.futures.Future.

        inputs: an array, a mapping of names to arrays, or a tuple or list of arrays. Raises BadInput, and BadCall when
        the queue is closed. Errors of the inference are the future's. The arrays must not change until it is done.
        """
        from concurrent.futures import Future

        state = self._state
        args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        state.check()
        call = _lamina.Call(self._model, *args)
        future: OutputsFuture = Future()
        state.reserve()
        future.set_running_or_notify_cancel()
        call.__dict__.update(future=future, userdata=userdata)
        state.calls[future] = call
        try:
            state.start(call)
        except BaseException:
            call.__dict__.clear()
            state.calls.pop(future, None)
            state.release_place()
            state.release()
            raise
        return future

    def map(self, inputs: Iterable[Any]) -> Iterator[Outputs]:
        """Runs an inference for each element of an iterable, and yields their outputs in its order.

        Takes at most 2 x jobs elements ahead of what was yielded. Raises BadCall when the queue is closed.
        """
        self._state.check()
        return self._map(inputs)

    def _map(self, inputs: Iterable[Any]) -> Iterator[Outputs]:
        ahead: deque[OutputsFuture] = deque()
        for one in inputs:
            ahead.append(self.submit(one))
            if len(ahead) >= 2 * self.jobs:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()

    def wait_all(self) -> None:
        """Waits until no inference of the queue is under way. Raises Busy in the queue's callbacks."""
        self._state.wait_all()

    def close(self, *, cancel: bool = False) -> None:
        """Takes no more inferences, and waits for those under way; in the queue's callbacks it does not wait.

        cancel: those under way end with Canceled. Closing again does nothing.
        """
        state = self._state
        state.close()
        if cancel:
            state.cancel()
        if state.calls_back_here():
            return
        state.wait_all()
        thread = state.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        if state.pool is not None:
            state.pool.shutdown()

    def __enter__(self) -> "Queue":
        return self

    def __exit__(self, error_type: object, *_: object) -> None:
        self.close(cancel=error_type is not None)

    def __del__(self) -> None:
        if "_state" in self.__dict__ and self._state.pid == os.getpid():
            self._state.close()

    def __repr__(self) -> str:
        return f"<Queue of {self._model._name}: {self.jobs} jobs, {self._state.under_way} under way>"
