"""A session: named arrays in, named arrays out, at a few microseconds beyond `main`.

In: contexts on one loaded bundle. Out: ``Session``. Not done here: checking the bundle
(``loader``), checking arrays (``arrays``), zero copy (``bound``), calling `main`
(``context``), the order of those who wait (``caller_queue``).
"""

import os
from itertools import count

from ..errors import BusyError, InputError
from ..format.dtypes import DTYPE_NAMES, ML_DTYPES, NUMPY_NAMES
from ..format.plan import TensorPlan
from ..loader.watch import checked_timeout
from .caller_queue import closed
from .context import ExecutionContext, new_waiter, run_on_free, serve
from .loaded import Loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from functools import partial
    from typing import Any

    import numpy as np

    from ..format.source import Bundle
    from .async_calls import AsyncCalls
    from .attached import DeviceCounts
    from .bound import Bound
    from .sequence import Sequence
    from .vm import Observer, Step, Vm

    Arrays = Mapping[str, np.ndarray]
else:
    from _functools import partial  # functools itself costs milliseconds

_NOT_STEPPED = ("a native main is not stepped", 'load(..., executor="vm")')


class TensorSpec:
    """An input or output: ``name``; ``shape`` with symbols by name; ``element``, our name of the
    element type; ``has_default``: a call need not give it."""

    __slots__ = ("_code", "element", "has_default", "name", "shape")

    def __init__(
        self, tensor: TensorPlan, symbols: tuple[str, ...], has_default: bool = False
    ) -> None:
        self.has_default = has_default
        self.name = tensor.name
        self.shape = tensor.shape(symbols)
        self._code = tensor.dtype
        self.element = DTYPE_NAMES[tensor.dtype]

    @property
    def dtype(self) -> str:
        """What numpy calls the element type: for bf16 as ``ml_dtypes`` does, ``bfloat16``, or
        ``uint16`` where that package is not installed."""
        if self.element not in ML_DTYPES:
            return NUMPY_NAMES[self._code]
        from .numpy_dtypes import dtype_of  # numpy is imported when arrays are needed

        return dtype_of(self._code).name

    def __repr__(self) -> str:
        return f"{self.name}: {self.element}[{', '.join(map(str, self.shape))}]"

    def _repr_html_(self) -> str:
        from ..html_table import html_table

        return html_table(self.name, [(self.element, ", ".join(map(str, self.shape)))])


class Session:
    """Runs one bundle, for any number of threads; as many calls at once as it has contexts.

    ``inputs`` and ``outputs`` are ``TensorSpec`` tuples.
    """

    __slots__ = (
        "__weakref__", "_async_calls", "_bindings", "_context", "_contexts", "inputs", "outputs",
    )  # fmt: skip

    def __init__(self, contexts: "tuple[ExecutionContext, ...]") -> None:
        """Take over `contexts`, which are of one bundle."""
        loaded = contexts[0].loaded
        plan = loaded.plan
        self.inputs: tuple[TensorSpec, ...] = tuple(
            TensorSpec(tensor, plan.symbols, tensor.name in plan.defaults) for tensor in plan.inputs
        )
        self.outputs: tuple[TensorSpec, ...] = tuple(
            TensorSpec(tensor, plan.symbols) for tensor in plan.outputs
        )
        self._contexts = contexts
        self._context = contexts[0]
        self._bindings = count()
        self._async_calls: tuple[int, AsyncCalls] | None = None

    def __repr__(self) -> str:
        from .shown import session_text

        return session_text(self.loaded, self.inputs, self.outputs)

    def _repr_html_(self) -> str:
        from .shown import session_html

        return session_html(self.loaded, self.inputs, self.outputs)

    def run(self, inputs: "Arrays", timeout: "float | None" = None) -> "dict[str, np.ndarray]":
        """Compute the outputs: new arrays by name.

        Args:
            inputs: arrays by name, of each input's dtype and shape; a symbol is one size in all.
            timeout: seconds (to some hundredths) after which the call ends without results, those
                in which it waits for others included.

        Raises:
            BundleError: ``InputError``, ``BusyError`` (closed, or not to wait), ``ChangedError``
                (the file), ``CancelledError``, ``TimedOutError``, ``LimitError`` (``max_bytes``).
        """
        context = self._context
        try:
            del context.free[True]
        except KeyError:
            pass  # somebody is running it; no error of what follows comes from this
        else:
            try:
                context.watch.call += 1
                if timeout is not None:
                    context.watch.set_timeout(timeout)
                if inputs.__class__ is not dict or len(inputs) != context.n_inputs:
                    return context.run(inputs)
                views, ndarray = context.views, context.ndarray
                for name, dtype, shape, view in views.inputs:
                    x: Any = inputs.get(name)
                    if (
                        x.__class__ is not ndarray
                        or x.shape != shape
                        or (x.dtype is not dtype and x.dtype != dtype)
                    ):
                        return context.run(inputs)
                    if view is not None:
                        view[...] = x
                if not views.is_small:
                    return context.compute(views, inputs)
                context.call(views.frame)
                results: dict[str, np.ndarray] = {}
                # A comprehension is a function call, in CPython 3.11.
                for name, view in views.outputs:
                    if view is not None:
                        results[name] = view.copy()
                return results
            except MemoryError as error:
                raise context.no_memory() from error
            finally:
                try:
                    if timeout is not None:
                        context.watch.set_timeout(None)
                finally:
                    context.free[not context.waiters] = None
                    if context.waiters:
                        context.queue.wake_first()
        work = partial(ExecutionContext.run, inputs=inputs)
        return run_on_free(self._contexts, work, timeout)

    async def arun(
        self,
        inputs: "Arrays",
        timeout: "float | None" = None,  # noqa: ASYNC109  # as `run` has it, with its own error
    ) -> "dict[str, np.ndarray]":
        """Do what ``run`` does, while the event loop goes on. Where the coroutine is cancelled, the
        call ends soon. The arrays must not change meanwhile."""
        seconds = None if timeout is None else checked_timeout(timeout)
        work = partial(serve, self._contexts, partial(ExecutionContext.run, inputs=inputs), None)
        return await self._calls().run(work, new_waiter(self._contexts), seconds)

    def _calls(self) -> "AsyncCalls":
        """Return the threads for coroutines, which a forked child does not inherit."""
        from .async_calls import AsyncCalls

        if self._async_calls is None or self._async_calls[0] != os.getpid():
            self._async_calls = os.getpid(), AsyncCalls(len(self._contexts))
        return self._async_calls[1]

    def cancel(self) -> bool:
        """End all calls that other threads (or a signal handler) see running or waiting, by a
        ``CancelledError``; return whether there were any."""
        ended = [context.queue.cancel() for context in self._contexts]
        return any(ended)

    def swap_weights(
        self,
        bundle: "Bundle",
        digest: "str | None" = None,
        timeout: "float | None" = None,
    ) -> None:
        """Go on with the weights of another bundle that has the same code, such as a fine-tune.

        Calls that run end with the old weights; those that begin after the return of this one have
        the new ones. Bound arrays and sequences go on, with the new ones too. After an error, the
        old ones stay. The keys and the verification of ``load`` hold for `bundle`.

        Args:
            bundle: a path, or the bytes themselves.
            digest: refuse any bundle but the one with this root digest.
            timeout: seconds that it may wait for the calls that run, for each of several sessions.

        Raises:
            IncompatibleError: its code, plan or defaults are others. InputError: the bundle uses
                devices beside the host. BundleError: as ``load`` and, where it waits, ``run``.
        """
        from .swap import swap_weights

        swap_weights(self._contexts, bundle, digest, timeout)

    def bind(self, inputs: "Arrays | None" = None, outputs: "Arrays | None" = None) -> "Bound":
        """Fix the addresses of inputs and outputs once; ``.run()`` of the result copies nothing.

        Args:
            inputs: C-contiguous arrays, aligned to their elements; where all shapes are fixed,
                those left out are made.
            outputs: likewise, writable; those left out are made.

        Raises:
            InputError: an array does not fit.
        """
        from .bound import Bound

        context = self._contexts[next(self._bindings) % len(self._contexts)]  # each in turn
        plan = context.loaded.plan
        try:
            return Bound(plan, context.new_frame, context.run_frame, inputs or {}, outputs or {})
        except MemoryError as error:
            raise context.no_memory() from error

    def sequence(
        self, max_length: "int | None" = None, sizes: "Mapping[str, int] | None" = None
    ) -> "Sequence":
        """Return an empty sequence: what the model keeps from call to call (the caches of a
        decoder) in memory of its own, in place. A session has any number of them.

        Args:
            max_length: most rows that each state may get; without it, as many as there is memory.
            sizes: symbols that no other input binds, by name.

        Raises:
            InputError: the bundle has no state, or an argument is wrong.
        """
        from .sequence import Sequence

        return Sequence(
            self._contexts[next(self._bindings) % len(self._contexts)], max_length, sizes or {}
        )

    @property
    def digest(self) -> str:
        """The bundle's root digest, 64 hex digits."""
        return self.loaded.source.root_digest.hex()

    @property
    def states(self) -> "dict[str, str]":
        """The inputs that a sequence holds, and the output that continues each, by name."""
        plan = self.loaded.plan
        return {plan.inputs[it.input].name: plan.outputs[it.output].name for it in plan.states}

    @property
    def devices(self) -> "dict[str, str]":
        """The device of this machine that each virtual device is bound to, by name: ``cpu:1``."""
        attached = self._context.attached
        names = [device.name for device in self.loaded.plan.devices]
        bound = ["host:0"] * len(names) if attached is None else attached.names()
        return dict(zip(names, bound, strict=True))

    def device_counts(self) -> "DeviceCounts":
        """Return the launches of each device beside the host, and the copies and bytes of each
        edge, since the load (its weights left out), by the names of virtual devices.

        Raises:
            InputError: the bundle runs on the host alone.
        """
        from .attached import summed

        counts = [
            context.attached.counts() for context in self._contexts if context.attached is not None
        ]
        if not counts:
            why = "the bundle runs on the host alone: nothing is copied"
            do = "compile it with a device beside the host, and place nodes there"
            raise InputError("no device counts", "session.device_counts", why, do)
        return summed(counts)

    def trace(self) -> "list[tuple[int, str, float]]":
        """Return (launch ordinal, kernel, seconds) of the last run, in order.

        Raises:
            InputError: not loaded with ``executor="vm"``, or several sessions.
        """
        return self._stepped("no trace", "session.trace").trace()

    def steps(self) -> "list[Step]":
        """Return the launches and copies of the last run, in order, with their times; errors as for
        ``trace``."""
        return self._stepped("no steps", "session.steps").steps()

    def _stepped(self, what: str, where: str) -> "Vm":
        context = self._context
        if context.vm is None:
            raise InputError(what, where, *_NOT_STEPPED)
        if len(self._contexts) > 1:
            why = f"each of {len(self._contexts)} sessions has a last run"
            raise InputError(what, where, why, "load(..., sessions=1)")
        if context.queue.is_closed:
            raise closed(context.name)
        return context.vm

    def observe(self, observer: "Observer | None") -> None:
        """Call `observer(ordinal, kernel, seconds, buffers)` after every launch; None ends it.

        The buffers are read-only views of bytes, valid during the call.

        Raises:
            InputError: not loaded with ``executor="vm"``.
        """
        for context in self._contexts:
            if context.vm is None:
                raise InputError("cannot observe", "session.observe", *_NOT_STEPPED)
            context.vm.observer = observer

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session, as dropping the last reference does: join its threads, unmap the bundle.
        Calls that came before are waited for, those behind are refused by a ``BusyError``.

        Raises:
            BusyError: a call is running, and the session was loaded with ``busy="error"`` or that
                call is this thread's own.
        """
        for context in self._contexts:
            try:
                if (
                    not context.queue.is_closed
                ):  # closing again ends what an exception has cut short
                    run_on_free((context,), lambda one: one.queue.close(), None)
            except BusyError:
                if not context.queue.is_closed:  # else another thread was faster
                    raise
        for context in self._contexts:
            context.forget()
        self._async_calls = None

    @property
    def loaded(self) -> Loaded:
        """What this session runs on."""
        return self._context.loaded
