"""Manual pages: one of each verb, from the tables that the parser reads, in the language of
man(7)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit.cli.test_cli import assert_refused

from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.cli.shell.manual_page import all_pages, verb_page
from ingot_build_rules.tools.cli.shell.options import Example
from ingot_build_rules.tools.cli.shell.verbs import VERBS, read_verb
from ingot_runtime import __version__

PAGES = {
    name.removesuffix(".1").removeprefix("ingot-"): page
    for name, page in all_pages(__version__).items()
}


def plain(page: str) -> str:
    """The words of a page without fonts and escapes."""
    text = re.sub(r"\\f[BIR]|\\&", "", page)
    return text.replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\")


@pytest.mark.parametrize("name", [name for name, _ in VERBS])
def test_a_page_has_all_that_help_has(name: str) -> None:
    """Arguments, options, examples."""
    verb, text = read_verb(name), plain(PAGES[name])
    assert text.startswith(f".TH INGOT-{name.upper()} 1 ")
    assert f"\ningot-{name} - {verb.summary}\n" in text
    for option in verb.options:
        assert option.help in text
        assert all(name in text for name in option.names.split())
    assert all(argument.help in text for argument in verb.arguments)
    assert all(f".EX\n{example.command}\n.EE" in text for example in verb.examples)


def test_the_page_of_the_command() -> None:
    """It names every verb and every exit code."""
    text = plain(PAGES["ingot"])
    assert all(f".TP\n{name}\n{summary}\n" in text for name, summary in VERBS)
    assert ".TP\n130\ninterrupted" in text


@pytest.mark.parametrize("name", PAGES)
def test_requests_are_those_of_man(name: str) -> None:
    """Nothing of ours at the start of a line is taken for a request, and no hyphen is typographic;
    where ``mandoc`` is installed, it finds nothing worse than a missing date and long lines."""
    page = PAGES[name]
    known = {".TH", ".SH", ".TP", ".PP", ".EX", ".EE", ".RS", ".RE"}
    assert {line.split()[0] for line in page.splitlines() if line[0] in ".'"} <= known
    assert not re.search(r"(?<!\\)-", page)
    if shutil.which("mandoc"):
        done = subprocess.run(
            ["mandoc", "-T", "lint", "-W", "warning"],
            input=page,
            capture_output=True,
            text=True,
            check=False,
        )
        told = [line for line in done.stdout.splitlines() if "missing date" not in line]
        assert told == []


def test_a_text_means_itself() -> None:
    """Backslashes, quotes, and lines that begin like a request."""
    examples = (Example("ingot diff a\\b 'c'", ".says"),)
    page = verb_page(read_verb("diff")._replace(examples=examples), "1.0")
    assert "\ningot diff a\\eb \\(aqc\\(aq\n" in page
    assert "\n\\&.says\n" in page


def test_pages_are_printed_or_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One to standard output, all into a folder, the same bytes."""
    assert main(["man"]) == 0
    assert capsys.readouterr().out == PAGES["ingot"]
    assert main(["man", "build"]) == 0
    assert capsys.readouterr().out == PAGES["build"]
    assert main(["man", "-o", str(tmp_path / "man1")]) == 0
    paths = [Path(path) for path in capsys.readouterr().out.splitlines()]
    names = {"ingot": "ingot.1"} | {name: f"ingot-{name}.1" for name, _ in VERBS}
    assert {path.name: path.read_text() for path in paths} == {
        names[name]: page for name, page in PAGES.items()
    }


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown verb, options that do not go together, a folder that cannot be made."""
    (tmp_path / "file").touch()
    assert_refused(capsys, ["man", "make"], 1, "no page for 'make'", "ingot build")
    assert_refused(capsys, ["man", "build", "-o", str(tmp_path)], 1, "a folder for one page")
    assert_refused(capsys, ["man", "-o", str(tmp_path / "file")], 1, "the folder cannot be made")
