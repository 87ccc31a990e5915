"""Ed25519 of both loaders on Wycheproof's vectors: edge values, other encodings, truncated and longer
signatures, keys of small and of mixed order."""

from __future__ import annotations

import json
import struct
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from tests.tidy.source import ROOT
from tests.unit.runtime.test_c_pieces import SANITIZERS, compiled

from ingot_runtime.loader.ed25519 import is_usable, verify, verify_here

_FILE = ROOT / "tests" / "unit" / "vectors" / "wycheproof_ed25519.json"
_SIGNATURE_BYTES = 64


@dataclass(frozen=True, slots=True)
class Vector:
    """A signature, and whether it must count. Where verifiers may choose, FORMAT.md does: a key of
    small order is nobody's, one of mixed order is somebody's."""

    key: bytes
    signature: bytes
    message: bytes
    is_good: bool


@cache
def vectors() -> tuple[Vector, ...]:
    """All of them, with our choice."""
    found: list[Vector] = []
    for result, flag, *texts in json.loads(_FILE.read_text(encoding="utf-8"))["tests"]:
        assert result in {"valid", "invalid", "acceptable"}
        assert result != "acceptable" or flag in {"SmallOrderPublicKey", "MixedOrderPublicKey"}
        key, signature, message = (bytes.fromhex(text) for text in texts)
        good = result == "valid" or (result == "acceptable" and flag == "MixedOrderPublicKey")
        found.append(Vector(key, signature, message, good))
    return tuple(found)


def test_python_agrees_with_the_vectors() -> None:
    """By the loader's own arithmetic, and by a library where one is imported."""
    assert len(vectors()) == 210
    for one in vectors():
        here = len(one.signature) == _SIGNATURE_BYTES and is_usable(one.key)
        assert (here and verify_here(one.key, one.message, one.signature)) == one.is_good
        assert verify(one.key, one.message, one.signature) == one.is_good


@pytest.mark.native
@pytest.mark.gcc
def test_c_agrees_with_the_vectors(tmp_path: Path) -> None:
    """Those whose signature has 64 bytes: no interface of the loader in C takes another size."""
    program = compiled(tmp_path, *SANITIZERS)
    asked = [one for one in vectors() if len(one.signature) == _SIGNATURE_BYTES]
    assert len(asked) == 198
    records = b"".join(
        one.key + one.signature + struct.pack("<I", len(one.message)) + one.message for one in asked
    )
    done = subprocess.run([program, "ed25519"], input=records, capture_output=True, check=True)
    assert done.stderr == b""
    assert done.stdout.split() == [b"good" if one.is_good else b"bad" for one in asked]
