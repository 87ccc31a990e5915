"""The memory of a sequence's states: rows behind rows, room that doubles.

In: a plan, how many rows are needed. Out: addresses, arrays over the rows that are there. Not done
here: calls (``sequence``).

All states lie in one block, each row-major with room for ``capacity`` rows along its axis.
"""

import math

import numpy as np

from ..errors import InputError
from ..format.dtypes import DTYPE_SIZES_BYTES
from ..loader.block import Block
from .frame import ALIGNMENT_BYTES
from .numpy_dtypes import dtype_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..format.plan import BundlePlan, StatePlan
    from .frame import Shape

    Array = np.ndarray

_ROWS_MIN = 64


class StateMemory:
    """``lengths``: rows of each state; ``capacity``: rows that each has room for."""

    __slots__ = ("_block", "_max_length", "_offsets", "_plan", "_shapes", "capacity", "lengths")

    def __init__(self, plan: "BundlePlan", max_length: "int | None") -> None:
        """Start without memory and rows."""
        self._plan = plan
        self._max_length = max_length
        self.lengths = [0] * len(plan.states)
        self.capacity = 0
        # With room: of each state.
        self._shapes: list[Shape] = []
        self._offsets: list[int] = []
        self._block: Block | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of all states with their room."""
        return 0 if self._block is None else self._block.size_bytes

    def longest(self, rows: "list[int]") -> int:
        """Return the most rows of a state that grows, or of all."""
        states = self._plan.states
        return max([n for state, n in zip(states, rows, strict=True) if not state.fixed] or rows)

    @property
    def fixed(self) -> str:
        """The input of the first state of fixed length, or ""."""
        plan = self._plan
        return next((plan.inputs[state.input].name for state in plan.states if state.fixed), "")

    def index_of(self, name: str) -> int:
        """Return the number of the state of an input or output.

        Raises:
            InputError: there is none.
        """
        inputs, outputs = self._plan.inputs, self._plan.outputs
        for index, state in enumerate(self._plan.states):
            if name in (inputs[state.input].name, outputs[state.output].name):
                return index
        names = ", ".join(inputs[state.input].name for state in self._plan.states)
        raise InputError(f"no state {name!r}", "sequence.state", f"they are: {names}")

    def sizes(self) -> "dict[int, tuple[int, str]]":
        """Return what the rows that are there say of symbols: dim -> (size, name of the input)."""
        found: dict[int, tuple[int, str]] = {}
        for index, (state, length) in enumerate(zip(self._plan.states, self.lengths, strict=True)):
            tensor = self._plan.inputs[state.input]
            for axis, dim in enumerate(tensor.dims):
                if dim < 0 and axis == state.axis and not state.fixed:
                    found.setdefault(dim, (length, tensor.name))
                elif dim < 0 and length:
                    found.setdefault(dim, (self._shapes[index][axis], tensor.name))
        return found

    def shape(self, position: int, sizes: "dict[int, int]") -> "Shape":
        """Return the shape of the input at `position`, a state, of the rows that are there."""
        tensor = self._plan.inputs[position]
        shape: list[int] = []
        for axis, dim in enumerate(tensor.dims):
            if dim < 0 and dim not in sizes:
                symbol = self._plan.symbols[-dim - 1]
                why = f"no input that is given has the size {symbol!r}"
                do = f"session.sequence(sizes={{{symbol!r}: ...}})"
                where = f"state {tensor.name!r}, axis {axis}"
                raise InputError("a state has an unknown size", where, why, do)
            shape.append(dim if dim >= 0 else sizes[dim])
        return tuple(shape)

    def reserve(self, shapes: "list[Shape]") -> None:
        """Make room for states of `shapes`, keeping the rows that are there.

        Raises:
            InputError: more than ``max_length`` rows. ResourceError: no memory.
        """
        states = self._plan.states
        rows = self.longest(
            [shape[state.axis] for shape, state in zip(shapes, states, strict=True)]
        )
        most = self._max_length
        if most is not None and rows > most:
            has = self.longest(self.lengths)
            why = f"max_length is {most}: it has {has} rows, this call makes them {rows}"
            do = "reset it, or ask for more: session.sequence(max_length=...)"
            raise InputError("a state outgrows its bound", "sequence.run", why, do)
        beside = [_with_rows(shape, state, 0) for shape, state in zip(shapes, states, strict=True)]
        held = [
            _with_rows(shape, state, 0) for shape, state in zip(self._shapes, states, strict=False)
        ]
        if rows > self.capacity or beside != held:
            capacity = rows
            if not all(state.fixed for state in states):
                twice = self.capacity if rows <= self.capacity else 2 * self.capacity
                capacity = max(rows, twice, _ROWS_MIN)
            self._move(shapes, capacity if most is None else min(capacity, most))
        for index, state in enumerate(states):
            if state.fixed and not self.lengths[index]:
                self._whole(index)[...] = 0

    def _move(self, shapes: "list[Shape]", capacity: int) -> None:
        """Take a new block, and copy the rows that are there into it."""
        old = [self.array(index) for index, length in enumerate(self.lengths) if length]
        wide = [
            _with_rows(shape, state, capacity)
            for shape, state in zip(shapes, self._plan.states, strict=True)
        ]
        offsets: list[int] = []
        end = 0
        for index, shape in enumerate(wide):
            offsets.append(end)
            size_bytes = self._size_bytes(index, shape)
            end += size_bytes + -size_bytes % ALIGNMENT_BYTES
        block = Block(max(end, ALIGNMENT_BYTES))
        self._shapes, self._offsets, self._block, self.capacity = wide, offsets, block, capacity
        for index, rows in zip([i for i, n in enumerate(self.lengths) if n], old, strict=True):
            self.array(index)[...] = rows

    def _size_bytes(self, index: int, shape: "Shape") -> int:
        tensor = self._plan.inputs[self._plan.states[index].input]
        return DTYPE_SIZES_BYTES[tensor.dtype] * math.prod(shape)

    def places(self) -> "list[tuple[int, int]]":
        """Return address and bytes of each state, with its room."""
        assert self._block is not None
        base = self._block.address
        return [
            (base + offset, self._size_bytes(index, shape))
            for index, (offset, shape) in enumerate(zip(self._offsets, self._shapes, strict=True))
        ]

    def array(self, index: int) -> "Array":
        """Return the rows of a state that are there, in place."""
        state = self._plan.states[index]
        tensor = self._plan.inputs[state.input]
        if self._block is None:
            sizes = [max(dim, 0) for dim in tensor.dims]
            return np.empty(_with_rows(tuple(sizes), state, 0), dtype_of(tensor.dtype))
        return self._whole(index)[(slice(None),) * state.axis + (slice(self.lengths[index]),)]

    def _whole(self, index: int) -> "Array":
        """Return a state with its room, in place."""
        assert self._block is not None
        tensor, shape = self._plan.inputs[self._plan.states[index].input], self._shapes[index]
        start, dtype = self._offsets[index], dtype_of(tensor.dtype)
        return np.ndarray(shape, dtype, self._block.memory, start)

    def reorder(self, rows: "Array | list[int]") -> None:
        """Take the entries `rows` of axis 0 of each state, in that order."""
        for index, state in enumerate(self._plan.states):
            held = self.array(index)
            chosen = np.asarray(rows)
            good = chosen.shape == held.shape[:1] and chosen.dtype.kind in "iu" and state.axis
            if not good or (chosen.size and not 0 <= chosen.min() <= chosen.max() < len(held)):
                why = (
                    f"expected {len(held)} numbers from 0 to {len(held) - 1}, got {chosen.tolist()}"
                )
                raise InputError("bad batch entries", "sequence.reorder", why)
            held[...] = held[chosen]

    def truncate(self, length: int) -> None:
        """Forget the rows from ``length`` on."""
        self.lengths = [min(rows, length) for rows in self.lengths]

    def copy(self) -> "StateMemory":
        """Return a copy in memory of its own, with the same capacity."""
        other = StateMemory(self._plan, self._max_length)
        if self._block is not None:
            other._move(self._shapes, self.capacity)
            other.lengths = list(self.lengths)
            for index in range(len(self.lengths)):
                other.array(index)[...] = self.array(index)
        return other

    def free(self) -> None:
        """Give the memory back."""
        self.truncate(0)
        self._block, self.capacity, self._shapes, self._offsets = None, 0, [], []


def _with_rows(shape: "Shape", state: "StatePlan", rows: int) -> "Shape":
    """The shape of a state with so many rows; one of fixed length has its own."""
    return shape if state.fixed else (*shape[: state.axis], rows, *shape[state.axis + 1 :])
