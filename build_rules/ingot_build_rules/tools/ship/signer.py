"""Who signs: an Ed25519 key in a PEM file, or a command that asks a token or a service.

In: a file, a command. Out: ``Signer``: its public key, and signatures by it. Not done here: what is
signed (``statement``), public keys (``ingot_runtime.loader.public_keys``).
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ingot_compiler.ir.errors import UserError
from ingot_runtime.lazy_dataclass import dataclass
from ingot_runtime.loader.ed25519 import verify
from ingot_runtime.loader.public_keys import read_key, read_small
from ingot_runtime.option_ref import OptionRef

_SIGNATURE_BYTES = 64
_MADE_BY = "`openssl genpkey -algorithm ed25519 -out F` makes one"


@dataclass(frozen=True, slots=True)
class Signer:
    """``key``: the 32 bytes of the public key. ``sign`` gives 64 bytes."""

    key: bytes
    sign: Callable[[bytes], bytes]


def signer_of_file(path: str, password_file: str | None) -> Signer:
    """The owner of a private key in a PEM file (PKCS 8); ``password_file``: of an encrypted one.

    Raises:
        InputError: the file cannot be read. UserError: it holds no such key.
    """
    password = None if password_file is None else read_small(password_file).rstrip(b"\r\n")
    content = read_small(path)
    try:
        private = load_pem_private_key(content, password)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        why = "expected a private key of Ed25519, and the password of an encrypted one"
        raise UserError("cannot read the private key", path, why, _MADE_BY) from error
    if not isinstance(private, Ed25519PrivateKey):
        why = "expected a private key of Ed25519, got one of another kind"
        raise UserError("cannot sign with this key", path, why, _MADE_BY)
    return Signer(private.public_key().public_bytes_raw(), private.sign)


def signer_of_command(command: str, public_key: str) -> Signer:
    """The owner of ``public_key``, whom ``command`` asks: it is given the message on its standard
    input and gives the 64 bytes of the signature on its standard output.

    Raises:
        InputError: no public key.
    """
    key = read_key(public_key)

    def sign(message: bytes) -> bytes:
        return _signed_by(shlex.split(command), key, message)

    return Signer(key, sign)


def _signed_by(words: list[str], key: bytes, message: bytes) -> bytes:
    where = ("option ", OptionRef("command"))
    do = "try it by hand: docs/shipping.md says what it must do"
    try:
        done = subprocess.run(words, input=message, stdout=subprocess.PIPE, check=False)
    except (OSError, ValueError, IndexError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UserError("cannot run the command that signs", where, why, do) from error
    if done.returncode:
        why = f"it ended with {done.returncode}"
        raise UserError("the command that signs failed", where, why, do)
    if len(done.stdout) != _SIGNATURE_BYTES or not verify(key, message, done.stdout):
        owner = (" bytes by the owner of ", OptionRef("public-key"))
        why = (f"expected {_SIGNATURE_BYTES}", *owner, f", got {len(done.stdout)} bytes")
        raise UserError("the command gave no signature by this key", where, why, do)
    return done.stdout
