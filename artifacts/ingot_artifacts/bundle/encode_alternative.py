"""The bytes of a section with code of another kind: FORMAT.md, "Alternative".

In: an ``AlternativeSpec``. Out: bytes that ``ingot_runtime.format.alternative`` reads back. Not done
here: checking them (their reader does).
"""

import struct

from ingot_artifacts.bundle.contents import AlternativeSpec
from ingot_artifacts.bundle.encode_plan import PlanWriter, encode_library
from ingot_runtime.format.limits import ALIGNMENT_SMALL_BYTES
from ingot_runtime.format.plan import LibraryPlan


def encode_alternative(alternative: AlternativeSpec) -> bytes:
    """Return the bytes of the section."""
    library, out = alternative.library, PlanWriter()
    out.word(alternative.stands_for)
    plan = LibraryPlan(library.kind, library.target, library.features, len(library.kernels))
    encode_library(out, plan)
    out.word(len(alternative.ids))
    for device, id_ in alternative.ids:
        out.word(device, id_)
    words = out.data()
    head = struct.pack("<q", len(words)) + words
    return head + bytes(-len(head) % ALIGNMENT_SMALL_BYTES) + library.image
