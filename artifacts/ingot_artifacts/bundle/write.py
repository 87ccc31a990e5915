"""Write a bundle: nothing held twice, the file appears whole or not at all.

In: ``BundleContents``, the tree of its weights. Out: a skeleton (all but the weights), a file by
FORMAT.md, its root digest. Not done here: compiling, packing weights, their tree
(``weights_tree``), reading bundles.
"""

import os
import struct
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import msgpack

from ingot_artifacts.bundle.contents import BundleContents, Chunk, DefaultValue, bytes_of
from ingot_artifacts.bundle.encode_alternative import encode_alternative
from ingot_artifacts.bundle.encode_head import encode_head, pack_record
from ingot_artifacts.bundle.encode_plan import encode_plan, encode_values
from ingot_artifacts.bundle.place_sections import place_sections, reserve
from ingot_artifacts.bundle.plan_of import plan_of
from ingot_artifacts.bundle.version_minor import version_minor
from ingot_artifacts.bundle.weights_tree import TreeEntry, section_sizes_bytes, weights_tree
from ingot_artifacts.errors import ArtifactError
from ingot_artifacts.store.atomic import atomic_file
from ingot_runtime.format import header as head
from ingot_runtime.format.alternative import decode_alternative
from ingot_runtime.format.debug import SHAPES
from ingot_runtime.format.defaults import decode_default, head_size_bytes
from ingot_runtime.format.header import tree_size_bytes
from ingot_runtime.format.msgpack_canonical import pack
from ingot_runtime.format.plan import BundlePlan, decode_plan, manifest_bytes
from ingot_runtime.format.sha256 import sha256
from ingot_runtime.format.shapes import check_shape
from ingot_runtime.format.states import decode_states
from ingot_runtime.format.values import decode_values
from ingot_runtime.lazy_dataclass import dataclass

Payloads = dict[tuple[int, int], bytes]
"""(kind, number) of a section -> its bytes."""


@dataclass(frozen=True, slots=True)
class BundleSkeleton:
    """A bundle without its weights: ``root`` digest in hex, ``prefix``: all bytes before the
    weights, bytes of the whole file."""

    root: str
    prefix: bytes
    size_bytes: int


def make_skeleton(contents: BundleContents, tree: bytes) -> BundleSkeleton:
    """Make all of a bundle but its weights, whose bytes are not looked at; the same contents give
    the same skeleton.

    Args:
        contents: what the bundle holds.
        tree: what ``weights_tree`` gave for its weights.

    Raises:
        ArtifactError: contents that break the format.
    """
    plan = plan_of(contents)
    weights_sizes_bytes = section_sizes_bytes(contents.weights_bytes)
    programs = [variant.program for variant in contents.variants]
    plan.minor = version_minor(plan, weights_sizes_bytes, programs)
    encoded = encode_plan(plan)
    # The writer obeys the reader's rules, or fails here and not on the device.
    decode_plan(encoded, plan.minor)
    payloads = _payloads(contents, plan, encoded)
    payloads |= _trees(tree, weights_sizes_bytes)
    sizes = {key: len(payload) for key, payload in payloads.items()}
    sizes |= {(head.WEIGHTS, index): size for index, size in enumerate(weights_sizes_bytes) if size}
    sections = place_sections(sizes)
    end = sections[-1].offset + sections[-1].size_bytes
    prefix, root = _prefix(sections, payloads, end, sum(weights_sizes_bytes), plan.minor)
    return BundleSkeleton(root.hex(), prefix, end)


def _prefix(
    sections: list[head.Section],
    payloads: Payloads,
    end: int,
    weights_size_bytes: int,
    version_minor: int,
) -> tuple[bytes, bytes]:
    """Return all bytes before the weights of a file that ends at ``end``, and the root digest; the
    sections get their digests."""
    prefix = bytearray(end - weights_size_bytes)
    for row in sections:
        if row.kind != head.WEIGHTS:
            payload = payloads[row.kind, row.id]
            row.digest = sha256(payload)
            prefix[row.offset : row.offset + len(payload)] = payload
    start, root = encode_head(sections, end, version_minor)
    prefix[: len(start)] = start
    return bytes(prefix), root


@contextmanager
def bundle_writer(
    skeleton: BundleSkeleton, path: str | os.PathLike[str]
) -> Generator[Callable[[int, memoryview], None]]:
    """Write a file that is a skeleton and its weights, whole or not at all; the block is given what
    writes a part of the weights to its offset. The file's name lasts after ``sync_folders``.

    Raises:
        OutputError: no folder, no permission, no space; nothing is left behind.
    """
    with atomic_file(path, lasting=True) as file:
        reserve(file.fileno(), skeleton.size_bytes)
        file.write(skeleton.prefix)

        def write(offset: int, content: memoryview) -> None:
            file.seek(len(skeleton.prefix) + offset)
            file.write(content.cast("B") if content.nbytes else b"")

        yield write
        file.truncate(skeleton.size_bytes)


def write_with_weights(
    skeleton: BundleSkeleton, weights: Iterable[Chunk], path: str | os.PathLike[str]
) -> None:
    """Write a bundle whose weights come as chunks, one after the other."""
    with bundle_writer(skeleton, path) as write:
        for offset, source in weights:
            write(offset, bytes_of(source))


def write_bundle(
    contents: BundleContents, path: str | os.PathLike[str], tree_entry: TreeEntry
) -> str:
    """Write `contents` to `path`; return the root digest, as hex. Its weights are asked for twice,
    in order.

    Raises:
        OutputError: no folder, no permission, no space. ArtifactError: contents that break the
            format.
    """
    tree = weights_tree(contents.weights, contents.weights_bytes, tree_entry)
    skeleton = make_skeleton(contents, tree)
    write_with_weights(skeleton, contents.weights, path)
    return skeleton.root


def _payloads(contents: BundleContents, plan: BundlePlan, encoded_plan: bytes) -> Payloads:
    """Return all sections but weights and trees."""
    payloads = {
        (head.MANIFEST, 0): manifest_bytes(plan),
        (head.PLAN, 0): encoded_plan,
        (head.LOCK, 0): pack(dict(contents.lock)),
        (head.DEBUG, 0): pack(_debug_record(contents)),
    }
    for index, variant in enumerate(contents.variants):
        payloads[head.CODE, index] = variant.image
        payloads[head.PROGRAM, index] = variant.program
    for index, library in enumerate(contents.libraries):
        payloads[head.LIBRARY, index] = library.image
    for index, alternative in enumerate(contents.alternatives):
        payload, where = encode_alternative(alternative, plan.minor), f"alternative {index}"
        decode_alternative(payload, plan, where)
        payloads[head.ALTERNATIVE, index] = payload
    for value in contents.defaults:
        payload = _default(value)
        decode_default(payload, plan.inputs[value.position], f"default {value.position}")
        payloads[head.DEFAULT, value.position] = payload
    if contents.states:
        payloads[head.STATE, 0] = b"".join(map(pack_record, plan.states))
        decode_states(payloads[head.STATE, 0], plan)
    if contents.values:
        payloads[head.VALUES, 0] = encode_values(contents.values)
        plan.values = decode_values(payloads[head.VALUES, 0], plan)
    for kind in (head.LOCK, head.DEBUG):
        # By the C decoder: the loader's own is for files that somebody else may have written.
        without_stubs: Any = msgpack
        check_shape(
            without_stubs.unpackb(payloads[kind, 0]),
            SHAPES[kind],
            f"section {head.KIND_NAMES[kind]} 0",
        )
    return payloads


def _default(value: DefaultValue) -> bytes:
    words = struct.pack(f"<{1 + len(value.shape)}q", len(value.shape), *value.shape)
    return words.ljust(head_size_bytes(len(value.shape)), b"\0") + value.content


def _debug_record(contents: BundleContents) -> dict[str, object]:
    libraries = [list(library.kernels) for library in contents.libraries]
    kernels = {variant.target: list(variant.kernels) for variant in contents.variants}
    return {"kernels": kernels, "libraries": libraries, "debug": dict(contents.debug)}


def _trees(tree: bytes, weights_sizes_bytes: tuple[int, ...]) -> Payloads:
    """Cut the tree of all weights: one section per device that has any."""
    sizes = [tree_size_bytes(size) for size in weights_sizes_bytes]
    if len(tree) != sum(sizes):
        why = f"{len(tree)} bytes for {sum(weights_sizes_bytes)} bytes of weights"
        raise ArtifactError("bad tree", "weights", why)
    ends = list(accumulate(sizes))
    cuts = enumerate(zip(sizes, ends, strict=True))
    return {(head.TREE, index): tree[end - size : end] for index, (size, end) in cuts if size}
