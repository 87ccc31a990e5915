"""What ``--precision bf16`` asks of targets: an instruction for products of bf16.

In: targets of the host, devices. Out: nothing, or UserError. Not done here: reading targets
(``configure``), which products round (``kernels.products.rounded``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_build_rules.making.options.compile_options import DeviceOption
from ingot_compiler.ir.errors import UserError
from ingot_compiler.targets.target import Target, parse_target
from ingot_runtime.option_ref import OptionRef

_WHY = (
    "products of bf16 take an instruction that is in no level: avx512bf16 of x86-64-v4, bf16 of "
    "aarch64"
)


def require_bf16(targets: Sequence[str], devices: Sequence[DeviceOption]) -> None:
    """Refuse code that cannot multiply bf16.

    Raises:
        UserError: a target without the instruction, or a device whose code is not the host's.
    """
    for text in targets:
        target = parse_target(text)
        if not target.multiplies_bf16:
            what, do = "a target without products of bf16", "leave the precision out, or name it: "
            raise UserError(what, f"target {text}", _WHY, f"{do}{_named(target)}")
    for device in devices:
        for kind, code in device.codes:
            if code not in targets:
                what = f"device {device.name} has no products of bf16"
                where = OptionRef("device", f"{device.name}={kind}")
                raise UserError(what, where, _WHY, "leave its target or the precision out")


def _named(target: Target) -> str:
    """A target of the same architecture that has it, if there is one."""
    return "aarch64+bf16" if target.arch == "aarch64" else "x86-64-v4+avx512bf16"
