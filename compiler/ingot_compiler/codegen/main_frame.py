"""The stack frame of `main`: where registers, buffers and sizes lie, shared by all of its functions.

In: counts of a program. Out: offsets in bytes. Not done here: code.
"""

from dataclasses import dataclass

_HEAD_BYTES = 16


@dataclass(frozen=True, slots=True)
class Frame:
    """The layout: call pointer, scratch bytes needed, workspace bytes needed per device, registers, buffer addresses."""

    register_count: int
    buffer_count: int
    device_count: int

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
    def size_bytes(self) -> int:
        """Size of the whole frame."""
        return self.buffers_at + 8 * self.buffer_count
