"""Completion of the shell: what the scripts get as an answer, and that bash makes words of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.test_cli import assert_refused, child_environment

from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.cli.shell.candidates import answer
from ingot_build_rules.tools.cli.shell.verbs import VERBS, read_verb

PROJECT = """
[model.detector]
source = "detector.onnx"
[bundle.detector]
model = "detector"
[bundle.other]
model = "detector"
[test.detector]
bundle = "detector"
[test.night]
bundle = "detector"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two bundles and two tests; the current folder is one below it."""
    (tmp_path / "ingot.toml").write_text(PROJECT)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path


def bash(*words: str) -> list[str]:
    """The answer for bash."""
    return answer("bash", list(words))


def test_verbs() -> None:
    """All of them, and ``help``; behind ``help``, all but that."""
    assert bash("") == ["words", *(name for name, _ in VERBS), "help"]
    assert bash("comp") == ["words", "compile", "completion"]
    assert bash("help", "ver") == ["words", "verify"]
    assert bash("--v") == ["words", "--version"]
    assert bash("nonsense", "") == ["words"]


@pytest.mark.parametrize("name", [name for name, _ in VERBS])
def test_every_option_of_every_verb(name: str) -> None:
    """The long names behind two dashes, all behind one."""
    names = [word for option in read_verb(name).options for word in option.names.split()]
    assert bash(name, "-") == ["words", *names, "--help"]
    assert bash(name, "--") == ["words", *(it for it in names if it[:2] == "--"), "--help"]


def test_options_that_are_given() -> None:
    """They are not offered again, by none of their names, unless they may be repeated."""
    given = bash("compile", "m.onnx", "-o", "x", "--cache=y", "--target", "native", "--")
    assert not {"--output", "--cache"} & set(given)
    assert {"--target", "--cache-below"} <= set(given)


def test_values() -> None:
    """Choices, names that Ingot knows, files by suffix, folders; nothing where any text will do."""
    assert bash("compile", "--from", "") == ["words", "graph", "placed", "loops"]
    assert bash("cache", "") == ["words", "stat", "gc", "verify", "why"]
    assert "x86-64-v3" in bash("compile", "m.onnx", "--target", "x")
    assert "hill_climb" in bash("compile", "--planner", "")
    assert bash("compile", "") == bash("compile", "-q", "m") == ["files .onnx"]
    assert bash("compile", "-o", "") == bash("diff", "a.ingot", "") == ["files .ingot"]
    assert bash("verify", "a", "b", "c", "") == ["files .ingot"]
    assert bash("run", "a.ingot", "--inputs", "") == ["files .npz"]
    assert bash("build", "--depfile", "") == ["files"]
    assert bash("build", "-C", "") == ["folders"]
    assert bash("run", "a.ingot", "") == bash("run", "--threads", "") == ["words"]


def test_a_value_behind_an_equals_sign() -> None:
    """bash takes the word apart and replaces the last part alone; the others replace all of it."""
    assert bash("compile", "--from", "=", "gr") == ["words", "graph"]
    assert bash("compile", "--from", "=") == ["words", "graph", "placed", "loops"]
    assert bash("compile", "-o", "=", "") == ["files .ingot"]
    assert bash("compile", "--shape", "x", "=", "1", "m") == ["files .onnx"]
    assert answer("zsh", ["compile", "--from=gr"]) == ["words", "--from=graph"]
    assert answer("fish", ["compile", "--from=gr"]) == ["words", "--from=graph\t"]


def test_descriptions() -> None:
    """zsh and fish show what a word means; zsh gets its separator escaped."""
    assert answer("fish", ["diff", "--j"]) == [
        "words",
        "--json\tprint one JSON object instead of text",
    ]
    assert answer("zsh", ["dif"]) == ["words", "diff:say what differs between two bundles"]


def test_names_of_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundles and tests of the nearest project, or of the one that ``-C`` names; a test of a
    bundle's name gets the name that means it."""
    names = ["words", "detector", "other", "test.detector", "night"]
    assert bash("build", "") == names
    assert answer("fish", ["why", "o"]) == ["words", "other\tbundle"]
    monkeypatch.chdir("/")
    assert bash("build", "") == ["words"]
    assert bash("build", "-C", str(project), "") == names
    assert bash("build", f"--folder={project}", "-k", "") == names


@pytest.mark.parametrize("text", ["[bundle", "bundle = 3", "[[bundle]]", "\udcff"])
def test_a_damaged_project_is_quiet(project: Path, text: str) -> None:
    """What is wrong with it is told when it is built."""
    (project / "ingot.toml").write_bytes(text.encode(errors="surrogateescape"))
    assert bash("build", "") == ["words"]


def in_bash(script: str, folder: Path, *words: str) -> list[str]:
    """What bash offers for the words; the command is the one of this Python."""
    (folder / "bin").mkdir(exist_ok=True)
    command = folder / "bin" / "ingot"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ingot "$@"\n')
    command.chmod(0o755)
    lines = [
        "compopt() { :; }",  # which only works below a real prompt
        script,
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))',
        '_ingot ingot; printf "%s\\n" "${COMPREPLY[@]}"',
    ]
    environment = child_environment()
    environment["PATH"] = f"{command.parent}:{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines), "bash", "ingot", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


def test_bash_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Words, files with their suffix beside folders, and nothing, quietly, without a project."""
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    (tmp_path / "a model.onnx").touch()
    (tmp_path / "other.txt").touch()
    assert in_bash(script, tmp_path, "wa") == ["watch"]
    assert in_bash(script, tmp_path, "compile", "--target", "=", "riscv") == ["riscv64"]
    assert in_bash(script, tmp_path, "compile", "") == ["a model.onnx", "bin"]
    assert in_bash(script, tmp_path, "build", "-C", "") == ["bin"]
    assert in_bash(script, tmp_path, "build", "") == [""]


def test_scripts_of_all_shells(capsys: pytest.CaptureFixture[str]) -> None:
    """Each asks the command that is being completed, for its own shell."""
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        assert f"completion {shell} --words" in capsys.readouterr().out
    assert_refused(capsys, ["completion", "tcsh"], 1, "bash, zsh, fish")
    assert_refused(capsys, ["completion"], 1, "SHELL")


def test_an_answer_imports_little(tmp_path: Path) -> None:
    """A shell waits for it at each key."""
    code = (
        "import sys; sys.argv = ['ingot', 'completion', 'fish', '--words', 'compile', '--'];"
        "from ingot_build_rules.tools.cli import entry; entry._run();"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, **child_environment()},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--target\t" in done.stdout
    slow = {"argparse", "dataclasses", "inspect", "json", "numpy", "threading", "tomllib"}
    assert not slow & set(done.stderr.split())
