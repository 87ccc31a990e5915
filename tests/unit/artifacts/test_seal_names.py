"""A cache whose records another key has sealed, such as one that CI restores, says so: which key,
how many records, what to do. What is believed is the same as before."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.harness.build_harness import Workbench, chain, ran
from tests.harness.store_harness import Action, actions, build, key_of

from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.foreign_records import foreign_lines, foreign_of
from ingot_artifacts.store.layers import open_layer
from ingot_artifacts.store.seal_names import seal_name, seal_names
from ingot_artifacts.store.trust import ANYONE, Trust
from ingot_build_rules.engine.events.events import Event, Message
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.workspace.build_request import BuildRequest
from ingot_build_rules.tools.workspace.cache_folder import cache_trust
from ingot_build_rules.tools.workspace.open_workspace import load_project
from ingot_build_rules.tools.workspace.run_build import run_build

MINE, OTHER, THIRD = Trust(b"m" * 32), Trust(b"o" * 32), Trust(b"t" * 32)


def opened(folder: Path, trust: Trust, *below: Path) -> Cache:
    """Open a cache over others."""
    return Cache(str(folder), [open_layer(str(path), trust) for path in below], trust=trust)


def test_names_say_nothing_of_keys() -> None:
    """Each key has one, they differ, and a shared cache's is that of everybody."""
    names = [seal_name(trust) for trust in (MINE, OTHER, THIRD, ANYONE)]
    assert len(set(names)) == 4
    assert seal_name(Trust(MINE.key, shared=True)) == seal_name(ANYONE)
    assert all(
        len(name) == 8 and trust.key.hex()[:8] != name
        for name, trust in zip(names, (MINE, OTHER, THIRD, ANYONE), strict=True)
    )


def test_who_has_sealed_is_known(tmp_path: Path) -> None:
    """Each key that writes is named once, in order; what only reads leaves no name; a file that is
    damaged, or a link, is no error."""
    for trust in (OTHER, MINE, OTHER):
        opened(tmp_path, trust).close()
    Cache(str(tmp_path), read_only=True, trust=THIRD).close()
    folder = str(tmp_path / "v1")
    assert seal_names(folder) == [seal_name(OTHER), seal_name(MINE)]
    (tmp_path / "v1" / "sealed_by").write_bytes(b"\xff\xfe\n\n1234567\n" + b"abcdef01\n")
    assert seal_names(folder) == ["abcdef01"]
    (tmp_path / "v1" / "sealed_by").unlink()
    (tmp_path / "v1" / "sealed_by").symlink_to(tmp_path / "elsewhere")
    opened(tmp_path, MINE).close()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("is_below", [False, True])
def test_records_of_another_key_are_told(tmp_path: Path, is_below: bool) -> None:
    """How many there are, once, whether the cache is written to or only read; single records that
    are damaged are not taken for them."""
    wanted = actions(12)
    build(opened(tmp_path / "theirs", OTHER), wanted)
    mine = (
        opened(tmp_path / "own", MINE, tmp_path / "theirs")
        if is_below
        else opened(tmp_path / "theirs", MINE)
    )
    assert foreign_lines(mine) == []
    assert build(mine, wanted) == len(wanted)
    (line,) = foreign_lines(mine)
    assert line.startswith(f"12 of 12 records of the cache {tmp_path / 'theirs'} count as absent")
    for words in (
        seal_name(OTHER),
        f"yours is {seal_name(MINE)}",
        "restore that key",
        "--cache-shared",
    ):
        assert words in line
    again = opened(tmp_path / "theirs", OTHER)
    assert foreign_of(again) == ([] if is_below else foreign_of(again))
    assert bool(foreign_of(again)) == (not is_below)


def test_one_damaged_record_is_not_another_key(tmp_path: Path) -> None:
    """A seal that does not hold in a cache that only this key has sealed is damage."""
    cache = opened(tmp_path, MINE)
    wanted = actions(12)
    build(cache, wanted)
    Action(key_of("odd"), "rule", (b"content",)).run(cache)
    cache.layers[0].index.put_many([(key_of("odd"), bytes(100))])
    assert cache.index.get(key_of("odd")) is None
    assert foreign_lines(cache) == []


def messages(bench: Workbench) -> list[str]:
    """Build; return warnings."""
    events: list[Event] = []
    asked = BuildRequest(str(bench.cache), cache_trust())
    run_build(load_project(str(bench.folder)), asked, events.append)
    return [event.text for event in events if isinstance(event, Message)]


def test_a_build_and_why_name_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over a cache and a project that were restored with another key: the build says why it runs
    everything, `why` that nothing is believed, `cache stat` how many records count as absent; once
    it is built, nobody says anything."""
    bench = Workbench(tmp_path / "project", tmp_path / "cache")
    bench.folder.mkdir()
    bench.project({"a": chain([8, 16])})
    monkeypatch.chdir(bench.folder)
    monkeypatch.setenv("INGOT_CACHE", str(bench.cache))
    assert messages(bench) == []
    old = seal_name(cache_trust())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    new = seal_name(cache_trust())
    assert main(["why"]) == 0
    printed = capsys.readouterr()
    assert "is sealed with another key than yours, or damaged" in printed.out
    assert "was never built here" not in printed.out
    assert f"another key ({old}) has sealed them, yours is {new}" in printed.err
    assert main(["cache", "stat"]) == 0
    (count,) = [
        line.split()[-1]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("foreign")
    ]
    (line,) = messages(bench)
    assert line.startswith(f"{count} of {count} records of the cache {bench.cache} count as absent")
    assert f"another key ({old}) has sealed them, yours is {new}" in line
    assert messages(bench) == []
    assert ran(bench.build()) == {}
    assert main(["why"]) == 0
    assert capsys.readouterr().err == ""
