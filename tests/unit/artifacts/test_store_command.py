"""The verb `cache`: reports for people and programs, errors in four parts, the folder by flag or
environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.harness.store_harness import Action, digest_of, key_of
from tests.json_schemas import checked

from ingot_artifacts.store.cache import Cache
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.workspace.cache_folder import cache_folder, cache_trust
from ingot_runtime.option_values import size_bytes

ACTION = Action(key_of("action"), "codegen", (b"content" * 100,))


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A cache with one record, one blob, one root."""
    cache = Cache(str(tmp_path / "cache"), trust=cache_trust())
    ACTION.run(cache)
    cache.roots.add("dist/a.ingot", [ACTION.key])
    cache.close()
    return str(tmp_path / "cache")


def report(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    """Run `ingot cache ... --json`; return its object."""
    assert main(["cache", *arguments, "--json"]) == code
    return checked(f"cache-{arguments[0]}", capsys.readouterr().out)


def assert_refused(
    capsys: pytest.CaptureFixture[str], *arguments: str, words: tuple[str, ...]
) -> None:
    """The command ends with 1 and an error in parts that has all of ``words``."""
    assert main(["cache", *arguments]) == 1
    text = capsys.readouterr().err
    assert text.startswith("error: ")
    assert [word for word in words if word not in text] == []


def test_stat(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts in text and as JSON; a cache that is not there yet is empty, and is not made."""
    found = report(capsys, "stat", "--cache", folder)
    assert (found["record_count"], found["blob_count"], found["root_count"]) == (1, 1, 1)
    assert main(["cache", "stat", "--cache", folder]) == 0
    text = capsys.readouterr().out
    assert "records      1" in text
    assert "codegen        1" in text
    assert report(capsys, "stat", "--cache", folder + "x")["record_count"] == 0
    assert not Path(folder + "x").exists()


def test_gc(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The report says what came of it and what roots kept; a dry run deletes nothing."""
    assert main(["cache", "gc", "--max", "0", "--cache", folder, "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("would come from ")
    assert "kept by root dist/a.ingot  1 records" in text
    assert "missed 0 B: bundles that are present need the rest" in text
    cache = Cache(folder)
    cache.roots.remove("dist/a.ingot")
    cache.close()
    dry = report(capsys, "gc", "--max", "0", "--cache", folder, "--dry-run")
    assert (dry["max_bytes"], dry["is_reached"]) == (0, True)
    assert report(capsys, "stat", "--cache", folder)["record_count"] == 1
    done = report(capsys, "gc", "--max", "0", "--cache", folder)
    assert done == dry | {"dry_run": False}
    assert done["after"] == {"record_count": 0, "blob_count": 0, "size_bytes": 0}
    assert done["forgotten"] == {"codegen": 1}
    assert report(capsys, "stat", "--cache", folder)["blob_count"] == 0


def test_verify(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Damage: exit code 4 and what was found; afterwards there is none. A dry run leaves it."""
    assert report(capsys, "verify", "--cache", folder)["findings"] == []
    digest = digest_of(ACTION.contents[0])
    path = Path(folder, "v1", "cas", "sha256", digest[:2], digest[2:])
    path.chmod(0o600)
    path.write_bytes(b"x")
    for _ in range(2):
        report(capsys, "verify", "--cache", folder, "--dry-run", code=4)
    assert main(["cache", "verify", "--cache", folder]) == 4
    text = capsys.readouterr().out
    assert f"blob  {digest}: its bytes do not have this sha256" in text
    assert f"record  {ACTION.key.hex()}: blob {digest} is missing" in text
    assert "checked 1 records, 1 blobs, 1 B: 2 wrong" in text
    assert main(["cache", "verify", "--cache", folder]) == 0


def test_why(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A record: rule, ingredients, blobs, root. A blob: who needs it."""
    digest = digest_of(ACTION.contents[0])
    assert main(["cache", "why", ACTION.key.hex()[:8].upper(), "--cache", folder]) == 0
    text = capsys.readouterr().out
    for words in (
        ACTION.key.hex(),
        "rule    codegen",
        f"name  {ACTION.key.hex()}",
        f"{digest}  700 B",
        "root  dist/a.ingot",
    ):
        assert words in text
    found = report(capsys, "why", digest, "--cache", folder)
    assert found == {
        "version": 1,
        "digest": digest,
        "size_bytes": 700,
        "needed_by": [{"key": ACTION.key.hex(), "rule": "codegen"}],
        "kept_by": ["dist/a.ingot"],
    }
    assert main(["cache", "why", digest[:6], "--cache", folder]) == 0
    assert f"codegen  {ACTION.key.hex()}" in capsys.readouterr().out
    assert report(capsys, "why", ACTION.key.hex(), "--cache", folder)["blobs"] == {digest: 700}


def test_mistakes(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each wrong use is one error that says what to do."""
    assert_refused(capsys, "sta", "--cache", folder, words=("did you mean 'stat'",))
    assert_refused(capsys, "gc", "--cache", folder, words=("gc needs --max SIZE",))
    assert_refused(capsys, "gc", "--max", "many", words=("wrong value of --max", "5GB"))
    assert_refused(capsys, "stat", "--max", "5GB", words=("--max is not for stat", "it is for gc"))
    assert_refused(capsys, "why", "--cache", folder, words=("why needs KEY_OR_DIGEST",))
    assert_refused(capsys, "why", "xyz", "--cache", folder, words=("hex digits",))
    assert_refused(
        capsys, "why", "0" * 64, "--cache", folder, words=("no such record, blob or bundle",)
    )
    assert_refused(
        capsys, "verify", "--cache", folder + "x", words=("there is no cache", "--cache DIR")
    )
    Path(folder + "y").mkdir()
    Path(folder + "y", "v1").write_bytes(b"")
    assert_refused(capsys, "verify", "--cache", folder + "y", words=("cannot use the cache",))


def test_sizes() -> None:
    """Decimal and binary units, with and without B."""
    assert size_bytes("5GB") == size_bytes("5G") == 5 * 10**9
    assert size_bytes("1.5MiB") == 3 << 19
    assert size_bytes("12") == size_bytes("12B") == 12
    assert size_bytes("2 kB") == size_bytes("2KB") == size_bytes("2kb") == 2000


def test_the_folder_by_flag_and_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The flag goes first, then Ingot's variable, the XDG folder (absolute ones only), the home."""
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("INGOT_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == "/home/somebody/.cache/ingot"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == "/home/somebody/.cache/ingot"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == "/xdg/ingot"
    monkeypatch.setenv("INGOT_CACHE", "/named")
    assert cache_folder() == "/named"
    monkeypatch.chdir(tmp_path)
    assert cache_folder("given") == str(tmp_path / "given")
