"""Depfiles: the real make and the real ninja read the very names that were written, or the name is
refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot_artifacts.errors import OutputError
from ingot_build_rules.engine.events.depfile import depfile_text

NINJA = str(Path(sys.executable).with_name("ninja"))
_BUILD = (
    "rule run\n  command = cp text d && touch -- $out\n  depfile = d\n  deps = gcc\nbuild {}: run\n"
)


def write_files(folder: Path, target: str, dependencies: Sequence[str]) -> None:
    """Write old dependencies, a newer target and the depfile ``text``."""
    for name in dependencies:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
        os.utime(folder / name, (1000, 1000))
    (folder / target).touch()
    os.utime(folder / target, (2000, 2000))
    (folder / "text").write_text(depfile_text(target, dependencies))


def make_says(folder: Path, target: str, rule: str = "%: ; @true") -> int:
    """Ask make whether the target is up to date: 0 yes, 1 no, 2 an error."""
    (folder / "Makefile").write_text(f"include text\n{rule}\n")
    done = subprocess.run(
        ["make", "-rRq", "--", target], cwd=folder, capture_output=True, text=True, check=False
    )
    assert "overriding" not in done.stderr
    return done.returncode


def ninja_reads(folder: Path, target: str) -> list[str]:
    """Return the dependencies that ninja takes from the depfile."""
    escaped = target.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")
    (folder / "build.ninja").write_text(_BUILD.format(escaped))
    (folder / target).unlink()
    subprocess.run([NINJA], cwd=folder, check=True, capture_output=True)
    listed = subprocess.run(
        [NINJA, "-t", "deps", target], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    return [line.removeprefix("    ") for line in listed.splitlines()[1:] if line]


def assert_read_alike(folder: Path, target: str, dependencies: Sequence[str]) -> None:
    """Make finds the target current, each dependency alone makes it old, and ninja lists just these
    dependencies."""
    write_files(folder, target, dependencies)
    assert make_says(folder, target) == 0
    for name in dependencies:
        os.utime(folder / name, (3000, 3000))
        assert make_says(folder, target) == 1, name
        os.utime(folder / name, (1000, 1000))
    assert sorted(ninja_reads(folder, target)) == sorted(dependencies)


@pytest.mark.sweep(12)
@pytest.mark.parametrize(
    "name",
    ["a b", "a  b", " a", "a#b", "#", "a$b", "$", "$(a)b", "a\\b", "a\\ b", "a\\\\ b", "a\\\\b", "a:b", "C:a", "a'b", 'a"b',
     "a&b", "a%b", "%", "a~", "a(1) b", "a{b,c}", "a]b", "a!b", "a@b", "a,b", "a+b", "-a", "é ü", "日本", "sub dir/x.y", "x" * 200],
)  # fmt: skip
def test_each_name_is_read_by_both(name: str, tmp_path: Path) -> None:
    """As the only dependency, and as the target where both allow it."""
    assert_read_alike(tmp_path, "out", [name])
    if not set(name) & set("%&="):
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        (tmp_path / name).parent.mkdir(exist_ok=True)
        assert_read_alike(tmp_path, name, ["in"])


@pytest.mark.parametrize("name", ["day=1/m.onnx", "a=", "a =b", "a=b c", "a:=b", "a+=b"])
def test_an_equals_sign_is_read_by_both_after_another_name(name: str, tmp_path: Path) -> None:
    """Alone, make would take it for an assignment."""
    assert_read_alike(tmp_path, "out", [name, "other"])
    with pytest.raises(OutputError, match="make takes = for an assignment"):
        depfile_text("out", [name])


ALPHABET = "ab.1_-+ #$\\:%'\"&~(){}]!@,=é"
NAMES = st.text(ALPHABET, min_size=1, max_size=6).filter(
    lambda name: name.strip(".") != "" and len(name.encode()) < 200
)


@settings(max_examples=40)
@given(target=NAMES, dependencies=st.lists(NAMES, min_size=1, max_size=3, unique=True))
def test_every_name_is_read_by_both_or_refused(
    target: str, dependencies: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """There is no third way: a depfile that one of them misreads."""
    names = [target, *dependencies]
    if len({*names, "d", "text", "Makefile", "build.ninja"}) < len(names) + 4:
        return
    try:
        depfile_text(target, dependencies)
    except OutputError:
        return
    assert_read_alike(tmp_path_factory.mktemp("names"), target, dependencies)


@pytest.mark.parametrize(
    "name", ["a\nb", "a\rb", "a\tb", "a\0b", "a;b", "a|b", "a<b", "a>b", "a^b", "a`b", "a*b", "a?b", "a[b", "~a", "a\\", "a\\#",
             "a\\$", "a\\:", "a\\[", "a(b)", "", "a ", "a:", "=", "=a", "+=a"]
)  # fmt: skip
def test_a_name_that_cannot_be_written_is_refused(name: str) -> None:
    """The message has the path and the reason."""
    with pytest.raises(OutputError, match="no depfile can name") as found:
        depfile_text("out", [name, "other"])
    assert found.value.where == name
    with pytest.raises(OutputError, match="no depfile can name"):
        depfile_text(name, ["in"])


@pytest.mark.parametrize("name", ["a%b", "a=b", "a&"])
def test_some_names_are_refused_as_targets(name: str) -> None:
    """They make a pattern, an assignment or a group of what is a target."""
    with pytest.raises(OutputError, match="no depfile can name"):
        depfile_text(name, ["in"])


def test_a_dependency_that_is_gone_makes_the_target_old(tmp_path: Path) -> None:
    """A file that the source does not need any more stops no build."""
    write_files(tmp_path, "out", ["a", "b"])
    (tmp_path / "a").unlink()
    assert make_says(tmp_path, "out", "out: ; @true") == 1


def test_the_text_is_sorted_and_names_each_file_once() -> None:
    """Two builds write the same bytes."""
    assert depfile_text("out", ["b", "a", "b"]) == "out: \\\n  a \\\n  b\n\na:\n\nb:\n"
    assert depfile_text("out", []) == "out:\n"
