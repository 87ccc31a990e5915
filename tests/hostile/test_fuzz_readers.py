"""Readers of the format and of archives on any bytes: they end, or refuse in the loader's words."""

from __future__ import annotations

import pytest
from tests.hostile.fuzz_readers import CORPUS, READERS, Reader, corpus_of, fuzz, minimised, outcome
from tests.hostile.mutations import mutate_bytes

CORPUS_SIZE_BYTES_MAX = 200_000
SHORT_COUNT = 300
LONG_COUNT = 200_000


@pytest.mark.parametrize("name", READERS)
def test_corpus(name: str) -> None:
    """All inputs that once reached something new, read by today's readers."""
    results = [outcome(READERS[name], data)[0] for data in corpus_of(name)]
    assert [result for result in results if result.startswith("foreign")] == []
    assert "read" in results
    assert len(set(results)) > 1


def test_corpus_is_small_and_whole() -> None:
    """Each reader has inputs, each input has a reader, and they are few."""
    assert {path.name for path in CORPUS.iterdir()} == set(READERS)
    assert (
        sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file())
        < CORPUS_SIZE_BYTES_MAX
    )


@pytest.mark.sweep(15)
@pytest.mark.parametrize("name", READERS)
def test_fuzz(name: str) -> None:
    """A few hundred changes of the corpus."""
    reader = READERS[name]
    kept, wrong = fuzz(reader, SHORT_COUNT, 3, [*reader.seeds(), *corpus_of(name)])
    assert wrong == []
    assert len(kept) >= len(minimised(kept)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_fuzz_long(name: str) -> None:
    """Many changes of the corpus."""
    reader = READERS[name]
    assert fuzz(reader, LONG_COUNT, 1, [*reader.seeds(), *corpus_of(name)])[1] == []


def test_foreign_exception_is_found() -> None:
    """The loop reaches what lies behind three comparisons of bytes, one after the other, and tells
    of it."""

    def read(data: bytes) -> None:
        if data[:1] > b"\x10" and data[1:2] > b"\x80" and data[2:3] == b"":
            raise KeyError(data)

    reader = Reader(read, lambda: (b"\0\0\0",))
    _, wrong = fuzz(reader, 2000, 1, [b"\0\0\0"])
    assert wrong
    assert wrong[0][1].startswith("foreign KeyError")
    assert mutate_bytes.__doc__
