"""The text of one kernel: a function that runs a part of its units.

In: a loop program, a form. Out: its symbol, the text. Not done here: who calls it (``main_text``),
what the text names (``support.h``).

``static NO_INLINE int SYMBOL(buffers..., scalars..., first, last, scratch)`` returns 0, or the code
of a requirement that did not hold.
"""

from __future__ import annotations

import re

from ingot_compiler.backends.c.c99_dialect import c99
from ingot_compiler.backends.c.c_forms import CForm, read_form
from ingot_compiler.backends.c.prune import prune
from ingot_compiler.backends.c_text.dialect import CDialect
from ingot_compiler.backends.c_text.function import function_source
from ingot_compiler.backends.c_text.values import GLOBAL, CValue
from ingot_compiler.backends.host.emit.kernel import kernel_module
from ingot_compiler.backends.host.ir_text import without_arguments
from ingot_compiler.lowering.loops import LoopProgram

_SPARE = "  unsigned char *const spare = (unsigned char *)spare_bytes;"
_WIDE_NUMBERS = re.compile(
    r"(load|store) (<\d+ x )?i64|masked\.\w+\.v\d+i64"
    r"|(sext|zext|fptosi|fptoui|bitcast) .* to (<\d+ x )?i64|call .*i64 @llvm\.fpto"
)
"""Instructions by which a number that is no index comes or goes."""


def compile_kernel(program: LoopProgram, target: str) -> tuple[str, bytes]:
    """Of the type of the hook ``compile_kernel``; the target is the name of a form."""
    symbol, text = kernel_text(program, read_form(target))
    return symbol, text.encode()


def kernel_text(program: LoopProgram, form: CForm) -> tuple[str, str]:
    """Write the kernel of a program."""
    module = kernel_module(program, form.machine)
    symbol, arguments = module.symbol, _arguments(program)
    text, dialect = without_arguments(module.text), _dialect(module.text, form)
    source = function_source(dialect, text, symbol, arguments)
    body = prune(source.declarations, (_SPARE, *source.lines))
    used = "\n".join(body)
    unused = [f"  (void){name};" for name, _ in _parameters(program) if name not in used.split()]
    parameters = ", ".join(f"{kind}{name}" for name, kind in _parameters(program))
    lines = [*source.tables, f"static NO_INLINE int {symbol}({parameters}) {{", *unused, *body, "}"]
    return symbol, "\n".join([*lines, ""])


def _dialect(text: str, form: CForm) -> CDialect:
    """With indices of 64 bits only where numbers of the model have so many."""
    return c99(form.lanes_max, indices=_WIDE_NUMBERS.search(text) is None)


def _arguments(program: LoopProgram) -> dict[str, CValue]:
    return {
        f"%{name}": CValue("ptr", 0, (name,), GLOBAL) if "*" in kind else CValue("i64", 0, (name,))
        for name, kind in _parameters(program)
    }


def _parameters(program: LoopProgram) -> list[tuple[str, str]]:
    """Names, and the types before them."""
    pointer, number = "unsigned char *", "int64_t "
    return [
        *((f"b{at}", pointer) for at in range(len(program.buffers))),
        *((f"s{at}", number) for at in range(len(program.scalars))),
        ("first", number),
        ("last", number),
        ("scratch", pointer),
    ]
