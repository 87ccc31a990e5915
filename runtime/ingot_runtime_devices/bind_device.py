"""Which devices of the machine a virtual device beside the host may be: as the user maps it, else as
compiled.

In: its plan, what the user says. Out: ``Candidate``s, the first that opens is it. Not done here: the
host (``ingot_runtime.loader.bind_devices``), which ids there are (each kind knows, when it is
opened).
"""

from ingot_runtime.errors import IncompatibleError, InputError
from ingot_runtime.format.device_text import DeviceText, read_device_text
from ingot_runtime.format.plan import BundlePlan, DevicePlan, LibraryPlan

from .registry import OPEN, code_kinds

OWN = -1
"""In the place of an alternative's number: the library of the plan."""


class Candidate:
    """A device of the machine, and the code that it would run: ``alternative`` is a number of the
    bundle, or ``OWN``."""

    __slots__ = ("alternative", "id", "kind", "library")

    def __init__(self, kind: str, id: int, library: LibraryPlan, alternative: int) -> None:
        self.kind = kind
        self.id = id
        self.library = library
        self.alternative = alternative

    @property
    def device(self) -> str:
        """The device in the user's notation, ``KIND:ID``."""
        return f"{self.kind}:{self.id}"


def bind_device(
    plan: BundlePlan, index: int, text: "str | None", name: str
) -> tuple[Candidate, ...]:
    """Return what device `index` may be bound to, the best first: what `text` maps it to, or what it
    was compiled for.

    Raises:
        InputError: a text that is none. IncompatibleError: no such kind here, or no code for it.
    """
    device, codes = plan.devices[index], _codes(plan, index)
    if text is not None:
        codes = _mapped(device, codes, _read(device, text), name)
    here = tuple(code for code in codes if code.kind in OPEN)
    if not here:
        listed = " or ".join(code.device for code in codes)
        fit = [each for each in OPEN if device.kind in code_kinds(each)]
        why = f"device {device.name!r} wants {listed}; this loader has host, {', '.join(OPEN)}"
        raise IncompatibleError(f"no device {listed} here", name, why, _advice(device, fit))
    return here


def _codes(plan: BundlePlan, index: int) -> list[Candidate]:
    """Return all that the bundle has code for, in the order in which the device was declared."""
    device = plan.devices[index]
    return [
        Candidate(device.kind, device.id, plan.libraries[device.library], OWN),
        *(
            Candidate(each.code.kind, each.ids[index], each.code, number)
            for number, each in enumerate(plan.alternatives)
            if index in each.ids
        ),
    ]


def _mapped(
    device: DevicePlan, codes: list[Candidate], given: DeviceText, name: str
) -> list[Candidate]:
    """Return the codes that run where the user maps the device."""
    _require_own(device, "scope", given.scope, [device.scope], name)
    kinds = [code.kind for code in codes]
    fit = [each for each in OPEN if any(kind in code_kinds(each) for kind in kinds)]
    wanted = f"{given.kind}:{given.id}"
    if given.kind not in fit and given.kind in ("host", *OPEN):
        verb = "runs" if len(fit) == 1 else "run"
        runs = f"which {' and '.join(fit)} {verb}" if fit else "which nothing here runs"
        listed = " and ".join(dict.fromkeys(kinds))
        why = f"it has code for {listed}, {runs}, and is mapped to {wanted}"
        what = f"device {device.name!r} cannot be {wanted}"
        raise IncompatibleError(what, name, why, _advice(device, fit))
    if given.kind not in fit:
        why = f"device {device.name!r} wants {wanted}; this loader has host, {', '.join(OPEN)}"
        raise IncompatibleError(f"no device {wanted} here", name, why, _advice(device, fit))
    usable = [code for code in codes if code.kind in code_kinds(given.kind)]
    targets = [code.library.target for code in usable]
    _require_own(device, "target", given.target, targets, name)
    return [
        Candidate(given.kind, given.id, code.library, code.alternative)
        for code in usable
        if given.target in ("", code.library.target)
    ]


def _advice(device: DevicePlan, fit: "list[str]") -> str:
    if fit:
        return f"map it: --device {device.name}={fit[0]}:0"
    return "compile it for another kind"


def _read(device: DevicePlan, text: object) -> DeviceText:
    where = f"devices, {device.name!r}"
    if not isinstance(text, str):
        why = f"expected a text KIND[:ID][,target=T][,scope=S], got {text!r}"
        raise InputError(f"bad device for {device.name!r}", where, why, "e.g. cpu:0")
    return read_device_text(text, where)


def _require_own(device: DevicePlan, what: str, wanted: str, own: "list[str]", name: str) -> None:
    """A target or a scope that the user names is one of the bundle's code."""
    if wanted not in ("", *own):
        listed = " and ".join(map(repr, filter(None, own)))
        why = (
            f"it was compiled for {what} {listed}"
            if listed
            else f"it was compiled without a {what}"
        )
        do = f"leave {what}= out, or compile the model for {wanted!r}"
        raise IncompatibleError(f"device {device.name!r} has no {what} {wanted!r}", name, why, do)
