"""The kernels that a variant uses on each device, which decides what goes into the host's image and
into libraries.

In: the kernels of each group, the device of each. Out: ``KernelUses``, kernels without repetition,
their positions. Not done here: compiling and linking them (``target_stages``, ``compilation``).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from ingot_build_rules.making.values.native_objects import KernelObject
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class KernelUses:
    """``kernels``: one per program of all groups, in order; equal ones are the same object.
    ``devices``: the number of the device that runs each (0: the host)."""

    kernels: tuple[KernelObject, ...]
    devices: tuple[int, ...]

    def symbols(self) -> tuple[str, ...]:
        """The symbol of each program's kernel."""
        return tuple(kernel.symbol for kernel in self.kernels)

    def positions_in(self, images: Sequence[Sequence[KernelObject]]) -> tuple[int, ...]:
        """The position of each program's kernel in the image of its device; ``images``: the
        kernels of each device's."""
        positions = [
            {kernel.symbol: position for position, kernel in enumerate(image)} for image in images
        ]
        return tuple(
            positions[device][kernel.symbol]
            for kernel, device in zip(self.kernels, self.devices, strict=True)
        )


def kernel_uses(kernels: Sequence[Sequence[KernelObject]], devices: Sequence[int]) -> KernelUses:
    """Return the uses of a variant from the kernels of each group and the device of each group."""
    pairs = [
        (kernel, device) for own, device in zip(kernels, devices, strict=True) for kernel in own
    ]
    return KernelUses(tuple(kernel for kernel, _ in pairs), tuple(device for _, device in pairs))


def kernels_on(devices: Container[int], uses: Iterable[KernelUses]) -> tuple[KernelObject, ...]:
    """Return what any of ``devices`` runs in any variant, each kernel once, in the order of its
    first use."""
    found = {
        kernel.symbol: kernel
        for each in uses
        for kernel, device in zip(each.kernels, each.devices, strict=True)
        if device in devices
    }
    return tuple(found.values())
