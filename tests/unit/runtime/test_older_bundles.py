"""A bundle that was signed before the current one is not installed over it: signatures have
numbers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.c_loader import options, verdict_of_c, verdict_of_python
from tests.hostile.tiny import tiny_contents, tree_entry
from tests.json_schemas import checked
from tests.unit.runtime.test_signatures import Owner, sign

from ingot_artifacts.bundle.write import write_bundle
from ingot_build_rules.tools.cli.main import main
from ingot_runtime.command import main as device
from ingot_runtime.install import CURRENT, current

Output = pytest.CaptureFixture[str]


class Shop:
    """Bundles, signed with a number or without, and a folder where they are installed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.to = folder, folder / "device"
        self.to.mkdir()
        self.alice, self.bob = Owner(folder, "alice", 1), Owner(folder, "bob", 2)

    def made(self, seed: int, number: int | None, owner: Owner | None = None) -> Path:
        """Return a signed bundle."""
        path = self.folder / f"{seed}.ingot"
        write_bundle(tiny_contents(seed=seed), path, tree_entry)
        counted = [] if number is None else ["--number", str(number)]
        sign(path, owner or self.alice, *counted)
        return path

    def install(self, path: Path, *more: str) -> int:
        """Return the exit code, for who trusts alice."""
        keys = ["--require-key", str(self.alice.public)]
        return device(["install", str(path), "--to", str(self.to), *keys, *more])


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_numbers_do_not_fall(shop: Shop, capsys: Output) -> None:
    """A smaller number, or none, is refused where the current bundle has one, unless that is asked
    for; equal and larger ones are installed."""
    old, new = shop.made(1, 6), shop.made(2, 7)
    bare, again = shop.made(3, None), shop.made(4, 7)
    assert shop.install(old) == 0
    assert shop.install(new) == 0
    for path, got in ((old, "got 6"), (bare, "got none")):
        capsys.readouterr()
        assert shop.install(path) == 4
        said = capsys.readouterr().err
        assert "older than the current one" in said
        assert f"expected a number of 7 or more, {got}" in said
    assert (current(str(shop.to)) or "").startswith("000002-")
    assert shop.install(again) == 0
    assert shop.install(old, "--allow-older") == 0
    assert shop.install(bare, "--allow-older") == 0


def test_without_a_number_only_who_asks_is_refused(shop: Shop, capsys: Output) -> None:
    """And who asks needs keys: a number counts as far as its signature does."""
    bare = shop.made(1, None)
    assert shop.install(bare) == 0
    assert shop.install(bare, "--not-older") == 4
    assert "the bundle has no number" in capsys.readouterr().err
    assert shop.install(shop.made(2, 0), "--not-older") == 0
    assert shop.install(bare, "--not-older", "--allow-older") == 1
    assert device(["install", str(bare), "--to", str(shop.to), "--not-older"]) == 1
    assert "--not-older without keys" in capsys.readouterr().err


def test_only_trusted_numbers_count(shop: Shop) -> None:
    """Somebody else's number keeps nobody from installing, and helps nobody to."""
    first = shop.made(1, 5)
    sign(first, shop.bob, "--number", "99")
    assert shop.install(first) == 0
    assert shop.install(shop.made(2, 6)) == 0
    low = shop.made(3, 4)
    sign(low, shop.bob, "--number", "99")
    assert shop.install(low) == 4


def test_going_back_is_not_hindered(shop: Shop) -> None:
    """`rollback` leads to the one before, and the one that is current then is what counts."""
    old, new = shop.made(1, 6), shop.made(2, 7)
    assert [shop.install(old), shop.install(new)] == [0, 0]
    assert device(["rollback", str(shop.to)]) == 0
    assert shop.install(old) == 0


def test_both_loaders_know_numbers(shop: Shop, capsys: Output) -> None:
    """The bundle loads for who trusts the key, whatever number it has; one that is none is
    refused."""
    for number in (0, 1, 10**15 - 1):
        made = shop.made(1, number)
        assert verdict_of_python(made, keys=[shop.alice.public]).kind == ""
        assert verdict_of_c(made, options(keys=[str(shop.alice.public)])).kind == ""
    capsys.readouterr()
    path = shop.made(1, None)
    line = ["sign", str(path), "--key", str(shop.alice.secret), "--number"]
    for text in ("-1", "x", str(10**15), "\u0663"):
        assert main([*line, text]) == 1
        assert "bad --number" in capsys.readouterr().err
    assert main([*line, "3", "--json"]) == 0
    assert checked("sign", capsys.readouterr().out)["number"] == 3


def test_what_is_no_link_is_not_guessed_at(shop: Shop, capsys: Output) -> None:
    """A file in the place of the link: nobody knows which bundle was current, and none is
    removed."""
    assert shop.install(shop.made(1, 1)) == 0
    link = shop.to / CURRENT
    link.unlink()
    shutil.copyfile(shop.folder / "1.ingot", link)
    before = {*shop.to.iterdir()}
    for line in (["install", str(shop.made(2, 2)), "--to"], ["rollback"]):
        capsys.readouterr()
        assert device([*line, str(shop.to)]) == 1
        assert "is no symbolic link" in capsys.readouterr().err
    assert {*shop.to.iterdir()} == before
    link.unlink()
    assert shop.install(shop.made(2, 2)) == 0
