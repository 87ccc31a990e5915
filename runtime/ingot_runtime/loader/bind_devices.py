"""Which physical device each virtual one is: as the user maps them, else as compiled.

In: the plan's devices, the user's mapping. Out: (kind, id) per device. Not done here: opening them
(``ingot_runtime_devices``).
"""

from ..errors import IncompatibleError, InputError
from ..format.plan import DEVICE_KINDS, BundlePlan, DevicePlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ID_DIGITS_MAX = 9

Binding = tuple[str, int]
"""(kind, id) of a physical device."""


def devices_module(part: str, name: str) -> "Any":
    """Return a module of the distribution that knows the kinds of devices beside the host, or raise
    ``IncompatibleError``; bundles without such devices need none."""
    from importlib import import_module

    try:
        return import_module(f"ingot_runtime_devices.{part}")
    except ImportError as error:
        kinds = "devices beside the host, whose kinds are a package of their own"
        why = f"the bundle {name!r} has {kinds}: {error}"
        do = "pip install ingot-runtime-devices, in the version of ingot-runtime"
        raise IncompatibleError("no devices beside the host here", name, why, do) from error


def bind_devices(plan: BundlePlan, devices: "dict[str, str]", name: str) -> tuple[Binding, ...]:
    """Return kind and id of every device, as `devices` (name -> ``kind`` or ``kind:id``) maps it.

    Raises:
        InputError: no such mapping, or not of known names. IncompatibleError: no code for a kind.
    """
    # Who calls may not look at types.
    if not isinstance(devices, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        why = f"expected a dict of texts by device name, got {type(devices).__name__}"
        do = 'load(..., devices={"acc": "null:0"})'
        raise InputError("devices are not a dict", "devices", why, do)
    names = [device.name for device in plan.devices]
    for given in devices:
        if given not in names:
            why = f"the bundle has {', '.join(names)}"
            raise InputError(f"no device {given!r}", "devices", why, "leave it out")
    return tuple(_bound(device, devices, name) for device in plan.devices)


def _bound(device: DevicePlan, devices: "dict[str, str]", name: str) -> Binding:
    if device.name in devices:
        kind, id_ = _parse(device.name, devices[device.name])
    else:
        kind, id_ = device.kind, device.id
    wants = f"device {device.name!r} wants {kind}:{id_}"
    if kind != "host":
        _require_known(kind, id_, wants, name)
    if kind != device.kind:
        own = "host:0" if device.kind == "host" else f"{device.kind}:{device.id}"
        why = f"it has code for {device.kind} only, and is mapped to {kind}:{id_}"
        do = f"map it: --device {device.name}={own}, or compile it for {kind}"
        raise IncompatibleError(f"device {device.name!r} cannot be {kind}:{id_}", name, why, do)
    if kind == "host" and id_:
        do = f"map it: --device {device.name}=host"
        why = f"{wants}; this machine is host:0"
        raise IncompatibleError(f"no device host:{id_} here", name, why, do)
    return kind, id_


def _require_known(kind: str, id: int, wants: str, name: str) -> None:
    known = devices_module("registry", name).OPEN
    if kind not in known:
        why = f"{wants}; this loader has host, {', '.join(known)}"
        do = "update ingot-runtime-devices, or compile for another"
        raise IncompatibleError(f"no device {kind}:{id} here", name, why, do)


def _parse(name: str, text: object) -> Binding:
    """Read ``kind`` or ``kind:id``."""
    where, do = f"devices, {name!r}", "e.g. null:0"
    if not isinstance(text, str):
        why = f"expected a text KIND or KIND:ID, got {text!r}"
        raise InputError(f"bad device for {name!r}", where, why, do)
    kind, sign, number = text.partition(":")
    if kind not in DEVICE_KINDS:
        why = f"expected one of {', '.join(DEVICE_KINDS)}"
        raise InputError(f"unknown kind of device {text!r}", where, why, do)
    if not sign:
        return kind, 0
    if not (number.isascii() and number.isdigit() and len(number) <= _ID_DIGITS_MAX):
        why = f"expected KIND or KIND:ID, got {text!r}"
        raise InputError(f"bad device {text!r}", where, why, do)
    return kind, int(number)
