"""Reads ``targets.toml``.

In: its text. Out: tags with their targets, by group. Not done here: whether these are targets (a
test reads each).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

TAGS_PATH = Path(__file__).with_name("targets.toml")


def read_tags(text: str) -> Mapping[str, Mapping[str, str]]:
    """Return group -> tag -> target."""
    groups: dict[str, dict[str, str]] = tomllib.loads(text)
    return groups


@cache
def tags_of(group: str) -> Mapping[str, str]:
    """Return the tags of a group of the file that is installed; none for a group without any."""
    return read_tags(TAGS_PATH.read_text(encoding="utf-8")).get(group, {})
