"""Reads ``ingot.toml`` as a project.

In: the file's text, overrides of single values. Out: ``ProjectModel``. Not done here: reading the
file (``discover``), globs (``expand``).
"""

from __future__ import annotations

from collections.abc import Mapping

from ingot_build_rules.making.project.config import override
from ingot_build_rules.making.project.model import ProjectModel
from ingot_build_rules.making.project.problems import Findings
from ingot_build_rules.making.project.read import read_tree
from ingot_build_rules.making.project.toml_text import locator, read_toml


def parse_project(text: str, path: str, config: Mapping[str, str] | None = None) -> ProjectModel:
    """Read a project; ``path`` names the file in messages, ``config`` replaces values: dotted path
    -> text.

    Raises:
        UserError: the text is not TOML, or everything that is wrong with the project, each with its
            line.
    """
    tree, places = read_toml(text, path)
    tree, places, problems = override(tree, places, config or {})
    return read_tree(tree, Findings(path, locator(places, path), problems))
