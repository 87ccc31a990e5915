"""Which physical devices each virtual one may be: as the user maps them, else as compiled.

In: the plan's devices, the user's mapping. Out: candidates. Not done here: devices
beside the host (``ingot_runtime_devices.bind_device``), opening any.
"""

from ..errors import IncompatibleError, InputError
from ..format.device_text import suggest_name
from ..format.plan import BundlePlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def devices_module(part: str, name: str) -> "Any":
    """Return a module of the distribution that knows the kinds of devices beside the host, or raise
    ``IncompatibleError``; bundles without such devices need none."""
    from importlib import import_module

    try:
        return import_module(f"ingot_runtime_devices.{part}")
    except ImportError as error:
        kinds = "devices beside the host, whose kinds are a package of their own"
        why = f"the bundle {name!r} has {kinds}: {error}"
        do = "install ingot-runtime-devices, in the version of ingot-runtime"
        raise IncompatibleError("no devices beside the host here", name, why, do) from error


def bind_devices(plan: BundlePlan, devices: "dict[str, str]", name: str) -> "tuple[Any, ...]":
    """Return for every device but hosts what it may be, the best first, as `devices` maps it.

    Raises:
        InputError: no such mapping, or not of known names. IncompatibleError: no device of the
            kind here, or no code for it.
    """
    # Who calls may not look at types.
    if not isinstance(devices, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        why = f"expected a dict of texts by device name, got {type(devices).__name__}"
        do = 'load(..., devices={"acc": "cpu:0"})'
        raise InputError("devices are not a dict", "devices", why, do)
    names = [device.name for device in plan.devices]
    for given in devices:
        if given not in names:
            why = f"the bundle has {', '.join(names)}"
            do = suggest_name(given, tuple(names)) or "leave it out"
            raise InputError(f"no device {given!r}", "devices", why, do)
    return tuple(_bound(plan, index, devices, name) for index in range(len(plan.devices)))


def _bound(plan: BundlePlan, index: int, devices: "dict[str, str]", name: str) -> "Any":
    device = plan.devices[index]
    if device.kind != "host":
        bind = devices_module("bind_device", name).bind_device
        return bind(plan, index, devices.get(device.name), name)
    given = devices.get(device.name, f"host:{device.id}")
    if given not in ("host", "host:0"):
        why = f"{device.name!r} is the processor that runs main, and is mapped to {given!r}"
        do = f"leave it out, or write {device.name}=host"
        raise IncompatibleError(f"device {device.name!r} cannot be {given!r}", name, why, do)
    return ()
