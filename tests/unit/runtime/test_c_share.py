"""The loader in C, of bundles whose weights lie in another one: the bits, the verdicts and the
memory of the loader in Python."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.c_loader import CBundle, LoaderError, options, verdict_of_c, verdict_of_python
from tests.hostile.mutations import Fixed, Mutant, encode_values, mutant, mutate_values
from tests.hostile.reseal import Parts
from tests.hostile.tiny import tiny_reference
from tests.unit.cli.test_share import (
    BAD,
    PAGE,
    REFUSED,
    SIZE,
    X,
    encoded,
    pss_bytes,
    share,
    write,
)
from tests.unit.runtime.test_c_loader import mutated

import ingot_runtime
from ingot_artifacts.bundle.rewrite import Changes, rewrite_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_runtime.errors import FormatError
from ingot_runtime.format import header as head
from ingot_runtime.format.file import TRAILER, TRAILER_MAGIC
from ingot_runtime.format.shared import Shared

MUTANT_COUNT = 60
EXPECTED = tiny_reference(X, 1).tobytes()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write(tmp_path / "base.ingot", 0)


@pytest.fixture
def shared(base: Path, tmp_path: Path) -> Path:
    return share(base, write(tmp_path / "fine.ingot", 1))


def bits(loaded: CBundle) -> bytes:
    return loaded.run({"x": X})["y"].tobytes()


def test_same_bits(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By every policy of verification, on one thread and two, from any folder, also behind a
    program; moved weights, too."""
    for mode in ("full", "fast", "code"):
        for threads in (1, 2):
            with CBundle(shared, options(mode, threads)) as loaded:
                assert bits(loaded) == EXPECTED
    start, data = 1 << 16, shared.read_bytes()
    program = shared.with_name("program")
    trailer = TRAILER.pack(start, len(data), TRAILER_MAGIC)
    program.write_bytes(b"\x7fELF".ljust(start, b"\0") + data + trailer)
    monkeypatch.chdir(shared.parent)
    for path in (program.name, shared.name, f"./{shared.name}", f"{shared.parent}//{shared.name}"):
        with CBundle(path) as loaded:
            assert bits(loaded) == EXPECTED
    moved = share(shared.with_name("base.ingot"), write(shared.with_name("moved"), 2, shift=3))
    with CBundle(moved) as loaded:
        assert bits(loaded) == tiny_reference(X, 2).tobytes()


def test_the_second_costs_its_own_layers(base: Path, shared: Path) -> None:
    """Below 1 MB of memory with all weights verified; the whole bundle costs what it has."""
    with CBundle(base) as first:
        assert bits(first) == tiny_reference(X, 0).tobytes()
        before = pss_bytes()
        with CBundle(shared) as second:
            assert bits(second) == EXPECTED
            assert pss_bytes() - before < 1_000_000
        before = pss_bytes()
        with CBundle(shared.with_name("fine.ingot")) as whole:
            assert bits(whole) == EXPECTED
            assert pss_bytes() - before > SIZE // 2


@pytest.mark.parametrize("case", REFUSED)
def test_the_other_bundle_must_be_there(base: Path, shared: Path, case: str) -> None:
    """Else both loaders refuse it in the same words, and leave no file open."""
    spoil, kind, _ = REFUSED[case]
    verdict_of_c(shared)
    spoil(base)
    verdict, count = verdict_of_python(shared), len(os.listdir("/proc/self/fd"))
    assert verdict.kind == kind.__name__ or kind.__name__ == "BundleError"
    assert verdict_of_c(shared) == verdict
    assert len(os.listdir("/proc/self/fd")) == count


def test_the_other_one_is_no_file(base: Path, shared: Path) -> None:
    """A folder, a pipe, a link that leads nowhere, a file that nobody may read."""
    ways: tuple[Callable[[], object], ...] = (
        base.mkdir,
        lambda: os.mkfifo(base),
        lambda: base.symlink_to("none"),
        lambda: base.touch(mode=0),
    )
    base.unlink()
    for make in ways:
        make()
        verdict = verdict_of_python(shared)
        assert verdict.kind
        assert verdict_of_c(shared) == verdict
        base.rmdir() if base.is_dir() else base.unlink()


def test_in_memory(shared: Path) -> None:
    """There is no folder to look in."""
    verdict = verdict_of_python(shared.read_bytes())
    assert verdict.kind == "InputError"
    assert verdict_of_c(shared.read_bytes()) == verdict


def forged(shared: Path, section: bytes) -> Path:
    path = shared.with_name("forged.ingot")
    with opened(shared) as source:
        rewrite_bundle(source, Changes({(head.SHARED, 0): section}), path)
    return path


@pytest.mark.parametrize("case", BAD)
def test_hostile_sections(shared: Path, case: str) -> None:
    """Every rule of FORMAT.md, "Shared", in the same words."""
    digest, name, words = BAD[case]
    path = forged(shared, encoded(digest, name, *words))
    verdict = verdict_of_python(path)
    assert verdict.kind == "FormatError"
    assert verdict_of_c(path) == verdict
    with pytest.raises(FormatError) as wanted:
        ingot_runtime.load(path)
    with pytest.raises(LoaderError) as found:
        CBundle(path)
    assert found.value.why == wanted.value.why


def test_rows_beyond_the_other_weights(base: Path, shared: Path) -> None:
    """They are refused before anything is mapped; so is another bundle that shares weights itself,
    and a section without a part of them."""
    with opened(base) as source:
        root = source.root_digest.hex()
    with opened(shared) as source:
        own = source.root_digest.hex()
    for section in (
        encoded(root, "base.ingot", SIZE, 1, 0, 2 * PAGE, SIZE - PAGE),
        encoded(own, shared.name, SIZE, 1, 0, 0, SIZE - PAGE),
        encoded(root, "base.ingot", SIZE - 4096, 1, 0, 0, SIZE - 2 * PAGE),
        b"",
        b"\1" * 7,
    ):
        path = forged(shared, section)
        verdict = verdict_of_python(path)
        assert verdict.kind == "FormatError"
        assert verdict_of_c(path) == verdict


def test_the_other_bundle_changes_while_it_is_mapped(base: Path, shared: Path) -> None:
    """Permissions and a new file under its name are nobody's business; a write ends calls, and so
    does a cut."""
    with CBundle(shared) as loaded, CBundle(shared) as other:
        base.chmod(0o600)
        assert bits(loaded) == EXPECTED
        old = base.rename(base.with_name("old"))
        write(base, 6)
        assert bits(loaded) == EXPECTED
        with old.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"?")
        with pytest.raises(LoaderError, match="ChangedError: the bundle changed"):
            bits(loaded)
        os.truncate(old, 1 << 16)
        with pytest.raises(LoaderError, match="ChangedError: the bundle changed"):
            bits(other)


def shared_changed(parts: Parts, number: int) -> Mutant:
    """Change values of the section that says where weights lie."""
    rng, parts = random.Random(f"shared/{number}"), parts.copy()
    own = parts.weights_sizes_bytes[0]
    found = Shared(parts.payloads[head.SHARED, 0], own)
    rows = [Fixed(list(row)) for row in found.rows]
    values: object = Fixed([found.digest, found.name, found.size_bytes, rows])
    for _ in range(rng.choice((1, 1, 2))):
        values = mutate_values(values, rng)
    parts.put(head.SHARED, 0, encode_values(values))
    return Mutant(parts.prefix())


@pytest.mark.sweep(60)
@pytest.mark.parametrize("of_base", [False, True])
def test_mutants_get_the_same_verdict(base: Path, shared: Path, of_base: bool) -> None:
    """Of either file: whatever is changed and sealed again is refused alike, or loads in both."""
    path = base if of_base else shared
    parts, kinds = Parts(path.read_bytes()), set[str]()
    for number in range(MUTANT_COUNT):
        made = mutant(parts, number, 11)[1]
        if number % 3 == 0 and not of_base:
            made = shared_changed(parts, number)
        if made.may_run:
            path.write_bytes(mutated(parts, made))
            verdict = verdict_of_python(shared)
            assert verdict_of_c(shared) == verdict, number
            kinds.add(verdict.kind)
    assert kinds >= {"FormatError", "DigestError"}
