"""The finished code that a plug-in brings: ELF objects that its kernels call.

In: the plug-in's hook, a target. Out: (name, object) pairs. Not done here: whether every symbol is
there (``join_libraries``).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ingot_compiler.plugins.call_hook import call_hook_for_items, plugin_error
from ingot_compiler.plugins.elf_symbols import read_symbols
from ingot_compiler.plugins.plugin import MakeLibrary
from ingot_compiler.plugins.settings import PluginSettings


def make_library(
    target: str, settings: PluginSettings, library: MakeLibrary
) -> Sequence[tuple[str, bytes]]:
    """Return the objects of a library, in the plug-in's order.

    Raises:
        PluginError: the hook fails, or returns something that is no object.
    """
    made = call_hook_for_items(settings, "library", functools.partial(library, target, settings))
    return [_checked(settings, item) for item in made]


def _checked(settings: PluginSettings, item: object) -> tuple[str, bytes]:
    match item:
        case (str() as name, bytes() as content):
            pass
        case _:
            why = f"expected (name, bytes of an object), got {type(item).__name__}"
            raise plugin_error(settings, "library returned something else", why)
    try:
        read_symbols(content)
    except ValueError as error:
        raise plugin_error(settings, "library brought no object", str(error), name) from error
    return name, content
