"""The frame of `main`: where registers, buffers and sizes lie, shared by all of its functions. The
caller lends the memory.

In: counts of a program. Out: offsets in bytes, and the line of IR that applies one. Not done here:
other code.
"""

from ingot_runtime.lazy_dataclass import dataclass

_HEAD_BYTES = 16
_DEVICE_WORDS = 2  # extent and grain


@dataclass(frozen=True, slots=True)
class MainFrame:
    """The layout: call pointer, scratch bytes needed, workspace bytes needed per device, registers,
    buffer addresses, and the arguments of a launch: buffers, scalars, and two words more for a
    device's.
    """

    register_count: int
    buffer_count: int
    device_count: int
    launch_buffers_max: int
    launch_scalars_max: int

    @property
    def scratch_needed_at(self) -> int:
        """u64."""
        return 8

    @property
    def workspaces_needed_at(self) -> int:
        """u64 per device."""
        return _HEAD_BYTES

    @property
    def registers_at(self) -> int:
        """i64 per register."""
        return _HEAD_BYTES + 8 * self.device_count

    @property
    def buffers_at(self) -> int:
        """Address per buffer."""
        return self.registers_at + 8 * self.register_count

    @property
    def arguments_at(self) -> int:
        """Address per buffer of a launch, then i64 per scalar."""
        return self.buffers_at + 8 * self.buffer_count

    @property
    def scalars_at(self) -> int:
        """i64 per scalar of a launch on the host; on a device they follow its buffers at once."""
        return self.arguments_at + 8 * self.launch_buffers_max

    @property
    def size_bytes(self) -> int:
        """Size of the whole frame."""
        return self.scalars_at + 8 * (self.launch_scalars_max + _DEVICE_WORDS)


def frame_field(name: str, at: int) -> str:
    """Define ``name``: an address in ``%frame``, ``at`` bytes behind its start."""
    return f"  {name} = getelementptr i8, ptr %frame, i64 {at}"
