"""``ingot.compile``: one model, from Python.

In: a model and options as Python values. Out: a ``Bundle``. Not done here: compiling (``rules``),
projects (``workspace.declared_project``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ingot_build_rules.api.compiled_bundle import Bundle, Check, compile_bundle
from ingot_build_rules.compilation.open_build import BuildSettings
from ingot_build_rules.compilation.options import Shapes, make_options
from ingot_build_rules.workspace.cache_folder import cache_folder, cache_trust
from ingot_compiler.ir.errors import UserError

if TYPE_CHECKING:
    from ingot_build_rules.compilation.model_source import Model


def compile(  # noqa: A001
    model: Model,
    targets: Sequence[str] = ("native",),
    shapes: Shapes | None = None,
    devices: Mapping[str, str] | None = None,
    place: Mapping[str, str] | None = None,
    workers: int = 1,
    check: Check = False,
    cache: str | os.PathLike[str] | None = None,
    cache_shared: bool = False,
    max_bytes: int | None = None,
    other_shapes: str = "general",
) -> Bundle:
    """Compile a model ahead of time, as ``ingot compile`` does, over the same cache.

    Args:
        model: path of an ``.onnx`` file, its bytes, or an ``onnx.ModelProto``.
        targets: one variant each, ``ARCH[:cpu][+feature|-feature]...``; ``native`` is this machine.
        shapes: input name -> shape that gets kernels of its own, beside those for any size; a list
            of such tables for several. A shape is a text as ``--shape`` takes it, or a list of
            sizes: None for any, ``(1, 8)`` for a range.
        devices: virtual device -> kind; ``host`` is always there.
        place: glob over node names -> virtual device.
        workers: processes at most; the bundle is the same for any number. 1: everything runs in
            this process.
        check: run the bundle against the interpreter node by node, on these inputs or, if True, on
            generated ones.
        max_bytes: how large the model's own functions may become, the constants of a variant, a
            value on the way to one, and the memory that is planned for a variant. The bundle is the
            same for any that it stays below.
        other_shapes: what serves calls that fit none of ``shapes``: the "general" version, or with
            "refuse" none, and there is no general version in the bundle.
        cache: the cache's folder; None for ``$INGOT_CACHE``, ``$XDG_CACHE_HOME/ingot`` or
            ``~/.cache/ingot``.
        cache_shared: trust all who can write to the cache; by default it must be the user's alone.

    Raises:
        UserError: a wrong argument. ModelError: a wrong model. UnsupportedError: all that is not
            supported yet, listed.
        LimitError: more than ``max_bytes``, or than the compiler or a bundle can hold.
        VerificationError: ``check`` found a node that differs.
    """
    if max_bytes is not None and (isinstance(max_bytes, bool) or max_bytes < 0):
        raise UserError(
            "wrong max_bytes",
            "ingot.compile",
            f"expected bytes, got {max_bytes!r}",
            "give a number of bytes",
        )
    options = make_options(
        targets, shapes, devices, tuple((place or {}).items()), other_shapes=other_shapes
    )
    folder = cache_folder(None if cache is None else os.fspath(cache))
    settings = BuildSettings(folder, cache_trust(shared=cache_shared), jobs=workers)
    return compile_bundle(model, options, settings, check, max_bytes)
