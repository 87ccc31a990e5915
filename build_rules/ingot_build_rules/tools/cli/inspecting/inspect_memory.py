"""The memory of a variant and of its calls, as ``inspect`` tells it.

In: what is known of a variant's memory. Out: lines, plain values. Not done here: finding it
(``view.call_memory``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ingot_build_rules.tools.cli.shell import console

if TYPE_CHECKING:
    from ingot_build_rules.tools.view.call_memory import CallMemory

_FORMULA_LENGTH_MAX = 1000  # of a network with attention; with branches they are no help to read


def memory_values(memory: CallMemory, shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Return the memory of a call for JSON."""
    call = memory.call
    return {
        "workspace_formulas": list(memory.formulas),
        "shapes": {name: list(sizes) for name, sizes in shapes.items()},
        "workspace_bytes": None if call is None else list(call.workspace_bytes),
        "scratch_bytes": None if call is None else call.scratch_bytes,
    }


def memory_lines(target: str, sizes: dict[str, Any], call: dict[str, Any] | None) -> list[str]:
    """Return what a variant maps, the formula of its workspace, and the bytes of a call where its
    shapes are known; ``call``: as ``memory_values`` gives it."""
    code, weights = (console.format_bytes(sizes[name]) for name in ("code_bytes", "weights_bytes"))
    formulas = call["workspace_formulas"] if call else map(str, sizes["workspace_bytes"])
    workspace = ", ".join(map(_formula, formulas))
    lines = [f"memory of {target}: code {code}, weights {weights}, workspace {workspace}"]
    if call and call["shapes"]:
        given = ", ".join(f"{name}={_shape(sizes)}" for name, sizes in call["shapes"].items())
        workspace = ", ".join(map(str, call["workspace_bytes"]))  # for a limit, every byte counts
        scratch = call["scratch_bytes"]
        lines.append(f"  with {given}: workspace {workspace} bytes, scratch {scratch} per thread")
    return lines


def size_text(size_bytes: int | None) -> str:
    """Return bytes for people; None where they depend on the call."""
    return "as the sizes of a call need" if size_bytes is None else console.format_bytes(size_bytes)


def _formula(formula: str | None) -> str:
    if formula is None or formula.isdecimal():
        return size_text(None if formula is None else int(formula))
    if len(formula) > _FORMULA_LENGTH_MAX:
        return "by a long formula (--json has it, --shape gives the bytes of a call)"
    return f"{formula} bytes"


def _shape(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes)) or "scalar"
