"""Errors in the words of a verb: options that it takes; keys of ``ingot.toml`` where a project says
what an option of ``compile`` does.

In: an error of any layer, a verb. Out: the same error. Not done here: raising it, the words of
Python (``api.in_arguments``). Imported when something went wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ingot_build_rules.cli.verbs import VERBS, read_verb
from ingot_build_rules.rules.choices import ROWS, spelling
from ingot_compiler.ir.in_names import ErrorT, with_pieces
from ingot_compiler.ir.message import OptionRef, Piece

IN_PROJECT: Mapping[str, str] = {
    "target": "targets",
    "shape": "shape.INPUT",
    "other-shapes": "other-shapes",
    "device": "devices.NAME",
    "place": 'place."GLOB"',
    "planner": "planner",
    "plugin": "plugins",
    "tuning": "tuning",
    "pool": "pools",
    "op": 'ops."DOMAIN::NAME"',
    **{spelling(field): spelling(field) for field in ROWS},
}
"""Option of ``compile`` -> the key of a bundle that says the same in a project."""
_LISTS = ("plugins", "pools", "targets")


def in_words_of(error: ErrorT, verb: str) -> ErrorT:
    """The error in the words of a verb; itself where it is none of ours."""
    if verb not in (name for name, _ in VERBS):
        return error
    names = {name for option in read_verb(verb).options for name in option.names.split()}
    return with_pieces(error, lambda piece: _in_words(piece, names))


def _in_words(piece: Piece, names: set[str]) -> Piece:
    if not isinstance(piece, OptionRef) or f"--{piece.name}" in names:
        return piece
    if "--config" in names and piece.name in IN_PROJECT:
        return _as_key(piece)
    return f"{piece} (of ingot compile)"


def _as_key(option: OptionRef) -> str:
    """``shape.x = "1x3"``: a line of a bundle in ``ingot.toml``."""
    key, value = IN_PROJECT[option.name], option.value
    table, dot, _ = key.partition(".")
    if dot:
        # A glob and an input may contain "="; a device's value has its own.
        parts = value.partition("=") if table in ("devices", "ops") else value.rpartition("=")
        if not parts[1]:
            return f"{table}.{_bare(value)}" if value else table
        return f"{table}.{_bare(parts[0])} = {json.dumps(parts[2])}"
    if not value:
        return key
    return f"{key} = {json.dumps([value] if table in _LISTS else value)}"


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
