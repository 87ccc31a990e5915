"""How much memory the calls of a session may have, and the memory that they share.

In: what is loaded, a limit, frames. Out: ``Memory`` that is large enough for a frame. Not done
here: lending it (``session``), blocks of a size that the data decide (``grow``).
"""

from ..errors import LimitError
from ..loader.block import Block
from .frame import ALIGNMENT_BYTES, MORE, CallFrame, Memory
from .loaded import Loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import attached as devices


class CallMemory:
    """The memory of calls: at most ``max_bytes``, an equal part for each of `n_sessions`."""

    __slots__ = ("_attached", "_limit", "_loaded", "max_bytes")

    def __init__(
        self,
        loaded: Loaded,
        attached: "devices.Attached | None",
        max_bytes: "int | None",
        n_sessions: int,
    ) -> None:
        self._loaded = loaded
        self._attached = attached
        self._limit = f"max_bytes is {max_bytes}"
        self.max_bytes = max_bytes
        if max_bytes is not None and n_sessions > 1:
            self.max_bytes = max_bytes // n_sessions
            self._limit += f", {self.max_bytes} for each of {n_sessions} sessions"

    def no_memory(self) -> Memory:
        """Return memory of no bytes, for which every device still has an address."""
        count = len(self._loaded.plan.devices)
        return Memory(tuple(self._workspace(index, 0) for index in range(count)), Block(0), 0)

    def memory_for(self, frame: CallFrame, old: Memory) -> Memory:
        """Return `old`, or larger memory where the frame needs more.

        Raises:
            LimitError: it needs more than ``max_bytes``. ResourceError: the machine has no more.
        """
        wanted = list(zip(frame.workspace_bytes, old.workspaces, strict=True))
        grows = any(needed > given.size_bytes for needed, given in wanted)
        widens = frame.scratch_bytes > old.stride_bytes
        self._require_fits(frame)
        if not grows and not widens:
            return old
        workspaces = tuple(
            self._workspace(index, needed) if needed > given.size_bytes else given
            for index, (needed, given) in enumerate(wanted)
        )
        scratch, stride_bytes = old.scratch, old.stride_bytes
        if widens:
            stride_bytes = frame.scratch_bytes + -frame.scratch_bytes % ALIGNMENT_BYTES
            scratch = Block(stride_bytes * self._loaded.pool.n_threads)
        return Memory(workspaces, scratch, stride_bytes)

    def needed_bytes(self, frame: CallFrame) -> int:
        """Return the bytes of a call, blocks of unknown size left out."""
        scratch_bytes = frame.scratch_bytes * self._loaded.pool.n_threads
        return sum(frame.workspace_bytes) + scratch_bytes + sum(frame.output_bytes)

    def _workspace(self, index: int, size_bytes: int) -> "devices.Memory":
        """Return a pool of device `index`."""
        attached = self._attached
        return Block(size_bytes) if attached is None else attached.allocate(index, size_bytes)

    def _require_fits(self, frame: CallFrame) -> None:
        if self.max_bytes is None:
            return
        needed = self.needed_bytes(frame)
        if needed > self.max_bytes:
            where = frame.named_shapes(self._loaded.plan) or self._loaded.source.name
            why = f"workspace, scratch and outputs need {needed} bytes, {self._limit}"
            raise LimitError("a call needs too much memory", where, why, MORE)
