"""What a signature of a bundle says, and of which bytes it is: FORMAT.md, "Signature".

In: a section, an envelope of DSSE, the rows of a bundle. Out: ``Signed``, the digest of the parts.
Not done here: whether it counts (``loader.signatures``).
"""

import struct

from ..errors import FormatError
from .checks import require
from .header import SIGNATURE
from .limits import MIB
from .sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .header import Section
    from .source import Source

DETACHED = ".sig"  # what a file of signatures is called behind the name of the bundle
PAYLOAD_TYPE = "application/vnd.in-toto+json"
HEAD = '{"_type":"https://in-toto.io/Statement/v1","subject":['
SUBJECT = '{"digest":{"sha256":"%s"},"name":"%s"}'
MIDDLE = '],"predicateType":"urn:ingot:bundle:1","predicate":{"expires":'
NEVER = 0
_SUBJECT_FORM = SUBJECT.replace("{", r"\{") % ("([0-9a-f]{64})", r"[ !#-\[\]-~]*")
NUMBER = '"number":%s,'
_DIGITS = "(0|[1-9][0-9]{0,14})"
_END_FORM = f"{_DIGITS},(?:{NUMBER % _DIGITS})?"
NUMBER_MAX = 10**15 - 1
_KEY_BYTES = 32
_PROOF_BYTES = 64
# kind, id, size, sha256 of a section
_PART = struct.Struct("<IIQ32s")


class Signed:
    """A statement and who is said to have signed it. ``digests``: of the bundles that it is about,
    in hex; ``expires``: seconds of Unix time, or ``NEVER``; ``number``: larger for a later bundle,
    where the owner of the key counts them."""

    __slots__ = ("digests", "expires", "key", "number", "payload", "proof")

    def __init__(self, key: bytes, proof: bytes, payload: bytes, where: str) -> None:
        self.key = key
        self.proof = proof
        self.payload = payload
        self.digests, self.expires, self.number = _read(payload, where)

    @property
    def message(self) -> bytes:
        """What is signed: the pre-authentication encoding of DSSE."""
        head = f"DSSEv1 {len(PAYLOAD_TYPE)} {PAYLOAD_TYPE} {len(self.payload)} "
        return head.encode() + self.payload


def _read(payload: bytes, where: str) -> "tuple[tuple[str, ...], int, int | None]":
    """Return the digests, the end and the number of the only form in which a statement may begin."""
    import re

    text = payload.decode("latin-1")
    subjects = f"({_SUBJECT_FORM}(?:,{_SUBJECT_FORM})*)"
    found = re.match(re.escape(HEAD) + subjects + re.escape(MIDDLE) + _END_FORM, text)
    require(found is not None, "not a statement about a bundle", where, text[:100])
    assert found is not None
    number = None if found[5] is None else int(found[5])
    return tuple(re.findall(_SUBJECT_FORM, found[1])), int(found[4]), number


def parts_digest(sections: "list[Section]") -> bytes:
    """Return what signatures are about: the digest of all sections but signatures, wherever these
    lie in the file."""
    parts = [
        _PART.pack(row.kind, row.id, row.size_bytes, row.digest)
        for row in sections
        if row.kind != SIGNATURE
    ]
    return sha256(b"ingot parts 1\n" + b"".join(parts))


def signed_in(source: "Source") -> "list[Signed]":
    """Return the signatures that the bundle holds.

    Raises:
        FormatError, DigestError: a section is damaged.
    """
    rows = [row for row in source.sections if row.kind == SIGNATURE]
    return [decode(source.section(SIGNATURE, row.id), row.name) for row in rows]


def decode(data: bytes, where: str) -> Signed:
    """Decode a section: key, signature, payload."""
    start = _KEY_BYTES + _PROOF_BYTES
    fits = start < len(data) <= MIB
    require(fits, "not a statement about a bundle", where, f"{len(data)} bytes")
    return Signed(data[:_KEY_BYTES], data[_KEY_BYTES:start], data[start:], where)


def decode_envelope(line: bytes, where: str) -> "list[Signed]":
    """Decode an envelope of DSSE: each signature of its list.

    Raises:
        FormatError: it is none about a bundle.
    """
    import json
    from base64 import b64decode

    try:
        envelope = json.loads(line.decode("utf-8-sig"), parse_int=float)
        require(envelope["payloadType"] == PAYLOAD_TYPE, "another type of payload", where)
        payload = b64decode(envelope["payload"], validate=True)
        found: list[Signed] = []
        for one in list[dict[str, str]].__iter__(envelope["signatures"]):  # of nothing else
            proof = bytes.fromhex(one["keyid"]) + b64decode(one["sig"], validate=True)
            found.append(decode(proof + payload, where))
        return found
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        why = f"expected an envelope of DSSE: {error}"
        raise FormatError("not a signature", where, why, "write it by `ingot sign`") from error
