"""The devices that a plan may use: the host, those that run kernels, and which one of these takes
what nothing else decides.

In: virtual devices. Out: ``PlanDevices``, which completes partial devices. Not done here: where
they come from (options, project files).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ingot_compiler.ir.errors import UserError
from ingot_compiler.placement.virtual_device import (
    ANY_SCOPE,
    ANY_TARGET,
    VirtualDevice,
    default,
    join,
)
from ingot_compiler.programs.program import HOST, Program


@dataclass(frozen=True, slots=True)
class PlanDevices:
    """``host`` reads sizes and shapes; ``kernels`` run operators, and ``default`` is the one of
    them for everything that is free."""

    host: VirtualDevice
    default: VirtualDevice
    kernels: tuple[VirtualDevice, ...] = ()

    def __iter__(self) -> Iterator[VirtualDevice]:
        """All, in the order in which a partial device is completed: the host comes last."""
        yield from dict.fromkeys((self.default, *self.kernels, self.host))

    def canonical(self, device: VirtualDevice) -> VirtualDevice | None:
        """``device`` with the target that its type implies; None when no device is of that kind.

        Where devices of one type have several targets, the target stays open.
        """
        if not device.device_type:
            return device
        place = replace(device, memory_scope=ANY_SCOPE)
        fitting = [found for found in self if join(_place(found), place) is not None]
        if not fitting:
            return None
        targets = {found.target for found in fitting}
        return device if len(targets) > 1 else replace(device, target=targets.pop())

    def complete(self, device: VirtualDevice, preferred: VirtualDevice) -> VirtualDevice:
        """``device``, its open fields those of ``preferred``, or of the first device that fits.

        The scope of ``preferred`` is taken where ``device`` is open in every field.
        """
        if device.is_open:
            return preferred
        for found in (preferred, *self):
            if join(_place(found), _place(device)) is not None:
                return replace(default(device, found), memory_scope=device.memory_scope)
        return device


def plan_devices(program: Program) -> PlanDevices:
    """The devices that a program declares; those of which a field is open are no devices.

    Raises:
        UserError: the host or the default device is not declared, or is open in a field.
    """
    named = {one.name: one.device for one in program.devices if is_placed(one.device)}
    for name in (HOST, program.default):
        if name not in named:
            raise UserError(
                f"no device {name!r}",
                "the devices of the program",
                f"expected it among those with type, id and target, got {', '.join(named) or 'none'}",
                f"declare it: device {name!r} id 0 type ... target ...",
            )
    kernels = tuple(device for name, device in named.items() if name != HOST)
    return PlanDevices(named[HOST], named[program.default], kernels)


def _place(device: VirtualDevice) -> VirtualDevice:
    return replace(device, memory_scope=ANY_SCOPE)


def is_placed(device: VirtualDevice) -> bool:
    """Whether type, id and target are decided."""
    return bool(device.device_type) and device.id >= 0 and device.target != ANY_TARGET
