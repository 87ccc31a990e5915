"""``ingot sign --sigstore``: what is in the file, and who may sign. Whether sigstore's own program
accepts it: ``tests/packages/test_model_signing.py``."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.json_schemas import checked
from tests.unit.runtime.test_signatures import Owner

from ingot_artifacts.bundle.write import write_bundle
from ingot_build_rules.tools.cli.main import main

Output = pytest.CaptureFixture[str]
PASSWORD = b"open sesame"
CURVES: dict[str, tuple[ec.EllipticCurve, hashes.HashAlgorithm]] = {
    "P-256": (ec.SECP256R1(), hashes.SHA256()),
    "P-384": (ec.SECP384R1(), hashes.SHA384()),
    "P-521": (ec.SECP521R1(), hashes.SHA512()),
}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "m.ingot"
    write_bundle(tiny_contents(), path, tree_entry)
    return path


def key_file(
    path: Path, curve: ec.EllipticCurve, password: bytes | None = None
) -> ec.EllipticCurvePrivateKey:
    private = ec.derive_private_key(12345, curve)
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    return private


def read(path: Path) -> tuple[dict[str, Any], bytes, dict[str, Any]]:
    whole = json.loads(path.read_bytes())
    payload = base64.b64decode(whole["dsseEnvelope"]["payload"])
    return whole, payload, json.loads(payload)


@pytest.mark.parametrize("name", CURVES)
def test_what_is_written(bundle: Path, tmp_path: Path, name: str, capsys: Output) -> None:
    """The envelope is signed by the key, with the hash that goes with its curve; the statement has
    the digest of the file; a second time gives the same bytes; the bundle stays as it is."""
    curve, algorithm = CURVES[name]
    private = key_file(tmp_path / "ec.pem", curve)
    before = bundle.read_bytes()
    line = ["sign", str(bundle), "--key", str(tmp_path / "ec.pem"), "--sigstore"]
    assert main([*line, "--json"]) == 0
    told = checked("sign", capsys.readouterr().out)
    output = tmp_path / "m.ingot.sigstore.json"
    whole, payload, statement = read(output)
    assert told["output"] == str(output)
    assert whole["verificationMaterial"]["publicKey"]["hint"] == told["key"]
    (resource,) = statement["predicate"]["resources"]
    assert resource["digest"] == hashlib.sha256(before).hexdigest()
    whole_digest = hashlib.sha256(hashlib.sha256(before).digest()).hexdigest()
    assert statement["subject"] == [{"digest": {"sha256": whole_digest}, "name": "m.ingot"}]
    (signature,) = whole["dsseEnvelope"]["signatures"]
    message = b"DSSEv1 28 application/vnd.in-toto+json %d " % len(payload) + payload
    proof = base64.b64decode(signature["sig"])
    private.public_key().verify(proof, message, ec.ECDSA(algorithm))
    assert main([*line, "-o", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again").read_bytes() == output.read_bytes()
    assert bundle.read_bytes() == before


def test_an_encrypted_key(bundle: Path, tmp_path: Path) -> None:
    """Its password is in a file; without, it is refused."""
    key_file(tmp_path / "ec.pem", ec.SECP256R1(), PASSWORD)
    (tmp_path / "password").write_bytes(PASSWORD + b"\n")
    line = ["sign", str(bundle), "--key", str(tmp_path / "ec.pem"), "--sigstore"]
    assert main(line) == 1
    assert main([*line, "--password-file", str(tmp_path / "password")]) == 0


def test_other_keys_are_refused(bundle: Path, tmp_path: Path, capsys: Output) -> None:
    """Ed25519, a curve that verifiers do not take, no key at all."""
    owner = Owner(tmp_path, "alice", 1)
    key_file(tmp_path / "k1.pem", ec.SECP256K1())
    for path in (owner.secret, tmp_path / "k1.pem"):
        assert main(["sign", str(bundle), "--key", str(path), "--sigstore"]) == 1
        assert "P-256, P-384 and P-521 alone, no Ed25519" in capsys.readouterr().err
    assert main(["sign", str(bundle), "--key", str(bundle), "--sigstore"]) == 1
    assert not (tmp_path / "m.ingot.sigstore.json").exists()


def test_options_that_do_not_fit(bundle: Path, tmp_path: Path, capsys: Output) -> None:
    """That form has no end, and no command; certificates are for it alone."""
    key_file(tmp_path / "ec.pem", ec.SECP256R1())
    line = ["sign", str(bundle), "--key", str(tmp_path / "ec.pem"), "--sigstore"]
    for more in (["--expires", "2099-01-01"], ["--detached"], ["--public-key", "x"]):
        assert main([*line, *more]) == 1
        assert more[0] in capsys.readouterr().err
    assert main(["sign", str(bundle), "--sigstore"]) == 1
    assert main([*line[:-1], "--certificates", str(tmp_path / "ec.pem")]) == 1
    assert "add --sigstore" in capsys.readouterr().err
    assert main([*line, "--certificates", str(tmp_path / "ec.pem")]) == 1
    assert "cannot read the certificates" in capsys.readouterr().err
