"""Compiles a claimed kernel by the hook of its plug-in, in the place of the host's code generation.

In: loops, a target. Out: the kernel's symbol and object. Not done here: linking
(``join_libraries`` and the back end).
"""

from __future__ import annotations

import functools

from ingot_compiler.lowering.loops.program import LoopProgram
from ingot_compiler.plugins.call_hook import call_hook_for_items, plugin_error
from ingot_compiler.plugins.elf_symbols import read_symbols
from ingot_compiler.plugins.plugin import CompileClaimed
from ingot_compiler.plugins.settings import PluginSettings

_HOOK = "compile_kernel"


def compile_claimed(
    program: LoopProgram, target: str, settings: PluginSettings, compile_kernel: CompileClaimed
) -> tuple[str, bytes]:
    """Return symbol and object.

    Raises:
        PluginError: the hook fails, or its object is none, or does not define the symbol.
    """
    call = functools.partial(compile_kernel, program, target, settings)
    match call_hook_for_items(settings, _HOOK, call):
        case (str() as symbol, bytes() as content):
            pass
        case made:
            got = ", ".join(type(item).__name__ for item in made)
            why = f"expected a symbol and the bytes of an object, got ({got})"
            raise plugin_error(settings, f"{_HOOK} returned something else", why)
    try:
        defined = read_symbols(content).defined
    except ValueError as error:
        raise plugin_error(settings, f"{_HOOK} made no object", str(error)) from error
    if symbol not in defined:
        why = (
            f"expected an object that defines {symbol}, got {', '.join(sorted(defined)) or 'none'}"
        )
        raise plugin_error(settings, f"{_HOOK} made an object without its kernel", why)
    return symbol, content
