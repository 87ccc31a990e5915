"""A function body without what nobody reads: compilers warn of variables and labels without use.

In: declarations and statements as ``c_text`` writes them, one per line. Out: those that matter. Not
done here: anything that a compiler finds out for itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_DEFINED = re.compile(r"  (?:const [\w ]+? |(?:const )?unsigned char \*const )(\w+) = ")
_ARRAY = re.compile(r"  \w+ (\w+)\[\d+\] ")
_LABEL = re.compile(r"(\w+): ;$")
_CARRIED = re.compile(r"  \w+ (\w+), \1_next;$")
_ASSIGNED = re.compile(r"  (\w+) = ")
_NEXT = "_next"


def prune(declarations: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Return what is left of both, one behind the other."""
    kept = [*declarations, *lines]
    while True:
        counts = Counter(name for line in kept for name in set(_NAME.findall(line)))
        carried = {found[1] for found in map(_CARRIED.match, kept) if found}
        unread = {name for name in carried if not _is_read(name, counts)}
        left = [line for line in kept if _matters(line, counts, unread)]
        if len(left) == len(kept):
            return left
        kept = left


def _is_read(name: str, counts: Counter[str]) -> bool:
    """Whether a variable that jumps assign to stands elsewhere than in its declaration and in one
    assignment for each way into the block; the variable that it is a copy of stands there, too,
    and in one assignment more."""
    ways = counts[name + _NEXT] // 2
    return counts[name] > ways + 1


def _matters(line: str, counts: Counter[str], unread: set[str]) -> bool:
    if found := _DEFINED.match(line) or _ARRAY.match(line) or _LABEL.match(line):
        return counts[found[1]] > 1
    found = _CARRIED.match(line) or _ASSIGNED.match(line)
    return found is None or found[1].removesuffix(_NEXT) not in unread
