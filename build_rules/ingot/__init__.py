"""Ingot on the build machine: ``ingot.compile`` makes a bundle from a model,
``ingot.compile_folder`` one from each of a folder, ``ingot.Project`` builds many.

In: a model, options. Out: a ``Bundle``, a ``Project``. Not done here: anything itself; this is the
facade of ``ingot_build_rules``, whose parts are imported when they are first asked for: the command
starts here too, and one that has nothing to do ends at once. On the device there is
``ingot_runtime`` alone.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ingot_artifacts.errors import ArtifactError, OutputError, StoreReadOnly
    from ingot_artifacts.store.blobs import BlobDamaged, BlobMissing, StoreError
    from ingot_artifacts.store.leases import CacheInUseError
    from ingot_artifacts.store.ownership import CacheAuthorityError
    from ingot_build_rules.engine.actions.errors import (
        ActionError,
        BuildStoppedError,
        HitDiffersError,
        UndeclaredReadError,
    )
    from ingot_build_rules.tools.api.compile import compile  # noqa: A004  # the name that users call
    from ingot_build_rules.tools.api.compile_folder import compile_folder
    from ingot_build_rules.tools.api.compiled_bundle import Bundle
    from ingot_build_rules.tools.api.project import Project
    from ingot_compiler.ir.errors import (
        BuildError,
        IncompatibleTargetError,
        InternalError,
        LimitError,
        ModelError,
        PluginError,
        UnsupportedError,
        UserError,
        VerificationError,
    )
    from ingot_runtime import __version__
    from ingot_runtime.ingot_error import IngotError

__all__ = [
    "ActionError",
    "ArtifactError",
    "BlobDamaged",
    "BlobMissing",
    "BuildError",
    "BuildStoppedError",
    "Bundle",
    "CacheAuthorityError",
    "CacheInUseError",
    "HitDiffersError",
    "IncompatibleTargetError",
    "IngotError",
    "InternalError",
    "LimitError",
    "ModelError",
    "OutputError",
    "PluginError",
    "Project",
    "StoreError",
    "StoreReadOnly",
    "UndeclaredReadError",
    "UnsupportedError",
    "UserError",
    "VerificationError",
    "__version__",
    "compile",
    "compile_folder",
]
_MODULES = {
    "ingot_artifacts.errors": "ArtifactError OutputError StoreReadOnly",
    "ingot_artifacts.store.blobs": "BlobDamaged BlobMissing StoreError",
    "ingot_artifacts.store.leases": "CacheInUseError",
    "ingot_artifacts.store.ownership": "CacheAuthorityError",
    "ingot_build_rules.tools.api.compile": "compile",
    "ingot_build_rules.tools.api.compile_folder": "compile_folder",
    "ingot_build_rules.tools.api.compiled_bundle": "Bundle",
    "ingot_build_rules.tools.api.project": "Project",
    "ingot_build_rules.engine.actions.errors": (
        "ActionError BuildStoppedError HitDiffersError UndeclaredReadError"
    ),
    "ingot_compiler.ir.errors": (
        "BuildError IncompatibleTargetError InternalError LimitError ModelError PluginError "
        "UnsupportedError UserError VerificationError"
    ),
    "ingot_runtime": "__version__",
    "ingot_runtime.ingot_error": "IngotError",
}


def __getattr__(name: str) -> object:
    """Import a public name's module when the name is first asked for."""
    for module, names in _MODULES.items():
        if name in names.split():
            from importlib import import_module

            value: object = getattr(import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, whether they are imported yet or not."""
    return sorted(__all__)
