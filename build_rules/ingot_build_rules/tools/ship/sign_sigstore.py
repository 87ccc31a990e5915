"""A signature of a bundle's file in the form of sigstore's model signing (OpenSSF Model Signing 1.0).

In: a bundle, a private key on an elliptic curve, perhaps certificates. Out: a sigstore bundle of version
0.3, which ``model_signing verify`` reads. Not done here: signatures that loaders of Ingot ask for
(``sign``).

It is a signature of another kind beside ours: over the bytes of the file, by ECDSA. Ed25519, by which
bundles are signed, is no key for those who verify such files.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from ingot_artifacts.inspect.describe import opened
from ingot_artifacts.store.atomic import atomic_file
from ingot_build_rules.tools.ship.sign import SignedBundle
from ingot_compiler.ir.errors import UserError
from ingot_runtime.format.source import Source
from ingot_runtime.format.statement import PAYLOAD_TYPE
from ingot_runtime.loader.public_keys import read_small
from ingot_runtime.option_ref import OptionRef

SUFFIX = ".sigstore.json"
_MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
_PREDICATE_TYPE = "https://model_signing/signature/v1.0"
_HASHES: dict[str, hashes.HashAlgorithm] = {
    "secp256r1": hashes.SHA256(),
    "secp384r1": hashes.SHA384(),
    "secp521r1": hashes.SHA512(),
}
_IGNORED_PATHS = [".git", ".gitattributes", ".github", ".gitignore"]
_MADE_BY = "`openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out F` makes one"
_CHUNK_SIZE_BYTES = 1 << 24


def sign_sigstore(
    path: str, output: str, key: str, password_file: str | None, certificates: str | None
) -> SignedBundle:
    """Write the signature of the file; ``key`` of the result is the sha256 of the public key's PEM, by
    which verifiers know it.

    Args:
        path: the bundle.
        output: the file to write.
        key: a PEM file with a private key on P-256, P-384 or P-521.
        password_file: of an encrypted key.
        certificates: a PEM file with the key's certificate, then those that lead to a root.

    Raises:
        UserError: a program, no such key, or another key's certificate. InputError: a file cannot be read.
            OutputError: it cannot be written.
    """
    private = _private_key(key, password_file)
    public = private.public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    hint = hashlib.sha256(pem).hexdigest()
    material: dict[str, object] = {"publicKey": {"hint": hint}}
    if certificates is not None:
        material = {"x509CertificateChain": {"certificates": _chain(certificates, public)}}
    with opened(path) as source:
        if source.start:
            do = "sign the bundle, and export it then"
            raise UserError("a program cannot be signed", path, "expected a bundle", do)
        payload = _statement(os.path.basename(path), _file_digest(source))
        source.require_unchanged()
        digest = source.root_digest.hex()
    message = f"DSSEv1 {len(PAYLOAD_TYPE)} {PAYLOAD_TYPE} {len(payload)} ".encode() + payload
    # The same file and key give the same signature (RFC 6979).
    proof = private.sign(message, ec.ECDSA(_HASHES[private.curve.name], deterministic_signing=True))
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": "", "sig": base64.b64encode(proof).decode()}],
    }
    document: dict[str, object] = {
        "mediaType": _MEDIA_TYPE,
        "verificationMaterial": {**material, "tlogEntries": []},
        "dsseEnvelope": envelope,
    }
    with atomic_file(output, lasting=True) as file:
        file.write(json.dumps(document, sort_keys=True, separators=(",", ":")).encode() + b"\n")
    return SignedBundle(digest, hint, 1)


def _private_key(path: str, password_file: str | None) -> ec.EllipticCurvePrivateKey:
    password = None if password_file is None else read_small(password_file).rstrip(b"\r\n")
    what = "cannot sign with this key"
    try:
        private = load_pem_private_key(read_small(path), password)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        why = "expected a private key, and the password of an encrypted one"
        raise UserError("cannot read the private key", path, why, _MADE_BY) from error
    if not isinstance(private, ec.EllipticCurvePrivateKey) or private.curve.name not in _HASHES:
        why = "verifiers of sigstore's model signing take keys on P-256, P-384 and P-521 alone, no Ed25519"
        raise UserError(what, path, why, _MADE_BY)
    return private


def _chain(path: str, public: ec.EllipticCurvePublicKey) -> list[dict[str, str]]:
    """The certificates as they are in the file, the key's own first."""
    try:
        found = x509.load_pem_x509_certificates(read_small(path))
    except ValueError as error:
        why = "expected certificates, each between BEGIN CERTIFICATE and END CERTIFICATE"
        raise UserError("cannot read the certificates", path, why) from error
    if found[0].public_key() != public:
        why = "its public key is another one"
        order = (" first, and behind it those that lead to the root",)
        do = ("put the certificate of ", OptionRef("key"), *order)
        raise UserError("the first certificate is not that of the key", path, why, do)
    encoded = (it.public_bytes(Encoding.DER) for it in found)
    return [{"rawBytes": base64.b64encode(data).decode()} for data in encoded]


def _file_digest(source: Source) -> str:
    digest = hashlib.sha256()
    for at in range(0, source.size_bytes, _CHUNK_SIZE_BYTES):
        digest.update(source.read(at, _CHUNK_SIZE_BYTES))
    return digest.hexdigest()


def _statement(name: str, file_digest: str) -> bytes:
    """One file is a model with one resource, called ``.``; its subject is the digest of all of them."""
    whole = hashlib.sha256(bytes.fromhex(file_digest)).hexdigest()
    serialization = {
        "allow_symlinks": False,
        "hash_type": "sha256",
        "ignore_paths": _IGNORED_PATHS,
        "method": "files",
    }
    resources = [{"algorithm": "sha256", "digest": file_digest, "name": "."}]
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"sha256": whole}, "name": name}],
        "predicateType": _PREDICATE_TYPE,
        "predicate": {"resources": resources, "serialization": serialization},
    }
    return json.dumps(statement, separators=(",", ":")).encode()
