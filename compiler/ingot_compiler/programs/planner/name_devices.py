"""Gives a name to each device that a plan has made out of parts of others.

In: a planned program. Out: the same with all its devices in its table. Not done here: devices.
"""

from __future__ import annotations

from dataclasses import replace

from ingot_compiler.placement.virtual_device import DeclaredDevice, VirtualDevice
from ingot_compiler.programs.expressions import DeviceCopy, Expression, FunctionLiteral, OnDevice
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.walk import post_order, with_devices


def name_devices(program: Program) -> Program:
    """The program; a device in a scope is called after the device and the scope."""
    known = {one.device for one in program.devices}
    names = {one.name for one in program.devices}
    bases = {replace(one.device, memory_scope=""): one.name for one in reversed(program.devices)}
    added: list[DeclaredDevice] = []
    for expression in post_order(program.functions.values(), with_devices):
        for device in _devices(expression):
            if device not in known and not device.is_open:
                base = bases.get(replace(device, memory_scope=""), "device")
                name = _unused(f"{base}.{device.memory_scope}".rstrip("."), names)
                known.add(device)
                names.add(name)
                added.append(DeclaredDevice(name, device))
    return replace(program, devices=(*program.devices, *added))


def _devices(expression: Expression) -> tuple[VirtualDevice, ...]:
    match expression:
        case FunctionLiteral(primitive=False):
            return (*(one.device for one in expression.parameters), expression.device)
        case OnDevice():
            return (expression.device,)
        case DeviceCopy():
            return expression.source, expression.destination
        case _:
            return ()


def _unused(wanted: str, names: set[str]) -> str:
    name, count = wanted, 0
    while name in names:
        count += 1
        name = f"{wanted}.{count}"
    return name
