"""Names of tables: what one may look like, and which names a reference may use.

In: names as declared and as referred to. Out: whether they fit. Not done here: finding them in a
tree (``read``).

A declared name has no slash, so ``NAME/STEM``, one of the many that a glob makes of NAME, never
meets a declared one.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_WILDCARDS = re.compile(r"[*?\[]")
NAME_RULE = "letters, digits, '.', '_' and '-', no '.' or '-' first"


def is_plain(name: str) -> bool:
    """Whether ``name`` can be a file's name everywhere, and no option of a command."""
    return _PLAIN.fullmatch(name) is not None


def is_glob(source: str) -> bool:
    """Whether a path has wildcards; ``[*]`` is a star that means itself."""
    return _WILDCARDS.search(source) is not None


def is_known(reference: str, names: Collection[str], groups: Collection[str]) -> bool:
    """Whether ``reference`` is one of ``names``, or may be a member ``GROUP/STEM`` of one of
    ``groups``."""
    group, slash, stem = reference.partition("/")
    return reference in names or bool(slash and stem and group in groups)
