"""A bundle described for people and scripts: what the loader knows, and kernels with their source
nodes.

In: a path. Out: plain values. Not done here: running, disassembly (the compiler shows ``--asm``).
"""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from ingot_artifacts.inspect.device_use import describe_device_use
from ingot_runtime.errors import BundleError, DigestError
from ingot_runtime.format import header as head
from ingot_runtime.format.base import open_base, read_weights
from ingot_runtime.format.checks import DAMAGED
from ingot_runtime.format.debug import read_record
from ingot_runtime.format.describe import describe_source
from ingot_runtime.format.limits import MIB, TREE_ENTRY_SIZE_BYTES
from ingot_runtime.format.plan import BundlePlan, VariantPlan
from ingot_runtime.format.program import Program
from ingot_runtime.format.program_decode import decode_program
from ingot_runtime.format.source import (
    Source,
    in_file,
    open_file,
    read_plan,
    weights_sizes_bytes,
)

TreeEntry = Callable[[memoryview], bytes]
"""One MiB of weights -> 40 bytes, as for ``write_bundle``."""


@contextmanager
def opened(path: str | os.PathLike[str], digest: str | None = None) -> Generator[Source]:
    """Open and check a bundle for the time of a ``with`` block; ``digest``: the root digest that it
    must have. The place of an error in the file begins with its path."""
    try:
        source = open_file(path, digest)
        try:
            yield source
        finally:
            source.close()
    except BundleError as error:
        raise in_file(error, path) from error.__cause__


def describe_bundle(path: str | os.PathLike[str], digest: str | None = None) -> dict[str, Any]:
    """Return the description of a bundle; ``digest``: the root digest that it must have, or at
    least its first 32 digits.

    Keys: those of ``ingot_runtime.format.describe`` (format, digest, size_bytes, sections,
    model, devices, symbols, inputs, outputs, variants, libraries), ``memory`` (bytes of code,
    weights, workspace per variant), ``device_use`` (target -> what `main` launches, copies and
    keeps on each device, see ``device_use``), ``kernels`` (target -> symbols), ``library_kernels``
    (per library the same), ``debug`` and ``lock``, of the shapes that FORMAT.md names.

    Raises:
        BundleError: not a valid bundle.
    """
    with opened(path, digest) as source:
        described = describe_source(source)
        debug = read_record(source, head.DEBUG)
        lock = read_record(source, head.LOCK)
        plan = read_plan(source)
        use = {
            variant.target: _device_use(source, plan, index)
            for index, variant in enumerate(plan.variants)
        }
    return {
        **described,
        "memory": _memory(source, plan),
        "device_use": use,
        "kernels": debug["kernels"],
        "library_kernels": debug["libraries"],
        "debug": debug["debug"],
        "lock": lock,
    }


def _memory(source: Source, plan: BundlePlan) -> dict[str, Any]:
    """Target -> bytes of its code, and of weights and workspaces that it uses."""
    sizes = {(row.kind, row.id): row.size_bytes for row in source.sections}
    return {
        variant.target: {
            "code_bytes": sizes[head.CODE, index],
            "weights_bytes": sum(size for _, size in variant.ranges),
            "workspace_bytes": list(variant.workspace_bytes),
        }
        for index, variant in enumerate(plan.variants)
    }


def _device_use(source: Source, plan: BundlePlan, index: int) -> dict[str, Any]:
    return describe_device_use(variant_program(source, plan, index), plan.variants[index], plan)


def variant_program(source: Source, plan: BundlePlan, index: int) -> Program:
    """Return the instructions of a variant's `main`; ``index``: its position in the plan.

    Raises:
        BundleError: the section is damaged, or something in it does not exist.
    """
    sizes, section = weights_sizes_bytes(source, plan), source.section(head.PROGRAM, index)
    return decode_program(section, plan, plan.variants[index], sizes, f"section program {index}")


def verify_bundle(path: str | os.PathLike[str], tree_entry: TreeEntry) -> int:
    """Check every byte of a bundle, also what no run here would read; return the count of sections.

    Args:
        path: the bundle.
        tree_entry: digests of one MiB.

    Raises:
        BundleError: naming the section, or the MiB of weights.
    """
    with opened(path) as source:
        verify_source(source, tree_entry)
    return len(source.sections)


def verify_source(source: Source, tree_entry: TreeEntry) -> BundlePlan:
    """Check every byte of an open bundle; return its plan.

    Raises:
        BundleError: naming the section with its variant, or the MiB of weights with the variants
            that read it.
    """
    plan = read_plan(source)
    open_base(source)
    for row in source.sections:
        if row.kind == head.WEIGHTS:
            _verify_weights(source, row, plan, tree_entry)
            continue
        try:
            source.section(row.kind, row.id)
        except BundleError as error:
            owner = _owner(row, plan)
            if owner:
                raise error.at(f"{error.where}, {owner}") from error
            raise
    return plan


def _owner(row: head.Section, plan: BundlePlan) -> str:
    """What a section is of: a variant, a library, or "" for the whole bundle."""
    if row.kind in (head.CODE, head.PROGRAM):
        return f"variant {plan.variants[row.id].target}"
    if row.kind == head.LIBRARY:
        return f"{plan.libraries[row.id].kind} {plan.libraries[row.id].target}"
    if row.kind == head.ALTERNATIVE:
        code = plan.alternatives[row.id].code
        return f"{code.kind} {code.target}"
    return ""


def _verify_weights(
    source: Source, row: head.Section, plan: BundlePlan, tree_entry: TreeEntry
) -> None:
    tree = source.section(head.TREE, row.id)
    whole_bytes = weights_sizes_bytes(source, plan)[row.id]
    for mib, start in enumerate(range(0, whole_bytes, MIB)):
        size_bytes = min(MIB, whole_bytes - start)
        data = read_weights(source, row.id, start, size_bytes)
        at = mib * TREE_ENTRY_SIZE_BYTES
        entry = tree[at : at + TREE_ENTRY_SIZE_BYTES]
        padded = memoryview(data.ljust(MIB, b"\0"))
        if len(data) != size_bytes or tree_entry(padded) != entry:
            raise DigestError(
                f"weights are damaged in MiB {mib}",
                f"{row.name}, read by {_readers(plan, row.id, mib)}",
                f"its digests are not those of section tree {row.id}",
                DAMAGED,
            )


def _readers(plan: BundlePlan, device: int, mib: int) -> str:
    """Who reads a MiB of the weights of a device; of the host's, the variants that do."""
    if device:
        return f"device {plan.devices[device].name}"
    readers = [variant.target for variant in plan.variants if _reads(variant, mib)]
    return ", ".join(readers) or "no variant"


def _reads(variant: VariantPlan, mib: int) -> bool:
    return any(
        offset < (mib + 1) * MIB and mib * MIB < offset + size_bytes
        for offset, size_bytes in variant.ranges
    )
