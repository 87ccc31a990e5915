"""Tuning files: a text that people read and review, an input of a compilation.

In: a path. Out: ``TuningOption``, or a text of one. Not done here: measuring (``view.tune_methods``).

A file that does not fit is refused, never used in part: it says which target was measured, on which
processor, and each layer that it names must be there and able to run as it says. Which machine compiles
means nothing.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from typing import cast

from ingot_build_rules.making.options.tuning_option import TuningOption
from ingot_compiler.ir.errors import BuildError, UserError
from ingot_compiler.ir.suggest import suggest
from ingot_compiler.kernels.products.tuned import METHODS
from ingot_compiler.targets.processors import processor_class
from ingot_compiler.targets.target import Target, parse_target
from ingot_runtime.option_ref import OptionRef

VERSION = 2
_KEYS = ("version", "target", "processor", "methods")
_AGAIN = "write it anew: `ingot tune MODEL`"
_SIZE_BYTES_MAX = 1 << 24


def read_tuning(given: str | os.PathLike[str] | None, folder: str = "") -> TuningOption | None:
    """Read a file; a relative path begins in ``folder``, None is no file.

    Raises:
        UserError: no such file, no tuning file, or one of another version. BuildError: the disk
            failed.
    """
    if given is None:
        return None
    path = os.fspath(given)
    table = _table(os.path.join(folder, path))
    if table.get("version") != VERSION:
        why = f"expected version {VERSION}, got {table.get('version', 'none')!r}"
        raise UserError("a tuning file of another version", path, why, _AGAIN)
    for key in table:
        if key not in _KEYS:
            why = f"expected {', '.join(_KEYS)}"
            raise UserError(f"unknown key {key!r}", path, why, suggest(key, _KEYS))
    target, processor, methods = (table.get(key) for key in _KEYS[1:])
    is_text = isinstance(target, str) and isinstance(processor, str)
    if not is_text or not isinstance(methods, dict):
        why = "expected texts target and processor, and a table [methods]"
        raise UserError("a tuning file is not understood", path, why, _AGAIN)
    found = cast("dict[str, object]", methods)
    pairs = tuple((name, _method(found, name, path)) for name in sorted(found))
    return TuningOption(cast("str", target), pairs, cast("str", processor))


def require_class(target: Target, processor: str, where: OptionRef) -> None:
    """Refuse measurements for a class of processors that were made on one of another class.

    Raises:
        UserError: it is of another class, or of none that the table has.
    """
    named = [each.name for each in target.processors if target.cpu in each.tunings]
    own = processor_class(target.level, processor)
    if named and processor and (own is None or own.name not in named):
        is_of = f"is of class {own.name}" if own else f"is of no class of {target.level}"
        why = f"{target} is tuned for class {named[0]}, the processor that measures, {processor}, {is_of}"
        do = f"measure on such a processor, or for {target.level}: `ingot tune MODEL --target {target.level}`"
        raise UserError("measured on a processor of another class", where, why, do)


def measured_on_one(tuning: TuningOption) -> str:
    """Return a warning where the target is for more classes of processors than measured, else
    ""."""
    target = parse_target(tuning.target)
    own = processor_class(target.level, tuning.processor)
    others = [each.name for each in target.processors if each != own]
    if not own or not others:
        return ""
    return (
        f"the tuning file was measured on a processor of class {own.name}; on others of {target} "
        f"({', '.join(others)}) its methods may be slower than those that are usual"
    )


def _method(methods: Mapping[str, object], name: str, path: str) -> str:
    method = methods[name]
    if method not in METHODS:
        where, why = f"{path}, layer {name}", f"known are: {', '.join(METHODS)}"
        raise UserError(f"unknown method {method!r}", where, why, suggest(str(method), METHODS))
    return str(method)


def _table(path: str) -> dict[str, object]:
    try:
        with open(path, "rb") as file:
            content = file.read(_SIZE_BYTES_MAX)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError):
        why, do = "expected a file of ingot tune, got nothing there", "check the path"
        raise UserError("no such tuning file", path, why, do) from None
    except OSError as error:
        what = "the tuning file cannot be read"
        raise BuildError(what, path, error.strerror or str(error), "check the disk") from error
    try:
        return tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError("a tuning file is not understood", path, str(error), _AGAIN) from None


def tuning_text(target: str, processor: str, layers: Sequence[tuple[str, str, str]]) -> str:
    """Return a file: of each layer its name, its method, and what a reviewer wants to know."""
    own = processor_class(parse_target(target).level, processor)
    lines = [
        "# Measured by ingot tune; read by ingot compile --tuning. Names are nodes of the model.",
        f"version = {VERSION}",
        f"target = {_quoted(target)}",
        f"processor = {_quoted(processor)}  # {own.name if own else 'of no class'}",
        "",
        "[methods]",
        *(f"{_quoted(name)} = {_quoted(method)}  # {note}" for name, method, note in layers),
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A text as TOML writes it, which is as JSON does but for one control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
