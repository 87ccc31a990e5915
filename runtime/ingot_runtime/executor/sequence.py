"""One sequence of a model with states: each call continues what the calls before it have left.

In: a context, arrays by name. Out: the other outputs, new arrays; the states stay. Not done here:
the memory of the states (``state_memory``), calling `main` (``context``).

Each state's output begins where its input does, in memory with room for more: the model writes new
rows behind the others, and copies nothing.
"""

from _thread import allocate_lock

import numpy as np

from ..errors import BusyError, InputError
from ..format.checks import require
from ..format.dtypes import DTYPE_SIZES_BYTES
from .arrays import aligned_empty, by_name, checked_tensor, unexpected_input
from .caller_queue import closed
from .context import ExecutionContext, run_on_free
from .numpy_dtypes import bits_of, dtype_of
from .state_memory import StateMemory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..format.plan import BundlePlan
    from .frame import CallFrame, Shape

    Array = np.ndarray
    Arrays = Mapping[str, Array]


class Sequence:
    """``run`` continues it, ``reset`` empties it, ``fork`` makes another one like it. ``len()`` is
    the rows that its states have. For one thread at a time."""

    __slots__ = (
        "_context",
        "_frame",
        "_held",
        "_memory",
        "_outputs",
        "_sizes",
        "_use",
        "max_length",
    )  # fmt: skip

    def __init__(
        self, context: ExecutionContext, max_length: "int | None", sizes: "Mapping[str, int]"
    ) -> None:
        """See ``Session.sequence``."""
        plan = context.loaded.plan
        if not plan.states:
            why = "no output of the model is an input with more behind it"
            do = "export it with its caches: past ones as inputs, present ones as outputs"
            raise InputError("the bundle has no state", "session.sequence", why, do)
        if max_length is not None and (type(max_length) is not int or max_length < 1):
            why = f"expected an integer of at least 1, got {max_length!r}"
            raise InputError("bad length", "session.sequence, max_length", why)
        self.max_length = max_length
        self._context = context
        self._use = _Use(context)
        self._frame: CallFrame | None = None
        self._memory = StateMemory(plan, max_length)
        self._held = {state.input for state in plan.states}
        made = {state.output for state in plan.states}
        self._outputs = [index for index in range(len(plan.outputs)) if index not in made]
        self._sizes = dict(_numbered(plan.symbols, sizes))

    def __len__(self) -> int:
        return self._memory.longest(self._memory.lengths)

    @property
    def capacity(self) -> int:
        """The rows that there is memory for; it doubles where they do not suffice."""
        return self._memory.capacity

    @property
    def size_bytes(self) -> int:
        """The memory of all states."""
        return self._memory.size_bytes

    def run(
        self,
        inputs: "Arrays",
        outputs: "Arrays | None" = None,
        timeout: "float | None" = None,
    ) -> "dict[str, Array]":
        """Compute the outputs that are no states, and keep those that are.

        Args:
            inputs: arrays by name, without the states.
            outputs: C-contiguous arrays by name that some of the results are written into.
            timeout: as for ``Session.run``.

        Raises:
            BundleError: as ``Session.run``; ``InputError`` where a state would outgrow
                ``max_length``; ``BusyError`` where another thread uses the sequence. After an error
                it is as it was.
        """
        with self._use:
            return run_on_free(
                (self._context,), lambda context: self._run(context, inputs, outputs or {}), timeout
            )

    def state(self, name: str) -> "Array":
        """Return a copy of a state by the name of its input or its output: what the output would
        be."""
        with self._use:
            return self._memory.array(self._memory.index_of(name)).copy()

    def reset(self) -> None:
        """Empty it; its memory stays."""
        with self._use:
            self._memory.truncate(0)

    def truncate(self, length: int) -> None:
        """Forget all rows but the first ``length``: what came behind them is taken back."""
        with self._use:
            if type(length) is not int or not 0 <= length <= len(self):
                why = f"expected 0 to {len(self)} rows, got {length!r}"
                raise InputError("bad length", "sequence.truncate", why)
            if length not in (0, len(self)) and self._memory.fixed:
                why = f"{self._memory.fixed!r} has a fixed length"
                do = "write over the rows, or reset it"
                raise InputError("no rows to take back", "sequence.truncate", why, do)
            if length < len(self):
                self._memory.truncate(length)

    def fork(self) -> "Sequence":
        """Return another sequence that has what this one has, in memory of its own."""
        with self._use:
            other = Sequence(self._context, self.max_length, {})
            other._sizes = dict(self._sizes)
            other._memory = self._memory.copy()
            return other

    def reorder(self, rows: "Array | list[int]") -> None:
        """Let batch entry i continue what entry ``rows[i]`` has (axis 0 of all states): beams."""
        with self._use:
            self._memory.reorder(rows)

    def close(self) -> None:
        """Give its memory back. It cannot be used any more; its forks can."""
        with self._use:
            self._use.is_closed = True
            self._memory.free()
            self._frame = None

    def _run(
        self, context: ExecutionContext, inputs: "Arrays", outputs: "Arrays"
    ) -> "dict[str, Array]":
        plan, memory = context.loaded.plan, self._memory
        arrays = self._checked(inputs)
        frame = context.fit_frame(self._frame, tuple(arrays.shapes))
        self._frame = frame
        _require_held(frame, plan)
        memory.reserve([frame.output_shapes[state.output] for state in plan.states])
        for state, (address, size_bytes) in zip(plan.states, memory.places(), strict=True):
            frame.input_addresses[state.input] = address
            frame.output_addresses[state.output] = address
            frame.output_capacity[state.output] = size_bytes
        held = [*arrays.pass_to(frame)]
        results = self._results(frame, outputs)
        context.call(frame)
        del held
        memory.lengths = [frame.output_shapes[state.output][state.axis] for state in plan.states]
        return results

    def _checked(self, inputs: "Arrays") -> "_Given":
        """Return the arrays that are given, checked; the shapes of all inputs."""
        plan = self._context.loaded.plan
        given = by_name("inputs", inputs, "sequence.run")
        wanted = {index: it for index, it in enumerate(plan.inputs) if index not in self._held}
        names = [item.name for item in wanted.values()]
        for name in given:
            if name in names:
                continue
            if name in [plan.inputs[index].name for index in self._held]:
                why = "the sequence holds it, from call to call"
                do = "leave it out, or use session.run"
                raise InputError(f"{name!r} is a state", f"input {name!r}", why, do)
            raise unexpected_input(name, names, given)
        sizes = {**self._sizes, **self._memory.sizes()}
        arrays = {
            index: checked_tensor(tensor, plan, given, sizes, [*wanted.values()])
            for index, tensor in wanted.items()
        }
        numbers = {dim: size for dim, (size, _) in sizes.items()}
        shapes = [
            arrays[index].shape if index in arrays else self._memory.shape(index, numbers)
            for index in range(len(plan.inputs))
        ]
        return _Given(arrays, shapes)

    def _results(self, frame: "CallFrame", given: "Arrays") -> "dict[str, Array]":
        """Point the frame at an array for each output that is no state."""
        plan = self._context.loaded.plan
        names = [plan.outputs[index].name for index in self._outputs]
        for name in given:
            if name not in names:
                raise InputError(
                    f"no output {name!r}", "sequence.run", f"they are: {', '.join(names)}"
                )
        results: dict[str, Array] = {}
        for index in self._outputs:
            tensor, shape = plan.outputs[index], frame.output_shapes[index]
            if frame.is_data_dependent[index]:
                what = f"output {tensor.name!r} has no size of its own"
                why = "its size depends on the data"
                raise InputError(what, "sequence.run", why, "use session.run")
            array = given.get(tensor.name)
            if array is None:
                array = aligned_empty(shape, dtype_of(tensor.dtype))
            elif not _fits(array, tensor.dtype, shape):
                why = f"expected {dtype_of(tensor.dtype)}{list(shape)}, C-contiguous and writable"
                got = f"got {array.dtype}{list(array.shape)}"
                raise InputError(
                    f"output {tensor.name!r} does not fit", "sequence.run", f"{why}; {got}"
                )
            frame.output_addresses[index] = array.__array_interface__["data"][0]
            results[tensor.name] = array
        return results


class _Use:
    """Lets one thread use a sequence, while it and its session are open."""

    __slots__ = ("_context", "_lock", "is_closed")

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context
        self._lock = allocate_lock()
        self.is_closed = False

    def __enter__(self) -> None:
        name = self._context.name
        if not self._lock.acquire(blocking=False):
            why = "another call of it has not ended"
            do = "fork it, and give each thread its own"
            raise BusyError("a sequence is used twice at once", name, why, do)
        if self.is_closed or self._context.queue.is_closed:
            self._lock.release()
            if not self.is_closed:
                raise closed(name)
            raise BusyError("the sequence is closed", name, "", "make another: session.sequence()")

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class _Given:
    """The arrays of a call by index of their input, the shapes of all inputs."""

    __slots__ = ("_arrays", "shapes")

    def __init__(self, arrays: "dict[int, Array]", shapes: "list[Shape]") -> None:
        self._arrays = arrays
        self.shapes = shapes

    def pass_to(self, frame: "CallFrame") -> "Iterator[Array]":
        """Point the frame at each; yield what must stay alive during the call."""
        for index, given in self._arrays.items():
            array = given
            address = array.__array_interface__["data"][0]
            if address % array.itemsize or not array.flags.c_contiguous:
                array = aligned_empty(given.shape, given.dtype)
                array[...] = given
                address = array.__array_interface__["data"][0]
            frame.input_addresses[index] = address
            yield array


def _require_held(frame: "CallFrame", plan: "BundlePlan") -> None:
    """Refuse a state that is not continued."""
    for row, state in enumerate(plan.states):
        what, where = "a state whose output is another tensor", f"section state 0, row {row}"
        is_open = frame.is_data_dependent[state.output]
        require(not is_open, what, where, "its size depends on the data")
        made, held = frame.output_shapes[state.output], frame.input_shapes[state.input]
        for axis in range(len(held)):
            same = axis == state.axis or made[axis] == held[axis]
            require(same, what, where, f"axis {axis}")


def _fits(array: "Array", dtype: int, shape: "Shape") -> bool:
    known = array.dtype in (dtype_of(dtype), bits_of(dtype))
    aligned = (
        not array.__array_interface__["data"][0] % DTYPE_SIZES_BYTES[dtype] or not array.nbytes
    )
    flags = array.flags
    return known and array.shape == shape and aligned and flags.c_contiguous and flags.writeable


def _numbered(
    symbols: tuple[str, ...], sizes: "Mapping[str, int]"
) -> "Iterator[tuple[int, tuple[int, str]]]":
    """Yield the sizes that the user gave as the plan's dims, with what says so."""
    for name, size in sizes.items():
        if name not in symbols or type(size) is not int or size < 0:
            why = f"expected sizes of {', '.join(symbols)}, got {name!r}: {size!r}"
            raise InputError("bad size", "session.sequence, sizes", why)
        yield -symbols.index(name) - 1, (size, "sizes")
