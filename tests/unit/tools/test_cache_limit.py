"""The limit of a cache as users meet it: option, variable, project file; a line when a build has
made its cache smaller; nothing else about a build changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.harness.build_harness import Workbench, chain, new_weight, ran

from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.stats import stat
from ingot_build_rules.engine.events.events import Event, Message
from ingot_build_rules.making.options.cache_size import NO_LIMIT
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.cli.shell.usage import cache_max, cache_size
from ingot_build_rules.tools.workspace.build_request import BuildRequest
from ingot_build_rules.tools.workspace.cache_folder import cache_max_bytes, cache_trust
from ingot_build_rules.tools.workspace.open_workspace import load_project
from ingot_build_rules.tools.workspace.run_build import run_build
from ingot_compiler.ir.errors import UserError


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """A project with one bundle."""
    made = Workbench(tmp_path / "project", tmp_path / "cache")
    made.folder.mkdir()
    made.project({"a": chain([8, 300, 16])})
    return made


def size_bytes(bench: Workbench) -> int:
    """What the cache has."""
    cache = Cache(str(bench.cache), read_only=True, trust=cache_trust())
    try:
        return stat(cache).size_bytes
    finally:
        cache.close()


def notes(bench: Workbench, max_bytes: int | None) -> list[str]:
    """Build; return what was told besides actions and targets."""
    events: list[Event] = []
    request = BuildRequest(str(bench.cache), cache_trust(), cache_max_bytes=max_bytes)
    report = run_build(load_project(str(bench.folder)), request, events.append)
    assert [item.error for item in report.results] == [None]
    return [event.text for event in events if isinstance(event, Message)]


@pytest.mark.broad
def test_fine_tunes_do_not_fill_the_disk(bench: Workbench) -> None:
    """Every version of a model makes a cache larger by its weights; below a limit the old versions
    go, a line says so, and the present one stays: the next build has nothing to do."""
    assert notes(bench, None) == []
    one = size_bytes(bench)
    limit = one * 3
    told: list[str] = []
    for _ in range(8):
        bench.edit("a", new_weight)
        told += notes(bench, limit)
        assert size_bytes(bench) <= limit
    assert 1 <= len(told) <= 4
    for line in told:
        assert line.startswith("the cache came from ")
        assert "MB are kept (see `ingot cache stat`)" in line
        assert "missed" not in line
    (bench.folder / "dist" / "a.ingot").unlink()
    assert ran(bench.build()) == {}


def test_what_the_present_bundles_need_stays(bench: Workbench) -> None:
    """A limit of nothing forgets what no bundle needs, and says that it was missed; building again
    runs nothing, and tells nothing."""
    (line,) = notes(bench, 0)
    assert "which was missed, because bundles that are present need the rest" in line
    (bench.folder / "dist" / "a.ingot").rename(bench.folder / "kept.ingot")
    (bench.folder / "kept.ingot").rename(bench.folder / "dist" / "a.ingot")
    assert ran(bench.build()) == {}


def test_a_build_that_fails_keeps_the_limit_too(bench: Workbench) -> None:
    """Also where the last bundle cannot be made, and the error is its own."""
    bench.write("a.onnx", b"no model")
    bench.build()
    request = BuildRequest(str(bench.cache), cache_trust(), keep_going=True, cache_max_bytes=0)
    report = run_build(load_project(str(bench.folder)), request)
    assert report.results[0].error is not None
    assert size_bytes(bench) == 0


def test_a_damaged_root_stops_no_build(bench: Workbench) -> None:
    """What keeps the cache from being made smaller is told in a line."""
    notes(bench, None)
    (bench.cache / "v1" / "roots" / "other").write_bytes(b"damaged")
    bench.edit("a", new_weight)
    (line,) = notes(bench, 0)
    assert line == (
        "the cache is too large and could not be made smaller: a root of the cache is damaged"
    )


def test_no_limit_and_read_only(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """``none`` never collects; what is only read is never collected."""
    assert notes(bench, NO_LIMIT) == []
    monkeypatch.setenv("INGOT_CACHE_MAX", "0")
    before = size_bytes(bench)
    bench.build(read_only=True, cache_max_bytes=0)
    assert size_bytes(bench) == before > 0


def test_the_option_the_variable_and_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The option goes first, then the variable, then the default; a bare number is refused in all,
    since ``5`` may be meant as GB."""
    monkeypatch.delenv("INGOT_CACHE_MAX", raising=False)
    assert cache_max_bytes() is None
    monkeypatch.setenv("INGOT_CACHE_MAX", "5GB")
    assert cache_max_bytes() == 5 * 10**9
    assert cache_max_bytes(7) == 7
    monkeypatch.setenv("INGOT_CACHE_MAX", "none")
    assert cache_max_bytes() == NO_LIMIT
    for text in ("5", "lots", "-1GB", "5 .GB", "١GB"):
        monkeypatch.setenv("INGOT_CACHE_MAX", text)
        with pytest.raises(UserError, match="unit such as 20GB"):
            cache_max_bytes()
    assert cache_size("0") == cache_max("0") == 0
    assert cache_size("5B") == 5


@pytest.mark.parametrize(
    "words",
    [
        ("cache", "gc", "--max", "5"),
        ("build", "--cache-max", "5"),
        ("compile", "a.onnx", "--cache-max", "5"),
    ],
)
def test_a_bare_number_is_refused(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """By every option that sizes a cache."""
    assert main(list(words)) == 1
    assert "with its unit such as" in capsys.readouterr().err


def test_the_project_file_limits_the_cache_of_the_project(
    bench: Workbench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``cache-max`` holds for a cache in the project's folder; that of the user is not the
    project's to empty."""
    monkeypatch.chdir(bench.folder)
    bench.project({"a": chain([8, 300, 16])}, more='[project]\ncache-max = "0"\n')
    assert main(["build", "--cache", str(bench.cache)]) == 1
    error = capsys.readouterr().err
    assert "a limit for a cache of others" in error
    assert str(bench.cache) in error
    bench.project({"a": chain([8, 300, 16])}, more='[project]\ncache = "c"\ncache-max = "0"\n')
    assert main(["build"]) == 0
    assert "note: the cache came from " in capsys.readouterr().err
    bench.edit("a", new_weight)
    assert main(["build", "--cache-max", "none"]) == 0
    assert "the cache came from" not in capsys.readouterr().err
    bench.project({"a": chain([8, 300, 16])}, more='[project]\ncache = "c"\ncache-max = "5"\n')
    assert main(["build"]) == 1
    assert "ingot.toml: cache-max" in capsys.readouterr().err


def test_stat_says_the_limit(
    bench: Workbench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What builds let the cache take, beside what it takes."""
    command = ["cache", "stat", "--cache", str(bench.cache)]
    for text, expected in (("5GB", "limit        5.00 GB"), ("none", "limit        none")):
        monkeypatch.setenv("INGOT_CACHE_MAX", text)
        assert main(command) == 0
        assert expected in capsys.readouterr().out
