"""Which files the code of each rule was, for every version of the code that bundles of a workspace
were made by.

In: tables, the workspace's folder. Out: the tables again, by their digest. Not done here: digests
of code (``engine.cache.code_digest``).

A table is as long as some hundred traces, and the same for all bundles: each is kept once.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from typing import Any, cast

from ingot_build_rules.engine.cache.state_file import read_state, write_state
from ingot_build_rules.engine.events.explain import Code
from ingot_build_rules.tools.workspace.state import state_folder

_KIND = "code table 1"


def keep_code(project_folder: str, digest: str, code: Code) -> None:
    """Keep a table."""
    path = _path(project_folder, digest)
    if not os.path.exists(path):
        write_state(path, _KIND, code)


def read_code(project_folder: str, digest: str) -> Code:
    """Return a table; an empty one if it is not there."""
    found = cast("Any", read_state(_path(project_folder, digest), _KIND))
    try:
        return tuple(
            (str(rule), tuple((str(name), str(item)) for name, item in files))
            for rule, files in found or ()
        )
    except (TypeError, ValueError):
        return ()


def drop_code(project_folder: str, kept: Collection[str]) -> None:
    """Remove the tables of code that no bundle was made by."""
    with suppress(OSError):
        for name in os.listdir(_path(project_folder, "")):
            if name not in kept:
                os.unlink(_path(project_folder, name))


def _path(project_folder: str, digest: str) -> str:
    return os.path.join(state_folder(project_folder), "code", digest)
