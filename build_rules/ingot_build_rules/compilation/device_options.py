"""What the user says of a virtual device: ``KIND[:ID][,target=T][,scope=S]``.

In: a name, such a text, the host's targets. Out: ``DeviceOption``. Not done here: which nodes run
there (``placement``), which device of the machine it is (the loader).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_build_rules.rules.compile_options import HOST, DeviceOption
from ingot_compiler.backends.registry import BACKENDS, parse_target
from ingot_compiler.ir.errors import UnsupportedError, UserError
from ingot_compiler.ir.message import OptionRef
from ingot_runtime.errors import InputError
from ingot_runtime.format.device_text import read_device_text
from ingot_runtime.format.plan import DEVICE_KINDS

KINDS = tuple(kind for kind in DEVICE_KINDS if kind != HOST)
KINDS_WITH_CODE = tuple(backend.kind for backend in BACKENDS if backend.kind != HOST)


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
    try:
        given = read_device_text(text, "", KINDS)
    except InputError as error:
        raise UserError(error.what, where, error.why, error.do) from None
    _require_code(given.kind, where)
    target = str(parse_target(given.kind, given.target, tuple(host_targets)))
    return DeviceOption(name, given.kind, given.id, target, given.scope)


def _require_code(kind: str, where: OptionRef) -> None:
    if kind not in KINDS_WITH_CODE:
        raise UnsupportedError(
            f"no code generation for {kind!r} devices yet",
            where=where,
            why=f"this version makes code for the host and for {', '.join(KINDS_WITH_CODE)}",
            do="leave the nodes on the host",
        )
