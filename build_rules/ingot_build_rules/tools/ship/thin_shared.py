"""What a thin bundle shares: its weights lie in the other bundle as that is when it is made thin, too.

In: an open bundle whose weights lie in another one, a target, what the variant reads of them. Out: the
section about that, and its own weights. Not done here: what else of a bundle is thin (``ship.thin``).

The other bundle's thin form is a function of its bytes and the target alone, so its digest is known
before anybody makes it; it has the name that the whole one had. Weights that the variant does not read
are zeros, which lie in the bundle itself and take no place.
"""

from __future__ import annotations

from ingot_artifacts.bundle.rewrite import Changes, Placed, Ranges, changed_digest
from ingot_build_rules.tools.ship.share import Row, encode_shared, gaps
from ingot_compiler.ir.errors import UserError
from ingot_runtime.format import header as head
from ingot_runtime.format.base import pieces
from ingot_runtime.format.shared import Shared
from ingot_runtime.format.source import Source

_HOST_WEIGHTS = head.WEIGHTS, 0


def thin_shared(
    source: Source, base: Source, shared: Shared, of_base: Changes, kept: Ranges
) -> tuple[bytes, Placed]:
    """Return the section, b"" if nothing is shared any more, and the bundle's own weights.

    Args:
        source: the bundle, open.
        base: the other one, open.
        shared: what they share.
        of_base: what changes where the other one is made thin.
        kept: what the variant reads of the weights, in bytes.

    Raises:
        UserError: the other one, made thin, lacks weights that this one reads.
    """
    rows = _within(shared.rows, kept)
    there = of_base.kept.get(_HOST_WEIGHTS, ())
    if sum(row[2] for row in _within([(to, at, size) for at, to, size in rows], there)) != sum(
        row[2] for row in rows
    ):
        why = f"{base.name}, made thin, has not all weights that this one reads"
        do = "make both thin that `ingot share` was given, and share then"
        raise UserError("weights are shared with another bundle", source.name, why, do)
    size = shared.size_bytes
    own = _own(source, rows, kept, size)
    if not rows:
        return b"", own
    digest = changed_digest(base, of_base).hex()
    return encode_shared(digest, shared.name, size, rows), own


def _within(rows: list[Row], ranges: Ranges) -> list[Row]:
    """The parts of rows that lie in ranges, which are sorted and apart."""
    found: list[Row] = []
    for at, there, size in rows:
        for start, end in ranges:
            first, last = max(at, start), min(at + size, end)
            if first < last:
                found.append((first, there + first - at, last - first))
    return found


def _own(source: Source, rows: list[Row], kept: Ranges, size_bytes: int) -> Placed:
    """What lies in no row, one part behind the other: of what was the bundle's own, what is read."""
    begin = source.by_key[_HOST_WEIGHTS].offset
    mine = [
        (at, offset - begin, size) for at, size, file, offset in pieces(source) if file is source
    ]
    placed: list[Row] = []
    end = 0
    for start, stop in gaps(rows, size_bytes):
        placed += [
            (end + at - start, before, size)
            for at, before, size in _within(_within(mine, kept), ((start, stop),))
        ]
        end += stop - start
    return Placed(end, tuple(placed))
