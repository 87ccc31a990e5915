"""Simulated devices, each with a memory of its own.

In: arrays. Out: ``Tensor``: where an array is; a read from another device raises. Not done here:
which device reads what (``interpret_program``).
"""

from __future__ import annotations

from dataclasses import field

from ingot_compiler.ir.errors import VerificationError
from ingot_compiler.ir.op import Array
from ingot_compiler.placement.virtual_device import VirtualDevice
from ingot_compiler.programs.expressions import Expression
from ingot_compiler.programs.show import show
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Tensor:
    """The address of an array in the memory of a device."""

    device: VirtualDevice
    address: int


@dataclass(slots=True)
class Memories:
    """One memory for each device; addresses begin at 0 in each. ``copy_count``: of copies from one
    to another."""

    copy_count: int = 0
    _arrays: dict[VirtualDevice, list[Array]] = field(
        default_factory=dict[VirtualDevice, list[Array]]
    )

    def store(self, array: Array, device: VirtualDevice) -> Tensor:
        """Put an array into the memory of a device."""
        memory = self._arrays.setdefault(device, [])
        memory.append(array)
        return Tensor(device, len(memory) - 1)

    def load(self, tensor: Tensor, device: VirtualDevice, reader: Expression) -> Array:
        """What ``reader`` finds when it runs on ``device``.

        Raises:
            VerificationError: the tensor is in another memory.
        """
        require_device(tensor.device, device, reader)
        return self._arrays[device][tensor.address]

    def copy(
        self,
        tensor: Tensor,
        source: VirtualDevice,
        destination: VirtualDevice,
        reader: Expression,
    ) -> Tensor:
        """Copy an array to another memory.

        Raises:
            VerificationError: the tensor is not on ``source``.
        """
        self.copy_count += 1
        return self.store(self.load(tensor, source, reader), destination)


def require_device(device: VirtualDevice, expected: VirtualDevice, reader: Expression) -> None:
    """Refuse what is on another device than its reader.

    Raises:
        VerificationError: names the reader and both devices.
    """
    if device != expected:
        raise VerificationError(
            "a value is read on a device that it is not on",
            f"{show(reader)} at {reader.span}",
            f"expected it on {expected}, got it on {device}",
            "plan the program again",
        )
