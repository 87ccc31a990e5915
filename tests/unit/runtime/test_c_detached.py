"""Detached signatures and policies in the loader in C: the verdicts and the words of the loader in
Python on the same files."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.c_loader import CBundle, LoaderError, Verdict, options
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.tidy.source import ROOT
from tests.unit.runtime.test_signatures import Owner, sign

import ingot_runtime
from ingot_artifacts.bundle.rewrite import Changes, rewrite_bundle
from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_runtime.errors import BundleError
from ingot_runtime.format import header as head

MUTANT_COUNT = 400
EXPIRED = "--expires", "1999-12-31"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.ingot"
    write_bundle(tiny_contents(), path, tree_entry)
    return path


@pytest.fixture
def owners(tmp_path: Path) -> list[Owner]:
    return [Owner(tmp_path, name, seed) for seed, name in enumerate(("alice", "bob", "carol"), 1)]


def same_verdict(bundle: Path, *keys: str | Path, policy: str | Path = "") -> tuple[Verdict, str]:
    """What both loaders say, and why, where that is the signatures."""
    verdicts, reasons = [Verdict(), Verdict()], ["", ""]
    try:
        ingot_runtime.load(bundle, keys=policy or list(keys)).close()
    except BundleError as error:
        verdicts[0], reasons[0] = Verdict.of(error), error.why
    try:
        asked = options(keys=[str(key) for key in keys], policy=str(policy))
        CBundle(bundle, asked, sanitized=True).close()
    except LoaderError as error:
        verdicts[1], reasons[1] = error.verdict, error.why
    assert verdicts[0] == verdicts[1]
    if verdicts[0].kind == "SignatureError":
        assert reasons[0] == reasons[1]
    return verdicts[0], reasons[0]


@pytest.mark.broad
def test_a_signature_beside_the_bundle(bundle: Path, owners: list[Owner]) -> None:
    """It counts as one in the bundle does, from a link's place, too; each reason has its words."""
    alice, bob, carol = owners
    assert same_verdict(bundle, alice.public)[0].what == "the bundle is not signed"
    sign(bundle, alice, "--detached")
    assert same_verdict(bundle, alice.public) == (Verdict(), "")
    link = bundle.with_name("links") / "current.ingot"
    link.parent.mkdir()
    link.symlink_to(bundle)
    assert same_verdict(link, alice.raw.hex()) == (Verdict(), "")
    assert alice.raw.hex()[:16] in same_verdict(bundle, bob.public, carol.raw.hex())[1]
    sign(bundle, bob)
    assert ", " in same_verdict(bundle, carol.public)[1]
    assert same_verdict(bundle, bob.public, carol.public) == (Verdict(), "")
    sign(bundle, carol, "--detached", *EXPIRED)
    assert same_verdict(bundle, carol.public)[1].endswith("has expired")
    write_bundle(tiny_contents(seed=1), bundle, tree_entry)
    for asked in ([alice.public], [alice.public, carol.public], [carol.public, alice.public]):
        assert "is of another bundle" in same_verdict(bundle, *asked)[1]


def test_keys_that_cannot_be_read(bundle: Path, tmp_path: Path) -> None:
    """No file, a folder, a file that is too large, no key, half of one: the same words."""
    (tmp_path / "large").write_bytes(bytes(1 << 21))
    (tmp_path / "half").write_text("-----BEGIN PUBLIC KEY-----\nMCowBQ==\n-----END PUBLIC KEY-----")
    for name in ("none", "", "large", "half", "tiny.ingot"):
        assert same_verdict(bundle, tmp_path / name)[0].kind == "InputError"
    assert same_verdict(bundle, "ab" * 31)[0].what == f"cannot read {'ab' * 31!r}"


def _unpadded(text: str) -> str:
    """The text, without padding where it needs none: of that, versions of Python think otherwise."""
    digits = text.rstrip("=")
    return text if len(digits) % 4 else digits


def mutants(line: bytes) -> Iterator[bytes]:
    """Lines that are JSON in other ways, or not at all."""
    source, table = random.Random(5), json.loads(line)
    one = table["signatures"][0]
    yield json.dumps(table, indent=None, sort_keys=True).replace("/", "\\/").encode()
    yield b"\xef\xbb\xbf \t" + line + b" \r"
    yield line.replace(b'"payload"', b'"p\\u0061yload"')
    whole = "".join(f"\\u{ord(one):04x}" for one in "payloadType").encode()
    yield line.replace(b"payloadType", whole)
    yield line[:-1] + b',"' + whole + b'":"x"}'
    yield line + line
    yield line + b"\0"
    yield line[:-1] + b',"more":[{"a":[1.5e-3,-0,NaN,-Infinity]},null,true,"\\ud83d\\ude00\\n"]}'
    yield line[:-1] + b',"payloadType":"x"}'
    yield line[:-1] + b',"more":"\xff"}'
    yield line[:-1] + b',"more":"\xed\xa0\x80"}'
    yield line[:-1] + b',"more":' + b"1" * 5000 + b"}"
    yield from (line.decode().encode(form) for form in ("utf-16", "utf-16-le", "utf-32-be"))
    yield from (
        line[:-1] + b"," + text + b"}" for text in (b"", b"1", b'"a"', b'"a":01', b'"a":1.')
    )
    yield from (
        line[:-1] + b',"a":"' + text + b'"}' for text in (b"\n", b"\t", b"\\x", b"\\u12", b"\x7f")
    )
    changes: tuple[dict[str, object], ...] = (
        {"signatures": []}, {"signatures": [one, one]}, {"signatures": [1]}, {"signatures": [[]]},
        {"signatures": None}, {"signatures": {}}, {"signatures": ""}, {"payload": 1}, {"payloadType": "text"}, {"payloadType": 5},
        {"signatures": [{**one, "keyid": " ".join((one["keyid"][:2], one["keyid"][2:]))}]},
        {"signatures": [{**one, "keyid": one["keyid"].upper()}]},
        {"signatures": [{**one, "keyid": one["keyid"][1:]}]},
        {"signatures": [{**one, "keyid": ""}, one]}, {"signatures": [{**one, "sig": ""}]},
        {"signatures": [{"keyid": one["keyid"]}]}, {"signatures": [one, {}]},
    )  # fmt: skip
    for change in changes:
        yield json.dumps({**table, **change}).encode()
    for name in table:
        yield json.dumps({key: table[key] for key in table if key != name}).encode()
    for ending in ("=", "==", "A", "AA", "AAA", "A=", "AA=", "AA==", "AAA=", "\n", "A A"):
        payload, proof = (text.rstrip("=") + ending for text in (table["payload"], one["sig"]))
        yield json.dumps({**table, "payload": _unpadded(payload)}).encode()
        yield json.dumps({**table, "signatures": [{**one, "sig": _unpadded(proof)}]}).encode()
    yield from (b"[" * depth + b"]" * depth for depth in (3, 100_000))
    yield from (b"", b" \n\r\n", b"{}", b"null", b"[]", b'"payloadType"', b"{" + b'"a":{' * 50)
    for _ in range(MUTANT_COUNT):
        data = bytearray(line)
        for _ in range(source.randint(1, 2)):
            at = source.randrange(len(data))
            if source.random() < 0.3:
                del data[at : at + source.choice((1, 1, 4, 100))]
            else:
                data[at] = (
                    source.choice(b'{}[]",:\\=A0 \n/') if source.random() < 0.6 else data[at] ^ 1
                )
        yield bytes(data)


def test_damaged_files_of_signatures(bundle: Path, owners: list[Owner]) -> None:
    """Whatever is in the file beside the bundle gets the same verdict in the same words."""
    beside, alice = bundle.with_name(bundle.name + ".sig"), owners[0]
    sign(bundle, alice, "--detached")
    good = beside.read_bytes().rstrip(b"\n")
    kinds: set[str] = set()
    for data in mutants(good):
        beside.write_bytes(data)
        kinds.add(same_verdict(bundle, alice.public)[0].kind)
    assert kinds == {"", "FormatError", "SignatureError"}
    beside.write_bytes(bytes(1 << 21))
    assert same_verdict(bundle, alice.public)[0].kind == "InputError"
    beside.unlink()
    os.mkdir(beside)
    assert same_verdict(bundle, alice.public)[0].kind == "InputError"


def test_a_policy_says_how_many(bundle: Path, owners: list[Owner], tmp_path: Path) -> None:
    """Both of two, in the bundle and beside it; paths count from the policy's folder."""
    alice, bob, _ = owners
    policy = tmp_path / "policy.toml"
    policy.write_text(f'keys = ["alice.pub", "{bob.raw.hex()}"]\nrequired = 2\n')
    sign(bundle, alice)
    assert same_verdict(bundle, policy=policy)[1].startswith("expected 2 of ")
    sign(bundle, bob, "--detached")
    assert same_verdict(bundle, policy=policy) == (Verdict(), "")
    policy.write_text(f"keys = ['{alice.public}', \"alice.pub\"]\nrequired = 2")
    assert same_verdict(bundle, policy=policy)[0].what == "not a policy"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            "# who\n\nkeys = [ # these\n  'alice.pub',\t\"bob.pub\", # both\n]\nrequired = +1 # one\n",
            "",
        ),
        ('required = 1\r\nkeys = ["al\\u0069ce.pub"]\r\n', ""),
        ('keys=["alice.pub"]', ""),
        ('keys = ["alice.pub",,]', "not a policy"),
        ('keys = ["alice.pub" "bob.pub"]', "not a policy"),
        ('keys = ["alice.pub"', "not a policy"),
        ('keys = ["alice.pub]', "not a policy"),
        ('keys = ["alice\n.pub"]', "not a policy"),
        ("keys = ['alice\n.pub']", "not a policy"),
        ('keys = ["alice.pub"] required = 1', "not a policy"),
        ('keys = ["alice.pub"]\nkeys = ["bob.pub"]', "not a policy"),
        ('keys = ["alice.pub"]\nrequired = 1\nrequired = 1', "not a policy"),
        ('keys = ["alice.pub"]\nrequired = 0', "not a policy"),
        ('keys = ["alice.pub"]\nrequired = 01', "not a policy"),
        ('keys = ["alice.pub"]\nrequired = -1', "not a policy"),
        ('keys = ["alice.pub"]\nrequired = true', "not a policy"),
        ('keys = ["alice.pub"]\nrequired = "1"', "not a policy"),
        ('keys = ["alice.pub"]\nrequired = 99999999999999999999', "not a policy"),
        ('keys = ["alice.pub"]\nrequird = 1\nother = [1, "a"]', "not a policy"),
        ('keys = ["alice.pub"]\n[table]\n', "not a policy"),
        ('keys = ["alice.pub", 1]', "not a policy"),
        ("keys = 1", "not a policy"),
        ('keys = "alice.pub"', "not a policy"),
        ("keys = []", "no keys"),
        ("keys", "not a policy"),
        ("= 1", "not a policy"),
        ("", "not a policy"),
        ('keys = ["alice.pub"]\0', "not a policy"),
        ('keys = [".\\/alice.pub"]', "not a policy"),
        ('keys = ["alice.pub"] # \x01', "not a policy"),
        ('keys = [ # \x7f\n"alice.pub"]', "not a policy"),
        ('keys =\r["alice.pub"]', "not a policy"),
        ('keys = ["none\x7f.pub"]', "not a policy"),
        ("keys = ['none\x01.pub']", "not a policy"),
        ('keys = ["none\\ud800.pub"]', "not a policy"),
        ('keys = ["none\\ud83d\\ude00.pub"]', "not a policy"),
        ('keys = ["none\\U00110000.pub"]', "not a policy"),
        ('keys = ["\\U00000061lice.pub"]', ""),
        ('keys = ["none\t\\n\\r\\u0001\\u007f.pub"]', "cannot read"),
        ('keys = ["odd.pub"]', "not a public key"),
        ('keys = ["behind.pub"]', "not a public key"),
        ('keys = ["none.pub"]', "cannot read"),
        ('keys = ["alice.pem"]', "not a public key"),
        pytest.param(f"x = {'[' * 5000}{']' * 5000}", "not a policy", id="deep"),
        (f'keys = ["{"00" * 32}"]', "a public key that nobody owns"),
    ],
)
def test_policies_are_read_alike(
    bundle: Path, owners: list[Owner], tmp_path: Path, text: str, what: str
) -> None:
    """Good ones and bad ones: the same verdict."""
    sign(bundle, owners[0])
    key = owners[0].public.read_bytes()
    (tmp_path / "odd.pub").write_bytes(key.replace(b"MCow", b"M\x1cCo\xa0w"))
    (tmp_path / "behind.pub").write_bytes(b"\0" + key)
    (tmp_path / "policy.toml").write_bytes(text.encode())
    found = same_verdict(bundle, policy=tmp_path / "policy.toml")[0].what
    assert found.startswith(what) if what else not found


def _of_section(change: Callable[[bytes], bytes]) -> Callable[[Path, list[Owner]], None]:
    """Sign as Alice, and change the section."""

    def make(bundle: Path, owners: list[Owner]) -> None:
        sign(bundle, owners[0])
        with opened(bundle) as source:
            changed = change(source.section(head.SIGNATURE, 0))
            rewrite_bundle(source, Changes({(head.SIGNATURE, 0): changed}), bundle)

    return make


def _signed(*names: str, options: tuple[str, ...] = ()) -> Callable[[Path, list[Owner]], None]:
    def make(bundle: Path, owners: list[Owner]) -> None:
        for owner in owners:
            if owner.secret.stem in names:
                sign(bundle, owner, *options)

    return make


def _of_another(bundle: Path, owners: list[Owner]) -> None:
    sign(bundle, owners[0], "--detached")
    write_bundle(tiny_contents(seed=1), bundle, tree_entry)


ANY, BOTH, ALL = "any", "both", "all"  # of Alice and Bob, of three
ASKED: dict[str, tuple[Callable[[Path, list[Owner]], None], str, str, str]] = {
    "nobody": (_signed(), ANY, "SignatureError", "expected "),
    "alice": (_signed("alice"), ANY, "", ""),
    "carol alone": (_signed("carol"), ANY, "SignatureError", "; signed by "),
    "one of two": (_signed("alice"), BOTH, "SignatureError", "expected 2 of "),
    "two of two": (_signed("alice", "bob"), BOTH, "", ""),
    "two, and one who is not asked": (_signed("alice", "bob", "carol"), BOTH, "", ""),
    "two of three": (_signed("alice", "carol"), ALL, "SignatureError", "expected 3 of "),
    "expired": (_signed("alice", options=EXPIRED), ANY, "SignatureError", "has expired"),
    "one of two expired": (_signed("bob", options=EXPIRED), BOTH, "SignatureError", "has expired"),
    "until the last day": (_signed("alice", options=("--expires", "9999-12-31")), ANY, "", ""),
    "of another bundle": (_of_another, ANY, "SignatureError", "is of another bundle"),
    "empty": (_of_section(lambda _: b""), ANY, "FormatError", ""),
    "no statement": (_of_section(lambda data: data[:96]), ANY, "FormatError", ""),
    "half a statement": (_of_section(lambda data: data[:150]), ANY, "FormatError", ""),
    "cut at its end": (_of_section(lambda data: data[:-1]), ANY, "SignatureError", "is wrong"),
    "longer": (_of_section(lambda data: data + b" "), ANY, "SignatureError", "is wrong"),
    "too long": (_of_section(lambda data: data + bytes(1 << 20)), ANY, "FormatError", ""),
    "wrong": (
        _of_section(lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:]),
        ANY, "SignatureError", "is wrong",
    ),
    "another key": (
        _of_section(lambda data: bytes(32) + data[32:]), ANY, "SignatureError", "signed by 00000000",
    ),
    "S beyond the order": (
        _of_section(lambda data: data[:64] + b"\xff" * 32 + data[96:]), ANY, "SignatureError", "is wrong",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ASKED)
def test_who_must_have_signed(bundle: Path, owners: list[Owner], tmp_path: Path, case: str) -> None:
    """By keys, where one is enough, and by a policy: the same verdict in the same words."""
    make, asked, kind, why = ASKED[case]
    make(bundle, owners)
    names = ["alice.pub", "bob.pub", *["carol.pub"] * (asked == ALL)]
    (tmp_path / "p.toml").write_text(
        f"keys = {json.dumps(names)}\nrequired = {[ANY, BOTH, ALL].index(asked) + 1}"
    )
    verdict, found = same_verdict(bundle, policy=tmp_path / "p.toml")
    assert verdict.kind == kind
    assert why in found
    if asked == ANY:
        assert same_verdict(bundle, *(tmp_path / name for name in names)) == (verdict, found)


def test_a_policy_of_many_keys(bundle: Path, owners: list[Owner], tmp_path: Path) -> None:
    """Each path counts from the policy's folder, however many were read before it."""
    sign(bundle, owners[0])
    names = ["bob.pub"] * 70 + ["alice.pub"]
    (tmp_path / "policy.toml").write_text(f"keys = {json.dumps(names)}")
    assert same_verdict(bundle, policy=tmp_path / "policy.toml") == (Verdict(), "")


def test_a_policy_names_files_of_keys(
    bundle: Path, owners: list[Owner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What such a file holds is a key for a caller in C alone: in a policy it is a path."""
    sign(bundle, owners[0])
    content = owners[0].public.read_text().replace("\n", " ")
    CBundle(bundle, options(keys=[content]), sanitized=True).close()
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text(f"keys = {json.dumps([content])}")
    for policy in ("p.toml", "./p.toml"):
        assert same_verdict(bundle, policy=policy)[0].what.startswith("cannot read '")


@pytest.mark.parametrize("where", ["bundle", "policy", "key", "link"])
def test_paths_of_more_than_a_thousand_bytes(
    bundle: Path, owners: list[Owner], tmp_path: Path, where: str
) -> None:
    """Of a bundle, also behind a link, of a policy and of a key: the file is the one that is named."""
    sign(bundle, owners[0], "--detached")
    deep = tmp_path.joinpath(*["d" * 200] * 6)
    deep.mkdir(parents=True)
    policy = tmp_path / "policy.toml"
    name = "./" * 600 + "alice.pub" if where == "key" else "alice.pub"
    policy.write_text(f"keys = {json.dumps([name])}")
    if where == "policy":
        owners[0].public.rename(deep / name)
        policy = policy.rename(deep / policy.name)
    if where in ("bundle", "link"):
        bundle.with_name(bundle.name + ".sig").rename(deep / (bundle.name + ".sig"))
        bundle = bundle.rename(deep / bundle.name)
    if where == "link":
        (tmp_path / "link.ingot").symlink_to(bundle)
        bundle = tmp_path / "link.ingot"
    assert same_verdict(bundle, policy=policy) == (Verdict(), "")


def test_a_policy_and_keys(bundle: Path, owners: list[Owner], tmp_path: Path) -> None:
    """Both at once are refused; so are a policy that is not there, and one that is no text."""
    with pytest.raises(LoaderError, match="a policy and keys"):
        CBundle(bundle, options(keys=[owners[0].raw.hex()], policy="p.toml"), sanitized=True)
    (tmp_path / "bytes.toml").write_bytes(b'keys = ["alice.pub"] # \xff')
    for name in ("none.toml", "bytes.toml", "."):
        assert same_verdict(bundle, policy=tmp_path / name)[0].kind == "InputError"


@pytest.mark.native
@pytest.mark.gcc
def test_damaged_files_under_the_address_sanitizer(
    bundle: Path, owners: list[Owner], tmp_path: Path
) -> None:
    """The command, by Debian's gcc: whatever is in a policy and beside the bundle, no report."""
    compiler = shutil.which("gcc")
    assert compiler, "this test needs gcc: apt-get install gcc"
    checked, beside, policy = tmp_path / "run", tmp_path / "tiny.ingot.sig", tmp_path / "p.toml"
    flags = "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"
    source = ROOT / "runtime" / "c" / "run.c"
    line: list[str | Path] = [compiler, "-std=c11", *flags, source, "-o", checked, "-lpthread"]
    subprocess.run(line, check=True)
    sign(bundle, owners[0], "--detached")
    good, text = beside.read_bytes(), b'keys = ["alice.pub", "bob.pub"]\nrequired = 1\n'
    codes: set[int] = set()
    for data in mutants(good.rstrip(b"\n")):
        beside.write_bytes(data)
        policy.write_bytes(text)
        codes.add(_described(checked, bundle, policy))
    beside.write_bytes(good)
    source_of_bits = random.Random(1)
    for _ in range(MUTANT_COUNT // 4):
        at = source_of_bits.randrange(len(text))
        policy.write_bytes(text[:at] + source_of_bits.randbytes(1) + text[at + 1 :])
        codes.add(_described(checked, bundle, policy))
    assert codes == {0, 1, 4}


def _described(program: Path, bundle: Path, policy: Path) -> int:
    line: list[str | Path] = [program, bundle, "--describe", "--policy", policy]
    done = subprocess.run(line, env={}, capture_output=True, check=False)
    assert b"Sanitizer" not in done.stderr, done.stderr.decode(errors="replace")[:2000]
    assert b"runtime error" not in done.stderr, done.stderr.decode(errors="replace")[:2000]
    return done.returncode
