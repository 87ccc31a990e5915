"""Signatures: made by ``ingot sign``, asked for by ``verify`` and ``load``; refused in every way in
which one can be wrong."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.json_schemas import checked

import ingot_runtime
from ingot_artifacts.bundle.rewrite import Changes, rewrite_bundle
from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.errors import InputError, SignatureError
from ingot_runtime.format import header as head
from ingot_runtime.format.source import Source
from ingot_runtime.format.statement import parts_digest, signed_in
from ingot_runtime.loader import ed25519
from ingot_runtime.loader.signatures import require_signed

Output = pytest.CaptureFixture[str]
NOW_SECONDS = 1_800_000_000  # in January 2027


class Owner:
    """A pair of keys, in files."""

    def __init__(self, folder: Path, name: str, seed: int) -> None:
        self.private = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        self.raw = self.private.public_key().public_bytes_raw()
        self.secret, self.public = folder / f"{name}.pem", folder / f"{name}.pub"
        form = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        self.secret.write_bytes(self.private.private_bytes(*form))
        public = self.private.public_key()
        self.public.write_bytes(
            public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )


@pytest.fixture
def alice(tmp_path: Path) -> Owner:
    return Owner(tmp_path, "alice", 1)


@pytest.fixture
def bob(tmp_path: Path) -> Owner:
    return Owner(tmp_path, "bob", 2)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.ingot"
    write_bundle(tiny_contents(), path, tree_entry)
    return path


def sign(bundle: Path, owner: Owner, *options: str, code: int = 0) -> None:
    assert main(["sign", str(bundle), "--key", str(owner.secret), *options]) == code


def _not_read(_: Source) -> None:
    pytest.fail("the plan was read")


def refusal(bundle: Path, keys: list[Owner], now_seconds: float = NOW_SECONDS) -> SignatureError:
    with opened(bundle) as source, pytest.raises(SignatureError) as refused:
        require_signed(source, [owner.raw for owner in keys], now_seconds)
    return refused.value


def test_a_signed_bundle_loads_for_who_trusts_the_key(bundle: Path, alice: Owner) -> None:
    """The key as a file, its content, bytes and digits; the bundle also loads without a question."""
    sign(bundle, alice)
    for key in (
        alice.public,
        str(alice.public),
        alice.public.read_bytes(),
        alice.raw,
        alice.raw.hex(),
    ):
        ingot_runtime.load(bundle, keys=[key]).close()
    ingot_runtime.load(bundle).close()
    ingot_runtime.load(bundle.read_bytes(), keys=[alice.raw]).close()


def test_no_code_is_mapped_of_what_is_not_signed(
    bundle: Path, alice: Owner, bob: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unsigned, and signed by another: refused with four parts, before the plan is read."""
    monkeypatch.setattr("ingot_runtime.load_bundle.read_plan", _not_read)
    with pytest.raises(SignatureError, match="the bundle is not signed") as refused:
        ingot_runtime.load(bundle, keys=[alice.public])
    assert refused.value.exit_code == 4
    assert all((refused.value.where, refused.value.why, refused.value.do))
    sign(bundle, bob)
    with pytest.raises(SignatureError, match="signed by a required key") as refused:
        ingot_runtime.load(bundle, keys=[alice.public])
    assert bob.raw.hex()[:16] in refused.value.why
    assert str(alice.public) in refused.value.why


def test_signing_again_replaces_the_own_signature_alone(
    bundle: Path, alice: Owner, bob: Owner
) -> None:
    """Two owners, each once; what is signed stays the same, and so do the bytes."""
    with opened(bundle) as source:
        before = parts_digest(source.sections)
    sign(bundle, alice)
    once = bundle.read_bytes()
    sign(bundle, alice)
    assert bundle.read_bytes() == once
    sign(bundle, bob)
    sign(bundle, alice)
    with opened(bundle) as source:
        assert {each.key for each in signed_in(source)} == {alice.raw, bob.raw}
        assert len(signed_in(source)) == 2
        assert parts_digest(source.sections) == before
    for owner in (alice, bob):
        ingot_runtime.load(bundle, keys=[owner.raw]).close()


def test_a_detached_signature_is_found_beside_the_bundle(
    bundle: Path, alice: Owner, bob: Owner, capsys: Output
) -> None:
    """The bundle keeps its bytes; the file is lines of DSSE, of several owners; one that is damaged
    is refused."""
    before, beside = bundle.read_bytes(), bundle.with_name("tiny.ingot.sig")
    sign(bundle, alice, "--detached", "--json")
    assert checked("sign", capsys.readouterr().out)["signature_count"] == 1
    sign(bundle, bob, "--detached")
    sign(bundle, alice, "--detached")
    assert bundle.read_bytes() == before
    lines = beside.read_text().splitlines()
    assert [set(json.loads(line)) for line in lines] == [
        {"payload", "payloadType", "signatures"}
    ] * 2
    for owner in (alice, bob):
        ingot_runtime.load(bundle, keys=[owner.raw]).close()
    for damaged in ("{}", "[", lines[0].replace("keyid", "key"), lines[0][:-40], "[" * 100_000):
        beside.write_text(damaged)
        with pytest.raises(ingot_runtime.FormatError, match=r"not a signature|payload"):
            ingot_runtime.load(bundle, keys=[alice.raw])


def test_a_signature_ends_with_its_last_day(bundle: Path, alice: Owner) -> None:
    """It counts until midnight (UTC), and not after."""
    sign(bundle, alice, "--expires", "2027-06-30")
    with opened(bundle) as source:
        (signed,) = signed_in(source)
        assert require_signed(source, [alice.raw], signed.expires - 1) == [alice.raw.hex()]
    assert signed.expires == 1_814_400_000
    assert "expired" in refusal(bundle, [alice], signed.expires).why


@pytest.mark.parametrize("at", [0, 31, 32, 63, 64, 95, -50, -1])
def test_a_changed_bit_of_a_signature_is_refused(bundle: Path, alice: Owner, at: int) -> None:
    """In the key it is another's, in the proof or the payload it is wrong."""
    sign(bundle, alice)

    def flip(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[at] ^= 1
        return bytes(changed)

    _change_signature(bundle, flip)
    why = refusal(bundle, [alice]).why
    assert ("is wrong" in why) == (at not in (0, 31))


@pytest.mark.parametrize("size", [0, 95, 96, 200])
def test_a_truncated_signature_is_refused(bundle: Path, alice: Owner, size: int) -> None:
    """Whatever is left of it; also where nobody asks, `verify` names it."""
    sign(bundle, alice)
    _change_signature(bundle, lambda data: data[:size])
    with pytest.raises(ingot_runtime.FormatError, match=r"signature|statement"):
        ingot_runtime.load(bundle, keys=[alice.raw])
    assert main(["verify", str(bundle)]) == 4


def test_a_signature_of_another_bundle_is_refused(
    bundle: Path, alice: Owner, tmp_path: Path
) -> None:
    """A section that was right elsewhere does not make a bundle signed."""
    other = tmp_path / "other.ingot"
    write_bundle(tiny_contents(seed=1), other, tree_entry)
    sign(other, alice)
    with opened(other) as source:
        section = source.section(head.SIGNATURE)
    with opened(bundle) as source:
        rewrite_bundle(source, Changes({(head.SIGNATURE, 0): section}), bundle)
    assert "is of another bundle" in refusal(bundle, [alice]).why


def test_any_changed_section_makes_the_signature_one_of_another_bundle(
    bundle: Path, alice: Owner
) -> None:
    """Every kind of section is signed, although its digest in the table was made to agree."""
    sign(bundle, alice)
    with opened(bundle) as source:
        rows = [row for row in source.sections if row.kind not in (head.SIGNATURE, head.WEIGHTS)]
        assert len(rows) >= 6
        for row in rows:
            path = bundle.with_name("changed.ingot")
            data = source.read(row.offset, row.size_bytes) + b"\0"
            rewrite_bundle(source, Changes({(row.kind, row.id): data}), path)
            assert "is of another bundle" in refusal(path, [alice]).why


def _change_signature(bundle: Path, change: Callable[[bytes], bytes]) -> None:
    with opened(bundle) as source:
        payload = change(source.section(head.SIGNATURE))
        rewrite_bundle(source, Changes({(head.SIGNATURE, 0): payload}), bundle)


def test_a_policy_says_how_many_must_have_signed(
    bundle: Path, alice: Owner, bob: Owner, tmp_path: Path, capsys: Output
) -> None:
    """Both of two; paths count from the policy's folder; a digit string is a key."""
    policy = tmp_path / "policy.toml"
    policy.write_text(f'keys = ["alice.pub", "{bob.raw.hex()}"]\nrequired = 2\n')
    sign(bundle, alice)
    with pytest.raises(SignatureError, match="expected 2 of"):
        ingot_runtime.load(bundle, keys=policy)
    assert main(["verify", str(bundle), "--policy", str(policy)]) == 4
    sign(bundle, bob)
    ingot_runtime.load(bundle, keys=str(policy)).close()
    capsys.readouterr()
    assert main(["verify", str(bundle), "--policy", str(policy), "--json"]) == 0
    assert len(checked("verify", capsys.readouterr().out)["bundles"][0]["signed_by"]) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("keys = 1", "list of paths"),
        ("keys = []", "at least one"),
        ('keys = ["alice.pub"]\nrequired = 2', "1 to 1"),
        ('keys = ["alice.pub"]\nrequird = 1', "requird"),
        ("keys", "Expected"),
        pytest.param("x = " + "[" * 5000, "recursion|nested", id="deep"),
    ],
)
def test_a_policy_that_is_none(text: str, why: str, alice: Owner, bundle: Path) -> None:
    """Each way to write one wrong is an error that says so."""
    policy = alice.public.with_name("policy.toml")
    policy.write_text(text)
    with pytest.raises(InputError, match=why):
        ingot_runtime.load(bundle, keys=policy)


@pytest.mark.parametrize(
    "key", [b"\1" + bytes(31), b"x", "ab" * 31, bytes(32), b"-----BEGIN PUBLIC KEY-----"]
)
def test_a_key_that_is_none(key: str | bytes, bundle: Path) -> None:
    """Wrong sizes, a missing file, half a PEM, points of small order: each an ``InputError``."""
    with pytest.raises(InputError):
        ingot_runtime.load(bundle, keys=[key])


def test_verify_asks_for_a_key(bundle: Path, alice: Owner, bob: Owner, capsys: Output) -> None:
    """Exit code 4 for what it has not signed, and the name of who has."""
    sign(bundle, alice)
    assert main(["verify", str(bundle), "--require-key", str(alice.public)]) == 0
    assert f"signed by {alice.public}" in capsys.readouterr().out
    assert main(["verify", str(bundle), "--require-key", str(bob.public)]) == 4
    keys = ["--require-key", str(bob.public), "--require-key", str(alice.public)]
    assert main(["verify", str(bundle), *keys]) == 0
    assert main(["verify", str(bundle), *keys, "--policy", "p.toml"]) == 1


def test_an_encrypted_key_and_its_password(bundle: Path, alice: Owner, tmp_path: Path) -> None:
    """It signs with the password of a file, and is refused without or with another."""
    form = Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"open")
    alice.secret.write_bytes(alice.private.private_bytes(*form))
    password = tmp_path / "password"
    password.write_text("wrong\n")
    sign(bundle, alice, code=1)
    sign(bundle, alice, "--password-file", str(password), code=1)
    password.write_text("open\n")
    sign(bundle, alice, "--password-file", str(password))


def test_a_command_signs_in_the_place_of_a_key(
    bundle: Path, alice: Owner, bob: Owner, tmp_path: Path, capsys: Output
) -> None:
    """It is given the message and gives 64 bytes; what it gives is checked, its failures are
    told."""
    script = tmp_path / "ask_token.py"
    script.write_text(
        "import sys\n"
        "from cryptography.hazmat.primitives.serialization import load_pem_private_key as load\n"
        "key = load(open(sys.argv[1], 'rb').read(), None)\n"
        "sys.stdout.buffer.write(key.sign(sys.stdin.buffer.read()))\n"
    )
    asked = ["sign", str(bundle), "--public-key", str(alice.public), "--command"]
    assert main([*asked, f"{sys.executable} {script} {bob.secret}"]) == 1
    assert "no signature by this key" in capsys.readouterr().err
    for command, words in (("false", "ended with 1"), ("/no/such", "No such file"), ("", "range")):
        assert main([*asked, command]) == 1
        assert words in capsys.readouterr().err
    assert main([*asked, f"{sys.executable} {script} {alice.secret}"]) == 0
    ingot_runtime.load(bundle, keys=[alice.raw]).close()


def test_what_cannot_sign(bundle: Path, alice: Owner, tmp_path: Path, capsys: Output) -> None:
    """A key of another kind, a public one, none, two; a day that is none; a program."""
    other, path = ec.generate_private_key(ec.SECP256R1()), tmp_path / "ec.pem"
    path.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    lines: list[tuple[list[str], str]] = [
        (["--key", str(path)], "of another kind"),
        (["--key", str(alice.public)], "cannot read the private key"),
        (["--key", str(tmp_path / "none")], "No such file"),
        ([], "who signs is not clear"),
        (["--key", str(alice.secret), "--command", "x"], "who signs is not clear"),
        (["--command", "x"], "who signs is not clear"),
        (["--key", str(alice.secret), "--expires", "soon"], "bad day"),
        (["--key", str(alice.secret), "--expires", "1960-01-01"], "before 1970"),
    ]
    for options, words in lines:
        assert main(["sign", str(bundle), *options]) == 1
        assert words in capsys.readouterr().err


def test_a_program_is_not_signed(bundle: Path, alice: Owner, capsys: Output) -> None:
    """Its own bytes are covered by nothing, so the bundle is signed before it is exported."""
    data, start = bundle.read_bytes(), 65536
    trailer = struct.pack("<QQ8s", start, len(data), b"\x8aINGOTX\n")
    bundle.write_bytes(b"\x7fELF".ljust(start, b"\0") + data + trailer)
    sign(bundle, alice, code=1)
    assert "a program cannot be signed" in capsys.readouterr().err


# RFC 8032, 7.1: secret key's owner, message, signature.
VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]
ORDER = 2**252 + 27742317777372353535851937790883648493
# Every point of small order, as bytes, and forms of them that are not the shortest.
SMALL = [
    bytes([1]) + bytes(31),
    bytes(32),
    bytes(31) + b"\x80",
    bytes([0xEC]) + b"\xff" * 30 + b"\x7f",
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85"),
    bytes([1]) + bytes(30) + b"\x80",
    bytes([0xED]) + b"\xff" * 30 + b"\x7f",
    bytes([0xEE]) + b"\xff" * 30 + b"\x7f",
    b"\xff" * 32,
]


@pytest.mark.parametrize(("key", "message", "signature"), VECTORS)
def test_ed25519_knows_the_vectors_of_its_standard(key: str, message: str, signature: str) -> None:
    """Each is accepted, and with any bit of key, message or signature changed refused, by us and by
    the library alike; a number S plus the order is no other form of it."""
    raw, text, proof = map(bytes.fromhex, (key, message, signature))
    for check in (ed25519.verify, ed25519.verify_here):
        assert check(raw, text, proof)
        assert not check(raw, text + b"x", proof)
        for at in (0, 100, 255, 256, 400, 511):
            changed = bytearray(proof)
            changed[at // 8] ^= 1 << at % 8
            assert not check(raw, text, bytes(changed))
        number = int.from_bytes(proof[32:], "little") + ORDER
        assert not check(raw, text, proof[:32] + number.to_bytes(32, "little"))
        assert not check(raw, text, proof[:32] + b"\xff" * 32)
    for size in (0, 32, 63, 65):
        assert not ed25519.verify(raw, text, (proof + b"\0")[:size])


def test_ed25519_refuses_keys_that_nobody_owns() -> None:
    """Small order, more than one form, no point of the curve, wrong sizes. With the neutral point
    anybody could sign: the equation holds."""
    assert ed25519.verify_here(SMALL[0], b"any", SMALL[0] + bytes(32))
    for key in SMALL:
        assert not ed25519.is_usable(key)
        assert not ed25519.verify(key, b"any", SMALL[0] + bytes(32))
    assert not ed25519.is_usable(bytes([2]) + bytes(31))
    assert not ed25519.is_usable(bytes(31))
    assert not ed25519.is_usable(bytes(33))


def test_ed25519_says_what_the_library_says(alice: Owner) -> None:
    """For messages of many sizes, right ones and wrong ones."""
    for size in range(0, 300, 23):
        message = bytes(range(256))[:size]
        proof = alice.private.sign(message)
        for given in (message, message + b"\0"):
            ours = ed25519.verify_here(alice.raw, given, proof)
            assert ours == ed25519.verify(alice.raw, given, proof) == (given == message)


def test_unknown_signatures_are_skipped_by_who_does_not_ask(bundle: Path, alice: Owner) -> None:
    """A loader from before the section takes a signed bundle: its row may be skipped."""
    sign(bundle, alice)
    with opened(bundle) as source:
        assert isinstance(source, Source)
        (row,) = [row for row in source.sections if row.kind == head.SIGNATURE]
    assert row.flags == head.OPTIONAL
    assert not row.is_required
