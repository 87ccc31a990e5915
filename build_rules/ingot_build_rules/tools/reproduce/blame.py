"""What may be to blame for another bundle: ingredients by name, with what is recorded and what is
there today.

In: recorded and present options, weights, tools. Out: ``Blame``s. Not done here: rules that gave
another result (``stage_origins``), putting it all together (``find_blame``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal

from ingot_runtime.lazy_dataclass import dataclass

_DIGEST_DIGITS, _SHOWN_DIGITS = 64, 16
_HEX = frozenset("0123456789abcdef")
_WEIGHTS_NAMED_MAX = 8
_SHARED = "no bytes of its own"


@dataclass(frozen=True, slots=True)
class Blame:
    """One thing that is not what it was: ``recorded`` became ``present``."""

    kind: Literal["option", "model", "weight", "toolchain", "code", "names"]
    name: str
    recorded: str
    present: str
    detail: str = ""

    def __str__(self) -> str:
        text = f"{self.name}: recorded {shorten(self.recorded)}, present {shorten(self.present)}"
        return f"{text}; {self.detail}" if self.detail else text


def shorten(value: str) -> str:
    """Cut digests, and nothing else."""
    is_digest = len(value) == _DIGEST_DIGITS and _HEX.issuperset(value)
    return value[:_SHOWN_DIGITS] if is_digest else value or "nothing"


def option_blames(
    recorded: Mapping[str, object], present: Mapping[str, object], detail: str
) -> list[Blame]:
    """Compare options by name; ``detail`` says who has which."""
    return [
        Blame("option", f"option {name}", _plain(recorded, name), _plain(present, name), detail)
        for name in sorted({*recorded, *present})
        if recorded.get(name) != present.get(name)
    ]


def _plain(options: Mapping[str, object], name: str) -> str:
    return json.dumps(options[name], sort_keys=True) if name in options else ""


def tool_blames(recorded: Mapping[str, str], present: Mapping[str, str]) -> list[Blame]:
    """Compare versions and digests of tools."""
    return [
        Blame("toolchain", name, recorded.get(name, ""), present.get(name, ""))
        for name in sorted({*recorded, *present})
        if recorded.get(name) != present.get(name)
    ]


def weight_blames(
    recorded: Sequence[str], present: Sequence[str], names: Sequence[str]
) -> list[Blame]:
    """Compare the model's constants: by number, or where there is another count of them, as a set.

    Tensors with equal bytes are one constant, so one that becomes different, or equal, changes the
    count and the numbers.
    """
    compare = _same_numbers if len(recorded) == len(present) else _as_sets
    blames = compare(recorded, present, names)
    rest = len(blames) - _WEIGHTS_NAMED_MAX
    if rest <= 0:
        return blames
    return [*blames[:-rest], Blame("weight", "further weights", "", f"{rest} that differ")]


def _same_numbers(
    recorded: Sequence[str], present: Sequence[str], names: Sequence[str]
) -> list[Blame]:
    return [
        _weight(number, names, old, new)
        for number, (old, new) in enumerate(zip(recorded, present, strict=True))
        if old != new
    ]


def _as_sets(recorded: Sequence[str], present: Sequence[str], names: Sequence[str]) -> list[Blame]:
    before, now = set(recorded), set(present)
    come = [
        _weight(number, names, _SHARED, new)
        for number, new in enumerate(present)
        if new not in before
    ]
    gone = [
        Blame("weight", f"weight {number} of the recorded ones", old, _SHARED)
        for number, old in enumerate(recorded)
        if old not in now
    ]
    return come + gone


def _weight(number: int, names: Sequence[str], recorded: str, present: str) -> Blame:
    return Blame("weight", f"weight {number} '{names[number]}'", recorded, present)
