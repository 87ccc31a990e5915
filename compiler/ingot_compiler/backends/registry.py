"""The list of back ends; a new one is a folder and one line here.

In: the kind of a device. Out: its ``Backend``, or one of its hooks. Not done here: anything that is
in a key: who loads hooks in an action names them as ingredients (``Rule.loads``).
"""

from __future__ import annotations

import importlib
from typing import cast

from ingot_compiler.backends.backend import Backend, ParseTarget, Target
from ingot_compiler.backends.cpu.backend import BACKEND as CPU
from ingot_compiler.backends.host.backend import BACKEND as HOST
from ingot_compiler.backends.null.backend import BACKEND as NULL
from ingot_compiler.backends.opencl.backend import BACKEND as OPENCL

BACKENDS: tuple[Backend, ...] = (HOST, NULL, CPU, OPENCL)


def backend_of(kind: str) -> Backend:
    """Return the back end for a kind of device that has one."""
    return next(backend for backend in BACKENDS if backend.kind == kind)


def parse_target(kind: str, text: str, host_targets: tuple[str, ...] = ()) -> Target:
    """Read a target of a back end; see ``ParseTarget``."""
    module, _, name = backend_of(kind).parse_target.partition(":")
    return cast("ParseTarget", getattr(importlib.import_module(module), name))(text, host_targets)
