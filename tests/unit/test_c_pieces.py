"""Pieces of the loader in C that stand for a library's: DEFLATE beside zlib, numbers beside
Python's."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tidy.source import ROOT

pytestmark = [pytest.mark.native, pytest.mark.gcc]
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")
STREAM_COUNT = 10_000
STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE)


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with the pieces, compiled with the sanitizers."""
    compiler = shutil.which("gcc")
    assert compiler, "this test needs gcc: apt-get install gcc"
    path = tmp_path_factory.mktemp("pieces") / "pieces"
    source = ROOT / "tests" / "unit" / "c_programs" / "pieces.c"
    flags = ("-std=c11", *SANITIZERS, "-I", ROOT / "runtime" / "c", "-lpthread")
    subprocess.run([compiler, source, "-o", path, *flags], check=True)
    return path


def lines(command: list[str | Path], data: bytes) -> list[str]:
    """What the program prints; it ends well."""
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def contents(source: random.Random) -> bytes:
    """Noise, text, repetition, numbers."""
    count = source.choice([0, 1, 10, 300, 5000])
    kinds = (
        lambda: source.randbytes(count),
        lambda: bytes(source.choices(b"abc ", k=count)),
        lambda: (b"abcdefgh" * count)[:count],
        lambda: struct.pack(f"<{count // 4}f", *(source.gauss(0, 1) for _ in range(count // 4))),
    )
    return source.choice(kinds)()


def streams(source: random.Random) -> Iterator[tuple[int, bytes]]:
    """A size, and a stream that has so much; half of them are damaged."""
    for number in range(STREAM_COUNT):
        data = contents(source)
        level, strategy = source.randint(0, 9), source.choice(STRATEGIES)
        maker = zlib.compressobj(level, zlib.DEFLATED, -15, 8, strategy)
        stream = bytearray(maker.compress(data) + maker.flush())
        for _ in range(source.randint(1, 3) if number % 2 else 0):
            stream[source.randrange(len(stream))] ^= 1 << source.randrange(8)
        if number % 11 == 0:
            del stream[source.randrange(len(stream)) :]
        yield len(data) + (number % 13 == 0), bytes(stream)


def expected_line(size: int, stream: bytes) -> str:
    """What zlib says."""
    reader = zlib.decompressobj(-15)
    try:
        data = reader.decompress(stream)
    except zlib.error:
        return "refused"
    return f"{zlib.crc32(data):08x}" if reader.eof and len(data) == size else "refused"


def test_streams_give_what_zlib_gives(pieces: Path) -> None:
    """Whole ones of every kind and level, and damaged ones, of which both refuse the same."""
    made = list(streams(random.Random(3)))
    records = b"".join(struct.pack("<II", size, len(data)) + data for size, data in made)
    wanted = [expected_line(size, data) for size, data in made]
    assert lines([pieces, "inflate"], records) == wanted
    assert STREAM_COUNT // 4 < wanted.count("refused") < STREAM_COUNT * 3 // 4


def test_numbers_are_pythons(pieces: Path) -> None:
    """With six digits and with three."""
    source = random.Random(1)
    values = [0.0, -0.0, 5e-324, 1e6, 999999.5, 1e5, 1e-4, 9.9999995e-5, 1e-5, 1.7e308]
    values += [float("inf"), float("-inf"), float("nan"), 999.5, 0.5, 1e22]
    values += [struct.unpack("<d", source.randbytes(8))[0] for _ in range(20_000)]
    values += [source.uniform(-1, 1) * 10 ** source.randint(-8, 9) for _ in range(20_000)]
    wanted = [f"{value:.6g} {value:.3g}" for value in values]
    found = lines([pieces, "form"], struct.pack(f"<{len(values)}d", *values))
    assert [pair for pair in zip(found, wanted, strict=True) if pair[0] != pair[1]] == []
