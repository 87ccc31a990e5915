"""Policies and signatures by chance, as people and attackers write them: the loader in C says of
each what the one in Python says, under both sanitizers."""

from __future__ import annotations

import base64
import collections
import json
import random
import re
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.c_loader import Verdict
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.tidy.source import ROOT
from tests.unit.runtime.test_c_native import SANITIZERS
from tests.unit.runtime.test_signatures import Owner, sign

import ingot_runtime
from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.tools.export.abi_header import error_kinds
from ingot_runtime.errors import BundleError
from ingot_runtime.format.statement import HEAD, MIDDLE, PAYLOAD_TYPE, SUBJECT, parts_digest

pytestmark = [pytest.mark.native, pytest.mark.gcc]
RECORD_COUNT = 500  # of one process
COUNTS = (600, pytest.param(50_000, marks=pytest.mark.slow))
OTHER_DIGEST = "0" * 64
ENDS = (
    "0", "1", "253402300799", "253402300800", "999999999999999", "1000000000000000", "01", "-1", "1.5",
    "null", '"9999-12-31"', "18446744073709551616", "",
)  # fmt: skip
SUBJECT_NAMES = ("", "tiny.ingot", "~ !#[]", 'a"b', "a\\", "\x7f", "\xe9", "a" * 2000)


class Found:
    """What a loader says: the verdict; why, of signatures."""

    def __init__(self, verdict: Verdict, why: str) -> None:
        self.verdict = verdict
        self.said = verdict, why if verdict.kind == "SignatureError" else ""


def statement(source: random.Random, digest: str) -> bytes:
    """What somebody signed: mostly in the form in which it counts."""
    count = source.choice((1,) * 9 + (2, 2, 3, 3, 0))
    subjects = [
        SUBJECT % (source.choice((digest, digest, OTHER_DIGEST)), source.choice(SUBJECT_NAMES[:3]))
        for _ in range(count)
    ]
    text = source.choice((",",) * 20 + ("", ", ", ",,")).join(subjects)
    text += source.choice(("",) * 30 + (",",))
    if source.random() < 0.1:
        text = SUBJECT % (
            source.choice((digest.upper(), digest[1:], digest)),
            source.choice(SUBJECT_NAMES),
        )
    end = source.choice(ENDS if source.random() < 0.2 else ENDS[:3])
    payload = HEAD + text + MIDDLE + end + source.choice((",",) * 30 + (", ", "}")) + '"x":1}}'
    data = bytearray(payload.encode("latin-1"))
    if source.random() < 0.05:
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    return bytes(data[: source.choice((len(data),) * 50 + (source.randrange(len(data)),))])


def signed(source: random.Random, owner: Owner, payload: bytes) -> dict[str, object]:
    """A signature in an envelope, by that owner or not quite."""
    head = f"DSSEv1 {len(PAYLOAD_TYPE)} {PAYLOAD_TYPE} {len(payload)} ".encode()
    proof = bytearray(owner.private.sign(head + payload))
    if source.random() < 0.15:
        proof[source.randrange(64)] ^= 1 << source.randrange(8)
    key = owner.raw.hex()
    texts = (
        key,
        key.upper(),
        f" {key[:2]} {key[2:]}\n",
        key[:-1],
        key[2:],
        key + "00",
        "",
        5,
        None,
    )
    sizes = (64,) * 60 + (63, 65, 0)
    size = source.choice(sizes)
    data = base64.b64encode(bytes(proof[:size]).ljust(size, b"\0")).decode()
    one: dict[str, object] = {"keyid": source.choice((key,) * 150 + texts), "sig": data}
    if source.random() < 0.02:
        one["sig"] = source.choice(
            (
                data[:-1],
                "=" + data,
                data[:4] + "=" + data[4:],
                "",
                [],
                data + "\n",
                data[:9] + "-" + data[10:],
            )
        )
    if source.random() < 0.02:
        one.pop(source.choice(("keyid", "sig")))
    return one


def envelope(source: random.Random, owners: Sequence[Owner], digest: str) -> bytes:
    """A line of signatures."""
    payload = statement(source, digest)
    list_: object = [
        signed(source, source.choice(owners), payload)
        for _ in range(source.choice((1, 1, 1, 2, 3, 0)))
    ]
    if source.random() < 0.05:
        others: tuple[Any, ...] = ({}, "", [[]], [1], None, {"a": 1}, "ab", 0, True)
        list_ = source.choice(others)
    text = base64.b64encode(payload).decode()
    table: dict[str, object] = {
        "payload": text, "payloadType": PAYLOAD_TYPE, "signatures": list_,
    }  # fmt: skip
    keys = list(table)
    source.shuffle(keys)
    table = {key: table[key] for key in keys if source.random() > 0.02}
    if source.random() < 0.1:
        extra: tuple[Any, ...] = (
            1.5,
            -0.0,
            10**400,
            10**5000 if source.random() < 0.3 else 7,
            "\ud800",
            "\U0001f600\0",
            [[{}]],
            float("inf"),
            None,
        )
        table[source.choice(("more", "payload ", "Payload", "payloadType\0"))] = source.choice(
            extra
        )
    line = _written(source, table)
    if source.random() < 0.1:
        one = source.choice(
            (
                b'"payloadType":"x"',
                b'"signatures":[]',
                b'"payload":""',
                b'"a":01',
                b'"a":"\xed\xa0\x80"',
                b'"a":1e',
                b'"a":-',
                b'"\\u0070ayload":"AA=="',
            )
        )
        line = source.choice((line[:-1] + b"," + one + b"}", b"{" + one + b"," + line[1:]))
    return line


def _written(source: random.Random, table: dict[str, object]) -> bytes:
    import sys

    sys.set_int_max_str_digits(0)
    text = json.dumps(
        table,
        ensure_ascii=source.random() < 0.8,
        separators=source.choice(((",", ":"), (", ", ": "), (" ,\t", "\r: "))),
    )
    sys.set_int_max_str_digits(4300)
    kind = source.random()
    if kind < 0.03:
        return source.choice(
            (
                text.encode("utf-16", "surrogatepass"),
                text.encode("utf-16-le", "surrogatepass"),
                text.encode("utf-32", "surrogatepass"),
            )
        )
    data = text.encode("utf-8", "surrogatepass")
    return source.choice((b"",) * 20 + (b"\xef\xbb\xbf", b"\xef\xbb\xbf" * 2, b" ")) + data


def beside(source: random.Random, owners: Sequence[Owner], digest: str) -> bytes:
    """A file of signatures."""
    lines = [envelope(source, owners, digest) for _ in range(source.choice((1, 1, 2, 3, 0)))]
    data = bytearray(source.choice((b"\n",) * 9 + (b"\r\n", b"\n \x0b\n", b"\r")).join(lines))
    if data and source.random() < 0.15:
        at = source.randrange(len(data))
        if source.random() < 0.5:
            data[at] = source.choice((*b'{}[]",:\\=A0 \n/', data[at] ^ 1 << source.randrange(8)))
        else:
            del data[at : at + source.choice((1, 1, 4, 100))]
    data += source.choice((b"", b"\n", b"\n\n") * 9 + (b"\0", b"{}", b"\n[]"))
    # Of padding where none is needed, versions of Python think otherwise.
    return re.sub(rb'"((?:[A-Za-z0-9+/]{4})+)=+"', rb'"\1"', bytes(data))


def policy(source: random.Random, owners: Sequence[Owner], folder: Path) -> bytes:
    """A policy: of the part of TOML that both read, and of what is none."""

    def text(value: str) -> str:
        quoted = json.dumps(value)
        ways = (
            quoted, quoted, f"'{value}'", quoted.replace("a", "\\u0061"), quoted.replace("a", "\\U00000061"),
            quoted.replace(".", "\\."), quoted.replace("/", "\\/"), f'"{value}\\ud800"', f'"{value}\x7f"',
            f"'{value}\x01'", f'"\t{value}"', f"'{value}", f'"\\ud83d\\ude00{value}"', f'"{value}\\U00110000"',
            f'"{value}\\u0000"',
        )  # fmt: skip
        return source.choice(ways if source.random() < 0.3 else ways[:5])

    def key() -> str:
        owner = source.choice(owners)
        names = (
            owner.public.name,
            str(owner.public),
            owner.raw.hex(),
            owner.raw.hex().upper(),
            f"./{owner.public.name}",
        )
        bad = (
            "none.pub",
            "",
            "wrong.pub",
            owner.raw.hex()[1:],
            "00" * 32,
            "ff" * 32,
            ".",
            "spaced.pub",
            "zero.pub",
        )
        return text(source.choice(names if source.random() < 0.9 else bad))

    blanks = ("", " ", "\t", "\n", "\r\n", " # who\n", "# \x01\n", "\r", "#é\n", "\x0c")
    weights = (9, 6, 1, 3, 1, 2, 0.05, 0.05, 0.2, 0.05)

    def blank() -> str:
        return source.choices(blanks, weights)[0]

    items = [key() for _ in range(source.choice((1, 1, 2, 3, 0)))]
    if source.random() < 0.03:
        items.append(source.choice(("1", "true", "[]", "1.5", "1979-05-27", "{a=1}")))
    listed = (source.choice((",",) * 20 + ("", ",,", ";"))).join(
        blank() + one + blank() for one in items
    )
    listed += source.choice(("", "", ",", blank()))
    lines = [source.choice(("keys = ", "keys=", "keys\t= ", "keys =")) + f"[{blank()}{listed}]"]
    numbers = (
        *("1",) * 30,
        "2",
        "2",
        "3",
        "+1",
        "0",
        "-1",
        "01",
        "1_0",
        "0x1",
        "1.0",
        "true",
        '"1"',
        "",
        "[1]",
        "9" * 30,
        "-0",
        "1e0",
        "1\x0b",
    )
    if source.random() < 0.7:
        lines.append(
            f"required ={blank() if source.random() < 0.1 else ' '}{source.choice(numbers)}"
        )
    others = (
        "keys = []",
        "required = 1",
        "other = 1",
        "[table]",
        'a."b" = 1',
        "other = 'a\x02'",
        "\ufeff",
        '"keys" = []',
        "x = [1, 'a']",
        'other = "\\x"',
    )
    if source.random() < 0.1:
        lines.append(source.choice(others))
    source.shuffle(lines)
    data = bytearray(
        source.choices(("\n", "\r\n", "\r", " "), (20, 5, 0.3, 0.3))[0].join(lines).encode()
    )
    data += (
        source.choice(("", "\n", " # end", "\0", "\r")).encode() if source.random() < 0.3 else b""
    )
    if source.random() < 0.1:
        data[source.randrange(len(data))] = source.choice(
            (0, 9, 10, 13, 34, 39, 92, 127, 0xC3, 0xED)
        )
    return bytes(data)


def said_by_python(bundle: Path, policy_path: Path, mutant: tuple[bytes, bytes]) -> Found:
    """Its verdict."""
    policy_path.write_bytes(mutant[0])
    bundle.with_name(bundle.name + ".sig").write_bytes(mutant[1])
    try:
        ingot_runtime.load(bundle, keys=policy_path, verify="code").close()
    except BundleError as error:
        return Found(Verdict.of(error), error.why)
    return Found(Verdict(), "")


def said_by_c(
    program: Path, bundle: Path, policy_path: Path, mutants: Sequence[tuple[bytes, bytes]]
) -> list[Found]:
    """Its verdicts; no sanitizer has anything to say, of leaks neither."""
    records = b"".join(
        struct.pack("<2I", len(one), len(other)) + one + other for one, other in mutants
    )
    command: list[str | Path] = [program, bundle, policy_path, f"{bundle}.sig"]
    done = subprocess.run(command, input=records, capture_output=True, check=False, env={})
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode(errors="replace")[:2000]
    found: list[Found] = []
    for line in done.stdout.decode(errors="backslashreplace").split("\n")[:-1]:
        kind, code, what, where, why = line.split("\x1e")
        name = error_kinds()[int(kind) - 1].__name__ if int(kind) else ""
        found.append(Found(Verdict(name, what, where, int(code)), why))
    return found


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that says what the loader says."""
    compiler = shutil.which("gcc")
    assert compiler, "this test needs gcc: apt-get install gcc"
    path = tmp_path_factory.mktemp("signed") / "signed"
    source = ROOT / "tests" / "unit" / "c_programs" / "signed.c"
    flags = ("-std=c11", *SANITIZERS, "-I", ROOT / "runtime" / "c", "-lpthread")
    subprocess.run([compiler, source, "-o", path, *flags], check=True)
    return path


def prepared(folder: Path) -> tuple[Path, list[Owner], str]:
    """A bundle with a signature in it, owners of keys, files of keys, the digest that is signed."""
    bundle = folder / "tiny.ingot"
    write_bundle(tiny_contents(), bundle, tree_entry)
    owners = [Owner(folder, name, seed) for seed, name in enumerate(("alice", "bob", "carol"), 1)]
    sign(bundle, owners[2])
    text = owners[0].public.read_bytes()
    (folder / "wrong.pub").write_bytes(text.replace(b"MCow", b"MCox"))
    (folder / "spaced.pub").write_bytes(text.replace(b"MCow", b"M\x1cCo\xa0w"))
    (folder / "zero.pub").write_bytes(b"\0" + text)
    with opened(bundle) as source:
        return bundle, owners, parts_digest(source.sections).hex()


GOOD_POLICY = b'keys = ["alice.pub", "bob.pub"]\n'


def mutant(number: int, owners: Sequence[Owner], digest: str, folder: Path) -> tuple[bytes, bytes]:
    """A policy and a file of signatures, of which one may be odd."""
    source = random.Random(number)
    asked = policy(source, owners, folder) if number % 2 else GOOD_POLICY
    return asked, beside(source, owners, digest)


@pytest.mark.parametrize("count", COUNTS)
def test_mutants_of_policies_and_signatures(checked: Path, tmp_path: Path, count: int) -> None:
    """The same verdict in the same words; only policies with more of TOML than the loader in C reads
    are refused by it alone."""
    bundle, owners, digest = prepared(tmp_path)
    kinds: collections.Counter[str] = collections.Counter()
    narrower = 0
    for start in range(0, count, RECORD_COUNT):
        numbers = range(start, min(start + RECORD_COUNT, count))
        made = [mutant(number, owners, digest, tmp_path) for number in numbers]
        wanted = [said_by_python(bundle, tmp_path / "p.toml", one) for one in made]
        found = said_by_c(checked, bundle, tmp_path / "p.toml", made)
        for number, want, got in zip(numbers, wanted, found, strict=True):
            is_narrower = number % 2 == 1 and got.verdict.what == "not a policy"
            assert want.said == got.said or is_narrower, number
            narrower += want.said != got.said
            kinds[want.verdict.kind] += 1
    assert kinds.keys() == {"", "FormatError", "SignatureError", "InputError"}
    assert narrower < count // 10
