"""A session: named arrays in, named arrays out, at a few microseconds beyond `main`.

In: a loaded bundle. Out: ``Session``. Not done here: checking the bundle (``loader``), checking
arrays (``arrays``), zero copy (``bound``).

Inputs of up to 64 KiB are copied into buffers; larger ones pass their address where contiguous and
aligned. Outputs are the caller's own. What a call needs is packed per shape, once.
"""

import ctypes
import os
import weakref

from ..errors import (
    BundleError,
    BusyError,
    InputError,
    LimitError,
    ResourceError,
    RunError,
    no_memory,
)
from ..format import abi
from ..format.dtypes import DTYPE_NAMES, NUMPY_NAMES
from ..format.plan import TensorPlan
from ..loader.block import Block
from .frame import ALIGNMENT_BYTES, CallFrame, Memory, Shape
from .grow import Grow
from .loaded import Loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    import numpy as np

    from . import attached as devices
    from .arrays import Views
    from .bound import Bound
    from .vm import Observer, Step, Vm

    Arrays = Mapping[str, np.ndarray]

_MAIN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64)
_FRAME_COUNT_MAX = 16
_NOT_STEPPED = ("a native main is not stepped", 'load(..., executor="vm")')


class TensorSpec:
    """An input or output: ``name``; ``shape`` with symbols by name; ``dtype``, numpy's name (bf16:
    uint16); ``element``, ours."""

    __slots__ = ("dtype", "element", "name", "shape")

    def __init__(self, tensor: TensorPlan, symbols: tuple[str, ...]) -> None:
        self.name = tensor.name
        self.shape = tensor.shape(symbols)
        self.dtype = NUMPY_NAMES[tensor.dtype]
        self.element = DTYPE_NAMES[tensor.dtype]

    def __repr__(self) -> str:
        return f"{self.name}: {self.element}[{', '.join(map(str, self.shape))}]"


class Session:
    """Runs one bundle; one call at a time. ``inputs`` and ``outputs`` are ``TensorSpec`` tuples."""

    __slots__ = (
        "__weakref__", "_attached", "_closed", "_fd", "_frames", "_grow", "_idle", "_loaded",
        "_main", "_max_bytes", "_memory", "_ndarray", "_pid", "_shaped", "_views", "_vm", "_watch",
        "_whole", "inputs", "outputs",
    )  # fmt: skip

    def __init__(
        self,
        loaded: Loaded,
        executor: str = "aot",
        max_bytes: "int | None" = None,
        attached: "devices.Attached | None" = None,
    ) -> None:
        """Take over `loaded` and the devices beside the host, if there are any; where all shapes
        are fixed, `main` is asked for its sizes now.

        Raises:
            BundleError: image and plan disagree, or no memory, or more than `max_bytes`.
        """
        plan = loaded.plan
        self._loaded = loaded
        self.inputs = tuple(TensorSpec(tensor, plan.symbols) for tensor in plan.inputs)
        self.outputs = tuple(TensorSpec(tensor, plan.symbols) for tensor in plan.outputs)
        self._attached = attached
        self._grow = Grow(attached)
        # Empty while a call runs. A dict and not a lock: deleting and storing an item are single
        # instructions, between which and `try` no Ctrl-C can come and leave the session busy.
        self._idle = {True: None}
        self._pid = os.getpid()
        self._ndarray: object = None
        self._views: Views | None = None
        # Memory of no bytes: every device still has an address.
        workspaces = tuple(self._workspace(index, 0) for index in range(len(plan.devices)))
        self._memory = Memory(workspaces, Block(0), 0)
        self._max_bytes = max_bytes
        self._closed = False
        # Dead once the collector has found the session in a cycle of garbage: its workers are told
        # to leave, but the cycle may still call it. Without a callback it would die too late.
        self._whole = weakref.ref(self, id) if loaded.pool.n_threads > 1 else None
        self._frames: dict[tuple[Shape, ...], CallFrame] = {}
        # Views know their frame, not the other way: no cycle holds memory.
        self._shaped: dict[tuple[Shape, ...], Views] = {}
        self._fd = loaded.source.fd
        self._watch = loaded.watch
        self._vm: "Vm | None" = None
        self._main: Callable[[int], int] = _MAIN(loaded.image.exports["main"])
        if executor == "vm":
            from .vm import Vm

            self._vm = Vm(loaded, self._grow, attached)
            self._main = self._vm.main
        if all(tensor.is_static for tensor in plan.inputs):
            self._frame_of(tuple(tensor.dims for tensor in plan.inputs))

    def run(self, inputs: "Arrays", timeout: "float | None" = None) -> "dict[str, np.ndarray]":
        """Compute the outputs: new arrays by name.

        Args:
            inputs: arrays by name, of each input's dtype and shape; a symbol is one size in all.
            timeout: seconds (to some hundredths) after which the call ends without results.

        Raises:
            InputError: an input is missing, extra, mistyped or misshaped. BusyError: another thread
                is in this session. ChangedError: the file was changed. CancelledError: `cancel` was
                called. TimedOutError: `timeout` is over. LimitError: more than ``max_bytes``.
        """
        try:
            del self._idle[True]
        except KeyError:
            self._busy()
        try:
            self._watch.call += 1
            if timeout is not None:
                self._watch.set_timeout(timeout)
            views = self._views
            if views is None or inputs.__class__ is not dict or len(inputs) != len(views.inputs):
                views, inputs = self._prepare(inputs)
            else:
                ndarray = self._ndarray
                for name, dtype, shape, view in views.inputs:
                    x: Any = inputs.get(name)
                    if (
                        x.__class__ is not ndarray
                        or x.shape != shape
                        or (x.dtype is not dtype and x.dtype != dtype)
                    ):
                        views, inputs = self._prepare(inputs)
                        break
                    if view is not None:
                        view[...] = x
            if views.is_small:
                self._call(views.frame)
                results: dict[str, np.ndarray] = {}
                # A comprehension is a function call, in CPython 3.11.
                for name, view in views.outputs:
                    if view is not None:
                        results[name] = view.copy()
                return results
            held = views.pass_large(inputs)
            results = views.new_outputs()
            self._call(views.frame)
            del held
            return views.collect(results)
        except MemoryError as error:
            raise self._no_memory() from error
        finally:
            if timeout is not None:
                self._watch.set_timeout(None)
            self._idle[True] = None

    def cancel(self) -> bool:
        """End the call that another thread (or a signal handler) sees running, by a
        ``CancelledError``; return whether one was running."""
        call = self._watch.call  # read first: if that one ends now, the next is not meant
        running = not self._idle and not self._closed
        if running:
            self._watch.cancel(call)
        return running

    def bind(self, inputs: "Arrays | None" = None, outputs: "Arrays | None" = None) -> "Bound":
        """Fix the addresses of inputs and outputs once; ``.run()`` of the result copies nothing.

        Args:
            inputs: C-contiguous arrays, aligned to their elements; where all shapes are fixed,
                those left out are made.
            outputs: likewise, writable; those left out are made.

        Raises:
            InputError: an array does not fit; the message says what is expected.
        """
        from .bound import Bound

        plan = self._loaded.plan
        try:
            return Bound(plan, self.new_frame, self.run_frame, inputs or {}, outputs or {})
        except MemoryError as error:
            raise self._no_memory() from error

    def device_counts(self) -> "devices.DeviceCounts":
        """Return the launches of each device beside the host, and the copies and bytes of each
        edge, since the load (its weights left out), by the names of virtual devices.

        Raises:
            InputError: the bundle runs on the host alone.
        """
        if self._attached is None:
            why = "the bundle runs on the host alone: nothing is copied"
            do = "compile with --device and --place"
            raise InputError("no device counts", "session.device_counts", why, do)
        return self._attached.counts()

    def trace(self) -> "list[tuple[int, str, float]]":
        """Return (launch ordinal, kernel, seconds) of the last run, in order.

        Raises:
            InputError: not loaded with ``executor="vm"``.
        """
        if self._vm is None:
            raise InputError("no trace", "session.trace", *_NOT_STEPPED)
        if self._closed:
            self._busy()
        return self._vm.trace()

    def steps(self) -> "list[Step]":
        """Return the launches and copies of the last run, in order, with their times.

        Raises:
            InputError: not loaded with ``executor="vm"``.
        """
        if self._vm is None:
            raise InputError("no steps", "session.steps", *_NOT_STEPPED)
        if self._closed:
            self._busy()
        return list(self._vm.done)

    def observe(self, observer: "Observer | None") -> None:
        """Call `observer(ordinal, kernel, seconds, buffers)` after every launch; None ends it.

        The buffers are read-only views of bytes, valid during the call.

        Raises:
            InputError: not loaded with ``executor="vm"``.
        """
        if self._vm is None:
            raise InputError("cannot observe", "session.observe", *_NOT_STEPPED)
        self._vm.observer = observer

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session now, as dropping the last reference does: join its threads, unmap the
        bundle. Raises ``BusyError`` where a call is running."""
        try:
            del self._idle[True]
        except KeyError:
            if not self._closed:  # closing again finishes what an exception has cut short
                self._busy()
        # It stays busy: no call can come after this one.
        self._closed = True
        self._frames.clear()
        self._shaped.clear()
        self._views = None
        self._memory = Memory((), Block(0), 0)
        self._grow.forget()
        if self._attached is not None:
            self._attached.close()
        self._loaded.close()

    @property
    def loaded(self) -> Loaded:
        """What this session runs on."""
        return self._loaded

    def new_frame(self, shapes: tuple[Shape, ...]) -> CallFrame:
        """Return a frame of its own for `shapes`, whose addresses ``bind`` fixes."""
        try:
            del self._idle[True]
        except KeyError:
            self._busy()
        try:
            frame = CallFrame(self._loaded, shapes, self._main, self._grow.address, self._attached)
            self._make_room(frame)
            return frame
        except MemoryError as error:
            raise self._no_memory() from error
        finally:
            self._idle[True] = None

    def run_frame(self, frame: CallFrame, timeout: "float | None" = None) -> None:
        """Call `main` on a frame whose addresses are all set; `timeout` as for `run`."""
        try:
            del self._idle[True]
        except KeyError:
            self._busy()
        try:
            self._watch.call += 1
            if timeout is not None:
                self._watch.set_timeout(timeout)
            self._call(frame)
        except MemoryError as error:
            raise self._no_memory() from error
        finally:
            if timeout is not None:
                self._watch.set_timeout(None)
            self._idle[True] = None

    def _call(self, frame: CallFrame) -> None:
        """Call `main`; again, where the file had to be verified again meanwhile."""
        loaded = self._loaded
        if self._whole is not None and self._whole() is None:
            what, why = "the session is being dropped", "it is garbage"
            raise BusyError(what, loaded.source.name, why, "close it before")
        while True:
            grow = self._grow
            if grow.blocks or grow.failure:
                grow.forget()
            if frame.lent is not self._memory:
                frame.lend(self._memory, loaded.pool.page)
            if self._max_bytes is not None:
                grow.room_bytes = self._max_bytes - self._needed_bytes(frame)
            rc = self._main(frame.call)
            if rc or self._attached is not None:
                rc = self._recover(rc, frame)
            try:
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
            self._loaded.pool.start()
            old = self._memory
            # Made anew: frames learn of the new pool.
            self._memory = Memory(old.workspaces, old.scratch, old.stride_bytes)
            frame.lend(self._memory, self._loaded.pool.page)
            rc = self._settled(self._main(frame.call))
        if rc == abi.RC_LIMIT and self._vm is None and not frame.get("grow"):
            if not self._grow.address:
                self._grow.make()
            frame.set_grow(self._grow.address)
            rc = self._settled(self._main(frame.call))
        while rc == abi.RC_CANCELLED and self._watch.goes_on():
            rc = self._settled(self._main(frame.call))
        return rc

    def _settled(self, rc: int) -> int:
        return rc if self._attached is None else self._attached.settle(rc)

    def _failure(self, rc: int, frame: CallFrame) -> Exception:
        """Return the error for what `main` returned; what others raised is raised as it is."""
        if rc == abi.RC_CANCELLED or self._watch.has_raised:
            return self._watch.ended(self._loaded.source.name)
        if self._grow.failure:
            cause = self._grow.failure[0]
            if isinstance(cause, BundleError) or not isinstance(cause, Exception):
                # KeyboardInterrupt is the user's, not a failure of the model.
                return cause  # type: ignore[return-value]
            error = RunError("a callback failed", self._loaded.source.name, str(cause))
            error.__cause__ = cause
            return error
        return frame.failure(rc, self._loaded)

    def _no_memory(self) -> ResourceError:
        return no_memory("not enough memory for a call", self._loaded.source.name)

    def _busy(self) -> None:
        """Refuse, but in a forked child, where nobody is running the session, take it over."""
        name = self._loaded.source.name
        if self._closed:
            why = "close() was called"
            raise BusyError("the session is closed", name, why, "load the bundle again")
        if self._pid == os.getpid():
            why = "one session runs one call at a time"
            do = "load one session per thread: they share the file's memory"
            raise BusyError("the session is busy", name, why, do)
        self._pid = os.getpid()

    def _prepare(self, inputs: "Mapping[str, object]") -> "tuple[Views, dict[str, np.ndarray]]":
        """Check every input; find or make the frame of these shapes; copy the small ones in."""
        from .arrays import Views, checked_inputs

        arrays = checked_inputs(self._loaded.plan, inputs)
        shapes = tuple(array.shape for array in arrays.values())
        frame = self._frame_of(shapes)
        views = self._shaped.get(shapes)
        if views is None:
            views = self._shaped[shapes] = Views(frame, self._loaded.plan)
        self._views = views
        self._ndarray = views.ndarray
        views.copy_small(arrays)
        return views, arrays

    def _frame_of(self, shapes: tuple[Shape, ...]) -> CallFrame:
        """Return the frame of these input shapes, for which the workspace is large enough then."""
        frame = self._frames.get(shapes)
        if frame is None:
            frame = CallFrame(self._loaded, shapes, self._main, self._grow.address, self._attached)
            while len(self._frames) >= _FRAME_COUNT_MAX:
                oldest = next(iter(self._frames))
                self._shaped.pop(oldest, None)
                del self._frames[oldest]
            self._frames[shapes] = frame
        self._make_room(frame)
        return frame

    def _make_room(self, frame: CallFrame) -> None:
        """Make the workspace larger where the frame needs more."""
        old = self._memory
        wanted = list(zip(frame.workspace_bytes, old.workspaces, strict=True))
        grows = any(needed > given.size_bytes for needed, given in wanted)
        widens = frame.scratch_bytes > old.stride_bytes
        self._require_room(frame)
        if not grows and not widens:
            return
        workspaces = tuple(
            self._workspace(index, needed) if needed > given.size_bytes else given
            for index, (needed, given) in enumerate(wanted)
        )
        scratch, stride_bytes = old.scratch, old.stride_bytes
        if widens:
            stride_bytes = frame.scratch_bytes + -frame.scratch_bytes % ALIGNMENT_BYTES
            scratch = Block(stride_bytes * self._loaded.pool.n_threads)
        self._memory = Memory(workspaces, scratch, stride_bytes)

    def _workspace(self, index: int, size_bytes: int) -> "devices.Memory":
        """Return a pool of device `index`."""
        attached = self._attached
        return Block(size_bytes) if attached is None else attached.allocate(index, size_bytes)

    def _needed_bytes(self, frame: CallFrame) -> int:
        """Return the bytes of a call, blocks of unknown size left out."""
        scratch_bytes = frame.scratch_bytes * self._loaded.pool.n_threads
        return sum(frame.workspace_bytes) + scratch_bytes + sum(frame.output_bytes)

    def _require_room(self, frame: CallFrame) -> None:
        if self._max_bytes is None:
            return
        needed = self._needed_bytes(frame)
        if needed > self._max_bytes:
            where = frame.named_shapes(self._loaded.plan) or self._loaded.source.name
            limit = f"max_bytes is {self._max_bytes}"
            why = f"workspace, scratch and outputs need {needed} bytes, {limit}"
            raise LimitError("a call needs too much memory", where, why, "raise max_bytes")
