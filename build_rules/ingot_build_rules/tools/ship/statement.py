"""The statement that a signature of a bundle makes: which bundles, made from what, by what.

In: an open bundle, digests of what is made of it, when it ends. Out: the payload: JSON in the form
that loaders read (FORMAT.md, "Signature"). Not done here: signing it (``sign``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ingot_runtime.format import header as head
from ingot_runtime.format.debug import read_record
from ingot_runtime.format.source import Source, read_plan
from ingot_runtime.format.statement import HEAD, MIDDLE, NUMBER, SUBJECT, parts_digest

WHOLE = "bundle"
"""The name of the subject that is the bundle itself."""


def make_statement(
    source: Source, others: Mapping[str, str], expires: int, number: int | None
) -> bytes:
    """Return the payload.

    Args:
        source: the bundle.
        others: digests of other bundles that are meant, too, in hex, by name.
        expires: seconds of Unix time, or ``NEVER``.
        number: larger for a later bundle; None: they are not counted.
    """
    subjects = {WHOLE: parts_digest(source.sections).hex(), **others}
    listed = ",".join(SUBJECT % (digest, name) for name, digest in subjects.items())
    text = json.dumps(_made_from(source), sort_keys=True, separators=(",", ":"))
    counted = "" if number is None else NUMBER % number
    return f"{HEAD}{listed}{MIDDLE}{expires},{counted}{text[1:]}}}".encode()


def _made_from(source: Source) -> dict[str, object]:
    lock = read_record(source, head.LOCK)
    document: dict[str, object] = {
        key: lock[key] for key in ("graph", "options", "toolchain") if key in lock
    }
    parts = [
        {
            "name": f"{head.kind_name(row.kind)} {row.id}",
            "sha256": row.digest.hex(),
            "size": row.size_bytes,
        }
        for row in source.sections
        if row.kind not in (head.SIGNATURE, head.WEIGHTS)
    ]
    return {"model": read_plan(source).model, "parts": parts, **document}
