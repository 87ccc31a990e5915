"""What the user says of a virtual device: ``KIND[:ID][,target=T][,scope=S]``.

In: a name, such a text, the host's targets. Out: ``DeviceOption``. Not done here: which nodes run
there (``placement``), which device of the machine it is (the loader).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_build_rules.compilation.suggest import suggest
from ingot_build_rules.rules.compile_options import HOST, DeviceOption
from ingot_compiler.backends.registry import BACKENDS, parse_target
from ingot_compiler.ir.errors import UnsupportedError, UserError
from ingot_compiler.ir.message import OptionRef
from ingot_runtime.format.plan import DEVICE_KINDS

KINDS = tuple(kind for kind in DEVICE_KINDS if kind != HOST)
KINDS_WITH_CODE = tuple(backend.kind for backend in BACKENDS if backend.kind != HOST)
_KEYS = ("target", "scope")
_ID_MAX = (1 << 31) - 1


def kind_of(text: str) -> str:
    """Return what stands where the kind does; it need not be one."""
    return text.partition(",")[0].partition(":")[0]


def read_device(name: str, text: str, host_targets: Sequence[str]) -> DeviceOption:
    """Read one device; without a target it has what its back end takes then.

    Raises:
        UserError: a name that is taken, an unknown kind or key, no id. UnsupportedError: a kind
            without code.
    """
    where = OptionRef("device", f"{name}={text}")
    if name == HOST:
        why = f"{HOST!r} is always there"
        raise UserError("device name taken", where, why, "choose another name")
    head, *rest = text.split(",")
    kind, (_, colon, number) = kind_of(text), head.partition(":")
    _check_kind(kind, where)
    values = _pairs(rest, where)
    target = str(parse_target(kind, values.get("target", ""), tuple(host_targets)))
    device_id = _id(number, where) if colon else 0
    return DeviceOption(name, kind, device_id, target, values.get("scope", ""))


def _check_kind(kind: str, where: OptionRef) -> None:
    if kind not in KINDS:
        why = f"expected one of {', '.join(KINDS)}"
        raise UserError(
            f"unknown device kind {kind!r}", where=where, why=why, do=suggest(kind, KINDS)
        )
    if kind not in KINDS_WITH_CODE:
        raise UnsupportedError(
            f"no code generation for {kind!r} devices yet",
            where=where,
            why=f"this version makes code for the host and for {', '.join(KINDS_WITH_CODE)}",
            do="leave the nodes on the host",
        )


def _pairs(parts: Sequence[str], where: OptionRef) -> dict[str, str]:
    values = dict(_pair(part, where) for part in parts)
    if len(values) != len(parts):
        why = f"got {', '.join(parts)}"
        raise UserError("a key is given twice", where, why, "give each key once")
    return values


def _pair(part: str, where: OptionRef) -> tuple[str, str]:
    key, _, value = part.partition("=")
    if key not in _KEYS or not value:
        why = f"expected target=TARGET or scope=NAME, got {part!r}"
        do = "write KIND[:ID][,target=T][,scope=S]"
        raise UserError("a device is not understood", where, why, do)
    return key, value


def _id(text: str, where: OptionRef) -> int:
    if not (text.isdecimal() and text.isascii() and int(text) <= _ID_MAX):
        why = f"expected a number from 0 to {_ID_MAX}, got {text!r}"
        raise UserError("a device has no such id", where, why, "write KIND:0, KIND:1, ...")
    return int(text)
