"""The lock file: canonical bytes, nothing of the machine, left alone when it is the same, refused
when it is none."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.json_schemas import checked

from ingot_build_rules.making.options.options import make_options
from ingot_build_rules.making.rules.registry import BUNDLE_RULES
from ingot_build_rules.making.stages.lock_file import (
    CodeRecord,
    LockFile,
    lock_path,
    lock_text,
    read_lock,
    record_code,
    relative_sources,
    write_lock,
)
from ingot_build_rules.making.stages.own_code import code_digests
from ingot_build_rules.tools.reproduce.recorded_options import recorded_options
from ingot_compiler.ir.errors import UserError

OPTIONS = make_options(
    ["aarch64", "x86-64-v4+amx-tile"], {"x": (2, 3), "s": ()}, planner="best_fit"
)
LOCK = LockFile(
    "b" * 64,
    (("models/ü.onnx", "1" * 64), ("models/data.bin", "2" * 64)),
    OPTIONS.plain(),
    (("ingot", "0.1.0"), ("ziglang", "0.17")),
    CodeRecord(
        (("link", "4" * 64),), (("ingot_compiler/ir/op.py", "5" * 64),), (("numpy", "2.1"),)
    ),
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """All of it, options included; the text is the same for the same content."""
    path = str(tmp_path / "a.lock.json")
    write_lock(path, LOCK)
    assert read_lock(path) == LOCK
    assert recorded_options(read_lock(path).options) == OPTIONS
    assert (tmp_path / "a.lock.json").read_text() == lock_text(
        replace(LOCK, toolchain=LOCK.toolchain[::-1])
    )


def test_a_file_that_is_the_same_keeps_its_times(tmp_path: Path) -> None:
    """Whoever watches the file sees no change; another content replaces it whole."""
    path = tmp_path / "a.lock.json"
    write_lock(str(path), LOCK)
    os.utime(path, ns=(1, 1))
    write_lock(str(path), LOCK)
    assert path.stat().st_mtime_ns == 1
    write_lock(str(path), replace(LOCK, bundle="c" * 64))
    assert path.stat().st_mtime_ns != 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.lock.json"]


def test_nothing_of_the_machine(tmp_path: Path) -> None:
    """No absolute path and no time, also of the real code; keys are sorted, and those that the
    schema has."""
    code = record_code(code_digests(None))
    text = lock_text(replace(LOCK, code=code))
    assert not re.search(r'"/|\d\d:\d\d|20\d\d-', text)
    assert str(Path.home()) not in text
    plain = checked("lock", text.replace("\n", ""))
    assert list(plain) == sorted(plain)
    assert set(plain["rules"]) == {rule.name for rule in BUNDLE_RULES}
    assert "ingot_compiler/passes/pipeline.py" in [entry["path"] for entry in plain["code"]]


def test_paths_are_relative_to_the_project(tmp_path: Path) -> None:
    """The model comes first, the files beside it are sorted; what lies outside is found from the
    folder, too."""
    paths = [
        str(tmp_path / name) for name in ("p/m/net.onnx", "p/m/z.bin", "p/m/b.bin", "other/c.bin")
    ]
    found = relative_sources(str(tmp_path / "p"), [(path, "") for path in paths])
    assert [path for path, _ in found] == ["m/net.onnx", "../other/c.bin", "m/b.bin", "m/z.bin"]
    assert lock_path("dist/a.b.ingot") == "dist/a.b.lock.json"
    assert lock_path("dist/a") == "dist/a.lock.json"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"bundle": 3}, "expected a text, got 3"),
        ({"sources": {}}, "expected a list, got {}"),
        ({"sources": ["a"]}, "expected a table, got a"),
        ({"sources": [{"path": "a"}]}, "no key 'sha256'"),
        ({"options": []}, "expected a table, got []"),
        ({"toolchain": {"ingot": None}}, "expected a text, got None"),
        ({"code": 1}, "expected a list, got 1"),
        ({"format": 2}, "expected format 1, got 2"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, change: dict[str, object], why: str) -> None:
    """Any other value is an error in four parts that says what was expected."""
    path = tmp_path / "a.lock.json"
    path.write_text(json.dumps({**json.loads(lock_text(LOCK)), **change}))
    with pytest.raises(UserError) as caught:
        read_lock(str(path))
    assert caught.value.why == why
    assert caught.value.where == str(path)
    assert caught.value.do


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'"x"', b"\xff", b"[" * 100_000, b'{"bundle": "a"}']
)
def test_no_lock_file_at_all(tmp_path: Path, content: bytes) -> None:
    """Bytes of any other kind are refused, never an exception of another class."""
    path = tmp_path / "a.lock.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match="not a lock file"):
        read_lock(str(path))
    with pytest.raises(UserError, match="cannot read the lock file"):
        read_lock(str(tmp_path))


def test_files_of_libraries_are_in_no_lock_file() -> None:
    """They differ from machine to machine where the versions do not."""
    digests: Any = code_digests(None, saves=False)
    then = record_code(digests)
    others = {name: replace(found, digest="0" * 64) for name, found in digests._installed.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "_installed", others)
        assert digests.distributions_of("ingot_compiler.codegen.llvm") != ()
        assert record_code(digests) == then
    assert {name for name, _ in then.libraries} >= {"llvmlite", "numpy", "onnx"}


def test_keys_of_the_future_and_no_code(tmp_path: Path) -> None:
    """Unknown keys are left alone; code and libraries may be missing."""
    path = tmp_path / "a.lock.json"
    plain = {**json.loads(lock_text(LOCK)), "new": 1}
    for key in ("rules", "code", "libraries"):
        del plain[key]
    path.write_text(json.dumps(plain))
    assert read_lock(str(path)) == replace(LOCK, code=CodeRecord((), (), ()))


@pytest.mark.parametrize(
    "change",
    [{"targets": []}, {"targets": "x"}, {"targets": [1]}, {"shapes": {"x": "1"}}, {"shapes": [{"x": [1]}]}, {"place": [["a"]]}],
)  # fmt: skip
def test_options_that_are_none(change: dict[str, object]) -> None:
    """A record of another shape is refused, whoever wrote it."""
    with pytest.raises((TypeError, ValueError)):
        recorded_options({**OPTIONS.plain(), **change})
