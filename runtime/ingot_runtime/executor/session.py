"""A session: named arrays in, named arrays out, at a few microseconds beyond `main`.

In: a loaded bundle. Out: ``Session``. Not done here: checking the bundle (``loader``), checking arrays
(``arrays``), zero copy (``bound``).

Inputs of up to 64 KiB are copied into bound buffers (fixed addresses, any strides); larger ones pass their address where
contiguous and aligned. Outputs are always the caller's own. Everything that a call needs is packed per shape, once.
"""

import ctypes
import os

from ..errors import BusyError, InputError, RunError
from ..format import abi
from ..format.dtypes import DTYPE_NAMES
from ..format.plan import TensorPlan
from ..format.source import changed, stamp
from ..loader.block import Block, Grow
from ..loader.loaded import Loaded
from .frame import ALIGNMENT_BYTES, Frame, Shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    import numpy as np

    from .arrays import Views
    from .bound import Bound
    from .vm import Observer, Vm

_MAIN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64)
_FRAME_COUNT_MAX = 16
# numpy's names, by our code. numpy has no bf16: its 16 bits travel as uint16.
NUMPY_NAMES = (
    "float32", "float64", "float16", "uint16",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip


class TensorSpec:
    """An input or output: ``name``; ``shape`` with symbols by name; ``dtype``, numpy's name (bf16: uint16); ``element``, ours."""

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
        "__weakref__", "_fd", "_frames", "_grow", "_idle", "_loaded", "_main", "_ndarray", "_pid", "_scratch", "_stamp",
        "_stride_bytes", "_views", "_vm", "_workspace", "inputs", "outputs",
    )  # fmt: skip

    def __init__(self, loaded: Loaded, executor: str = "aot") -> None:
        """Take over `loaded`; where all shapes are fixed, `main` is asked for its sizes now.

        Raises:
            BundleError: image and plan disagree, or no memory.
        """
        plan = loaded.plan
        self._loaded = loaded
        self.inputs = tuple(TensorSpec(tensor, plan.symbols) for tensor in plan.inputs)
        self.outputs = tuple(TensorSpec(tensor, plan.symbols) for tensor in plan.outputs)
        self._grow = Grow()
        # Empty while a call runs. A dict and not a lock: deleting and storing an item are single instructions of the
        # interpreter, between which and `try` no Ctrl-C can come and leave the session busy for ever.
        self._idle = {True: None}
        self._pid = os.getpid()
        self._ndarray: object = None
        self._views: Views | None = None
        self._workspace = self._scratch = Block(0)
        self._stride_bytes = 0
        self._frames: dict[tuple[Shape, ...], Frame] = {}
        found = os.fstat(loaded.source.fd)
        self._fd = loaded.source.fd
        self._stamp = stamp(found)
        self._vm: Vm | None = None
        self._main: Callable[[int], int] = _MAIN(loaded.image.exports["main"])
        if executor == "vm":
            self._vm = _new_vm(loaded, self._grow)
            self._main = self._vm.main
        if all(tensor.is_static for tensor in plan.inputs):
            self._frame_of(tuple(tensor.dims for tensor in plan.inputs))

    def run(self, inputs: "Mapping[str, np.ndarray]") -> "dict[str, np.ndarray]":
        """Compute the outputs.

        Args:
            inputs: one array per input, by name: exact dtype, the input's shape; symbols take any size >= 0, the same
                wherever they appear.

        Returns:
            New arrays by name.

        Raises:
            InputError: an input is missing, extra, mistyped or misshaped. BusyError: another thread is in this session.
            ChangedError: the file was changed meanwhile.
        """
        try:
            del self._idle[True]
        except KeyError:
            self._busy()
        try:
            views = self._views
            if views is None or inputs.__class__ is not dict or len(inputs) != len(views.inputs):
                views, inputs = self._prepare(inputs)
            else:
                ndarray = self._ndarray
                for name, dtype, shape, view in views.inputs:
                    x: Any = inputs.get(name)
                    if x.__class__ is not ndarray or x.shape != shape or (x.dtype is not dtype and x.dtype != dtype):
                        views, inputs = self._prepare(inputs)
                        break
                    if view is not None:
                        view[...] = x
            if views.is_small:
                self._call(views.frame)
                return {name: view.copy() for name, view in views.outputs if view is not None}
            held = views.pass_large(inputs)
            results = views.new_outputs()
            self._call(views.frame)
            del held
            return views.collect(results)
        finally:
            self._idle[True] = None

    def bind(
        self,
        inputs: "Mapping[str, np.ndarray] | None" = None,
        outputs: "Mapping[str, np.ndarray] | None" = None,
    ) -> "Bound":
        """Fix the addresses of inputs and outputs once; ``.run()`` of the result then copies nothing.

        Args:
            inputs: C-contiguous arrays, aligned to their elements; where all shapes are fixed, those left
                out are made.
            outputs: likewise, writable; those left out are made.

        Raises:
            InputError: an array does not fit; the message says what is expected.
        """
        from .bound import Bound

        return Bound(self, dict(inputs or {}), dict(outputs or {}))

    def trace(self) -> "list[tuple[int, str, float]]":
        """Return (launch ordinal, kernel, seconds) of the last run, in order.

        Raises:
            InputError: the session steps nothing: it was not loaded with ``executor="vm"``.
        """
        if self._vm is None:
            raise InputError("no trace", "session.trace", "a native main is not stepped", 'load(..., executor="vm")')
        return self._vm.trace()

    def observe(self, observer: "Observer | None") -> None:
        """Call `observer(ordinal, kernel, seconds, buffers)` after every launch of later runs; None ends it.

        The buffers are read-only views of what the launch was given, as bytes; they are valid during the call.

        Raises:
            InputError: not loaded with ``executor="vm"``.
        """
        if self._vm is None:
            raise InputError(
                "cannot observe", "session.observe", "a native main is not stepped", 'load(..., executor="vm")'
            )
        self._vm.observer = observer

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session now: join its threads, unmap the bundle. Dropping the last reference does the same.

        Raises:
            BusyError: a call is running.
        """
        try:
            del self._idle[True]
        except KeyError:
            self._busy()
        # It stays busy: no call can come after this one.
        self._loaded.close()

    @property
    def loaded(self) -> Loaded:
        """What this session runs on."""
        return self._loaded

    def new_frame(self, shapes: tuple[Shape, ...]) -> Frame:
        """Return a frame of its own for `shapes` (``bind`` fixes its addresses); it gets workspace when it runs."""
        try:
            del self._idle[True]
        except KeyError:
            self._busy()
        try:
            frame = Frame(self._loaded, shapes, self._main, self._grow.address)
            self._make_room(frame)
            return frame
        finally:
            self._idle[True] = None

    def run_frame(self, frame: Frame) -> None:
        """Call `main` on a frame whose addresses are all set."""
        try:
            del self._idle[True]
        except KeyError:
            self._busy()
        try:
            self._call(frame)
        finally:
            self._idle[True] = None

    def _call(self, frame: Frame) -> None:
        """Call `main`; afterwards the file must be what it was."""
        grow = self._grow
        if grow.blocks or grow.failure:
            grow.forget()
        if frame.lent is not self._workspace or frame.lent_scratch is not self._scratch:
            frame.set_workspace(self._workspace, self._scratch, self._stride_bytes)
        rc = self._main(frame.call)
        if rc:
            self._recover(rc, frame)
        found = os.fstat(self._fd)
        if (found.st_size, found.st_mtime_ns) != self._stamp:
            raise changed(self._loaded.source.name)

    def _recover(self, rc: int, frame: Frame) -> None:
        """Bring what `main` lacked and call again: a pool that a fork lost, the first block of unknown size; else raise."""
        if rc == abi.RC_THREADS_LOST:
            self._loaded.pool.start()
            rc = self._main(frame.call)
        if rc == abi.RC_LIMIT and self._vm is None and not frame.get("grow"):
            if not self._grow.address:
                self._grow.make()
            frame.set_grow(self._grow.address)
            rc = self._main(frame.call)
        if not rc:
            return
        error = frame.failure(rc, self._loaded)
        if self._grow.failure:
            cause = self._grow.failure[0]
            if not isinstance(cause, Exception):
                raise cause  # KeyboardInterrupt in a callback is the user's, not a failure of the model
            raise RunError("a callback failed", self._loaded.source.name, str(cause)) from cause
        raise error

    def _busy(self) -> None:
        """Take the session over in a forked child (whoever was running it is not in this process); else refuse."""
        if self._pid == os.getpid():
            raise BusyError(
                "the session is busy or closed",
                self._loaded.source.name,
                "one session runs one call at a time",
                "load one session per thread: they share the file's memory",
            )
        self._pid = os.getpid()

    def _prepare(self, inputs: "Mapping[str, object]") -> "tuple[Views, dict[str, np.ndarray]]":
        """Check every input with care; find or make the frame of these shapes; copy the small ones in."""
        from .arrays import Views, checked_inputs

        arrays = checked_inputs(self._loaded.plan, inputs)
        frame = self._frame_of(tuple(array.shape for array in arrays.values()))
        if not isinstance(frame.views, Views):
            frame.views = Views(frame, self._loaded.plan)
        views = frame.views
        self._views = views
        self._ndarray = views.ndarray
        views.copy_small(arrays)
        return views, arrays

    def _frame_of(self, shapes: tuple[Shape, ...]) -> Frame:
        """Return the frame of these input shapes; the session's workspace is large enough for it afterwards."""
        frame = self._frames.get(shapes)
        if frame is None:
            frame = Frame(self._loaded, shapes, self._main, self._grow.address)
            while len(self._frames) >= _FRAME_COUNT_MAX:
                del self._frames[next(iter(self._frames))]
            self._frames[shapes] = frame
        self._make_room(frame)
        return frame

    def _make_room(self, frame: Frame) -> None:
        if frame.workspace_bytes[0] > self._workspace.size_bytes:
            self._workspace = Block(frame.workspace_bytes[0])
        if frame.scratch_bytes > self._stride_bytes:
            stride_bytes = frame.scratch_bytes + -frame.scratch_bytes % ALIGNMENT_BYTES
            self._scratch = Block(stride_bytes * self._loaded.pool.n_threads)
            self._stride_bytes = stride_bytes


def _new_vm(loaded: Loaded, grow: Grow) -> "Vm":
    from .vm import Vm

    return Vm(loaded, grow)
