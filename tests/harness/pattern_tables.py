"""What tables of patterns say of a text, as a kernel reads them.

In: tables, bytes. Out: answers. Not done here: what is right.
"""

from __future__ import annotations

from ingot_compiler.frontend.families.strings.automaton import Automaton
from ingot_compiler.frontend.families.strings.pattern_search import SearchTable


def accepts(table: Automaton, content: bytes) -> bool:
    """Whether a text matches as a whole."""
    state = 0
    for byte in content:
        state = table.table[state * table.class_count + table.classes[byte + 1]]
    return bool(table.accepts[state])


def longest(table: SearchTable, content: bytes, start: int) -> int:
    """Where the longest match from a place ends, -1 if there is none."""
    classes = [table.classes[byte + 1] for byte in content] + [0]
    state, last = table.starts[classes[start - 1] if start else 0], -1
    for place in range(start, len(classes)):
        index = state * table.class_count + classes[place]
        last = place if table.matches[index] else last
        state = table.table[index]
        if not state:
            break
    return last
