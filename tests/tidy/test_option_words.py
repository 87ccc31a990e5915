"""An option is called by its name on the command line there alone: in Python it is an argument, in a
project's file a key. Texts below the faces refer to it (``ingot_runtime.option_ref``)."""

from __future__ import annotations

import ast
import re

from tests.tidy.source import modules

FACES = ("ingot_build_rules.tools.cli", "ingot_build_rules.tools.api")
NO_TEXTS = {
    "ingot_build_rules.engine.executors.jobserver": "flags of make",
    "ingot_build_rules.making.rules.compile_library": "arguments of a linker",
    "ingot_build_rules.making.options.export_rows": "what the command's help says of options",
    "ingot_build_rules.making.options.option_rows": "what the command's help says of options",
    "ingot_compiler.backends.host.link": "arguments of a linker",
}
_COMMAND = re.compile(r"`[^`]*`|\b(ingot|optimum-cli) [a-z-]+( [A-Z]+| [a-z]+| --[\w-]+)*")
_OPTION = re.compile(r"(?<![\w,-])(?:--[a-z][a-z-]*|-j\b)")


def options_in(tree: ast.Module) -> list[str]:
    """The options that texts of a module spell, beside those in commands that can be typed."""
    comments = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in comments
    ]
    return [word for text in texts for word in _OPTION.findall(_COMMAND.sub("", text))]


BELOW = {
    module.name: module
    for module in modules()
    if module.name.startswith(("ingot_compiler", "ingot_artifacts", "ingot_build_rules"))
    and not module.name.startswith(FACES)
}


def test_no_text_below_the_faces_spells_an_option() -> None:
    """It would be wrong words in Python, or in a project."""
    found = {
        name: options_in(module.tree) for name, module in BELOW.items() if name not in NO_TEXTS
    }
    assert {name: words for name, words in found.items() if words} == {}


def test_what_is_found() -> None:
    """Options in a sentence, and none in comments, in references and in commands."""
    source = '''
"""Not --this."""
x = "say --so, or use fewer (-j 1)"
y = ("say ", OptionRef("so"), f"{x} --then", "`ingot compile MODEL --to graph` 3 -j")
"""Nor --that."""
'''
    assert options_in(ast.parse(source)) == ["--so", "-j", "-j", "--then"]


def test_exceptions_are_there() -> None:
    """Each module that is left out has options."""
    assert all(options_in(BELOW[name].tree) for name in NO_TEXTS)
