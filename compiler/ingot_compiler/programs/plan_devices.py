"""The devices that a plan may use, and how a device that is only partly decided is completed.

In: a program with its table of devices. Out: its ``Configuration``; completed devices. Not done
here: what a device means among others (``placement.configuration``).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace

from ingot_compiler.ir.errors import UserError
from ingot_compiler.placement.configuration import HOST, Configuration
from ingot_compiler.placement.virtual_device import (
    ANY_ID,
    ANY_SCOPE,
    HOST_TYPE,
    DeclaredDevice,
    VirtualDevice,
    default,
    join,
)
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.replace_devices import with_devices_replaced
from ingot_runtime.format.plan import DEVICE_KINDS


def own_devices(program: Program) -> dict[str, VirtualDevice]:
    """The devices that a table declares, by name, with their ids: each entry that says which device
    it is, and each other one whose kind there is and that none of these fits."""
    found = {one.name: one.device for one in program.devices if is_placed(one.device)}
    others = [one for one in program.devices if one.name not in found]
    for one in sorted(others, key=lambda one: one.device.id == ANY_ID):
        fits = any(join(_place(known), _place(one.device)) for known in found.values())
        if one.device.device_type in DEVICE_KINDS and not fits:
            found[one.name] = _numbered(one.device, found.values())
    return found


def _numbered(device: VirtualDevice, others: Iterable[VirtualDevice]) -> VirtualDevice:
    """The device with its id, or the first one that no other of its kind has."""
    taken = {other.id for other in others if other.device_type == device.device_type}
    free = next(number for number in itertools.count() if number not in taken)
    return device if device.id != ANY_ID else replace(device, id=free)


def with_own_devices(
    program: Program, target_of: Callable[[VirtualDevice], str] = lambda device: device.target
) -> Program:
    """The program whose table has the devices of its entries, with the targets that ``target_of``
    gives those that have none; annotations and declarations follow."""
    own = own_devices(program)
    for name, device in own.items():
        if device.device_type != HOST_TYPE and not device.target:
            own[name] = replace(device, target=target_of(device))
    entries = [(one, replace(one, device=own.get(one.name, one.device))) for one in program.devices]
    whole = {old.device: new.device for old, new in entries if old != new}
    if not whole:
        return program
    table = tuple(new for _, new in entries)
    return replace(with_devices_replaced(program, whole), devices=table)


def plan_configuration(program: Program) -> Configuration:
    """The devices that a program declares.

    Raises:
        UserError: the host or the default device is not declared, or two devices are one.
    """
    own = own_devices(program)
    default = program.default
    requested = next((one.device for one in program.devices if one.name == default), None)
    if default not in own and requested is not None:
        fitting = [name for name, known in own.items() if join(_place(known), _place(requested))]
        if not fitting:
            what, where = f"no {requested.device_type} device is declared", f"device {default!r}"
            raise UserError(what, where, f"there are {', '.join(own)}", advice(requested))
        default = fitting[0]
    devices = tuple(DeclaredDevice(name, device) for name, device in own.items())
    return Configuration(devices, default)


def advice(device: VirtualDevice) -> str:
    """What to do where no device of a kind is declared."""
    if device.device_type in DEVICE_KINDS:
        return f'declare one: device "NAME" type "{device.device_type}"'
    return f"name a kind out of {', '.join(DEVICE_KINDS)}"


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
