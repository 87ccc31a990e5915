"""The order in which global functions are visited: who calls before who is called.

In: a program. Out: names. The order of the functions in the program's text has no influence on it.
Not done here: visiting.
"""

from __future__ import annotations

from ingot_compiler.programs.expressions import GlobalReference
from ingot_compiler.programs.program import Program
from ingot_compiler.programs.walk import pre_order

ENTRY = "main"


def function_order(program: Program) -> tuple[str, ...]:
    """``main``, then functions by their first use; what nobody calls stands between, by name."""
    uses = {
        name: [one.name for one in pre_order(function) if isinstance(one, GlobalReference)]
        for name, function in program.functions.items()
    }
    used = {callee for name, callees in uses.items() for callee in callees if callee != name}
    roots = sorted(uses, key=lambda name: (name != ENTRY, name in used, name))
    order: dict[str, None] = {}
    for root in roots:
        waiting = [root]
        while waiting:
            name = waiting.pop()
            if name not in order:
                order[name] = None
                waiting += reversed(uses[name])
    return tuple(order)
