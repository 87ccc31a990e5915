"""What a variant's `main` asks of each device: launches, copies, pools; read from its instruction
list.

In: a program, a plan. Out: plain values. Not done here: reading sections (``describe``), text for
people (the command).
"""

from collections.abc import Iterator
from typing import Any

from ingot_runtime.format.plan import BundlePlan, VariantPlan
from ingot_runtime.format.program import CODES, Program

_LAUNCHES = (CODES["launch"], CODES["launch_checked"])


def describe_device_use(program: Program, variant: VariantPlan, plan: BundlePlan) -> dict[str, Any]:
    """Return ``devices``, a row for each device of the table, and ``copies`` in the order of the
    instructions.

    ``pool_bytes`` is None where the sizes of a call decide it. ``imports``: what `main` calls
    there; the host's kernels are linked in.
    """
    launched = [int_of(operands[0]) for code, operands in program.instructions if code in _LAUNCHES]
    copies = list(_copies(program))
    rows = [
        {
            "name": device.name,
            "launch_count": launched.count(number),
            "pool_bytes": variant.workspace_bytes[number] or None,
            "library": device.library if device.library >= 0 else None,
            "imports": _imports(number, launched, copies) if number else [],
        }
        for number, device in enumerate(plan.devices)
    ]
    for copy in copies:
        copy |= {end: rows[copy[end]]["name"] for end in ("source", "destination")}
    return {"devices": rows, "copies": copies}


def _imports(number: int, launched: list[int], copies: list[dict[str, Any]]) -> list[str]:
    """What `main` calls of a device beside the host."""
    ends = [number in (copy["source"], copy["destination"]) for copy in copies]
    return ["launch"] * (number in launched) + ["copy"] * any(ends)


def int_of(operand: int | tuple[int, ...]) -> int:
    """An operand that is no list."""
    assert isinstance(operand, int), "a decoded program has its operands' kinds"
    return operand


def _copies(program: Program) -> Iterator[dict[str, Any]]:
    """Each copy: the numbers of the two devices, the launches before it, its bytes where a constant
    says them."""
    constants = {
        operands[0]: operands[1]
        for code, operands in program.instructions
        if code == CODES["const"]
    }
    launches = 0
    for code, operands in program.instructions:
        launches += code in _LAUNCHES
        if code == CODES["copy"]:
            source, destination, _, _, size = map(int_of, operands)
            yield {
                "source": source,
                "destination": destination,
                "before_launch": launches,
                "size_bytes": constants.get(size),
            }
