"""One of the calls that a session can run at once: its threads, its workspace, its frames.

In: a loaded bundle. Out: ``ExecutionContext``: `main` called on frames, again where something was
missing. Not done here: the quick way of a call on checked arrays (``session``), who comes when
(``caller_queue``).
"""

import ctypes
import os
import weakref
from sys import _getframe as frame_at  # pyright: ignore[reportPrivateUsage]  # no other way

from ..errors import BundleError, BusyError, LimitError, ResourceError, RunError, no_memory
from ..format import abi
from ..loader.block import Block
from ..loader.ending import CONTEXTS, native, register_ending, registered, stay_out
from ..loader.watch import checked_timeout
from .call_memory import CallMemory
from .caller_queue import CallerQueue, Waiter
from .frame import CallFrame, Memory, Shape
from .grow import Grow
from .loaded import Loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from functools import partial
    from types import FrameType
    from typing import TypeVar

    import numpy as np

    from . import attached as devices
    from .arrays import Views
    from .loaded import Origin
    from .vm import Vm

    Arrays = Mapping[str, np.ndarray]
    Result = TypeVar("Result")
else:
    from _functools import partial  # functools itself costs milliseconds

_MAIN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64)
_FRAME_COUNT_MAX = 16


class ExecutionContext:
    """Runs one call at a time, for the caller whose turn it is."""

    __slots__ = (
        "__weakref__",
        "_call_memory",
        "_fd",
        "_frames",
        "_grow",
        "_large",
        "_main",
        "_memory",
        "_shaped",
        "_whole",
        "attached",
        "free",
        "loaded",
        "may_wait",
        "n_inputs",
        "ndarray",
        "queue",
        "views",
        "vm",
        "waiters",
        "watch",
    )  # fmt: skip

    def __init__(
        self,
        loaded: Loaded,
        executor: str,
        max_bytes: "int | None",
        attached: "devices.Attached | None",
        n_contexts: int,
        may_wait: bool,
    ) -> None:
        """Take over `loaded` and the devices beside the host; where all shapes are fixed, `main` is
        asked for its sizes now. `max_bytes` is for all `n_contexts` together.

        Raises:
            BundleError: image and plan disagree, or no memory, or more than `max_bytes`.
        """
        self.loaded = loaded
        self.attached = attached
        self.may_wait = may_wait
        self.watch = loaded.watch
        self.queue = CallerQueue(loaded.watch)
        # Those of the queue: so a call that does not wait looks for nothing further away.
        self.free, self.waiters = self.queue.free, self.queue.waiters
        self.n_inputs = -1  # no call has come yet, else those of `views`, the last call's
        self.views: Views
        self.ndarray: object = None
        self._grow = Grow(attached)
        self._call_memory = CallMemory(loaded, attached, max_bytes, n_contexts)
        self._memory = self._call_memory.no_memory()
        # Dead once the session is in a cycle of garbage: its workers are told to leave, but the
        # cycle may still call it. Without a callback it would die too late.
        self._whole = weakref.ref(self, id) if loaded.pool.n_threads > 1 else None
        self._frames: dict[tuple[Shape, ...], CallFrame] = {}
        # Views know their frame, not the other way: no cycle holds memory.
        self._shaped: dict[tuple[Shape, ...], Views] = {}
        self._large: dict[int, list[Block]] = {}
        self._fd = loaded.source.fd
        self.vm: "Vm | None" = None
        self._main: Callable[[int], int] = _MAIN(loaded.image.exports["main"])
        if executor == "vm":
            from .vm import Vm

            self.vm = Vm(loaded, self._grow, attached)
            self._main = self.vm.main
        if all(tensor.is_static for tensor in loaded.plan.inputs):
            self._frame_of(tuple(tensor.dims for tensor in loaded.plan.inputs))
        register_ending(self, CONTEXTS)

    @property
    def name(self) -> str:
        """The bundle's, for messages."""
        return self.loaded.source.name

    def run(self, inputs: "Arrays") -> "dict[str, np.ndarray]":
        """See ``Session.run``; it is the caller's turn."""
        return self.compute(*self.prepare(inputs))

    def compute(self, views: "Views", inputs: "Arrays") -> "dict[str, np.ndarray]":
        """Run on checked inputs, the small ones of which are copied; return new arrays."""
        held = views.pass_large(inputs)
        results = views.new_outputs()
        self.call(views.frame)
        del held
        return views.collect(results, self._grow)

    def new_frame(self, shapes: tuple[Shape, ...]) -> CallFrame:
        """Return a frame of its own for `shapes`, whose addresses ``bind`` fixes."""
        return run_on_free((self,), partial(ExecutionContext._new_frame, shapes=shapes), None)

    def _new_frame(self, shapes: tuple[Shape, ...]) -> CallFrame:
        frame = CallFrame(self.loaded, shapes, self._main, self._grow.address, self.attached)
        self._memory = self._call_memory.memory_for(frame, self._memory)
        return frame

    def fit_frame(self, frame: "CallFrame | None", shapes: tuple[Shape, ...]) -> CallFrame:
        """Return a frame for `shapes`, the one given where there is one, with enough workspace; the
        caller must have its turn."""
        if frame is None:
            return self._new_frame(shapes)
        frame.resize(shapes, self.loaded, self._main)
        self._memory = self._call_memory.memory_for(frame, self._memory)
        return frame

    def run_frame(self, frame: CallFrame, timeout: "float | None" = None) -> None:
        """Call `main` on a frame whose addresses are all set; `timeout` as for ``Session.run``."""
        if timeout is None:
            try:
                del self.free[True]
            except KeyError:
                pass
            else:
                try:
                    self.watch.call += 1
                    return self.call(frame)
                except MemoryError as error:
                    raise self.no_memory() from error
                finally:
                    self.free[not self.waiters] = None
                    if self.waiters:
                        self.queue.wake_first()
        return run_on_free((self,), partial(ExecutionContext.call, frame=frame), timeout)

    def hold(
        self, work: "Callable[[ExecutionContext], Result]", seconds: "float | None"
    ) -> "Result":
        """Return work(self), which has that many seconds; it is the caller's turn."""
        try:
            if seconds is not None:
                self.watch.set_timeout(seconds)
            return work(self)
        except MemoryError as error:
            raise self.no_memory() from error
        finally:
            if seconds is not None:
                self.watch.set_timeout(None)

    def end(self) -> None:
        """Let no other thread call `main`, and the last one without workers: the interpreter is
        ending."""
        main = self._main
        self._main = lambda call: stay_out() or main(call)
        self._lend_again()

    def call(self, frame: CallFrame) -> None:
        """Call `main`; again, where the file had to be verified again meanwhile."""
        loaded = self.loaded
        if self._whole is not None and self._whole() is None:
            what, why = "the session is being dropped", "it is garbage"
            raise BusyError(what, loaded.source.name, why, "close it before")
        while True:
            grow = self._grow
            if grow.blocks or grow.failure:
                grow.next_call()
            if frame.lent is not self._memory:
                frame.lend(self._memory, loaded)
            if self._call_memory.max_bytes is not None:
                grow.limit(self._call_memory.max_bytes - self._call_memory.needed_bytes(frame))
            rc = self._main(frame.call)
            if rc or self.attached is not None:
                rc = self._recover(rc, frame)
            try:  # the stamp is never this where weights lie in another file, too
                found = os.fstat(self._fd)
                same = (found.st_size, found.st_mtime_ns, found.st_ctime_ns) == loaded.stamp
            except OSError:
                same = False
            weights = loaded.weights
            if same and (weights is None or weights.is_whole):
                break
            if loaded.is_unchanged():
                break
        if rc:
            raise self._failure(rc, frame)

    def _recover(self, rc: int, frame: CallFrame) -> int:
        """Call again with what `main` lacked, a pool or a block, or if it was not meant to end."""
        rc = self._settled(rc)
        if rc == abi.RC_THREADS_LOST:
            self.loaded.pool.start()
            self._lend_again()
            frame.lend(self._memory, self.loaded)
            rc = self._settled(self._main(frame.call))
        if rc == abi.RC_LIMIT and self.vm is None and not frame.get("grow"):
            if not self._grow.address:
                self._grow.make()
            frame.set_grow(self._grow.address)
            rc = self._settled(self._main(frame.call))
        while rc == abi.RC_CANCELLED and self.watch.goes_on():
            rc = self._settled(self._main(frame.call))
        return rc

    def _lend_again(self) -> None:
        """Let each frame learn, before its next call, of a new pool or new weights."""
        old = self._memory
        self._memory = Memory(old.workspaces, old.scratch, old.stride_bytes)

    def go_on_with(self, origin: "Origin") -> None:
        """Let the next call be of another file with the same code; it is the caller's turn."""
        self._lend_again()
        self.loaded.origin = origin
        self._fd = origin[0].fd

    def _settled(self, rc: int) -> int:
        return rc if self.attached is None else self.attached.settle(rc)

    def _failure(self, rc: int, frame: CallFrame) -> Exception:
        """Return the error for what `main` returned; what others raised is raised as it is."""
        if rc == abi.RC_CANCELLED or self.watch.has_raised:
            return self.watch.ended(self.loaded.source.name)
        if self._grow.failure:
            cause = self._grow.failure[0]
            if isinstance(cause, LimitError):
                return cause.at(frame.named_shapes(self.loaded.plan) or self.name)
            if isinstance(cause, BundleError) or not isinstance(cause, Exception):
                # KeyboardInterrupt is the user's, not a failure of the model.
                return cause  # type: ignore[return-value]
            error = RunError("a callback failed", self.loaded.source.name, str(cause))
            error.__cause__ = cause
            return error
        return frame.failure(rc, self.loaded)

    def no_memory(self) -> ResourceError:
        """Return the error for the interpreter's own ``MemoryError``."""
        return no_memory("not enough memory for a call", self.loaded.source.name)

    def prepare(self, inputs: "Mapping[str, object]") -> "tuple[Views, dict[str, np.ndarray]]":
        """Check every input; find or make the frame of these shapes; copy the small ones in."""
        from .arrays import Views, checked_inputs

        arrays = checked_inputs(self.loaded.plan, inputs)
        shapes = tuple(array.shape for array in arrays.values())
        frame = self._frame_of(shapes)
        views = self._shaped.get(shapes)
        if views is None:
            views = self._shaped[shapes] = Views(frame, self.loaded.plan, self._large)
        self.views = views
        self.ndarray = views.ndarray
        self.n_inputs = len(views.inputs)
        views.copy_small(arrays)
        return views, arrays

    def _frame_of(self, shapes: tuple[Shape, ...]) -> CallFrame:
        """Return the frame of these input shapes, for which the workspace is large enough then."""
        frame = self._frames.get(shapes)
        if frame is None:
            frame = CallFrame(self.loaded, shapes, self._main, self._grow.address, self.attached)
            while len(self._frames) >= _FRAME_COUNT_MAX:
                oldest = next(iter(self._frames))
                self._shaped.pop(oldest, None)
                del self._frames[oldest]
            self._frames[shapes] = frame
        self._memory = self._call_memory.memory_for(frame, self._memory)
        return frame

    def forget(self) -> None:
        """Give back what it has; its queue is closed. May be done again."""
        self._frames.clear()
        self._shaped.clear()
        self._large.clear()
        self.n_inputs = -1
        self.views = None  # type: ignore[assignment]  # no call comes any more
        self._memory = Memory((), Block(0), 0)
        self._grow.forget()
        if self.attached is not None:
            self.attached.close()
        self.loaded.close()


def run_on_free(
    contexts: "tuple[ExecutionContext, ...]",
    work: "Callable[[ExecutionContext], Result]",
    timeout: "float | None",
) -> "Result":
    """Return work(the first of `contexts` that is free for the caller of the calling method).

    Raises:
        BusyError: closed, or the caller may not wait. CancelledError, TimedOutError: before its
            turn came, or in `work`.
    """
    seconds = None if timeout is None else checked_timeout(timeout)
    for context in contexts:
        try:
            del context.free[True]
        except KeyError:
            continue
        try:
            context.watch.call += 1
            return context.hold(work, seconds)
        finally:
            if not context.queue.is_closed:
                context.free[not context.waiters] = None
            context.queue.wake_first()
    return serve(contexts, work, seconds, new_waiter(contexts, frame_at(2)))


def new_waiter(
    contexts: "tuple[ExecutionContext, ...]", caller: "FrameType | None" = None
) -> Waiter:
    """Return a call from that frame, which may have to wait for one of `contexts`."""
    queues = [context.queue for context in contexts]
    return Waiter(queues, contexts[0].name, partial(_refusal, contexts, caller))


def _refusal(contexts: "tuple[ExecutionContext, ...]", caller: "FrameType | None") -> str:
    """Return why a call may not wait, "" where it may."""
    if _is_calling(caller, contexts):
        return "this thread is in a call of it already, and would wait for itself"
    if contexts[0].may_wait:
        return ""
    running = f"all {len(contexts)} sessions run" if len(contexts) > 1 else "it runs"
    return f'{running} others\' calls, and it was loaded with busy="error"'


def serve(
    contexts: "tuple[ExecutionContext, ...]",
    work: "Callable[[ExecutionContext], Result]",
    seconds: "float | None",
    waiter: Waiter,
) -> "Result":
    """Return work(the first of `contexts` that is free for `waiter`)."""
    return waiter.run(lambda index, left: contexts[index].hold(work, left), seconds)


native.add(ExecutionContext.call.__code__)


def _is_calling(frame: "FrameType | None", contexts: "tuple[ExecutionContext, ...]") -> bool:
    """Whether the frame's thread is in a call of one of `contexts`, or waits for one. To note the
    thread of each call would cost every call."""
    while frame is not None:
        if frame.f_code.co_name in ("run", "run_frame", "hold", "run_on_free"):
            names = frame.f_locals
            found = *names.get("contexts", ()), names.get("context"), names.get("self")
            if any(one is context for one in found for context in contexts):
                return True
        frame = frame.f_back
    return False


def _after_fork() -> None:
    """In a forked child, no other thread is there."""
    for context in registered(CONTEXTS):
        context.queue.reset()


os.register_at_fork(after_in_child=_after_fork)
