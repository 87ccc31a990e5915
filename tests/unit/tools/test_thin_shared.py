"""``ingot thin`` of a bundle whose weights lie in another one: they lie in that one made thin, too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.c_loader import CBundle
from tests.hostile.tiny import WEIGHTS_AT, tiny_contents, tiny_reference, tiny_weights
from tests.unit.cli.test_share import PAGE, X, run, share, tree_entry
from tests.unit.runtime.test_signatures import Owner, sign

from ingot_artifacts.bundle.write import write_bundle
from ingot_artifacts.inspect.describe import opened
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.errors import DigestError
from ingot_runtime.format import header as head
from ingot_runtime.format.limits import MIB
from ingot_runtime.format.source import read_plan

Output = pytest.CaptureFixture[str]
TARGETS = ("x86-64-v2", "aarch64")
SIZE = 6 * MIB
READ = ((WEIGHTS_AT, 4096), (3 * MIB, MIB)), ((WEIGHTS_AT, 4096), (5 * MIB, MIB))


def write(path: Path, seed: int, shift: int = 0) -> Path:
    """A bundle for two targets that read other weights: random ones, the same for every seed but those
    that its kernel reads and a page that nobody does. ``shift``: pages by which what lies behind
    ``2 * MIB`` has moved."""
    path.parent.mkdir(exist_ok=True)
    weights = bytearray(np.random.RandomState(1).bytes(SIZE))
    weights[2 * MIB + shift * PAGE :] = weights[2 * MIB : SIZE - shift * PAGE]
    own = tiny_weights(seed).tobytes()
    for at in (WEIGHTS_AT, 0):
        weights[at : at + len(own)] = own
    contents = tiny_contents(targets=TARGETS)
    variants = tuple(
        replace(it, weight_ranges=ranges)
        for it, ranges in zip(contents.variants, READ, strict=True)
    )
    whole = ((0, memoryview(bytes(weights))),)
    contents = replace(contents, variants=variants, weights=whole, weights_bytes=(SIZE,))
    write_bundle(contents, path, tree_entry)
    return path


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write(tmp_path / "whole" / "base.ingot", 0)


def thin(bundle: Path, to: Path, target: str = TARGETS[0]) -> Path:
    to.mkdir(exist_ok=True)
    line = ["thin", str(bundle), "--target", target, "-o", str(to / bundle.name)]
    assert main(line) == 0
    return to / bundle.name


def test_both_thin(base: Path, tmp_path: Path) -> None:
    """Beside the other one, made thin, it gives the bits of the whole one in both loaders, is smaller,
    and names what that one has; what nobody reads is zeros."""
    fine = share(base, write(base.with_name("fine.ingot"), 1))
    expected = tiny_reference(X, 1).tobytes()
    path = thin(fine, tmp_path / "thin")
    assert main(["verify", str(path)]) == 1  # the other one is not there yet
    other = thin(base, tmp_path / "thin")
    assert main(["verify", str(path)]) == 0
    assert run(path).tobytes() == expected
    with CBundle(path) as loaded:
        assert loaded.run({"x": X})["y"].tobytes() == expected
    taken = [it.stat().st_blocks * 512 for it in (base, other, fine, path)]
    assert taken[1] < taken[0] - 3 * MIB
    assert taken[3] < taken[2]
    with opened(path) as source:
        assert [it.target for it in read_plan(source).variants] == [TARGETS[0]]
        assert source.shared is not None
        assert sum(row[2] for row in source.shared.rows) == 2 * MIB - PAGE
        assert source.section(head.TREE) == _tree_of(fine, TARGETS[0])


def _tree_of(fine: Path, target: str) -> bytes:
    """The tree of the bundle that was shared, made thin: its weights are the same."""
    whole = thin(fine.with_name("fine.ingot"), fine.with_name("alone"), target)
    with opened(whole) as source:
        return source.section(head.TREE)


def test_the_other_one_must_be_thin(base: Path, tmp_path: Path) -> None:
    """The whole one has another digest, and so has that of another target."""
    fine = share(base, write(base.with_name("fine.ingot"), 1))
    path = thin(fine, tmp_path / "thin")
    for wrong in (base, thin(base, tmp_path / "others", TARGETS[1])):
        (tmp_path / "thin" / base.name).write_bytes(wrong.read_bytes())
        with pytest.raises(DigestError, match="another bundle than the one asked for"):
            run(path)


def test_signatures_of_the_whole_count(base: Path, tmp_path: Path) -> None:
    """Of every target; inside, and also if the other one is signed before."""
    owner = Owner(tmp_path, "alice", 1)
    sign(base, owner)
    fine = share(base, write(base.with_name("fine.ingot"), 1))
    sign(fine, owner)
    for target in TARGETS:
        path, other = (thin(it, tmp_path / target, target) for it in (fine, base))
        for each in (path, other):
            assert main(["verify", str(each), "--require-key", str(owner.public)]) == 0
    expected = tiny_reference(X, 1).tobytes()
    thin_one = tmp_path / TARGETS[0] / fine.name
    assert run(thin_one, keys=[owner.raw]).tobytes() == expected


def test_nothing_that_is_read_is_shared(base: Path, tmp_path: Path) -> None:
    """The thin one stands alone then."""
    path = base.with_name("other.ingot")
    write(path, 2)
    data = bytearray(path.read_bytes())
    with opened(path) as source:
        begin = source.by_key[head.WEIGHTS, 0].offset
    contents = tiny_contents(targets=TARGETS)
    weights = bytearray(data[begin : begin + SIZE])
    weights[MIB : 2 * MIB] = np.random.RandomState(5).bytes(MIB)
    own = tiny_weights(2).tobytes()
    weights[WEIGHTS_AT : WEIGHTS_AT + len(own)] = own
    variants = tuple(replace(it, weight_ranges=READ[0][:1]) for it in contents.variants)
    whole = ((0, memoryview(bytes(weights))),)
    write_bundle(
        replace(contents, variants=variants, weights=whole, weights_bytes=(SIZE,)), path, tree_entry
    )
    alone = thin(share(base, path), tmp_path / "thin")
    assert run(alone).tobytes() == tiny_reference(X, 2).tobytes()
    with opened(alone) as source:
        assert (head.SHARED, 0) not in source.by_key


def test_weights_that_the_other_one_loses(base: Path, tmp_path: Path, capsys: Output) -> None:
    """They have moved to where the other one's variant reads nothing: an error that says what to do;
    the bundle can be signed nevertheless."""
    fine = share(base, write(base.with_name("fine.ingot"), 1, shift=3))
    line = ["thin", str(fine), "--target", TARGETS[0], "-o", str(tmp_path / "out.ingot")]
    capsys.readouterr()
    assert main(line) == 1
    told = capsys.readouterr().err
    assert "made thin, has not all weights that this one reads" in told
    assert "share then" in told
    owner = Owner(tmp_path, "alice", 1)
    sign(fine, owner)
    assert run(fine, keys=[owner.raw]).tobytes() == tiny_reference(X, 1).tobytes()
