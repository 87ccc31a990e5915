"""The sources of the loader in C, as they lie in ``runtime/c`` and in the wheel.

In: nothing. Out: their names and texts. Not done here: compiling them (``rules.compile_loader``).
"""

from __future__ import annotations

from importlib.resources import files


def loader_sources() -> tuple[tuple[str, str], ...]:
    """Return (name, text) of each file, sorted."""
    folder = files("ingot_build_rules.tools.export") / "c"
    found = [file for file in folder.iterdir() if file.name.endswith((".c", ".h", ".hpp"))]
    return tuple(sorted((file.name, file.read_text(encoding="utf-8")) for file in found))
