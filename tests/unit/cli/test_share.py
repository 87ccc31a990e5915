"""``ingot share``: weights that lie in another bundle; the second costs its own layers of disk and
memory."""

from __future__ import annotations

import gc
import os
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.hostile.tiny import (
    WEIGHTS_AT,
    WIDTH,
    tiny_contents,
    tiny_reference,
    tiny_weights,
)
from tests.json_schemas import checked
from tests.unit.runtime.test_signatures import Owner, sign

import ingot_runtime
from ingot_artifacts.bundle.rewrite import Changes, rewrite_bundle
from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.inspect.describe import describe_bundle, opened
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.ship.share import share_changes
from ingot_compiler.backends.host.support.host import HostDigests
from ingot_compiler.ir.errors import UserError
from ingot_runtime.command import main as device
from ingot_runtime.errors import (
    BundleError,
    ChangedError,
    DigestError,
    FileError,
    FormatError,
    InputError,
)
from ingot_runtime.format import header as head
from ingot_runtime.format.base import pieces
from ingot_runtime.format.limits import ALIGNMENT_MAPPED_BYTES, MIB
from ingot_runtime.format.shared import Shared

Output = pytest.CaptureFixture[str]
X = np.ones((4, WIDTH), np.float32)
SIZE = 8 * MIB
PAGE = ALIGNMENT_MAPPED_BYTES
tree_entry = HostDigests().mib_tree_entry  # the oracle is slow where all MiBs are random


def write(path: Path, seed: int, size: int = SIZE, shift: int = 0) -> Path:
    """A bundle with random weights, the same for every seed but those that its kernel reads; all of
    them count as read. ``shift``: pages by which they have moved from ``4 * MIB`` on."""
    weights = bytearray(np.random.RandomState(1).bytes(size))
    half = size // 2
    weights[half + shift * PAGE :] = weights[half : size - shift * PAGE]
    own = tiny_weights(seed).tobytes()
    weights[WEIGHTS_AT : WEIGHTS_AT + len(own)] = own
    contents = tiny_contents()
    variants = tuple(replace(it, weight_ranges=((0, size),)) for it in contents.variants)
    whole = ((0, memoryview(bytes(weights))),)
    contents = replace(contents, variants=variants, weights=whole, weights_bytes=(size,))
    write_bundle(contents, path, tree_entry)
    return path


def share(base: Path, bundle: Path) -> Path:
    output = bundle.with_name(f"{bundle.stem}-shared.ingot")
    assert main(["share", str(base), str(bundle), "-o", str(output)]) == 0
    return output


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write(tmp_path / "base.ingot", 0)


@pytest.fixture
def shared(base: Path, tmp_path: Path) -> Path:
    return share(base, write(tmp_path / "fine.ingot", 1))


def run(path: Path, **options: object) -> npt.NDArray[np.float32]:
    with ingot_runtime.load(path, **options) as session:  # type: ignore[arg-type]
        return session.run({"x": X})["y"]


def pss_bytes() -> int:
    """This process's part of the memory that it has mapped."""
    gc.collect()
    text = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    (line,) = [line for line in text.splitlines() if line.startswith("Pss:")]
    return int(line.split()[1]) * 1024


def test_the_second_costs_its_own_layers(base: Path, shared: Path, capsys: Output) -> None:
    """A page on the disk, and with all weights verified below 1 MB of memory; the bits are those
    of the whole bundle."""
    assert shared.stat().st_size < 4 * PAGE
    with ingot_runtime.load(base) as first:
        assert first.run({"x": X})["y"].tobytes() == tiny_reference(X, 0).tobytes()
        before = pss_bytes()
        with ingot_runtime.load(shared) as second:
            assert second.run({"x": X})["y"].tobytes() == tiny_reference(X, 1).tobytes()
            assert pss_bytes() - before < 1_000_000
        before = pss_bytes()
        with ingot_runtime.load(shared.with_name("fine.ingot")) as whole:
            assert whole.run({"x": X})["y"].tobytes() == tiny_reference(X, 1).tobytes()
            assert pss_bytes() - before > SIZE // 2  # what it costs otherwise


def test_all_ways_to_load_it(shared: Path) -> None:
    """Both executors, every policy of verification, several sessions and threads."""
    expected = tiny_reference(X, 1).tobytes()
    for options in (
        {"executor": "vm"},
        {"verify": "fast"},
        {"verify": "code"},
        {"sessions": 2, "threads": 2},
    ):
        assert run(shared, **options).tobytes() == expected


def test_weights_that_have_moved(base: Path, tmp_path: Path) -> None:
    """What lies somewhere else in the other bundle is found there."""
    moved = write(tmp_path / "moved.ingot", 2, shift=3)
    path = share(base, moved)
    assert run(path).tobytes() == tiny_reference(X, 2).tobytes()
    assert path.stat().st_size < 8 * PAGE
    with opened(path) as source:
        described = describe_bundle(path)["shared"]
        assert described["name"] == "base.ingot"
        assert source.by_key[head.WEIGHTS, 0].size_bytes + described["size_bytes"] == SIZE


def test_one_that_is_the_same(base: Path, tmp_path: Path) -> None:
    """A page stays its own."""
    path = share(base, write(tmp_path / "same.ingot", 0))
    with opened(path) as source:
        assert source.by_key[head.WEIGHTS, 0].size_bytes == PAGE
    assert run(path).tobytes() == tiny_reference(X, 0).tobytes()


def test_the_tools(shared: Path, tmp_path: Path, capsys: Output) -> None:
    """It verifies, is inspected, signed, turned into another one by a delta; it is not exported
    or shared again."""
    assert main(["verify", str(shared)]) == 0
    owner = Owner(tmp_path, "alice", 1)
    sign(shared, owner)
    assert main(["verify", str(shared), "--require-key", str(owner.public)]) == 0
    assert run(shared, keys=[owner.raw]).tobytes() == tiny_reference(X, 1).tobytes()
    again = share(tmp_path / "base.ingot", write(tmp_path / "other.ingot", 3))
    assert main(["delta", str(shared), str(again), "-o", str(tmp_path / "d")]) == 0
    made = str(tmp_path / "made.ingot")
    assert device(["apply", str(shared), str(tmp_path / "d"), "-o", made]) == 0
    assert Path(made).read_bytes() == again.read_bytes()
    capsys.readouterr()
    assert device(["inspect", str(shared), "--json"]) == 0
    assert checked("device-inspect", capsys.readouterr().out)["shared"]["name"] == "base.ingot"
    assert main(["inspect", str(shared)]) == 0
    assert "of weights in base.ingot" in capsys.readouterr().out
    out = str(tmp_path / "out.ingot")
    for line in (
        ["share", str(shared), str(again), "-o", out],
        ["export", str(shared), "--executable", "-o", out],
        ["export", str(shared), "--library", "-o", str(tmp_path)],
    ):
        assert main(line) == 1
        told = capsys.readouterr().err
        assert "weights are shared with another bundle" in told
        assert "take the bundle that `ingot share` was given" in told


def test_the_report(base: Path, tmp_path: Path, capsys: Output) -> None:
    """As JSON; and into another folder, where the weights would not be found."""
    line = ["share", str(base), str(write(tmp_path / "m.ingot", 4)), "-o"]
    assert main([*line, str(tmp_path / "o.ingot"), "--json"]) == 0
    told = checked("share", capsys.readouterr().out)
    assert told["shared_bytes"] == SIZE - PAGE
    (tmp_path / "else").mkdir()
    assert main([*line, str(tmp_path / "else" / "o.ingot")]) == 1
    assert "would not find its weights" in capsys.readouterr().err
    unlike = tmp_path / "unlike.ingot"
    write_bundle(tiny_contents(), unlike, tree_entry)
    assert main(["share", str(base), str(unlike), "-o", str(tmp_path / "o.ingot")]) in (0, 1)


def test_nothing_in_common(base: Path, tmp_path: Path) -> None:
    """It says so."""
    other = tmp_path / "other.ingot"
    contents = tiny_contents()
    weights = ((0, memoryview(np.random.RandomState(9).bytes(2 * MIB))),)
    write_bundle(replace(contents, weights=weights, weights_bytes=(2 * MIB,)), other, tree_entry)
    with (
        opened(base) as first,
        opened(other) as second,
        pytest.raises(UserError, match="no weights in common"),
    ):
        share_changes(first, second, "base.ingot")


def damaged(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


REFUSED: dict[str, tuple[Callable[[Path], object], type[BundleError], str]] = {
    "missing": (lambda base: base.unlink(), FileError, "cannot be read"),
    "another": (lambda base: write(base, 5), DigestError, "another bundle than the one asked for"),
    "truncated": (lambda base: os.truncate(base, MIB), FormatError, "truncated or extended"),
    "empty": (lambda base: base.write_bytes(b""), BundleError, "not a bundle"),
    "damaged": (lambda base: damaged(base, base.stat().st_size - 1), DigestError, "MiB 7"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_other_bundle_must_be_there(base: Path, shared: Path, case: str) -> None:
    """Whole, the same, undamaged: else the error has four parts and names both files; so says
    ``verify``."""
    spoil, kind, words = REFUSED[case]
    spoil(base)
    with pytest.raises(kind, match=words) as refused:
        run(shared)
    assert str(shared) in refused.value.where
    assert str(base) in refused.value.where
    assert refused.value.why
    assert refused.value.do
    assert main(["verify", str(shared)]) == refused.value.exit_code


def test_in_memory(shared: Path) -> None:
    """There is no folder to look in."""
    with pytest.raises(InputError, match="shared with another bundle"):
        ingot_runtime.load(shared.read_bytes())


def test_the_other_bundle_changes_while_it_is_mapped(base: Path, shared: Path) -> None:
    """A new file under its name is nobody's business, and nor is a change of permissions; a write
    ends calls."""
    with ingot_runtime.load(shared) as session:
        base.chmod(0o600)
        assert session.run({"x": X})["y"].tobytes() == tiny_reference(X, 1).tobytes()
        old = base.rename(base.with_name("old"))
        write(base, 6)
        assert session.run({"x": X})["y"].tobytes() == tiny_reference(X, 1).tobytes()
        with old.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"?")
        with pytest.raises(ChangedError):
            session.run({"x": X})


def encoded(digest: str, name: str, *words: int) -> bytes:
    texts = digest.encode(), name.encode()
    numbers = (len(texts[0]), len(texts[1]), *words)
    return struct.pack(f"<{1 + len(numbers)}q", len(numbers), *numbers) + b"".join(texts)


GOOD = (4 * PAGE, 1, PAGE, 0, 2 * PAGE)
BAD = {
    "digest": ("A" * 64, "n", GOOD),
    "short digest": ("a" * 63, "n", GOOD),
    "no name": ("a" * 64, "", GOOD),
    "a path": ("a" * 64, "../n", GOOD),
    "a folder": ("a" * 64, "..", GOOD),
    "no rows": ("a" * 64, "n", (4 * PAGE, 0)),
    "outside": ("a" * 64, "n", (4 * PAGE, 1, 3 * PAGE, 0, 2 * PAGE)),
    "overlap": ("a" * 64, "n", (4 * PAGE, 2, 0, 0, 2 * PAGE, PAGE, 0, PAGE)),
    "half a page": ("a" * 64, "n", (4 * PAGE, 1, PAGE, 0, PAGE + 4096)),
    "negative": ("a" * 64, "n", (4 * PAGE, 1, PAGE, -PAGE, 2 * PAGE)),
    "own size": ("a" * 64, "n", (5 * PAGE, 1, PAGE, 0, 2 * PAGE)),
    "more words": ("a" * 64, "n", (*GOOD, 0)),
    "many": ("a" * 64, "n", (4 * PAGE, 4097)),
}


@pytest.mark.parametrize("case", BAD)
def test_hostile_sections(case: str) -> None:
    """Every rule of FORMAT.md, "Shared"."""
    digest, name, words = BAD[case]
    Shared(encoded("a" * 64, "n", *GOOD), 2 * PAGE)
    with pytest.raises(FormatError):
        Shared(encoded(digest, name, *words), 2 * PAGE)


def test_rows_beyond_the_other_weights(base: Path, shared: Path, tmp_path: Path) -> None:
    """They are looked for before anything is mapped; a bundle that shares weights itself has none to
    give."""
    with opened(base) as source:
        root = source.root_digest.hex()
    path = tmp_path / "forged.ingot"
    rows = SIZE, 1, 0, 2 * PAGE, SIZE - PAGE
    with opened(shared) as source:
        rewrite_bundle(
            source, Changes({(head.SHARED, 0): encoded(root, "base.ingot", *rows)}), path
        )
    with pytest.raises(FormatError, match="shared weights that are not there"):
        run(path)
    with opened(shared) as source:
        root = source.root_digest.hex()
        forged = encoded(root, shared.name, SIZE, 1, 0, 0, SIZE - PAGE)
        rewrite_bundle(source, Changes({(head.SHARED, 0): forged}), path)
    with pytest.raises(FormatError, match="shared weights that are not there"):
        run(path)


def test_pieces_cover_the_weights(base: Path, shared: Path) -> None:
    """One behind the other, without gaps."""
    from ingot_runtime.format.base import open_base
    from ingot_runtime.format.source import read_plan

    with opened(shared) as source:
        read_plan(source)
        open_base(source)
        found = list(pieces(source))
        assert [at for at, *_ in found] == [0, MIB, MIB + PAGE]
        assert sum(size for _, size, *_ in found) == SIZE
        assert [file.name for _, _, file, _ in found] == [str(base), str(shared), str(base)]
