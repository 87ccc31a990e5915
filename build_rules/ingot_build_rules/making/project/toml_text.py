"""A TOML text as a tree, with the place of everything in it.

In: the text, the file's name for messages. Out: the tree, path -> place. Not done here: what the
keys mean (``schema``).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from ingot_build_rules.making.project.lines import Path, find_lines
from ingot_build_rules.making.project.problems import Locate, Place
from ingot_compiler.ir.errors import UserError

Tree = Mapping[str, Any]
Places = Mapping[Path, Place]

_POSITION = re.compile(r" \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$")


def read_toml(text: str, path: str) -> tuple[Tree, Places]:
    """Parse ``text``; ``path`` names it in messages.

    Raises:
        UserError: the text is not TOML; the message shows the line.
    """
    plain = text.replace("\r\n", "\n").removeprefix("\ufeff")
    try:
        tree, lines = tomllib.loads(plain), find_lines(plain)
    except RecursionError:
        what, why = "the project file is nested too deeply", "expected a few levels, got too many"
        raise UserError(what, path, why, "write plain tables and lists") from None
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(str(error), plain, path) from None
    except ValueError:
        what = "a number of the project file is too long"
        why = "expected a number of some digits, got one of thousands"
        raise UserError(what, path, why, "shorten it") from None
    return tree, {key: Place(line, f"{path}:{line}") for key, line in lines.items()}


def locator(places: Places, path: str) -> Locate:
    """Return the function that finds the place of a key, or of the nearest table around it."""

    def locate(key: Path) -> Place:
        for length in range(len(key), 0, -1):
            if key[:length] in places:
                return places[key[:length]]
        return Place(0, path)

    return locate


def _syntax_error(message: str, text: str, path: str) -> UserError:
    found = _POSITION.search(message)
    what = message[: found.start()] if found else message
    where = path
    if found and found["line"]:
        where = f"{path}:{found['line']}:{found['column']}"
        line = text.split("\n")[int(found["line"]) - 1].strip()
        what += f", got {line!r}"
    elif found:
        where = f"{path}:{text.rstrip().count(chr(10)) + 1}"
        what += ", got the end of the file"
    why = what[:1].lower() + what[1:]
    do = "correct this line: texts in quotes, each table and key once"
    return UserError("the project file is not TOML", where, why, do)
