"""The list of back ends; a new one is a folder and one line here.

In: the kind of a device. Out: its ``Backend``, or one of its hooks. Not done here: anything that is
in a key: who loads hooks in an action names them as ingredients (``Rule.loads``).
"""

from __future__ import annotations

import importlib
from typing import cast

from ingot_compiler.backends.backend import Backend, CountKernels, KernelText, ParseTarget, Target
from ingot_compiler.backends.cpu.backend import BACKEND as CPU
from ingot_compiler.backends.cuda.backend import BACKEND as CUDA
from ingot_compiler.backends.host.backend import BACKEND as HOST
from ingot_compiler.backends.null.backend import BACKEND as NULL
from ingot_compiler.backends.opencl.backend import BACKEND as OPENCL

BACKENDS: tuple[Backend, ...] = (HOST, NULL, CPU, OPENCL, CUDA)


def backend_of(kind: str) -> Backend:
    """Return the back end for a kind of device that has one."""
    return next(backend for backend in BACKENDS if backend.kind == kind)


def backend_of_target(target: str) -> Backend:
    """Return the back end whose target a text is; that of the host for those of processors."""
    for backend in BACKENDS:
        if backend.target_prefix and target.startswith(backend.target_prefix):
            return backend
    return HOST


def kernel_text(target: str) -> KernelText | None:
    """Return what writes a kernel for people, where that is not assembly of a processor."""
    hook = backend_of_target(target).kernel_text
    return cast("KernelText", _load(hook)) if hook else None


def count_kernels(target: str) -> CountKernels | None:
    """Return what counts the kernels of a library, where that is no image of a processor."""
    hook = backend_of_target(target).count_kernels
    return cast("CountKernels", _load(hook)) if hook else None


def parse_target(kind: str, text: str, host_targets: tuple[str, ...] = ()) -> Target:
    """Read a target of a back end; see ``ParseTarget``."""
    return cast("ParseTarget", _load(backend_of(kind).parse_target))(text, host_targets)


def _load(hook: str) -> object:
    module, _, name = hook.partition(":")
    found: object = getattr(importlib.import_module(module), name)
    return found
