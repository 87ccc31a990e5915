"""The devices that a plan may use, and how a device that is only partly decided is completed.

In: a program with its table of devices. Out: its ``Configuration``; completed devices. Not done
here: what a device means among others (``placement.configuration``).
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.placement.configuration import HOST, Configuration
from ingot_compiler.placement.virtual_device import (
    ANY_ID,
    ANY_SCOPE,
    HOST_TYPE,
    VirtualDevice,
    default,
    join,
)
from ingot_compiler.programs.program import Program


def plan_configuration(program: Program) -> Configuration:
    """The devices that a program declares; those of which a field is open are none.

    Raises:
        UserError: the host or the default device is not declared, or two devices are one.
    """
    devices = tuple(one for one in program.devices if is_placed(one.device))
    return Configuration(devices, program.default)


def is_placed(device: VirtualDevice) -> bool:
    """Whether type, id and target are decided; each variant of a bundle has the host's target."""
    has_target = bool(device.target) or device.device_type == HOST_TYPE
    return bool(device.device_type) and device.id != ANY_ID and has_target


def complete(
    configuration: Configuration, device: VirtualDevice, preferred: VirtualDevice
) -> VirtualDevice:
    """``device``, its open fields those of ``preferred``, or of the first device that fits, the
    host last.

    The scope of ``preferred`` is taken where ``device`` is open in every field.
    """
    if device.is_open:
        return preferred
    names = sorted(configuration.names, key=lambda name: name == HOST)
    known = (configuration.default_device, *map(configuration.named, names))
    for found in (preferred, *known):
        if join(_place(found), _place(device)) is not None:
            return replace(default(device, found), memory_scope=device.memory_scope)
    return device


def _place(device: VirtualDevice) -> VirtualDevice:
    return replace(device, memory_scope=ANY_SCOPE)
