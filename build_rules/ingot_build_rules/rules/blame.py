"""What may be to blame for another bundle: ingredients by name, with what is recorded and what is there today.

In: recorded and present options, weights, tools. Out: ``Blame``s. Not done here: rules that gave another result (``stage_origins``),
putting it all together (``find_blame``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

_DIGEST_DIGITS, _SHOWN_DIGITS = 64, 16
_HEX = frozenset("0123456789abcdef")
_WEIGHTS_NAMED_MAX = 8


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


def option_blames(recorded: Mapping[str, object], present: Mapping[str, object], detail: str) -> list[Blame]:
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


def weight_blames(recorded: Sequence[str], present: Sequence[str], names: Sequence[str]) -> list[Blame]:
    """Compare the model's constants: by number, or where there is another count of them, as a set."""
    if len(recorded) == len(present):
        pairs = [(number, old) for number, old in enumerate(recorded) if old != present[number]]
    else:
        known = set(recorded)
        pairs = [(number, "") for number, digest in enumerate(present) if digest not in known]
    if not pairs and len(recorded) != len(present):
        return [Blame("weight", "weights", f"{len(recorded)} tensors", f"{len(present)} tensors")]
    shown = pairs[:_WEIGHTS_NAMED_MAX]
    blames = [Blame("weight", f"weight {number} '{names[number]}'", old, present[number]) for number, old in shown]
    rest = len(pairs) - len(shown)
    return [*blames, *([Blame("weight", "further weights", "", f"{rest} that differ")] if rest else [])]
