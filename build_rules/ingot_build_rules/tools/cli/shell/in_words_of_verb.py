"""Errors in the words of a verb: options that it takes; keys of ``ingot.toml`` where a project says
what an option of ``compile`` does.

In: an error of any layer, a verb. Out: the same error. Not done here: raising it, the words of
Python (``api.python_errors``). Imported when something went wrong.
"""

from __future__ import annotations

import json
import re

from ingot_build_rules.making.options.export_rows import FIELD_ROWS, FIELDS_OF_OPTIONS
from ingot_build_rules.making.options.option_rows import FIELDS, ROWS, entry_parts, key
from ingot_build_rules.tools.cli.shell.verbs import VERBS, read_verb
from ingot_compiler.ir.in_names import ErrorT, with_pieces
from ingot_compiler.ir.message import Piece
from ingot_runtime.option_ref import OptionClause, OptionRef


def in_words_of(error: ErrorT, verb: str) -> ErrorT:
    """The error in the words of a verb; itself where it is none of ours."""
    if verb not in (name for name, _ in VERBS):
        return error
    names = {name for option in read_verb(verb).options for name in option.names.split()}
    return with_pieces(error, lambda piece: _in_words(piece, names))


def _in_words(piece: Piece, names: set[str]) -> Piece:
    if isinstance(piece, OptionClause):
        return piece.said.format(piece.option) if _is_in(names, piece.option) else piece.otherwise
    if not isinstance(piece, OptionRef) or _is_in(names, piece):
        return piece
    if "--config" in names and piece.name in {*FIELDS, *FIELDS_OF_OPTIONS}:
        return _as_key(piece)
    return f"{piece} (of ingot compile)"


def _is_in(names: set[str], option: OptionRef) -> bool:
    return str(OptionRef(option.name)) in names


def written_key(field: str) -> str:
    """Return the key of a bundle that says what an option of ``compile`` does: ``devices.NAME``."""
    entry = ROWS[field].entry
    return f"{key(field)}.{entry}" if entry else key(field)


def _as_key(option: OptionRef) -> str:
    """``shape.x = "1x3"``: a line of a bundle in ``ingot.toml``."""
    value = option.value
    if option.name not in FIELDS:
        name = FIELD_ROWS[FIELDS_OF_OPTIONS[option.name]].key
        return f"{name} = {json.dumps(value)}" if value else name
    field = FIELDS[option.name]
    row, name = ROWS[field], key(field)
    if not value:
        return name
    if row.entry:
        parts = entry_parts(field, value)
        if not parts[1]:
            return f"{name}.{_bare(value)}"
        return f"{name}.{_bare(parts[0])} = {json.dumps(parts[2])}"
    return f"{name} = {json.dumps([value] if row.is_many else value)}"


def _bare(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
