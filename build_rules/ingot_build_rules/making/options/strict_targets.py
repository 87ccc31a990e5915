"""The targets of ``--precision strict``: the lowest level of an architecture, whose code rounds each
product and each sum, and runs on all of them.

In: targets of the host, devices. Out: targets; UserError where the promise cannot be kept. Not done
here: reading targets (``configure``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_build_rules.making.options.compile_options import DeviceOption
from ingot_compiler.ir.errors import UserError
from ingot_compiler.targets.target import parse_target
from ingot_runtime.option_ref import OptionRef

_WHY = "strict results are rounded after each product and each sum, on every processor alike"


def strict_targets(targets: Sequence[str]) -> tuple[str, ...]:
    """Return the lowest level of each target's architecture, each once.

    Raises:
        UserError: an architecture all of whose levels multiply and add in one.
    """
    found: dict[str, None] = {}
    for text in targets:
        family = parse_target(text).family
        if family.always_has_fma:
            do = "leave the precision out, or compile for x86-64"
            raise UserError(f"{family.arch} has no strict code", f"target {text}", _WHY, do)
        found[str(parse_target(family.levels[0][0]))] = None
    return tuple(found)


def check_devices(devices: Sequence[DeviceOption], targets: Sequence[str]) -> None:
    """Refuse a device that does not run the host's code.

    Raises:
        UserError: code of another target may round otherwise.
    """
    for device in devices:
        for kind, target in device.codes:
            if target not in targets:
                what = f"device {device.name} has no strict code"
                where = OptionRef("device", f"{device.name}={kind}")
                raise UserError(what, where, _WHY, "leave its target or the precision out")
