"""What errors advise works: each command that a ``do:`` gives is accepted, for every error that a
test can provoke; which advice is no command is listed."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from tests.advice.cases import CASES, NOT_RUN, Case
from tests.advice.commands import run_command
from tests.advice.folder import PROJECT, make_folder
from tests.advice.follow import Step, steps_of
from tests.advice.sites import all_sites

from ingot_runtime.command import machine
from ingot_runtime.ingot_error import IngotError

NO_COMMANDS = Path(__file__).with_name("no_commands.txt")
REFUSED = (
    "unknown option",
    "unknown verb",
    "wrong arguments",
    "wrong value",
    "unexpected argument",
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all files, which nobody changes."""
    folder = tmp_path_factory.mktemp("advice")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        make_folder(folder)
    return folder


@pytest.mark.sweep(6)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.command)
def test_an_advice_is_followed(
    case: Case, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command fails with this advice; whoever follows it, one way or the other, succeeds or
    comes to another error, which is not about the way."""

    def run(step: Step) -> tuple[int, IngotError | None]:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(made, work, symlinks=True)
        monkeypatch.chdir(work)
        for command in case.before:
            assert run_command(shlex.split(command), monkeypatch) == (0, None)
        lines = [line for line in case.lines if not step.line or _key(line) != _key(step.line)]
        text = "\n".join([PROJECT, *lines, step.line, ""])
        (work / "project" / "ingot.toml").write_text(text)
        return run_command(step.words, monkeypatch)

    work = tmp_path / "work"
    code, error = run(Step(tuple(shlex.split(case.command))))
    assert code
    assert error
    level = str(machine()["level"])
    assert error.do == case.do.replace("{folder}", str(work)).replace("{level}", level)
    steps = steps_of(case.command, error, case.values)
    assert steps, "no command in it"
    for step in steps:
        code, now = run(step)
        told = f"{step}: {now}"
        is_other = now is not None and now.what != error.what
        assert code == 0 or (is_other and not str(now).startswith(REFUSED)), told
        assert " with --from" not in str(now), told


def _key(line: str) -> str:
    return line.partition(" = ")[0]


def test_every_command_is_run() -> None:
    """A command that an error may advise is that of a case, or is listed with the reason why no
    test provokes it; nothing else is listed."""
    sites = [site for site in all_sites() if site.is_command]
    without = [site for site in sites if not any(site.matches(case.do) for case in CASES)]
    assert [site for site in without if site.text not in NOT_RUN] == [], "no case ends in it"
    assert {*NOT_RUN} - {site.text for site in without} == set(), "it needs no reason"


def test_advice_that_is_no_command_is_listed(bless: bool) -> None:
    """The page has all of it, so that whoever adds some sees it; ``--bless`` writes it anew."""
    lines = sorted({f"{site.module}: {site.text}" for site in all_sites() if not site.is_command})
    text = "\n".join([*lines, ""])
    if bless:
        NO_COMMANDS.write_text(text, encoding="utf-8")
    assert NO_COMMANDS.read_text(encoding="utf-8") == text
