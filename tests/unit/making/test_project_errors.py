"""Every mistake in a project file has one message; the goldens hold them whole.

``tests/golden/project_errors``: the file, ``==>``, the message. Lines ``# --config PATH=VALUE`` at
the top are options, ``# file PATH`` are the files that globs find. ``pytest --bless`` rewrites what
follows ``==>``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.harness.project_harness import SMALL, lister

from ingot_build_rules.making.project.config import split_config
from ingot_build_rules.making.project.expand import expand
from ingot_build_rules.making.project.parse import parse_project
from ingot_build_rules.making.project.problems import PROBLEMS_MAX
from ingot_compiler.ir.errors import UserError
from ingot_runtime.ingot_error import IngotError

FOLDER = Path(__file__).parents[2] / "golden" / "project_errors"
ARROW = "==>\n"


def options(text: str, word: str) -> list[str]:
    """The rest of each line that begins so."""
    return [line.removeprefix(word) for line in text.splitlines() if line.startswith(word)]


def read(head: str) -> None:
    """Parse and expand."""
    project = parse_project(head, "ingot.toml", split_config(options(head, "# --config ")))
    expand(project, lister(options(head, "# file ")))


@pytest.mark.parametrize("case", sorted(path.name for path in FOLDER.glob("*.txt")))
def test_message(case: str, bless: bool) -> None:
    """The whole message of one mistake, which is the user's."""
    head, _, expected = (FOLDER / case).read_text(encoding="utf-8").partition(ARROW)
    with pytest.raises(IngotError) as caught:
        read(head)
    assert type(caught.value) is UserError
    if bless:
        (FOLDER / case).write_text(f"{head}{ARROW}{caught.value}\n", encoding="utf-8")
    else:
        assert f"{caught.value}\n" == expected


def test_too_many_problems_stop() -> None:
    """A file that is wrong everywhere is answered by its first mistakes, not by thousands."""
    wrong = "".join(f'[bundle.b{number}]\nmodel = "m"\n' for number in range(10_000))
    with pytest.raises(UserError) as caught:
        parse_project(wrong, "ingot.toml")
    assert caught.value.what == f"{PROBLEMS_MAX} or more problems"
    assert caught.value.why.count("\n") == PROBLEMS_MAX


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("[" * 5000, "the project file is nested too deeply"),
        ("9" * 5000, "a number of the project file is too long"),
    ],
)
def test_texts_that_overflow_a_reader(value: str, what: str) -> None:
    """What Python itself gives up on is a mistake like any other."""
    with pytest.raises(UserError) as caught:
        parse_project(f"{SMALL}x = {value}", "ingot.toml")
    assert caught.value.what == what


@pytest.mark.parametrize("text", ["bundle.a.planner", "=best", ""])
def test_config_needs_a_path_and_a_value(text: str) -> None:
    """``--config`` says how it is written."""
    with pytest.raises(UserError) as caught:
        split_config([text])
    assert str(caught.value) == (
        "wrong value of --config\n"
        "  where: option --config\n"
        f"  why: expected PATH=VALUE, got {text!r}\n"
        "  do: write for example: --config bundle.a.planner=best"
    )
