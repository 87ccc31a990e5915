"""Every byte of a bundle checked, also of variants that this machine cannot run.

In: a path, perhaps keys. Out: ``VerifiedBundle``, or the first thing that is wrong. Not done here:
running it.

Weights are digested by code that the tool compiles for itself, not by the bundle's own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ingot_artifacts.inspect.describe import opened, verify_source
from ingot_compiler.backends.host.support.host import HostDigests
from ingot_compiler.backends.registry import count_kernels
from ingot_compiler.ir.errors import UserError
from ingot_compiler.targets.target import parse_target
from ingot_runtime.errors import BundleError
from ingot_runtime.format import abi
from ingot_runtime.format import header as head
from ingot_runtime.format.checks import require
from ingot_runtime.format.debug import read_record
from ingot_runtime.format.plan import BundlePlan
from ingot_runtime.format.program_decode import decode_program
from ingot_runtime.format.source import Source, weights_sizes_bytes
from ingot_runtime.format.statement import signed_in
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.load_bundle import require_agreement
from ingot_runtime.loader.image import read_exports
from ingot_runtime.loader.signatures import require_signed

_DIGEST_BYTES = 32
_PAGE_BYTES = 4096
"""The page size for targets that this version does not know: every page is a multiple of it."""


@dataclass(frozen=True, slots=True)
class VerifiedBundle:
    """``digest``: the root digest, 64 hex digits. ``weights_bytes``: as the file has them, whole
    MiBs."""

    digest: str
    size_bytes: int
    section_count: int
    targets: tuple[str, ...]
    kernel_count: int
    weights_bytes: int
    signed_by: tuple[str, ...]


def verify_whole_bundle(
    path: str, digest: str | None = None, keys: Sequence[str] | str | None = None
) -> VerifiedBundle:
    """Check digests of all bytes; then that plan, images and programs agree with each other, for
    every variant.

    ``digest``: the root digest that the bundle must have, or at least its first 32 digits.
    ``keys``: of those of whom one must have signed it, or the path of a policy.

    Raises:
        BundleError: what is wrong, the bundle, its section and variant.
    """
    try:
        with opened(path, digest) as source:
            signed_in(source)
            signed_by = () if keys is None else tuple(require_signed(source, keys))
            plan = verify_source(source, _tree_entry())
            _verify_code(source, plan)
            read_record(source, head.LOCK)
            read_record(source, head.DEBUG)
            source.require_unchanged()
            return _verified(source, plan, signed_by)
    except BundleError as error:
        if not error.where.startswith(path):
            raise error.at(f"{path}, {error.where}") from error
        raise


@functools.cache
def _tree_entry() -> Callable[[memoryview], bytes]:
    """Compiled once, for however many bundles."""
    return HostDigests().mib_tree_entry


def _verified(source: Source, plan: BundlePlan, signed_by: tuple[str, ...]) -> VerifiedBundle:
    weights = [row.size_bytes for row in source.sections if row.kind == head.WEIGHTS]
    return VerifiedBundle(
        source.root_digest.hex(),
        source.size_bytes,
        len(source.sections),
        tuple(variant.target for variant in plan.variants),
        sum(variant.kernel_count for variant in plan.variants),
        sum(weights),
        signed_by,
    )


def _verify_code(source: Source, plan: BundlePlan) -> None:
    """Check every variant and library; an error in a variant names its target."""
    for index, variant in enumerate(plan.variants):
        try:
            _verify_variant(source, plan, index)
        except BundleError as error:
            raise error.at(f"{error.where}, variant {variant.target}") from error
    for index, library in enumerate(plan.libraries):
        image, where = source.section(head.LIBRARY, index), f"section library {index}"
        count = count_kernels(library.target)
        if count is not None:
            why = f"its table has {count(image)} kernels, the plan {library.kernel_count}"
            agrees = count(image) == library.kernel_count
            require(agrees, f"a library of {library.kind} is damaged", where, why)
            continue
        page_bytes = _page_bytes(library.target)
        read_exports(image, library.kernel_count, where, page_bytes, is_library=True)


def _verify_variant(source: Source, plan: BundlePlan, index: int) -> None:
    """Check the image's table of exports, and that image, plan and program were made for each
    other."""
    variant = plan.variants[index]
    image, program = source.section(head.CODE, index), source.section(head.PROGRAM, index)
    _, offsets = read_exports(
        image, variant.kernel_count, f"section code {index}", _page_bytes(variant.target)
    )
    at = dict(zip(abi.EXPORTS, offsets, strict=False))
    interface, made_from = (
        image[at[name] : at[name] + _DIGEST_BYTES]
        for name in ("interface_digest", "program_digest")
    )
    require_agreement(plan, index, interface, made_from, program)
    decode_program(
        program, plan, variant, weights_sizes_bytes(source, plan), f"section program {index}"
    )


def _page_bytes(target: str) -> int:
    try:
        return parse_target(target).page_bytes
    except UserError:
        return _PAGE_BYTES
