"""A linker for PoCL on machines that have no C compiler.

In: nothing. Out: a folder with ``ld`` for the front of PATH. Not done here: the driver's own paths.

PoCL 3.0 calls ``ld`` with libgcc and libc, which come with a C compiler. Its kernels need neither:
what they call is in the process that loads them.
"""

from __future__ import annotations

import importlib.util
import shutil
from glob import glob
from pathlib import Path

_SCRIPT = """#!/bin/sh
for argument do
  shift
  case "$argument" in -l*) ;; *) set -- "$@" "$argument" ;; esac
done
exec {zig} ld.lld "$@"
"""


def is_needed() -> bool:
    """Whether this machine lacks a linker or the libraries."""
    return shutil.which("ld") is None or not glob("/usr/lib/gcc/*/*/libgcc.a")


def write_linker(folder: Path) -> None:
    """Write ``ld``, which is that of the pinned zig."""
    package = importlib.util.find_spec("ziglang")
    assert package is not None
    assert package.origin is not None
    script = folder / "ld"
    script.write_text(_SCRIPT.format(zig=Path(package.origin).with_name("zig")), encoding="utf-8")
    script.chmod(0o755)
