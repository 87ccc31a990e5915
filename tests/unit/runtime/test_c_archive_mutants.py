"""What the loader in C takes from damaged archives of arrays, under both sanitizers: nothing that
the one in Python refuses, and the same arrays."""

from __future__ import annotations

import collections
import random
import shutil
import struct
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.tidy.source import ROOT
from tests.unit.runtime.test_c_native import SANITIZERS

from ingot_artifacts.bundle.write import write_bundle
from ingot_runtime.errors import BundleError
from ingot_runtime.npz import read_npz

pytestmark = [pytest.mark.native, pytest.mark.gcc]
RECORD_COUNT = 500  # of one process
COUNTS = (1000, pytest.param(100_000, marks=pytest.mark.slow))
DTYPES = ("<f4", "<f8", "<i8", "|u1", "|b1", "<f2")
BOUNDS = (0, 1, 4, 0xFFFF, 0x10000, 2**31, 2**32 - 1, 2**46, 2**63, 2**64 - 16, 2**64 - 1)
WIDE = 2**32 - 1  # says that a number stands in the field behind the row


@dataclass(frozen=True, slots=True)
class Member:
    """A member as its heads tell of it; None: as it is."""

    name: bytes
    data: bytes
    method: int = 0
    flags: int = 0x800
    crc: int | None = None
    size: int | None = None
    stored: int | None = None
    at: int | None = None
    wide: tuple[int, ...] = ()
    magic: bytes = b"PK\3\4"
    local_name: bytes | None = None


@dataclass(frozen=True, slots=True)
class Archive:
    """``count``, ``at``: of the rows; ``ends_wide``: where the end says that rows are, in 64 bits."""

    members: list[Member]
    count: int | None = None
    at: int | None = None
    ends_wide: int | None = None
    comment: bytes = b""
    tail: list[bytes] = field(default_factory=list[bytes])


def or_given(given: int | None, known: int) -> int:
    """What is told, which heads cut to their fields."""
    return known if given is None else given


def encoded(archive: Archive) -> bytes:
    """The bytes of a file."""
    content, rows = b"", b""
    for member in archive.members:
        maker = zlib.compressobj(9, zlib.DEFLATED, -15)
        deflated = maker.compress(member.data) + maker.flush()
        data = deflated if member.method == 8 else member.data
        crc = or_given(member.crc, zlib.crc32(member.data))
        sizes = or_given(member.stored, len(data)), or_given(member.size, len(member.data))
        shown = [min(size, WIDE) for size in sizes]
        name = member.name if member.local_name is None else member.local_name
        common = (20, member.flags, member.method, 0, 0x21, crc, *shown)
        local = struct.pack("<4s5H3I2H", member.magic, *common, len(name), 0) + name + data
        extra = struct.pack(f"<2H{len(member.wide)}Q", 1, 8 * len(member.wide), *member.wide)
        extra = extra if member.wide else b""
        at = min(or_given(member.at, len(content)), WIDE)
        lengths = len(member.name), len(extra), 0, 0, 0, 0, at
        rows += struct.pack("<4sH5H3I5H2I", b"PK\1\2", 20, *common, *lengths)
        rows += member.name + extra
        content += local
    count, at = len(archive.members), or_given(archive.at, len(content))
    wide = b""
    if archive.ends_wide is not None:
        numbers = 44, 45, 45, 0, 0, count, count, len(rows), archive.ends_wide
        wide = struct.pack("<4sQ2H2I4Q", b"PK\6\6", *numbers)
        wide += struct.pack("<4sIQI", b"PK\6\7", 0, len(content) + len(rows), 1)
        count, at = 0xFFFF, WIDE
    told = or_given(archive.count, count) & 0xFFFF
    end = (0, 0, told, told, len(rows), min(at, WIDE), len(archive.comment))
    return content + rows + wide + struct.pack("<4s4H2IH", b"PK\5\6", *end) + archive.comment


def array_bytes(source: random.Random, text: bytes | None = None) -> bytes:
    """A .npy file, or one with another text in its head."""
    shape = tuple(source.choice((0, 1, 2, 3)) for _ in range(source.randint(0, 3)))
    dtype = np.dtype(source.choice(DTYPES))
    data = bytes(source.choices((0, 1), k=int(np.prod(shape, dtype=int)) * dtype.itemsize))
    head = (
        text or f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    )
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + data


def changed_head(source: random.Random) -> bytes:
    """A .npy file whose head was changed."""
    texts = (
        b"'fortran_order': False 'shape': (2,)".ljust(source.choice((60, 4088))) + b"'descr'",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1099511627776), }",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1099511627776, 0), }",
        b"{'descr': '<f4x', 'fortran_order': False, 'shape': (0,), }",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"1, " * 17 + b"), }",
        b"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 0), }",
        b"",
    )
    data = bytearray(array_bytes(source, source.choice(texts)))
    for _ in range(source.choice((0, 0, 1))):
        data[source.randrange(10)] = source.choice((0, 1, 2, 255))
    return bytes(data)


def changed_member(source: random.Random, member: Member) -> Member:
    """The same with a lie."""
    bound = source.choice(BOUNDS)
    wide = source.choice(((bound,), (bound, bound), (len(member.data), bound), ()))
    other = array_bytes(source)
    changes = (
        {"data": changed_head(source)},
        {"data": member.data[: source.randrange(len(member.data) or 1)]}, {"data": other}, {"crc": 1}, {"size": bound}, {"stored": bound}, {"at": bound},
        {"size": WIDE, "wide": wide}, {"size": WIDE, "stored": WIDE, "wide": wide},
        {"at": WIDE, "wide": wide}, {"size": WIDE, "wide": (len(member.data),)},
        {"magic": b"PK\3\5"}, {"local_name": b"y.npy"}, {"local_name": b"x\0.npy"},
        {"method": source.choice((1, 9, 12, 14, 99))}, {"name": source.choice((b"x", b".npy", b"x\0y.npy", b"\xff.npy", b""))},
        {"flags": source.choice((0, 1, 8, 0x20, 0x40))},
    )  # fmt: skip
    return replace(member, **source.choice(changes))


def mutant(number: int) -> bytes:
    """An archive, with one lie or a few, or with bytes that were changed."""
    source = random.Random(number)
    names = source.sample(
        (b"x.npy", b"y.npy", "größe.npy".encode(), b"a/b.npy"), source.choice((1, 2, 3))
    )
    members = [Member(name, array_bytes(source), source.choice((0, 8))) for name in names]
    archive = Archive(members)
    for _ in range(source.choice((0, 1, 1, 2))):
        index = source.randrange(len(members))
        members[index] = changed_member(source, members[index])
    if source.random() < 0.2:
        bound = source.choice(BOUNDS)
        ends = ({"count": bound}, {"at": bound}, {"ends_wide": bound}, {"comment": b"PK\5\6" * 9})
        archive = replace(archive, **source.choice(ends))
    data = bytearray(encoded(archive))
    for _ in range(source.choice((0, 0, 0, 1, 2))):
        at = source.randrange(len(data))
        if source.random() < 0.2:
            del data[at : at + source.choice((1, 4, 1000))]
        elif data:
            data[at] = source.choice((data[at] ^ 1 << source.randrange(8), 0, 255))
        if not data:
            break
    return bytes(data)


def taken_by_python(data: bytes, path: Path) -> str:
    """What the loader in Python reads."""
    path.write_bytes(data)
    try:
        arrays = read_npz(str(path))
    except BundleError:
        return "refused"
    return "".join(
        f"{name} {array.dtype.name} {list(array.shape)} {zlib.crc32(array.tobytes()):08x};"
        for name, array in arrays.items()
    )


def taken_by_c(program: Path, files: Sequence[bytes]) -> list[str]:
    """What the loader in C reads; no sanitizer has anything to say, of leaks neither."""
    records = b"".join(struct.pack("<I", len(data)) + data for data in files)
    done = subprocess.run([program], input=records, capture_output=True, check=False, env={})
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode(errors="replace")[:2000]
    return done.stdout.decode(errors="replace").split("\n")[:-1]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that says what it takes."""
    compiler = shutil.which("gcc")
    assert compiler, "this test needs gcc: apt-get install gcc"
    path = tmp_path_factory.mktemp("archives") / "archives"
    source = ROOT / "tests" / "unit" / "c_programs" / "archives.c"
    flags = ("-std=c11", *SANITIZERS, "-I", ROOT / "runtime" / "c", "-lpthread")
    subprocess.run([compiler, source, "-o", path, *flags], check=True)
    return path


@pytest.mark.parametrize("count", COUNTS)
def test_mutants_of_archives(checked: Path, tmp_path: Path, count: int) -> None:
    """No crash, no leak; what C takes, Python takes, too, with the same bits. Of what it refuses
    Python takes some: other types, Fortran's order, heads that numpy does not write."""
    verdicts: collections.Counter[str] = collections.Counter()
    for start in range(0, count, RECORD_COUNT):
        files = [mutant(number) for number in range(start, min(start + RECORD_COUNT, count))]
        wanted = [taken_by_python(data, tmp_path / "a.npz") for data in files]
        found = taken_by_c(checked, files)
        both = list(enumerate(zip(wanted, found, strict=True), start))
        assert [number for number, (w, f) in both if f not in (w, "refused")] == []
        verdicts.update("refused" if f == "refused" else "taken" for f in found)
    assert min(verdicts["refused"], verdicts["taken"]) > count // 10


UTF8_NAME = encoded(Archive([Member("größe.npy".encode(), array_bytes(random.Random(0)))]))
HEAD_WITHOUT_TYPE = b"'fortran_order': False 'shape': (2,)".ljust(4088) + b"'descr'"
LIES = {
    "size that wraps": encoded(
        Archive([Member(b"x.npy", bytes(300_000), 8, size=WIDE, wide=(2**64 - 8,))])
    ),
    "place that wraps": encoded(Archive([Member(b"x.npy", b"")], ends_wide=2**63)),
    # With its zero byte it has all the room that there is.
    "type at the end of a head": encoded(
        Archive([Member(b"x.npy", b"\x93NUMPY\1\0\xff\x0f" + HEAD_WITHOUT_TYPE + bytes(8))])
    ),
    "name in two encodings": UTF8_NAME[:6] + bytes(2) + UTF8_NAME[8:],
    "fewer rows": encoded(Archive([Member(b"x.npy", array_bytes(random.Random(0)))], count=0)),
}


@pytest.mark.parametrize("case", LIES)
def test_archives_that_lie(checked: Path, case: str) -> None:
    """What was written behind memory, read behind a head, or taken without a word."""
    assert taken_by_c(checked, [LIES[case]]) == ["refused"]


def test_names_of_outputs_that_are_not_ascii(tmp_path: Path) -> None:
    """Python finds them in an archive that C wrote; in errors neither terminal obeys what is in one."""
    compiler = shutil.which("gcc")
    assert compiler, "this test needs gcc: apt-get install gcc"
    bundle, program, path = tmp_path / "m.ingot", tmp_path / "run", tmp_path / "y.npz"
    write_bundle(tiny_contents(names=("x", "größe")), bundle, tree_entry)
    source = ROOT / "runtime" / "c" / "run.c"
    subprocess.run([compiler, "-std=c11", source, "-o", program, "-lpthread"], check=True)
    subprocess.run([program, bundle, "--outputs", path], check=True)
    assert list(read_npz(str(path))) == ["größe"]
    member = Member("\x9b2J\u202e.npy".encode(), array_bytes(random.Random(0)))
    path.write_bytes(encoded(Archive([member])))
    done = subprocess.run([program, bundle, "--inputs", path], capture_output=True, check=False)
    assert done.returncode == 1
    assert "\\xc2\\x9b2J\\xe2\\x80\\xae" in done.stderr.decode()
    assert done.stderr.decode().replace("\n", "").isprintable()
