"""Any error as one that the command can print.

In: an error, where it came up. Out: an error in four parts, with the exit code that it asks for.
Not done here: printing (``console``).
"""

from __future__ import annotations

from ingot_build_rules.tools.cli.shell import console
from ingot_compiler.ir.errors import BuildError, InternalError
from ingot_runtime.ingot_error import IngotError


def in_four_parts(error: Exception, where: str) -> IngotError:
    """Return the error itself if it is one of ours; any other is a bug of ours, or the
    machine's."""
    if isinstance(error, IngotError):
        return error
    if isinstance(error, MemoryError):
        return BuildError(
            "out of memory",
            where="this machine",
            why=f"{error}" or "the system refused memory",
            do="free memory",
        )
    return InternalError(
        "a bug in Ingot stopped the command",
        where=where,
        why=f"{type(error).__name__}: {error}".splitlines()[0],
        do=f"repeat it with --debug and {console.REPORT_AT}",
    )
