"""The pinned ``ziglang`` package: one program that is a linker and a C compiler for every target.

In: arguments, files. Out: what the program made. Not done here: what is linked (``link``) and
compiled (``support``). It is started without an environment and with caches of its own in a folder
that goes away: the same bytes on every machine.
"""

import importlib.util
import os
import subprocess
from collections.abc import Sequence
from functools import cache

from ingot_compiler.ir.errors import BuildError


def run_zig(arguments: Sequence[str], folder: str) -> subprocess.CompletedProcess[str]:
    """Run the program in `folder`, which also takes its caches.

    Raises:
        BuildError: it is not installed, or does not start.
    """
    path = zig_path()
    environment = {"LC_ALL": "C", "ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
    try:
        return subprocess.run(
            [path, *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise BuildError("the linker does not start", where=path, why=str(error)) from error


@cache
def zig_path() -> str:
    """Return the path of the program.

    Raises:
        BuildError: it is not installed.
    """
    # The wheel's module is not imported: it would only tell the folder that its spec already tells.
    spec = importlib.util.find_spec("ziglang")
    folder = os.path.dirname(spec.origin) if spec and spec.origin else ""
    path = os.path.join(folder, "zig")
    if not folder or not os.path.exists(path):
        raise BuildError(
            "no linker and no C compiler",
            where="Python package ziglang",
            why="expected its program `zig`, got none",
            do="pip install ziglang",
        )
    return path
