"""Write a bundle: nothing held twice, the file appears whole or not at all.

In: ``BundleContents``, the tree of its weights. Out: a frame (all but the weights), a file by FORMAT.md, its root digest. Not done here:
compiling, packing weights, their tree (``weights_tree``), reading bundles.
"""

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass

from ingot_artifacts.bundle.contents import BundleContents, Chunk, TensorSpec, bytes_of
from ingot_artifacts.bundle.weights_tree import TreeEntry, weights_tree
from ingot_artifacts.errors import ArtifactError
from ingot_artifacts.store.atomic import atomic_file
from ingot_runtime.format import header as head
from ingot_runtime.format.debug import decode_record
from ingot_runtime.format.dtypes import DTYPE_CODES
from ingot_runtime.format.interface import dims_of
from ingot_runtime.format.limits import MIB, TREE_ENTRY_SIZE_BYTES
from ingot_runtime.format.manifest import manifest_bytes
from ingot_runtime.format.msgpack_canonical import pack
from ingot_runtime.format.plan import DevicePlan, Plan, TensorPlan, VariantPlan, decode_plan, encode_plan
from ingot_runtime.format.sha256 import sha256


@dataclass(frozen=True, slots=True)
class Frame:
    """A bundle without its weights: ``root`` digest in hex, ``prefix``: all bytes before the weights, bytes of the whole file."""

    root: str
    prefix: bytes
    size_bytes: int


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


def frame_bundle(contents: BundleContents, tree: bytes) -> Frame:
    """Make all of a bundle but its weights, whose bytes are not looked at; the same contents give the same frame.

    Args:
        contents: what the bundle holds.
        tree: what ``weights_tree`` gave for its weights.

    Raises:
        ArtifactError: contents that break the format.
    """
    plan = plan_of(contents)
    encoded = encode_plan(plan)
    decode_plan(encoded)  # the writer obeys the reader's rules, or fails here and not on the device
    payloads = _payloads(contents, plan, encoded)
    weights_size_bytes = -(-contents.weights_bytes // MIB) * MIB
    if len(tree) != weights_size_bytes // MIB * TREE_ENTRY_SIZE_BYTES:
        raise ArtifactError("bad tree", "weights", f"{len(tree)} bytes for {weights_size_bytes} bytes of weights")
    sections = _layout(payloads, weights_size_bytes)
    end = sections[-1].offset + sections[-1].size_bytes
    weights_offset = end - weights_size_bytes
    prefix = bytearray(weights_offset)
    for row in sections:
        if row.kind != head.WEIGHTS:
            payload = tree if row.kind == head.TREE else payloads[row.kind, row.id]
            row.digest = sha256(payload)
            prefix[row.offset : row.offset + len(payload)] = payload
    start, root = head.encode_head(sections, end)
    prefix[: len(start)] = start
    return Frame(root.hex(), bytes(prefix), end)


def write_frame(frame: Frame, weights: Iterable[Chunk], path: str | os.PathLike[str]) -> None:
    """Write a file that is a frame and its weights, whole or not at all; its name lasts after ``sync_folders``.

    Raises:
        OutputError: no folder, no permission, no space; nothing is left behind.
    """
    with atomic_file(path, lasting=True) as file:
        _reserve(file.fileno(), frame.size_bytes)
        file.write(frame.prefix)
        for offset, source in weights:
            file.seek(len(frame.prefix) + offset)
            file.write(bytes_of(source))
        file.truncate(frame.size_bytes)


def _reserve(descriptor: int, size_bytes: int) -> None:
    """Take the whole file's place on the disk, where that can be: a hole that a full disk cannot fill would end who maps the file."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, 0, size_bytes)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise


def write_bundle(contents: BundleContents, path: str | os.PathLike[str], tree_entry: TreeEntry) -> str:
    """Write `contents` to `path`; return the root digest, as hex. Its weights are asked for twice, in order.

    Raises:
        OutputError: no folder, no permission, no space. ArtifactError: contents that break the format.
    """
    frame = frame_bundle(contents, weights_tree(contents.weights, contents.weights_bytes, tree_entry))
    write_frame(frame, contents.weights, path)
    return frame.root


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
    for kind in (head.LOCK, head.DEBUG):
        decode_record(payloads[kind, 0], kind)
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
