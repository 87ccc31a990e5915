"""The bundles and tests that the words after ``ingot build`` select.

In: an expanded project, words. Out: names of bundles and tests. Not done here: building them.

A word is a bundle's name, a name that stands for many (``vision`` for every ``vision/...``), a
bundle's output path, or a test's name. Where a bundle and a test share a name it is the bundle;
``test.NAME`` and ``bundle.NAME`` say which.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Sequence

from ingot_build_rules.making.project.model import ProjectModel
from ingot_build_rules.making.project.problems import Findings, Place, did_you_mean, one_of
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """Names of bundles and of tests, sorted; a test's bundle is not listed unless it was named
    too."""

    bundles: tuple[str, ...]
    tests: tuple[str, ...]


def select(project: ProjectModel, words: Sequence[str] = ()) -> Selection:
    """Return what ``words`` mean; without words the project's default targets, without those
    everything.

    Raises:
        UserError: every word that means nothing.
    """
    bundles = {spec.name for spec in project.bundles}
    tests = {spec.name for spec in project.tests}
    outputs = {posixpath.normpath(spec.output): (spec.name,) for spec in project.bundles}
    targets = words or project.default_targets
    if not targets:
        return Selection(tuple(sorted(bundles)), tuple(sorted(tests)))
    chosen, chosen_tests = set[str](), set[str]()
    where = "command line" if words else "[project] default-targets"
    findings = Findings(where, lambda _: Place(0, where))
    for word in targets:
        named = _called(word, "bundle", bundles, outputs.get(posixpath.normpath(word), ()))
        named_tests = set[str]() if named else _called(word, "test", tests)
        if not named and not named_tests:
            do = did_you_mean(word, {*bundles, *tests, *outputs}, "choose one of these")
            findings.add((), f"nothing is called {word!r}", one_of({*bundles, *tests}), do)
        chosen |= named
        chosen_tests |= named_tests
    findings.raise_all()
    return Selection(tuple(sorted(chosen)), tuple(sorted(chosen_tests)))


def _called(word: str, kind: str, names: Collection[str], output: Collection[str] = ()) -> set[str]:
    """What a word means among the names of one kind: a name, else an output, else a name with its
    kind before it."""
    prefix, _, rest = word.partition(".")
    found = _named(word, names) or set(output)
    return found or (_named(rest, names) if prefix == kind else set())


def _named(word: str, names: Collection[str]) -> set[str]:
    """The name itself, or all that a glob made of it."""
    return {word} if word in names else {name for name in names if name.startswith(f"{word}/")}
