"""Help, and what the command says of words that it does not know."""

from __future__ import annotations

import pytest
from tests.unit.cli.test_cli import assert_refused

from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.cli.shell.suggestions import (
    NOTHING_LIKE_IT,
    OPTION_MEANINGS,
    VERB_MEANINGS,
)
from ingot_build_rules.tools.cli.shell.verbs import VERBS, read_verb


def test_help_of_a_verb_is_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    """``ingot help`` lists the verbs, ``ingot help VERB`` is ``ingot VERB --help``."""
    assert main(["help"]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name, _ in VERBS)
    assert main(["help", "diff"]) == 0
    shown = capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["diff", "--help"])
    assert shown == capsys.readouterr().out
    assert "ingot diff old.ingot new.ingot" in shown


def test_help_of_what_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown verb, or several."""
    assert_refused(capsys, ["help", "benchmark"], 1, "unknown verb", "did you mean 'ingot bench'?")
    assert_refused(capsys, ["help", "run", "diff"], 1, "help for several verbs")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("compile m --out x", "did you mean '--output'?"),
        ("compile m --arch x", "did you mean '--target'?"),
        ("compile m --cpu x", "did you mean '--target'?"),
        ("compile m -mcpu=native", "did you mean '--target'?"),
        ("compile m --outpt x", "did you mean '--output'?"),
        ("compile m --quantize", "there is none: Ingot compiles a model in the precision"),
        ("compile m -O3", "did you mean '--optimize speed'?"),
        ("compile m --batch-size 4", "did you mean '--shape'?"),
        ("run m --output y", "did you mean '--outputs'?"),
        ("run m --cores 2", "did you mean '--threads'?"),
        ("build --cores 2", "did you mean '--jobs'?"),
        ("build -B", "did you mean '--rehash'?"),
        ("bench m --iterations 5", "did you mean '--seconds'?"),
        ("inspect m --threads 2", "`ingot run` takes --threads"),
        ("build --target x", "`targets` of a [bundle.NAME], or --config bundle.NAME.targets="),
        ("build --arch x", "`targets` of a [bundle.NAME]"),
        ("build --shape x", "say it in ingot.toml: `shape.INPUT` of a [bundle.NAME]"),
        ("compile m --force", "leave it out: the result replaces a file"),
        ("build --force", "did you mean '--rehash'?"),
        ("diff a b --nonsense", "see ingot diff --help"),
        ("make", "did you mean 'ingot build'?"),
        ("comple m", "did you mean 'ingot compile'?"),
        ("quantise m", "did you mean 'ingot quantize'?"),
        ("--verbose", "options follow the verb"),
        ("nonsense", "see ingot --help"),
    ],
)
def test_unknown_words_are_understood(
    command: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By what they mean in other tools, or by their spelling; or there is a reason that there is
    nothing like it."""
    assert_refused(capsys, command.split(), 1, "unknown", said)


def test_what_is_suggested_exists() -> None:
    """Every word of the tables leads to an option or a verb that there is, and to one alone."""
    verbs = [read_verb(name) for name, _ in VERBS]
    options = {name for verb in verbs for option in verb.options for name in option.names.split()}
    assert {option.split()[0] for option in OPTION_MEANINGS} <= options
    names = {verb.name for verb in verbs}
    assert VERB_MEANINGS.keys() <= names
    words = [word for others in VERB_MEANINGS.values() for word in others.split()]
    assert not names & set(words)
    assert len(words) == len(set(words))
    nothing = [word for words in NOTHING_LIKE_IT for word in words.split()]
    assert not (options | names | set(words)) & set(nothing)
