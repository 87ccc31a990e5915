"""Suggests the target for an unknown name: the name of a set of instructions, or several names in
one.

In: a text, the error that it gave. Out: an error that says what to write. Not done here: reading
targets (``ingot_compiler.backends``). Imported when something went wrong.
"""

from __future__ import annotations

import difflib

from ingot_build_rules.making.options.compile_options import HOST
from ingot_compiler.backends.registry import backend_of
from ingot_compiler.backends.tags.read_tags import tags_of
from ingot_compiler.ir.errors import UserError
from ingot_compiler.ir.message import Text, joined, message
from ingot_runtime.option_ref import OptionRef

_NATIVE = "native"
_TAGS = tuple(tags_of(backend_of(HOST).tags))
_TAG_LIKENESS = 0.75  # more than names that only begin alike
_LEVELS = {
    "x86-64-v2": "v2 sse4 sse4.2 sse42 nehalem x86 x86-64 x86_64 x64 amd64",
    "x86-64-v3": "v3 avx avx2 fma",
    "x86-64-v4": "v4 avx512 avx512f avx-512",
    "aarch64": "arm arm64 armv8 neon",
    "riscv64": "riscv rv64 rv64gc",
    _NATIVE: "host cpu this local auto",
}
"""Target -> what it, or most of it, is called elsewhere."""


def suggest_target(text: str, error: UserError) -> UserError:
    """Return ``error`` with the targets that ``text`` means, if they can be told."""
    if not error.what.startswith("unknown target "):
        return error
    why = error.why.replace("expected one of ", f"expected one of {_NATIVE}, ", 1)
    names = [_level_of(name.strip()) for name in text.split(",") if name.strip()]
    if len(names) > 1:
        do: Text = message("repeat the option: ", joined(" ", map(_option, names)))
    elif names and names[0] != text:
        do = message("write ", _option(names[0]))
    elif close := difflib.get_close_matches(text, _TAGS, n=1, cutoff=_TAG_LIKENESS):
        do = message("write ", _option(close[0]))
    else:
        do = message(error.do)
    return UserError(error.what, error.parts[1], why, do)


def _option(name: str) -> OptionRef:
    return OptionRef("target", name)


def _level_of(name: str) -> str:
    words = name.lower()
    return next((level for level, others in _LEVELS.items() if words in others.split()), name)
