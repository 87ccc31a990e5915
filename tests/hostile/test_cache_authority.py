"""Who decides what a bundle is: the user alone. Forged records, caches of others, links, keys that
others know."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.harness.build_harness import Workbench, chain, ran
from tests.harness.store_harness import blobs_of, digest_of, key_of, sql

import ingot
from ingot_artifacts.errors import OutputError
from ingot_artifacts.store.blob_file import blob_path
from ingot_artifacts.store.cache import Cache
from ingot_artifacts.store.layers import open_layer
from ingot_artifacts.store.ownership import CacheAuthorityError
from ingot_artifacts.store.scrub import verify
from ingot_artifacts.store.trust import ANYONE, Trust
from ingot_build_rules.engine.actions.message_pack import pack, unpack
from ingot_build_rules.engine.cache import unchanged
from ingot_build_rules.tools.cli.building.no_op import is_no_op
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.workspace import user_key as keys
from ingot_compiler.ir.errors import UserError

FOLDERS = ("v1", "v1/cas", "v1/cas/sha256", "v1/tmp", "v1/quarantine", "v1/index", "v1/roots")
MINE, OTHER = Trust(b"m" * 32), Trust(b"o" * 32)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """Two models whose bundles have other weights, not built, over a cache of its own."""
    bench = Workbench(tmp_path / "project", tmp_path / "cache")
    bench.project({"a": chain([4, 8, 4]), "b": chain([4, 8, 4], seed=2)})
    return bench


def forge(cache: Path, seal: Callable[[bytes], bytes]) -> int:
    """Give each ``bundle`` record the result of another one, as who can write to the cache would;
    return how many."""
    made = Cache(str(cache))
    with closing(sqlite3.connect(cache / "v1/index/cache.db")) as database:
        rows = [
            (key, unpack(row[32:]))
            for key, row in database.execute("SELECT key, value FROM Cache ORDER BY key")
        ]
    bundles: list[tuple[bytes, dict[str, Any]]] = [
        (key, row) for key, row in rows if row.get("rule") == "bundle"
    ]
    results = [(row["result"], row["refs"]) for _, row in bundles]
    for (key, row), (result, refs) in zip(bundles, results[1:] + results[:1], strict=True):
        content = pack({**row, "result": result, "refs": refs})
        sql(
            made, ("UPDATE Cache SET value = ? WHERE key = ?", (seal(key + content) + content, key))
        )
    made.close()
    return len(bundles)


def forget(bench: Workbench) -> None:
    """Remove bundles and memory of a project: the next build asks the cache."""
    shutil.rmtree(bench.folder / "dist")
    shutil.rmtree(bench.folder / ".ingot")


SEALS: dict[str, Callable[[bytes], bytes]] = {
    "a digest": lambda content: hashlib.sha256(content).digest(),
    "the seal of caches without a user": ANYONE.seal,
    "the seal of shared caches": Trust(b"o" * 32, shared=True).seal,
    "another user's seal": OTHER.seal,
    "no seal": lambda _: bytes(32),
}


@pytest.mark.broad
@pytest.mark.parametrize("kind", SEALS)
def test_forged_records_do_not_make_a_bundle(bench: Workbench, kind: str) -> None:
    """Records that nobody with the user's key has written count as absent: what they were about
    runs again."""
    bench.build()
    right = bench.bundle("a"), bench.bundle("b")
    forget(bench)
    assert forge(bench.cache, SEALS[kind]) == 2
    report = bench.build()
    assert ran(report) == {"bundle": 2}
    assert (bench.bundle("a"), bench.bundle("b")) == right
    forget(bench)
    assert ran(bench.build()) == {}


@pytest.mark.broad
def test_shared_cache_decides_what_a_bundle_is(bench: Workbench) -> None:
    """What ``--cache-shared`` means: the same forgery, by whoever can write, is believed; without
    it, it is not."""
    line = ["build", "-j1", "-q", "-C", str(bench.folder), "--cache", str(bench.cache)]
    assert main([*line, "--cache-shared"]) == 0
    right = bench.bundle("a"), bench.bundle("b")
    forget(bench)
    forge(bench.cache, SEALS["the seal of shared caches"])
    assert main([*line, "--cache-shared"]) == 0
    assert (bench.bundle("b"), bench.bundle("a")) == right
    forget(bench)
    assert main(line) == 0
    assert (bench.bundle("a"), bench.bundle("b")) == right


@pytest.mark.broad
def test_another_key_is_another_user(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With another key all runs again, once, and gives the same bytes under the same keys: it is in
    none of them."""

    def action_keys() -> list[bytes]:
        with closing(sqlite3.connect(bench.cache / "v1/index/cache.db")) as database:
            return [key for (key,) in database.execute("SELECT key FROM Cache ORDER BY key")]

    first = ran(bench.build())
    right, named = (bench.bundle("a"), bench.bundle("b")), action_keys()
    forget(bench)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert ran(bench.build()) == first
    assert (bench.bundle("a"), bench.bundle("b")) == right
    assert action_keys() == named
    forget(bench)
    assert ran(bench.build()) == {}


def test_shared_cache_is_read_by_other_users(tmp_path: Path) -> None:
    """Who shares writes what others can read, and reads what they and the user alone have
    written."""
    key, other = key_of("key"), key_of("other")
    cache = Cache(str(tmp_path), trust=MINE)
    cache.index.put(key, b"mine")
    assert Cache(str(tmp_path), trust=OTHER).index.get(key) is None
    cache.index.put(key, b"mine")
    shared = Cache(str(tmp_path), trust=Trust(MINE.key, shared=True))
    assert shared.index.get(key) == b"mine"
    shared.index.put(other, b"ours")
    assert Cache(str(tmp_path), trust=Trust(OTHER.key, shared=True)).index.get(other) == b"ours"
    assert Cache(str(tmp_path), read_only=True, trust=MINE).index.get(other) is None


def test_verify_finds_forged_records(tmp_path: Path) -> None:
    """``cache verify`` names a record whose seal does not hold, and removes it."""
    forged = Cache(str(tmp_path), trust=OTHER)
    forged.index.put(key_of("key"), pack({"refs": []}))
    mine = Cache(str(tmp_path), trust=MINE)
    (finding,) = verify(mine).findings
    assert (finding.kind, finding.name) == ("record", key_of("key").hex())
    assert finding.why == "its seal does not hold: it is damaged, or was made with another key"
    assert verify(mine).findings == ()


# -- the folder ------------------------------------------------------------------------------------


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o720, 0o1777])
@pytest.mark.parametrize("name", ["", *FOLDERS])
def test_folder_that_others_can_write_is_refused(
    tmp_path: Path, name: str, mode: int, read_only: bool
) -> None:
    """Whichever folder of the cache it is; as a lower layer too; and not if it is said to be
    shared, or is closed."""
    cache = tmp_path / "cache"
    Cache(str(cache)).close()
    (cache / name).chmod(mode)
    for open_it in (lambda: Cache(str(cache), read_only=read_only), lambda: open_layer(str(cache))):
        with pytest.raises(CacheAuthorityError) as caught:
            open_it()
        assert caught.value.where == str(cache / name)
        assert f"got mode {mode:04o}" in caught.value.why
        assert "chmod go-w" in caught.value.do
        assert "--cache-shared" in caught.value.do
    Cache(str(cache), read_only=read_only, trust=Trust(shared=True)).close()
    (cache / name).chmod(0o755)
    Cache(str(cache), read_only=read_only).close()


def test_folder_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root's, or another user's: by its number."""
    Cache(str(tmp_path / "cache")).close()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(CacheAuthorityError) as caught:
        Cache(str(tmp_path / "cache"))
    assert caught.value.why.startswith(
        f"expected a folder of user {user + 1}, got one of user {user}; "
    )
    Cache(str(tmp_path / "cache"), trust=Trust(shared=True)).close()


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", FOLDERS)
def test_link_in_the_cache_is_refused(tmp_path: Path, name: str, shared: bool) -> None:
    """Nothing is read or written behind it, whoever is trusted."""
    cache = tmp_path / "cache"
    Cache(str(cache)).close()
    (cache / name).rename(tmp_path / "elsewhere")
    (cache / name).symlink_to(tmp_path / "elsewhere")
    before = sorted((tmp_path / "elsewhere").rglob("*"))
    with pytest.raises(CacheAuthorityError, match="symbolic link"):
        Cache(str(cache), trust=Trust(shared=shared))
    assert sorted((tmp_path / "elsewhere").rglob("*")) == before


def test_links_on_the_way_to_the_cache_are_followed(tmp_path: Path) -> None:
    """A home or a cache on another disk, by a link of the user's; what it leads to is looked at."""
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    (tmp_path / "link").symlink_to(tmp_path / "disk/cache")
    for path in ("home/cache", "link"):
        Cache(str(tmp_path / path)).close()
    (tmp_path / "disk/cache").chmod(0o777)
    for path in ("home/cache", "link"):
        with pytest.raises(CacheAuthorityError):
            Cache(str(tmp_path / path))


@pytest.mark.parametrize("name", ["leases", "index.lock"])
def test_file_of_the_cache_that_is_a_link(tmp_path: Path, name: str) -> None:
    """Locks are never made behind a link."""
    Cache(str(tmp_path / "cache")).close()
    (tmp_path / "cache/v1" / name).unlink(missing_ok=True)
    (tmp_path / "cache/v1" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OutputError):
        assert Cache(str(tmp_path / "cache")).index
    assert not (tmp_path / "elsewhere").exists()


def test_tag_is_never_written_through_a_link(tmp_path: Path) -> None:
    """A link that waits where the cache's tag goes leads nowhere."""
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "cache/CACHEDIR.TAG").symlink_to(tmp_path / "elsewhere")
    Cache(str(tmp_path / "cache")).close()
    assert not (tmp_path / "elsewhere").exists()


def test_linked_shard_is_set_aside(tmp_path: Path) -> None:
    """A folder of blobs that is a link is no folder of the cache, even if what is behind it is
    right: written and read anew."""
    store = blobs_of(tmp_path / "cache")
    path = Path(blob_path(str(tmp_path / "cache"), store.put(b"content")))
    path.parent.rename(tmp_path / "elsewhere")
    path.parent.symlink_to(tmp_path / "elsewhere")
    other = blobs_of(tmp_path / "cache")
    assert other.put(b"content") == digest_of(b"content")
    assert not path.parent.is_symlink()
    assert bytes(other.get(digest_of(b"content"))) == b"content"
    lower = blobs_of(tmp_path / "up", tmp_path / "cache")
    assert bytes(lower.get(digest_of(b"content"))) == b"content"


def test_linked_index_of_a_lower_layer_is_empty(tmp_path: Path) -> None:
    """A database behind a link is not the cache's."""
    below = Cache(str(tmp_path / "below"))
    below.index.put(key_of("key"), b"value")
    below.close()
    path = tmp_path / "below/v1/index/cache.db"
    path.rename(tmp_path / "cache.db")
    path.symlink_to(tmp_path / "cache.db")
    assert (
        Cache(str(tmp_path / "up"), [open_layer(str(tmp_path / "below"))]).index.get(key_of("key"))
        is None
    )


VERBS = {
    "build": ["build", "-j1", "-C", "PROJECT"],
    "compile": ["compile", "PROJECT/a.onnx", "-j1", "--target", "x86-64-v3", "-o", "PROJECT/o.ingot"],
    "compile below": ["compile", "PROJECT/a.onnx", "-j1", "--target", "x86-64-v3", "-o", "PROJECT/o.ingot", "--cache-below", "CACHE"],
    "stat": ["cache", "stat"],
    "verify": ["cache", "verify"],
    "gc": ["cache", "gc", "--max", "1GB"],
}  # fmt: skip


@pytest.mark.broad
@pytest.mark.parametrize("verb", VERBS)
def test_verbs_refuse_a_cache_of_others(
    bench: Workbench, capsys: pytest.CaptureFixture[str], tmp_path: Path, verb: str
) -> None:
    """In four parts, exit code 1; with ``--cache-shared`` they go on."""
    bench.build()
    (bench.cache / "v1").chmod(0o777)
    words = [
        text.replace("PROJECT", str(bench.folder)).replace("CACHE", str(bench.cache))
        for text in VERBS[verb]
    ]
    line = [*words, "--cache", str(tmp_path / "above" if "--cache-below" in words else bench.cache)]
    assert main(line) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "error: others can write to the cache"
    assert [text.split(":")[0].strip() for text in lines] == ["error", "where", "why", "do"]
    assert main([*line, "--cache-shared"]) == 0


def test_python_refuses_a_cache_of_others(bench: Workbench) -> None:
    """``ingot.compile`` and ``ingot.Project`` as the command."""
    bench.build()
    (bench.cache / "v1").chmod(0o777)
    model, targets = bench.folder / "a.onnx", ["x86-64-v3"]
    with pytest.raises(CacheAuthorityError):
        ingot.compile(model, targets=targets, cache=bench.cache)
    project = ingot.Project.load(bench.folder)
    with pytest.raises(CacheAuthorityError):
        project.build(cache=bench.cache)
    assert ingot.compile(model, targets=targets, cache=bench.cache, cache_shared=True).digest
    assert project.build(cache=bench.cache, cache_shared=True).good() == ["a", "b"]


# -- the key ---------------------------------------------------------------------------------------


@pytest.fixture
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the key will be."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state/ingot/key"


def test_key_is_made_once_and_private(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the umask; what only reads makes none; of two that make it at once, one is right for
    both."""
    before = os.umask(0)
    try:
        assert keys.known_key() != keys.known_key()
        assert not key_file.exists()
        first = keys.user_key()
    finally:
        os.umask(before)
    assert keys.user_key() == keys.known_key() == first == key_file.read_bytes()
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(key_file.parent.stat().st_mode) == 0o700
    assert [path.name for path in key_file.parent.iterdir()] == ["key"]
    key_file.unlink()
    link = os.link

    def slower(old: str, new: str) -> None:
        monkeypatch.setattr(os, "link", link)
        keys.user_key()
        link(old, new)

    monkeypatch.setattr(os, "link", slower)
    assert keys.user_key() == key_file.read_bytes() != first


def _open_to_others(path: Path) -> None:
    path.chmod(0o640)


def _short(path: Path) -> None:
    path.write_bytes(b"short")


def _long(path: Path) -> None:
    path.write_bytes(bytes(33))


def _link(path: Path) -> None:
    path.rename(path.with_name("other"))
    path.symlink_to("other")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@pytest.mark.parametrize("spoil", [_open_to_others, _short, _long, _link, _pipe])
def test_key_that_is_no_good_is_refused(
    bench: Workbench,
    key_file: Path,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Path], object],
) -> None:
    """A key that others know seals nothing: told in four parts, never used, never replaced without
    a word."""
    shutil.rmtree(bench.cache)
    keys.user_key()
    spoil(key_file)
    assert main(["build", "-j1", "-C", str(bench.folder), "--cache", str(bench.cache)]) == 1
    text = capsys.readouterr().err
    assert text.startswith("error: the key that seals the cache ")
    assert text.count("\n") == 4
    assert not bench.cache.exists()


@pytest.mark.broad
def test_key_that_cannot_be_made(bench: Workbench, key_file: Path) -> None:
    """A file where its folder should be: refused, but for caches whose records need no key."""
    key_file.parents[1].write_bytes(b"")
    with pytest.raises(UserError) as caught:
        keys.user_key()
    assert "XDG_STATE_HOME" in caught.value.do
    line = ["build", "-j1", "-q", "-C", str(bench.folder), "--cache", str(bench.cache)]
    assert main(line) == 1
    assert main([*line, "--cache-shared"]) == 0


# -- what a project remembers, and where it writes -------------------------------------------------


def test_forged_memory_is_no_memory(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """``.ingot/unchanged`` that says that nothing has changed, well-formed, by somebody without the
    key: looked at closer."""
    monkeypatch.setattr(unchanged, "SETTLED_NS", 0)
    monkeypatch.chdir(bench.folder)
    monkeypatch.setattr("sys.argv", ["ingot", "build", "-q", "-j1"])
    assert main(["build", "-q", "-j1"]) == 0
    assert is_no_op(["-q", "-j1"])
    path = bench.folder / ".ingot/unchanged"
    head, _, rest = path.read_bytes().partition(b"\n")
    other = rest.replace(b"2 ", b"3 ", 1)
    path.write_bytes(
        b" ".join(head.split(b" ")[:-1]) + b" " + unchanged.seal(b"o" * 32, other) + b"\n" + other
    )
    assert not is_no_op(["-q", "-j1"])
    path.write_bytes(head + b"\n" + rest)
    assert is_no_op(["-q", "-j1"])
    monkeypatch.setenv("XDG_STATE_HOME", str(bench.folder.parent / "other user"))
    keys.user_key()
    assert not is_no_op(["-q", "-j1"])


def test_memory_is_never_written_through_a_link(bench: Workbench, tmp_path: Path) -> None:
    """Temporary names cannot be guessed, and links in their place are not followed."""
    victim = tmp_path / "victim"
    (bench.folder / ".ingot").mkdir()
    (bench.folder / f".ingot/unchanged.{os.getpid()}.part").symlink_to(victim)
    assert unchanged.write_atomically(str(bench.folder / ".ingot/unchanged"), b"content")
    assert not victim.exists()


def _output_above(bench: Workbench) -> str:
    return '[bundle.a]\nmodel = "a"\noutput = "../out/a.ingot"\ntargets = ["x86-64-v3"]\n'


def _output_elsewhere(bench: Workbench) -> str:
    return f'[bundle.a]\nmodel = "a"\noutput = "{bench.folder.parent}/out/a.ingot"\ntargets = ["x86-64-v3"]\n'


def _output_behind_a_link(bench: Workbench) -> str:
    (bench.folder / "dist").symlink_to("../out")
    return '[bundle.a]\nmodel = "a"\ntargets = ["x86-64-v3"]\n'


def _memory_behind_a_link(bench: Workbench) -> str:
    (bench.folder / ".ingot").symlink_to("../out")
    return '[bundle.a]\nmodel = "a"\ntargets = ["x86-64-v3"]\n'


def _cache_outside(_: Workbench) -> str:
    return '[project]\ncache = "../out"\n[bundle.a]\nmodel = "a"\ntargets = ["x86-64-v3"]\n'


def _cache_behind_a_link(bench: Workbench) -> str:
    (bench.folder / "cache").symlink_to("../out")
    return '[project]\ncache = "cache/c"\n[bundle.a]\nmodel = "a"\ntargets = ["x86-64-v3"]\n'


OUTSIDE = (
    _output_above, _output_elsewhere, _output_behind_a_link, _memory_behind_a_link, _cache_outside, _cache_behind_a_link,
)  # fmt: skip


@pytest.mark.sweep(18)
@pytest.mark.parametrize("place", OUTSIDE)
def test_nothing_is_written_outside_of_the_project(
    bench: Workbench, capsys: pytest.CaptureFixture[str], place: Callable[[Workbench], str]
) -> None:
    """Bundles, memory and cache that the project file places outside, by links too; also in a dry
    run and from Python."""
    outside = bench.folder.parent / "out"
    outside.mkdir(mode=0o700)
    bench.write("ingot.toml", '[model.a]\nsource = "a.onnx"\n' + place(bench))
    line = ["build", "-j1", "-C", str(bench.folder)]
    for words in ([], ["-n"]):
        assert main([*line, *words]) == 1
        text = capsys.readouterr().err
        assert text.startswith("error: the project would write outside of its folder\n")
        assert "--allow-outside" in text
        assert str(outside) in text
    project = ingot.Project.load(bench.folder)
    with pytest.raises(UserError):
        project.build()
    assert list(outside.iterdir()) == []
    assert project.build(allow_outside=True).good() == ["a"]
    assert main([*line, "--allow-outside"]) == 0
    assert list(outside.iterdir()) != []


def test_users_cache_may_be_named_by_the_project(bench: Workbench) -> None:
    """The user's own cache, and any that the command names, are no business of the project's
    folder."""
    text = (bench.folder / "ingot.toml").read_text()
    bench.write("ingot.toml", f'[project]\ncache = "{os.environ["INGOT_CACHE"]}/below"\n{text}')
    assert main(["build", "-j1", "-q", "-C", str(bench.folder)]) == 0
    bench.write("ingot.toml", f'[project]\ncache = "/elsewhere"\n{text}')
    assert main(["build", "-j1", "-q", "-C", str(bench.folder), "--cache", str(bench.cache)]) == 0
    assert not Path("/elsewhere").exists()
