"""Mutants of six bundles: every reader refuses them in the loader's words or is right, whatever
was changed and sealed again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.hostile import mutants
from tests.hostile.mutant_bundles import BUNDLES, small
from tests.hostile.mutations import MUTATIONS, mutant
from tests.hostile.reseal import Parts
from tests.hostile.tiny import tiny_contents, tree_entry

from ingot_artifacts.bundle.write import write_bundle

SMALL = tuple(name for name in BUNDLES if name != "large")
SHORT_COUNT = 200
LONG_COUNT = 20_000  # of each of the six
STEP_COUNT = 5000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundles")
    for name in SMALL:
        BUNDLES[name](path / f"{name}.ingot")
    return path


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.sweep(8)
def test_mutants(folder: Path, name: str) -> None:
    """A few of each change: no crash, no case without end, no wrong number, no exception of another
    kind, nothing verified that is not whole."""
    results = mutants.run_cases(str(folder / f"{name}.ingot"), SHORT_COUNT, seed=7)
    assert sum(map(len, results.values())) == SHORT_COUNT
    assert mutants.bad_cases(results) == {}
    assert {change for change, _, _ in results} == set(MUTATIONS)
    assert {result for _, _, result in results} >= {"equal", "read", "FormatError", "DigestError"}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, LONG_COUNT, STEP_COUNT))
@pytest.mark.parametrize("name", BUNDLES)
def test_many_mutants(tmp_path: Path, name: str, first: int) -> None:
    """120,000 in all; a part of them can be run again by its name."""
    BUNDLES[name](tmp_path / "m.ingot")
    results = mutants.run_cases(str(tmp_path / "m.ingot"), STEP_COUNT, seed=1, first=first)
    assert sum(map(len, results.values())) == STEP_COUNT
    assert mutants.bad_cases(results) == {}


def test_crash_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver reports a case that kills its process, and goes on behind it."""
    monkeypatch.setattr(mutants, "__file__", str(Path(__file__).with_name("mutants_that_kill.py")))
    results = mutants.run_cases(str(folder / "small.ingot"), 4)
    assert sum(map(len, results.values())) == 4
    ((_, _, result), cases), *others = mutants.bad_cases(results).items()
    assert (result.split(":")[0], cases, others) == ("crash -9", [2], [])


@pytest.mark.broad
def test_what_must_not_be_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another number, another exception and a mutant that is taken for whole are told from what may
    be."""
    small(tmp_path / "small.ingot")
    data = (tmp_path / "small.ingot").read_bytes()
    write_bundle(tiny_contents(seed=3), tmp_path / "other.ingot", tree_entry)
    parts = Parts(data)
    other = mutants.Readers(str(tmp_path / "small.ingot"), parts.prefix())
    monkeypatch.setattr(mutants, "verify_whole_bundle", mutants.void)
    monkeypatch.setattr(mutants, "diff_bundles", fail)
    found = {
        other.read(
            str(tmp_path / "other.ingot"), mutant(parts, number, 1)[1], random.Random(number)
        )[1]
        for number in range(200)
    }
    assert {"wrong", "accepted", "read"} <= found
    assert [result for result in found if result.startswith("foreign KeyError")]
    assert all(map(mutants.is_bad, found - {"read"}))


def fail(first: str, second: str) -> None:
    """Raise what no reader may."""
    raise KeyError(first, second)


def test_mutants_are_the_same_again(folder: Path) -> None:
    """A case is given by bundle, seed and number, and the changes change something."""
    parts = Parts((folder / "two_variants.ingot").read_bytes())
    assert parts.sealed() == (folder / "two_variants.ingot").read_bytes()
    for number in range(2 * len(MUTATIONS)):
        made = [mutant(parts, number, 5)[1] for _ in range(2)]
        assert made[0] == made[1]
    others = [mutant(parts, number, 5)[1] for number in range(200)]
    changed = [
        made for made in others if made.patches or made.size_change or made.prefix != parts.prefix()
    ]
    assert len(changed) > 180
