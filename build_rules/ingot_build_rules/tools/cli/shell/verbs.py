"""The visible list of verbs, and what each takes.

In: a verb's name. Out: ``VERBS``, ``Verb``. Not done here: the verbs (one module each, beside this
one, imported when it is asked for).

A verb's module is named like it, with ``_`` for ``-``. It has ``run(arguments) -> exit code``. What it takes is a row of ``TAKES`` in
a module of ``arguments``: that of its family, or that of its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from ingot_build_rules.tools.cli.shell.options import DEBUG, Argument, Example, Option, Takes

VERBS: tuple[tuple[str, str], ...] = (
    ("compile", "compile a model into one bundle, or print a stage on the way"),
    ("init", "write a project for the models in a folder"),
    ("build", "build what ingot.toml asks for, as far as something has changed"),
    (
        "why",
        "say what has changed since a bundle was built, and why its last build ran what it ran",
    ),
    ("log", "show what the last build of a bundle did, action by action"),
    ("query", "print the graph of a project as JSON or DOT"),
    ("watch", "build, and build again whenever a source changes"),
    ("clean", "remove what builds of a project have made"),
    ("quantize", "write a model whose weights are integers of 4 or 8 bits"),
    ("export", "write a bundle as a program that needs no Python"),
    ("sign", "say who made a bundle, by a signature"),
    ("thin", "write a bundle with what one kind of processor needs"),
    ("share", "write a bundle whose weights lie in another one, as far as they are the same"),
    ("delta", "write what turns one bundle into another"),
    ("sbom", "write what a bundle is made of, as CycloneDX"),
    ("run", "run a bundle on inputs from a file"),
    ("inspect", "show what is in a bundle: sections, devices, memory, kernels, assembly"),
    ("why-device", "say why a node, an input or an output of a bundle is on its device"),
    ("report", "write one page that shows a bundle: graph, kernels, times, memory, assembly"),
    ("diff", "say what differs between two bundles"),
    ("verify", "check every byte of bundles"),
    ("reproduce", "make a bundle again from its source, compare, say what differs and why"),
    ("bench", "measure a bundle or a model: calls, memory, kernels"),
    ("tune", "measure by which method each layer is fastest here, into a file for compile"),
    ("cache", "what is in the cache; make it smaller, check it, say why something is there"),
    ("identify", "say what this machine can run"),
    ("man", "print a manual page, or write all of them"),
    ("completion", "print a script that lets bash, zsh or fish complete the command"),
)

FAMILIES: dict[str, tuple[str, ...]] = {
    "building": ("init", "why", "log", "query", "watch", "clean", "cache"),
    "shipping": ("thin", "share", "delta", "sbom"),
    "inspecting": ("inspect", "why-device", "report", "diff", "verify"),
    "machine": ("tune", "identify", "man", "completion"),
}
"""Module of ``arguments`` -> the verbs that it describes, where that is not one of its name."""
_FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names}


class Verb(NamedTuple):
    """What there is to know of a verb without importing it."""

    name: str
    summary: str
    arguments: tuple[Argument, ...]
    options: tuple[Option, ...]
    examples: tuple[Example, ...]


def module_of(name: str) -> str:
    """Return the name of a verb's modules."""
    return name.replace("-", "_")


def read_verb(name: str) -> Verb:
    """Return one of ``VERBS`` with its arguments."""
    family = _FAMILY_OF.get(name, name)
    data = import_module(f"ingot_build_rules.tools.cli.arguments.{family}")
    takes: Takes = data.TAKES[name]
    options = (*takes.options, DEBUG)
    return Verb(name, dict(VERBS)[name], takes.arguments, options, takes.examples)


def examples_text(examples: Sequence[Example]) -> str:
    """Return what ``--help`` shows below the options."""
    lines = [f"  {example.command}\n      {example.says}" for example in examples]
    return "\n".join(["examples:", *lines])
