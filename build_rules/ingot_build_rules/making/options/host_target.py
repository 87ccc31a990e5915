"""A target of the host, as a user names it.

In: any form of it. Out: a ``Target``. Not done here: reading it (``ingot_compiler.backends``).
"""

from __future__ import annotations

from ingot_build_rules.making.options.compile_options import HOST
from ingot_compiler.backends.target_forms import GivenTarget, target_text
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.message import message
from ingot_compiler.targets.target import Target, parse_target
from ingot_runtime.format.plan import DEVICE_KINDS
from ingot_runtime.option_ref import OptionRef

_BESIDE_HOST = DEVICE_KINDS[1:]


def resolve_target(given: GivenTarget) -> Target:
    """Read one target in any form; ``native`` becomes the explicit features of this machine, found by the
    loader's own probe.

    Raises:
        UserError: no such target, a feature that it does not have, or a device beside the host.
    """
    text = target_text(HOST, given)
    # "cpu" alone is what other tools call this machine.
    if text.partition(":")[0] in _BESIDE_HOST and text != "cpu":
        do = message("leave it out, and declare a device: ", OptionRef("device", f"NAME={text}"))
        why = "the host is the processor that runs main"
        raise UserError(f"the host cannot be {text!r}", OptionRef("target", text), why, do)
    if text != "native":
        try:
            return parse_target(text)
        except UserError as error:
            from ingot_build_rules.making.options.suggest_target import suggest_target

            raise suggest_target(text, error) from None
    from ingot_compiler.targets.host_target import host_target

    return host_target()
