"""A bundle with one of its variants: what a device of that kind needs, and no more.

In: an open bundle, a target. Out: the sections that change or go; the digest of the result, which
signatures of the whole bundle name. Not done here: writing the file
(``ingot_artifacts.bundle.rewrite``).

It is a pure function of bundle and target: so who signs the whole can sign every part before anybody
makes it. Weights keep their places and their size, which are written in the code: what the variant
does not read becomes zeros, which take no place on a disk and none in a delta.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingot_artifacts.bundle.encode_plan import encode_plan
from ingot_artifacts.bundle.rewrite import Changes, Ranges, changed_sections
from ingot_build_rules.tools.ship.thin_shared import thin_shared
from ingot_compiler.backends.host.support.host import HostDigests
from ingot_compiler.ir.errors import UserError
from ingot_runtime.format import header as head
from ingot_runtime.format.base import open_base
from ingot_runtime.format.debug import read_record
from ingot_runtime.format.limits import MIB, TREE_ENTRY_SIZE_BYTES
from ingot_runtime.format.msgpack_canonical import pack
from ingot_runtime.format.plan import decode_plan, manifest_bytes
from ingot_runtime.format.source import Source, read_plan, weights_sizes_bytes
from ingot_runtime.format.statement import parts_digest
from ingot_runtime.loader.weights import whole_mibs
from ingot_runtime.option_ref import OptionRef

_BY_TARGET = ("launches", "memory", "programs", "versions")
"""Tables of the debug section that have a row for each target."""
_HOST_WEIGHTS = head.WEIGHTS, 0


def thin_digests(source: Source) -> dict[str, str]:
    """Return the digest of parts of the bundle for each of its targets, in hex; without those that
    it cannot be made thin for, because the other bundle in which its weights lie cannot."""
    found: dict[str, str] = {}
    for variant in read_plan(source).variants:
        try:
            changes = thin_changes(source, variant.target)
        except UserError:
            continue
        found[variant.target] = parts_digest(changed_sections(source, changes)).hex()
    return found


def thin_changes(source: Source, target: str) -> Changes:
    """Return what changes and goes where one variant is left.

    Raises:
        UserError: no variant is for this target; or weights lie in another bundle which cannot be
            made thin for it, or lacks some then. BundleError: that bundle is not there.
    """
    plan = decode_plan(source.section(head.PLAN), source.minor)
    targets = [variant.target for variant in plan.variants]
    if target not in targets:
        why = f"the bundle has {', '.join(targets)}"
        raise UserError(
            f"no variant {target!r}", ("option ", OptionRef("target")), why, "name one of these"
        )
    index = targets.index(target)
    plan.variants = (plan.variants[index],)
    payloads = {
        (head.PLAN, 0): encode_plan(plan),
        (head.MANIFEST, 0): manifest_bytes(plan),
        (head.CODE, 0): source.section(head.CODE, index),
        (head.PROGRAM, 0): source.section(head.PROGRAM, index),
        (head.DEBUG, 0): pack(_debug_of(read_record(source, head.DEBUG), target)),
    }
    dropped = {(kind, at) for kind in (head.CODE, head.PROGRAM) for at in range(1, len(targets))}
    if _HOST_WEIGHTS not in source.by_key:
        return Changes(payloads, frozenset(dropped))
    read_plan(source)
    open_base(source)
    size = weights_sizes_bytes(source, plan)[0]
    mibs = whole_mibs(plan.variants[0].ranges)
    kept = tuple((first * MIB, min(end * MIB, size)) for first, end in mibs)
    payloads[head.TREE, 0] = _tree(source.section(head.TREE), kept)
    if source.shared is None or source.base is None:
        return Changes(payloads, frozenset(dropped), {_HOST_WEIGHTS: kept})
    of_base = thin_changes(source.base, target)
    section, own = thin_shared(source, source.base, source.shared, of_base, kept)
    shares = {(head.SHARED, 0): section} if section else {}
    gone = dropped if section else {*dropped, (head.SHARED, 0)}
    return Changes({**payloads, **shares}, frozenset(gone), placed={_HOST_WEIGHTS: own})


def _debug_of(record: Mapping[str, Any], target: str) -> dict[str, Any]:
    """The names of one variant."""

    def own(table: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in table.items() if key == target}

    debug = dict(record["debug"])
    debug |= {name: own(debug[name]) for name in _BY_TARGET if name in debug}
    return {**record, "kernels": own(record["kernels"]), "debug": debug}


def _tree(tree: bytes, kept: Ranges) -> bytes:
    """The digests of the MiBs that are left, and of zeros between them."""
    mibs = {at for start, end in kept for at in range(start // MIB, -(-end // MIB))}
    count, size = len(tree) // TREE_ENTRY_SIZE_BYTES, TREE_ENTRY_SIZE_BYTES
    zeros = b"" if len(mibs) == count else HostDigests().mib_tree_entry(memoryview(bytes(MIB)))
    rows = (tree[at * size : (at + 1) * size] if at in mibs else zeros for at in range(count))
    return b"".join(rows)
