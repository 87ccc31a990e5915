"""Code that a test names as a text is there: what a slow suite patches would else be missed until it
runs."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator

from tests.tidy.source import PACKAGES, ROOT

_NAME = re.compile(rf"(?:{'|'.join(sorted(PACKAGES))})(?:\.\w+)+(?::\w+)?")
_PATCHING = ("setattr", "delattr", "patch", "import_module")


def _named() -> Iterator[tuple[str, str]]:
    """(file of a test, dotted name) of each text that is patched or imported."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0]
            if (
                name in _PATCHING
                and isinstance(first, ast.Constant)
                and isinstance(first.value, str)
                and _NAME.fullmatch(first.value)
            ):
                yield str(path.relative_to(ROOT)), first.value


def _is_there(name: str) -> bool:
    """Whether a name is a module, or what one has."""
    parts = re.split(r"[.:]", name)
    for count in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_code_that_tests_name_is_there() -> None:
    """Modules move, and a text is renamed by nobody."""
    named = list(_named())
    assert named
    assert [pair for pair in named if not _is_there(pair[1])] == []
