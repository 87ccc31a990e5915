"""docs/command-line.md lists the options of each verb: all, and no others."""

from __future__ import annotations

import re

import pytest
from tests.tidy.source import ROOT

from ingot_build_rules.tools.cli.shell.options import Option
from ingot_build_rules.tools.cli.shell.verbs import VERBS, read_verb

PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
SECTIONS = {
    part.partition("\n")[0]: re.sub(r"^```.*?^```$", "", part, flags=re.MULTILINE | re.DOTALL)
    for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
}
EVERYWHERE = {"-h", "--help", "--json", "--debug"}  # the beginning of the page has these
TAKES_ALL_OF = {"watch": "build"}  # verbs whose section refers to that of another
_CODE = re.compile(r"`([^`]*)`")
_NAME = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")


def section_of(verb: str) -> str:
    """Return what the page says of a verb; some share a section."""
    found = [
        text
        for title, text in SECTIONS.items()
        if title.startswith("ingot ") and verb in title.removeprefix("ingot ").split(", ")
    ]
    assert len(found) == 1, f"docs/command-line.md needs one section '## ingot {verb}'"
    return found[0]


def names_in(text: str) -> set[str]:
    """Return the options that stand in the code of a text."""
    return {name for code in _CODE.findall(text) for name in _NAME.findall(code)}


def names_in_tables(text: str) -> set[str]:
    """Return the options in the first column of tables."""
    cells = re.findall(r"^\| (`-[^|]*(?:\\\|[^|]*)*) \|", text, re.MULTILINE)
    return names_in(" ".join(cells))


def known_options(verb: str) -> list[Option]:
    """Return what a verb takes."""
    return [option for option in read_verb(verb).options if option.names not in EVERYWHERE]


@pytest.mark.parametrize("verb", [name for name, _ in VERBS])
def test_the_page_has_every_option(verb: str) -> None:
    """Each by one of its names, in the section of the verb, or in that which it refers to."""
    texts = [section_of(name) for name in (verb, TAKES_ALL_OF.get(verb, verb))]
    told = names_in(" ".join(texts)) | EVERYWHERE
    missing = [item.names for item in known_options(verb) if not told & set(item.names.split())]
    assert missing == []


@pytest.mark.parametrize("verb", [name for name, _ in VERBS])
def test_the_page_has_no_other_option(verb: str) -> None:
    """Tables list what the verb takes."""
    known = {name for option in known_options(verb) for name in option.names.split()}
    assert names_in_tables(section_of(verb)) <= known | EVERYWHERE


def test_sections_are_found() -> None:
    """A table without options would compare nothing."""
    assert {"-o", "--output", "--executor", "--other-shapes"} <= (
        names_in_tables(section_of("compile")) | names_in_tables(section_of("run"))
    )
    assert section_of("why") == section_of("query") != section_of("watch")
