"""What verbs take is data: the parser, ``--help`` and every example agree with it."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from ingot_build_rules.making.options.option_rows import GENERAL, OTHER_SHAPES
from ingot_build_rules.tools.cli.main import main
from ingot_build_rules.tools.cli.shell.candidates import FILES
from ingot_build_rules.tools.cli.shell.usage import READERS, Parser
from ingot_build_rules.tools.cli.shell.verbs import VERBS, read_verb

NAMES = [name for name, _ in VERBS]
TEXT_KINDS = {"folder", "planner", "project-name", "target", "text", "verb", *FILES}


@pytest.mark.parametrize("name", NAMES)
def test_each_verb_has_examples_that_parse(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``--help`` shows them, and the parser of the verb takes each as it is."""
    verb = read_verb(name)
    assert verb.examples
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert not ended.value.code
    shown = capsys.readouterr().out
    for example in verb.examples:
        assert f"  {example.command}\n" in shown
        words = shlex.split(example.command.partition(" > ")[0].partition(" | ")[0])
        assert words[:2] == ["ingot", name]
        assert vars(Parser(verb).parse(words[2:]))


def test_every_kind_of_value_is_known() -> None:
    """A kind that nobody reads would be a text without anybody noticing."""
    verbs = [read_verb(name) for name in NAMES]
    kinds = {argument.kind for verb in verbs for argument in verb.arguments}
    kinds |= {option.kind for verb in verbs for option in verb.options}
    assert kinds == TEXT_KINDS | READERS.keys()


def test_other_shapes_are_those_of_the_options() -> None:
    """They are spelled out a second time: the module of the options imports too much for a key."""
    (option,) = [it for it in read_verb("compile").options if it.names == "--other-shapes"]
    assert (option.choices, option.default) == (OTHER_SHAPES, GENERAL)


def test_data_of_verbs_import_little() -> None:
    """A shell waits for them at each key: they need neither numpy nor argparse nor dataclasses."""
    code = (
        "import sys; from ingot_build_rules.tools.cli.shell.verbs import VERBS, read_verb;"
        "[read_verb(name) for name, _ in VERBS]; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    slow = {"argparse", "dataclasses", "inspect", "json", "numpy", "onnx", "llvmlite", "threading"}
    assert not slow & set(done.stdout.split())
