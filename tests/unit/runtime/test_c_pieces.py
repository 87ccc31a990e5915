"""Pieces of the loader in C that stand for a library's: DEFLATE beside zlib, numbers and words of
failures beside Python's, blocks of memory, a lock."""

from __future__ import annotations

import hashlib
import os
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


def compiled(folder: Path, *flags: str) -> Path:
    """The program with the pieces."""
    compiler = shutil.which("gcc")
    assert compiler, "this test needs gcc: apt-get install gcc"
    path = folder / "pieces"
    source = ROOT / "tests" / "unit" / "c_programs" / "pieces.c"
    line: list[str | Path] = [
        compiler,
        "-std=c11",
        source,
        "-o",
        path,
        "-I",
        ROOT / "runtime" / "c",
        "-lpthread",
    ]
    subprocess.run([*line, *flags], check=True)
    return path


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled with the sanitizers."""
    return compiled(tmp_path_factory.mktemp("pieces"), *SANITIZERS)


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


def test_words_of_failures_are_pythons(pieces: Path) -> None:
    """The failures that a loader meets; others are told by number."""
    found = lines([pieces, "failures"], b"")
    named = [number for number, words in enumerate(found, 1) if "of the system" not in words]
    assert len(named) == 30
    assert [found[number - 1] for number in named] == [os.strerror(number) for number in named]
    assert found[132] == "failure 133 of the system"


def test_threads_take_turns(tmp_path: Path, pieces: Path) -> None:
    """No turn is lost, with the sanitizers and without them."""
    for program in (pieces, compiled(tmp_path, "-O2")):
        assert lines([program, "lock"], b"") == ["400000"]


def test_blocks_without_an_allocator(tmp_path: Path) -> None:
    """Each is zeros at a multiple of 64; one that no system has is null."""
    program = compiled(tmp_path, "-O2", "-DINGOT_WITHOUT_MALLOC")
    assert lines([program, "pages"], b"") == [*["zeros"] * 5, *["none"] * 2]


def test_digests_of_every_length(pieces: Path) -> None:
    """Up to three blocks of SHA-512, so that the end lies everywhere in one."""
    data = random.Random(1).randbytes(3 * 128)
    wanted = [
        f"{hashlib.sha256(data[:size]).hexdigest()} {hashlib.sha512(data[:size]).hexdigest()}"
        for size in range(len(data) + 1)
    ]
    assert lines([pieces, "digests"], data) == wanted
