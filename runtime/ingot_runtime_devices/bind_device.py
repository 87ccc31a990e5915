"""Which device of the machine a virtual device beside the host is: as the user maps it, else as
compiled.

In: its plan, what the user says. Out: (kind, id). Not done here: the host
(``ingot_runtime.loader.bind_devices``), which ids there are (each kind knows, when it is opened).
"""

from ingot_runtime.errors import IncompatibleError, InputError
from ingot_runtime.format.device_text import DeviceText, read_device_text
from ingot_runtime.format.plan import BundlePlan, DevicePlan

from .registry import OPEN, code_kinds


def bind_device(
    plan: BundlePlan, device: DevicePlan, text: "str | None", name: str
) -> "tuple[str, int]":
    """Return the kind and the id that `text` maps the device to, or those that it was compiled for.

    Raises:
        InputError: a text that is none. IncompatibleError: no such kind here, or no code for it.
    """
    kind, id_ = device.kind, device.id
    if text is not None:
        given = _read(device, text)
        _require_own(device, "target", given.target, plan.libraries[device.library].target, name)
        _require_own(device, "scope", given.scope, device.scope, name)
        kind, id_ = given.kind, given.id
    fit = [each for each in OPEN if device.kind in code_kinds(each)]
    do = f"map it: --device {device.name}={fit[0]}:0" if fit else "compile it for another kind"
    if kind not in ("host", *OPEN):
        why = f"device {device.name!r} wants {kind}:{id_}; this loader has host, {', '.join(OPEN)}"
        raise IncompatibleError(f"no device {kind}:{id_} here", name, why, do)
    if kind not in fit:
        runs = f"which {' and '.join(fit)} run" if fit else "which nothing here runs"
        why = f"it has code for {device.kind}, {runs}, and is mapped to {kind}:{id_}"
        raise IncompatibleError(f"device {device.name!r} cannot be {kind}:{id_}", name, why, do)
    return kind, id_


def _read(device: DevicePlan, text: object) -> DeviceText:
    where = f"devices, {device.name!r}"
    if not isinstance(text, str):
        why = f"expected a text KIND[:ID][,target=T][,scope=S], got {text!r}"
        raise InputError(f"bad device for {device.name!r}", where, why, "e.g. cpu:0")
    return read_device_text(text, where)


def _require_own(device: DevicePlan, what: str, wanted: str, own: str, name: str) -> None:
    """A target or a scope that the user names is the one of the bundle's code."""
    if wanted not in ("", own):
        why = f"it was compiled for {what} {own!r}" if own else f"it was compiled without a {what}"
        do = f"leave {what}= out, or compile the model for {wanted!r}"
        raise IncompatibleError(f"device {device.name!r} has no {what} {wanted!r}", name, why, do)
