"""The visible lists of rules and of the errors that they raise.

In: nothing. Out: ``RULEBOOK``. Not done here: what a rule does, who asks for it (``compilation``).
"""

from __future__ import annotations

from ingot_artifacts.errors import ArtifactError, OutputError
from ingot_build_rules.engine.actions.rule import AnyRule, Rulebook
from ingot_build_rules.making.rules.bundle import BUNDLE
from ingot_build_rules.making.rules.c_source import C_SOURCE
from ingot_build_rules.making.rules.claim import CLAIM
from ingot_build_rules.making.rules.codegen import CODEGEN
from ingot_build_rules.making.rules.codegen_claimed import CODEGEN_CLAIMED
from ingot_build_rules.making.rules.codegen_main import CODEGEN_MAIN
from ingot_build_rules.making.rules.codegen_support import CODEGEN_SUPPORT
from ingot_build_rules.making.rules.compile_library import COMPILE_LIBRARY
from ingot_build_rules.making.rules.compile_loader import COMPILE_LOADER
from ingot_build_rules.making.rules.compile_wasm import COMPILE_WASM
from ingot_build_rules.making.rules.digest_weights import DIGEST_WEIGHTS
from ingot_build_rules.making.rules.fuse import FUSE
from ingot_build_rules.making.rules.import_model import IMPORT_MODEL
from ingot_build_rules.making.rules.infer_types import INFER_TYPES
from ingot_build_rules.making.rules.join_libraries import JOIN_LIBRARIES
from ingot_build_rules.making.rules.link import LINK
from ingot_build_rules.making.rules.lower import LOWER
from ingot_build_rules.making.rules.lower_claimed import LOWER_CLAIMED
from ingot_build_rules.making.rules.make_library import MAKE_LIBRARY
from ingot_build_rules.making.rules.names import NAMES
from ingot_build_rules.making.rules.optimize import OPTIMIZE
from ingot_build_rules.making.rules.pack_constant import PACK_CONSTANT
from ingot_build_rules.making.rules.place import PLACE
from ingot_build_rules.making.rules.plan_memory import PLAN_MEMORY
from ingot_build_rules.making.rules.rewrite import REWRITE
from ingot_build_rules.making.rules.run_test import RUN_TEST
from ingot_build_rules.making.values.artifact_types import ARTIFACT_TYPES
from ingot_compiler.backends.c import C_KERNEL
from ingot_compiler.backends.registry import BACKENDS
from ingot_compiler.ir import errors
from ingot_runtime import errors as loader_errors

BUNDLE_RULES: tuple[AnyRule, ...] = (
    IMPORT_MODEL,
    NAMES,
    INFER_TYPES,
    OPTIMIZE,
    REWRITE,
    PLACE,
    CLAIM,
    FUSE,
    PACK_CONSTANT,
    DIGEST_WEIGHTS,
    LOWER,
    LOWER_CLAIMED,
    PLAN_MEMORY,
    CODEGEN,
    CODEGEN_CLAIMED,
    CODEGEN_SUPPORT,
    MAKE_LIBRARY,
    JOIN_LIBRARIES,
    CODEGEN_MAIN,
    LINK,
    BUNDLE,
)
"""The rules whose code decides the bytes of a bundle."""
RULES: tuple[AnyRule, ...] = (
    *BUNDLE_RULES,
    C_SOURCE,
    COMPILE_WASM,
    COMPILE_LIBRARY,
    COMPILE_LOADER,
    RUN_TEST,
)

ERRORS: tuple[type[Exception], ...] = (
    errors.UserError,
    errors.ModelError,
    errors.PluginError,
    errors.BuildError,
    errors.UnsupportedError,
    errors.LimitError,
    errors.VerificationError,
    errors.IncompatibleTargetError,
    errors.InternalError,
    ArtifactError,
    OutputError,
    loader_errors.BundleError,
    loader_errors.FileError,
    loader_errors.NotABundleError,
    loader_errors.VersionError,
    loader_errors.IncompatibleError,
    loader_errors.InputError,
    loader_errors.ResourceError,
    loader_errors.RunError,
)


LOADABLE: dict[str, tuple[str, ...]] = {
    PLACE.name: tuple(
        dict.fromkeys(
            hook for backend in BACKENDS for hook in (backend.refuse_op, backend.product_share)
        )
    ),
    FUSE.name: tuple(backend.device_rules for backend in BACKENDS),
    LOWER.name: tuple(backend.lower_group for backend in BACKENDS),
    CODEGEN.name: (C_KERNEL, *(backend.compile_kernel for backend in BACKENDS)),
    CODEGEN_SUPPORT.name: tuple(backend.compile_support for backend in BACKENDS),
    LINK.name: tuple(backend.link_image for backend in BACKENDS),
    REWRITE.name: (),
    CLAIM.name: (),
    LOWER_CLAIMED.name: (),
    CODEGEN_CLAIMED.name: (),
    MAKE_LIBRARY.name: (),
}
"""Rule -> the hooks of back ends that its inputs may name; those of plug-ins are named by the
user."""

RULEBOOK = Rulebook(
    "ingot_build_rules.making.rules.registry:RULEBOOK", RULES, ARTIFACT_TYPES, ERRORS, LOADABLE
)
