"""Ops that the user defines, as the user names them: ``DOMAIN::NAME=FILE``.

In: pairs of an op and a path. Out: ``OpOption``. Not done here: what is in the files
(``ingot_compiler.frontend.op_files``, ``values.custom_ops``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from ingot_build_rules.making.options.op_option import OpOption
from ingot_compiler.ir.errors import BuildError, UserError
from ingot_runtime.option_ref import OptionRef

SIZE_BYTES_MAX = 1 << 26


def read_ops(pairs: Iterable[tuple[str, str]], folder: str = "") -> tuple[OpOption, ...]:
    """Read the files; relative paths begin in ``folder``.

    Raises:
        UserError: an op without a domain, or given twice; no such file. BuildError: the disk
            failed.
    """
    found: dict[str, OpOption] = {}
    for op, path in pairs:
        where = OptionRef("op", f"{op}={path}")
        domain, colons, name = op.partition("::")
        if not (domain and colons and name) or domain in ("ai.onnx", "com.microsoft"):
            why = f"expected DOMAIN::NAME of a domain of your own, got {op!r}"
            raise UserError("an op is not understood", where, why, "write my.domain::Foo=FILE")
        option = OpOption(op, os.path.basename(path), _content(path, folder, where))
        if found.setdefault(op, option) != option:
            why = f"{found[op].file} and {option.file}"
            raise UserError("an op is defined twice", where, why, "leave one of them out")
    return tuple(found[op] for op in sorted(found))


def _content(path: str, folder: str, where: OptionRef) -> bytes:
    do = "check the path"
    try:
        with open(os.path.join(folder, path), "rb") as file:
            content = file.read(SIZE_BYTES_MAX + 1)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError):
        what, why = "no such op file", "expected a file that defines the op, got nothing there"
        raise UserError(what, where, why, do) from None
    except OSError as error:
        what = "the op file cannot be read"
        raise BuildError(what, where, error.strerror or str(error), "check the disk") from error
    if len(content) > SIZE_BYTES_MAX:
        why = f"expected at most {SIZE_BYTES_MAX} bytes"
        raise UserError("the op file is too large", where, why, "leave its weights out")
    return content
