"""The bytes of a section with code of another kind: FORMAT.md, "Alternative".

In: an ``AlternativeSpec``. Out: bytes that ``ingot_runtime.format.alternative`` reads back. Not done
here: checking them (their reader does).
"""

import struct

from ingot_artifacts.bundle.contents import AlternativeSpec
from ingot_artifacts.bundle.encode_plan import PlanWriter
from ingot_artifacts.bundle.plan_of import library_plan
from ingot_runtime.format.limits import ALIGNMENT_SMALL_BYTES


def encode_alternative(alternative: AlternativeSpec, minor: int = 0) -> bytes:
    """Return the bytes of the section, of a bundle of that minor version."""
    library, out = alternative.library, PlanWriter(minor)
    out.word(alternative.stands_for)
    out.record(library_plan(library))
    out.word(len(alternative.ids))
    for device, id_ in alternative.ids:
        out.word(device, id_)
    words = out.data()
    head = struct.pack("<q", len(words)) + words
    return head + bytes(-len(head) % ALIGNMENT_SMALL_BYTES) + library.image
