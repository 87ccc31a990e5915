"""Write a bundle: one pass over the weights, nothing held twice, the file appears whole or not at all.

In: ``BundleContents``, a function MiB -> tree entry. Out: a file by FORMAT.md, and its root digest. Not done here: compiling, packing weights, reading bundles.
"""

import os
from collections.abc import Callable
from typing import BinaryIO

from ingot_artifacts.bundle.contents import BundleContents, TensorSpec
from ingot_artifacts.errors import ArtifactError
from ingot_artifacts.store.atomic import atomic_file
from ingot_runtime.format import header as head
from ingot_runtime.format.dtypes import DTYPE_CODES
from ingot_runtime.format.interface import dims_of
from ingot_runtime.format.limits import MIB, TREE_ENTRY_SIZE_BYTES
from ingot_runtime.format.manifest import manifest_bytes
from ingot_runtime.format.msgpack_canonical import pack
from ingot_runtime.format.plan import DevicePlan, Plan, TensorPlan, VariantPlan, decode_plan, encode_plan
from ingot_runtime.format.sha256 import sha256

TreeEntry = Callable[[memoryview], bytes]
"""One MiB -> 40 bytes: BLAKE3, then the lane checksum (FORMAT.md, "Tree")."""


def plan_of(contents: BundleContents) -> Plan:
    """Return the plan that describes `contents`."""
    symbols = contents.symbols
    return Plan(
        model=contents.model,
        devices=tuple(DevicePlan(device.name, device.kind, device.id) for device in contents.devices),
        symbols=symbols,
        inputs=tuple(_tensor_plan(tensor, symbols) for tensor in contents.inputs),
        outputs=tuple(_tensor_plan(tensor, symbols) for tensor in contents.outputs),
        variants=tuple(
            VariantPlan(
                target=variant.target,
                rank=variant.rank,
                features=variant.features,
                kernel_count=len(variant.kernels),
                workspace_bytes=(variant.workspace_bytes, *([0] * (len(contents.devices) - 1))),
                ranges=tuple((offset, size) for offset, size in variant.weight_ranges if size),
            )
            for variant in contents.variants
        ),
    )


def _tensor_plan(tensor: TensorSpec, symbols: tuple[str, ...]) -> TensorPlan:
    return TensorPlan(tensor.name, DTYPE_CODES[tensor.dtype], dims_of(tensor.shape, symbols))


def write_bundle(contents: BundleContents, path: str | os.PathLike[str], tree_entry: TreeEntry) -> str:
    """Write `contents` to `path`; the same contents give the same bytes.

    Args:
        contents: what to write; its weights are asked for once, in order.
        path: a file that is replaced if it is there.
        tree_entry: digests of one MiB of weights (the compiler's own code; tests use the oracle).

    Returns:
        The root digest, as hex.

    Raises:
        OutputError: no folder, no permission, no space; nothing is left behind. ArtifactError: contents that break the format.
    """
    plan = plan_of(contents)
    encoded = encode_plan(plan)
    decode_plan(encoded)  # the writer obeys the reader's rules, or fails here and not on the device
    payloads = _payloads(contents, plan, encoded)
    weights_size_bytes = -(-contents.weights_bytes // MIB) * MIB
    sections = _layout(payloads, weights_size_bytes)
    end = sections[-1].offset + sections[-1].size_bytes
    with atomic_file(path) as file:
        tree = b""
        for row in sections:
            if row.kind == head.WEIGHTS:
                file.seek(row.offset)
                tree = _write_weights(contents, weights_size_bytes, file, tree_entry)
        for row in sections:
            payload = tree if row.kind == head.TREE else payloads.get((row.kind, row.id), b"")
            if row.kind != head.WEIGHTS:
                row.digest = sha256(payload)
                file.seek(row.offset)
                file.write(payload)
        prefix, root = head.encode_head(sections, end)
        file.seek(0)
        file.write(prefix)
        file.truncate(end)
    return root.hex()


def _payloads(contents: BundleContents, plan: Plan, encoded_plan: bytes) -> dict[tuple[int, int], bytes]:
    """Return all sections but weights and tree."""
    kernels = {variant.target: list(variant.kernels) for variant in contents.variants}
    payloads = {
        (head.MANIFEST, 0): manifest_bytes(plan),
        (head.PLAN, 0): encoded_plan,
        (head.LOCK, 0): pack(dict(contents.lock)),
        (head.DEBUG, 0): pack({"kernels": kernels, "debug": dict(contents.debug)}),
    }
    for index, variant in enumerate(contents.variants):
        payloads[head.CODE, index] = variant.image
        payloads[head.PROGRAM, index] = variant.program
    return payloads


def _layout(payloads: dict[tuple[int, int], bytes], weights_size_bytes: int) -> list[head.Section]:
    """Place the sections: what is read first and always comes first, the weights last but one, debug before them."""
    sizes = {key: len(payload) for key, payload in payloads.items()}
    if weights_size_bytes:
        sizes[head.TREE, 0] = weights_size_bytes // MIB * TREE_ENTRY_SIZE_BYTES
        sizes[head.WEIGHTS, 0] = weights_size_bytes
    order = (head.MANIFEST, head.PLAN, head.TREE, head.LOCK, head.PROGRAM, head.DEBUG, head.CODE, head.WEIGHTS)
    end = head.HEADER_SIZE_BYTES + len(sizes) * head.ROW_SIZE_BYTES
    sections: list[head.Section] = []
    for kind, id_ in sorted(sizes, key=lambda key: (order.index(key[0]), key[1])):
        alignment = head.alignment_of(kind)
        offset = end + -end % alignment
        end = offset + sizes[kind, id_]
        sections.append(head.Section(kind, id_, offset, sizes[kind, id_], alignment, head.NO_DIGEST))
    return sections


def _write_weights(contents: BundleContents, size_bytes: int, file: BinaryIO, tree_entry: TreeEntry) -> bytes:
    """Stream the chunks to `file` MiB by MiB; return the tree."""
    tree: list[bytes] = []
    mib = bytearray(MIB)
    filled = 0

    def put(data: memoryview) -> None:
        nonlocal filled, mib
        while len(data):
            part = data[: MIB - filled]
            mib[filled : filled + len(part)] = part
            filled += len(part)
            data = data[len(part) :]
            if filled == MIB:
                tree.append(_entry(tree_entry, mib))
                file.write(mib)
                filled = 0

    at = 0
    zeros = memoryview(bytes(MIB))

    def skip(until: int) -> None:
        nonlocal at
        while at < until:
            step = min(until - at, MIB)
            put(zeros[:step])
            at += step

    for offset, source in contents.weights:
        data = (source if isinstance(source, memoryview) else source()).cast("B")
        if offset < at or offset + len(data) > contents.weights_bytes:
            why = f"{len(data)} bytes at {offset}, after {at} of {contents.weights_bytes}"
            raise ArtifactError("weights overlap or leave their section", "weights", why)
        skip(offset)
        put(data)
        at += len(data)
    skip(size_bytes)
    return b"".join(tree)


def _entry(tree_entry: TreeEntry, mib: bytearray) -> bytes:
    with memoryview(mib) as view:
        entry = tree_entry(view)
    if len(entry) != TREE_ENTRY_SIZE_BYTES:
        raise ArtifactError("bad tree entry", "weights", f"expected {TREE_ENTRY_SIZE_BYTES} bytes, got {len(entry)}")
    return entry
