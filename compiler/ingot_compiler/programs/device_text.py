"""The devices of a program as text: a table of names, and blocks that refer to it.

In: devices. Out: lines ``device "gpu" id 0 type "cuda" target "cuda:sm_80"``; blocks
``{device="gpu"}``; both read back. Not done here: programs (``print_program``, ``parse_program``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.text.text_reader import Reader
from ingot_compiler.placement.virtual_device import (
    ANY_ID,
    ANY_SCOPE,
    ANY_TARGET,
    ANY_TYPE,
    UNCONSTRAINED,
    DeclaredDevice,
    VirtualDevice,
)


def print_device(declared: DeclaredDevice, is_default: bool) -> str:
    """One line of the table; what a device leaves open is not written."""
    device = declared.device
    texts = {"type": device.device_type, "target": device.target, "scope": device.memory_scope}
    fields = [f"{name} {json.dumps(text)}" for name, text in texts.items() if text]
    number = [f"id {device.id}"] if device.id != ANY_ID else []
    default = ["default"] if is_default else []
    return " ".join(["device", json.dumps(declared.name), *number, *fields, *default])


def read_device(reader: Reader) -> tuple[DeclaredDevice, bool]:
    """One line of the table, and whether it is the default device."""
    start = reader.expect("device")
    name = reader.string()
    identity = reader.integer() if reader.accept("id") else ANY_ID
    device_type = reader.string() if reader.accept("type") else ANY_TYPE
    target = reader.string() if reader.accept("target") else ANY_TARGET
    scope = reader.string() if reader.accept("scope") else ANY_SCOPE
    try:
        declared = DeclaredDevice(name, VirtualDevice(device_type, identity, target, scope))
    except UserError as error:
        raise reader.fail(f"{error.what}: {error.why}", start) from None
    return declared, reader.accept("default")


def print_block(name: str) -> str:
    """``{device="gpu"}``."""
    return f"{{device={json.dumps(name)}}}"


def read_block(reader: Reader, devices: Mapping[str, VirtualDevice]) -> VirtualDevice:
    """The device of the block that comes next; open where there is none."""
    if not reader.accept("{"):
        return UNCONSTRAINED
    if not reader.at("device"):
        raise reader.fail(f'expected one entry, device="NAME", got {reader.token}')
    reader.expect("device", "=")
    device = read_name(reader, devices)
    if not reader.at("}"):
        raise reader.fail(f'expected "}}" behind the one entry device="NAME", got {reader.token}')
    reader.expect("}")
    return device


def read_name(reader: Reader, devices: Mapping[str, VirtualDevice]) -> VirtualDevice:
    """The device of a name."""
    token = reader.token
    name = reader.string()
    if name not in devices:
        known = ", ".join(map(json.dumps, devices)) or "none, because none is declared"
        raise reader.fail(f"expected a device out of {known}, got {json.dumps(name)}", token)
    return devices[name]
