"""``ingot sign --sigstore`` beside sigstore's own program, in an environment of its own."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.unit.tools.test_sign_sigstore import CURVES, key_file

from ingot_artifacts.bundle.write import write_bundle
from ingot_build_rules.tools.cli.main import main

pytestmark = pytest.mark.packages
# Its release 1.1.1 imports pyOpenSSL without saying so.
PACKAGES = ("model-signing>=1.1,<2", "pyopenssl")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sigstore") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "-q", *PACKAGES], check=True)
    return folder / "bin" / "model_signing"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "m.ingot"
    write_bundle(tiny_contents(), path, tree_entry)
    return path


def accepts(program: Path, kind: str, bundle: Path, *options: str) -> bool:
    line = [str(program), "verify", kind, str(bundle), "--signature", f"{bundle}.sig", *options]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert (done.returncode == 0) == ("Verification succeeded" in done.stdout + done.stderr)
    return done.returncode == 0


@pytest.mark.parametrize("name", CURVES)
def test_by_a_key(program: Path, bundle: Path, tmp_path: Path, name: str) -> None:
    """It is accepted; not by another key, nor of another file."""
    curve, _ = CURVES[name]
    public = tmp_path / "ec.pub"
    private = key_file(tmp_path / "ec.pem", curve)
    form = Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(private.public_key().public_bytes(*form))
    line = ["sign", str(bundle), "--key", str(tmp_path / "ec.pem"), "--sigstore"]
    assert main([*line, "-o", f"{bundle}.sig"]) == 0
    assert accepts(program, "key", bundle, "--public_key", str(public))
    other = tmp_path / "other.pub"
    other.write_bytes(ec.derive_private_key(6, curve).public_key().public_bytes(*form))
    assert not accepts(program, "key", bundle, "--public_key", str(other))
    bundle.write_bytes(bundle.read_bytes() + b"?")
    assert not accepts(program, "key", bundle, "--public_key", str(public))


def certificate(
    name: str,
    public: ec.EllipticCurvePublicKey,
    issuer: str,
    by: ec.EllipticCurvePrivateKey,
    *,
    is_root: bool,
) -> bytes:
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    signs = {"key_cert_sign": is_root, "crl_sign": is_root}
    usage = x509.KeyUsage(
        digital_signature=not is_root,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
        **signs,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(public)
        .serial_number(1 + is_root)
        .not_valid_before(start)
        .not_valid_after(start + dt.timedelta(days=36500))
        .add_extension(x509.BasicConstraints(ca=is_root, path_length=None), critical=True)
        .add_extension(usage, critical=True)
    )
    return builder.sign(by, hashes.SHA256()).public_bytes(Encoding.PEM)


def test_by_a_certificate(program: Path, bundle: Path, tmp_path: Path) -> None:
    """It is accepted by who trusts the root, and by nobody else; a chain of another key is refused
    when it is signed."""
    root, stranger = (ec.derive_private_key(number, ec.SECP256R1()) for number in (7, 8))
    private = key_file(tmp_path / "ec.pem", ec.SECP256R1())
    for name, key in (("root", root), ("stranger", stranger)):
        made = certificate(name, key.public_key(), name, key, is_root=True)
        (tmp_path / f"{name}.pem").write_bytes(made)
    chain = tmp_path / "chain.pem"
    chain.write_bytes(certificate("us", private.public_key(), "root", root, is_root=False))
    line = ["sign", str(bundle), "--key", str(tmp_path / "ec.pem"), "--sigstore"]
    line += ["-o", f"{bundle}.sig", "--certificates"]
    assert main([*line, str(chain)]) == 0
    trusted = "--certificate_chain", str(tmp_path / "root.pem")
    assert accepts(program, "certificate", bundle, *trusted)
    trusted = "--certificate_chain", str(tmp_path / "stranger.pem")
    assert not accepts(program, "certificate", bundle, *trusted)
    assert main([*line, str(tmp_path / "root.pem")]) == 1
