"""Sign a bundle: in a section of its own, or in a file beside it.

In: a bundle whose every byte was verified, a signer. Out: the bundle with one signature more, or
lines of DSSE envelopes. Not done here: keys (``signer``), what the statement says (``statement``).
"""

from __future__ import annotations

import base64
import json
import os

from ingot_artifacts.bundle.rewrite import Changes, rewrite_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_artifacts.store.atomic import atomic_file
from ingot_build_rules.tools.ship.signer import Signer
from ingot_build_rules.tools.ship.statement import make_statement
from ingot_build_rules.tools.ship.thin import thin_digests
from ingot_compiler.ir.errors import UserError
from ingot_runtime.format import header as head
from ingot_runtime.format.limits import SECTION_COUNT_MAX
from ingot_runtime.format.source import Source
from ingot_runtime.format.statement import PAYLOAD_TYPE, Signed, decode_envelope, signed_in
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.loader.public_keys import read_small
from ingot_runtime.option_ref import OptionRef


@dataclass(frozen=True, slots=True)
class SignedBundle:
    """``digest``: the root digest of the file as it is now. ``key``: who signed, in hex."""

    digest: str
    key: str
    signature_count: int


def sign_inside(
    path: str, output: str, signer: Signer, expires: int, number: int | None = None
) -> SignedBundle:
    """Write the bundle with a signature; one that the same key has made before goes.

    Raises:
        UserError: it is a program, or is full. OutputError: it cannot be written.
    """
    with opened(path) as source:
        signed = _signed(source, path, signer, expires, number)
        kept = [each for each in signed_in(source) if each.key != signer.key]
        payloads = {
            (head.SIGNATURE, index): each.key + each.proof + each.payload
            for index, each in enumerate([*kept, signed])
        }
        old = {key for key in source.by_key if key[0] == head.SIGNATURE}
        if len(source.sections) - len(old) + len(payloads) > SECTION_COUNT_MAX:
            why = f"a bundle has at most {SECTION_COUNT_MAX} sections"
            raise UserError(
                "no room for a signature", path, why, ("sign it beside: ", OptionRef("detached"))
            )
        root = rewrite_bundle(source, Changes(payloads, frozenset(old)), output)
        return SignedBundle(root, signer.key.hex(), len(payloads))


def sign_beside(
    path: str, output: str, signer: Signer, expires: int, number: int | None = None
) -> SignedBundle:
    """Write the signature into a file of its own, behind those of other keys that are there.

    Raises:
        FormatError: the file holds something else. OutputError: it cannot be written.
    """
    with opened(path) as source:
        signed = _signed(source, path, signer, expires, number)
        lines = _lines_of_others(output, signer.key)
        with atomic_file(output, lasting=True) as file:
            file.write(b"\n".join([*lines, envelope(signed)]) + b"\n")
        return SignedBundle(source.root_digest.hex(), signer.key.hex(), len(lines) + 1)


def _signed(source: Source, path: str, signer: Signer, expires: int, number: int | None) -> Signed:
    if source.start:
        do = "sign the bundle, and export it then"
        raise UserError("a program cannot be signed", path, "expected a bundle", do)
    payload = make_statement(source, thin_digests(source), expires, number)
    draft = Signed(signer.key, b"", payload, path)
    return Signed(signer.key, signer.sign(draft.message), payload, path)


def _lines_of_others(path: str, key: bytes) -> list[bytes]:
    """The lines of a file, where there is one, without that of a key."""
    if not os.path.exists(path):
        return []
    lines = [line for line in read_small(path).split(b"\n") if line.strip()]
    return [line for line in lines if all(it.key != key for it in decode_envelope(line, path))]


def envelope(signed: Signed) -> bytes:
    """Return a signature and what it signs as an envelope of DSSE, in JSON."""
    proof = {"keyid": signed.key.hex(), "sig": base64.b64encode(signed.proof).decode()}
    payload = base64.b64encode(signed.payload).decode()
    document = {"payload": payload, "payloadType": PAYLOAD_TYPE, "signatures": [proof]}
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
