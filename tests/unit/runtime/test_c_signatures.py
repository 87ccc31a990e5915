"""Signatures in the loader in C: the verdicts of the loader in Python on the same files, and the
same arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.c_loader import CBundle, LoaderError, Verdict, options
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.unit.runtime.test_signatures import ORDER, SMALL, Owner, sign

import ingot_runtime
from ingot_artifacts.bundle.rewrite import Changes, rewrite_bundle
from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.errors import BundleError
from ingot_runtime.format import header as head

SECTION = head.SIGNATURE, 0


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.ingot"
    write_bundle(tiny_contents(), path, tree_entry)
    return path


def same_verdict(bundle: Path, *keys: str) -> Verdict:
    """What both loaders say of a bundle, for who trusts these keys."""
    verdicts = [Verdict(), Verdict()]
    try:
        ingot_runtime.load(bundle, keys=list(keys)).close()
    except BundleError as error:
        verdicts[0] = Verdict.of(error)
    try:
        CBundle(bundle, options(keys=keys)).close()
    except LoaderError as error:
        verdicts[1] = error.verdict
    assert verdicts[0] == verdicts[1]
    return verdicts[0]


def replaced(bundle: Path, section: bytes) -> Path:
    path = bundle.with_name("changed.ingot")
    with opened(bundle) as source:
        rewrite_bundle(source, Changes({SECTION: section}), path)
    return path


def test_both_loaders_ask_for_a_signature(bundle: Path, tmp_path: Path) -> None:
    """Unsigned, signed by others, by one of them, by another than the first key; not asked for."""
    alice, bob = Owner(tmp_path, "alice", 1), Owner(tmp_path, "bob", 2)
    first, second = alice.raw.hex(), bob.raw.hex()
    assert same_verdict(bundle, first).what == "the bundle is not signed"
    sign(bundle, bob)
    assert same_verdict(bundle, first).what == "the bundle is not signed by a required key"
    for keys in ((second,), (first, second), (second.upper(),)):
        assert same_verdict(bundle, *keys) == Verdict()
    sign(bundle, alice)
    assert same_verdict(bundle, first) == Verdict()
    CBundle(bundle).close()


def test_a_thin_bundle_is_signed_with_the_whole(tmp_path: Path) -> None:
    """The digest of a part is one of several subjects."""
    alice, whole, part = Owner(tmp_path, "alice", 1), tmp_path / "w.ingot", tmp_path / "p.ingot"
    write_bundle(tiny_contents(targets=("x86-64-v2", "aarch64")), whole, tree_entry)
    sign(whole, alice)
    assert main(["thin", str(whole), "--target", "x86-64-v2", "-o", str(part)]) == 0
    assert same_verdict(part, alice.raw.hex()) == Verdict()


def flips(data: bytes) -> Iterator[bytes]:
    """A bit of key, R, S and of each piece of the payload."""
    for at in (0, 31, 32, 64, 95, *range(96, len(data), 97)):
        yield data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_statements_of_many_lengths(bundle: Path, tmp_path: Path) -> None:
    """Wherever in a block of SHA-512 the message ends, by its words, the signature counts."""
    alice = Owner(tmp_path, "alice", 1)
    sign(bundle, alice)
    with opened(bundle) as source:
        payload = source.section(*SECTION)[96:]
    for _ in range(16):
        head = f"DSSEv1 28 application/vnd.in-toto+json {len(payload)} ".encode()
        section = alice.raw + alice.private.sign(head + payload) + payload
        assert same_verdict(replaced(bundle, section), alice.raw.hex()) == Verdict()
        payload += bytes(8)


def test_both_refuse_what_is_wrong(bundle: Path, tmp_path: Path) -> None:
    """Changed bits, truncation, more behind, a number S beyond the order, an expired one, another
    bundle's: the same error with the same words."""
    alice = Owner(tmp_path, "alice", 1)
    key = alice.raw.hex()
    sign(bundle, alice)
    with opened(bundle) as source:
        good = source.section(*SECTION)
    number = int.from_bytes(good[64:96], "little") + ORDER
    other = tmp_path / "other.ingot"
    write_bundle(tiny_contents(seed=1), other, tree_entry)
    sign(other, alice)
    with opened(other) as source:
        foreign = source.section(*SECTION)
    wrong = [*flips(good), *(good[:size] for size in (0, 1, 96, 97, 150, 300, len(good) - 1))]
    wrong += [good + b"x", good[:64] + number.to_bytes(32, "little") + good[96:], foreign]
    wrong += [good.replace(b'"expires":0,', text) for text in (b'"expires":1,', b'"expires":,')]
    wrong += [good.replace(b'"name":"bundle"', b'"name":"\\""')]
    assert len(wrong) > 20
    for section in wrong:
        assert same_verdict(replaced(bundle, section), key) != Verdict()
    sign(bundle, alice, "--expires", "1999-12-31")
    assert same_verdict(bundle, key).kind == "SignatureError"
    sign(bundle, alice, "--expires", "2999-12-31")
    assert same_verdict(bundle, key) == Verdict()


def test_both_refuse_keys_that_are_none(bundle: Path, tmp_path: Path) -> None:
    """Small order, other forms, no point, and a text that is no key, which is a file's name: each an
    ``InputError`` of the same words."""
    alice = Owner(tmp_path, "alice", 1)
    sign(bundle, alice)
    for key in (*SMALL, bytes([2]) + bytes(31)):
        assert same_verdict(bundle, key.hex()).what == "a public key that nobody owns"
    for text in ("", "ab" * 31, "ab" * 33, "g" * 64):
        assert same_verdict(bundle, text).what == f"cannot read {text!r}"


def test_both_compute_alike(bundle: Path, tmp_path: Path) -> None:
    """Many keys: every one signs, and each is believed for itself alone."""
    owners = [Owner(tmp_path, f"o{seed}", seed) for seed in range(1, 6)]
    for owner, other in pairwise(owners):
        sign(bundle, owner)
        assert same_verdict(bundle, owner.raw.hex()) == Verdict()
        assert same_verdict(bundle, other.raw.hex()).kind == "SignatureError"
