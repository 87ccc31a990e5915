"""Ingot on the build machine: ``ingot.compile`` makes a bundle from a model, ``ingot.Project`` builds many.

In: a model, options. Out: a ``Bundle``, a ``Project``. Not done here: anything itself; this is the facade of ``ingot_build_rules``,
whose parts are imported when they are first asked for: the command starts here too, and one that has nothing to do ends at once.
On the device there is ``ingot_runtime`` alone.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ingot_build_rules.api.compile import compile  # noqa: A004  # the name that users call
    from ingot_build_rules.api.compiled_bundle import Bundle
    from ingot_build_rules.api.project import Project
    from ingot_compiler.ir.errors import (
        BuildError,
        IncompatibleTargetError,
        IngotError,
        InternalError,
        LimitError,
        ModelError,
        UnsupportedError,
        UserError,
        VerificationError,
    )

__all__ = [
    "BuildError",
    "Bundle",
    "IncompatibleTargetError",
    "IngotError",
    "InternalError",
    "LimitError",
    "ModelError",
    "Project",
    "UnsupportedError",
    "UserError",
    "VerificationError",
    "compile",
]
_MODULES = {
    "Bundle": "ingot_build_rules.api.compiled_bundle",
    "Project": "ingot_build_rules.api.project",
    "compile": "ingot_build_rules.api.compile",
}


def __getattr__(name: str) -> object:
    """Import a public name's module when the name is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_MODULES.get(name, "ingot_compiler.ir.errors")), name)
    globals()[name] = value
    return value
