"""The library of the accelerator, from C.

In: a target of the host. Out: its one object. Not done here: the source (``kernels.c``).
"""

from __future__ import annotations

from importlib.resources import files

from ingot_compiler.plugins.compile_c import compile_c
from ingot_compiler.plugins.settings import PluginSettings


def library(target: str, _settings: PluginSettings) -> list[tuple[str, bytes]]:
    """Compile the source with the C compiler that Ingot brings."""
    source = files("accelerator").joinpath("kernels.c").read_text(encoding="utf-8")
    return [("kernels.c", compile_c(source, target))]
