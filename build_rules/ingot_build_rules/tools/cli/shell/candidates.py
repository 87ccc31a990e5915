"""What may stand at the cursor of a shell: verbs, options, choices, names of the project; which
files the shell itself lists.

In: the words up to the cursor. Out: lines for the script of ``completion``. Not done here: that
script, listing files.

A shell waits for this at each key: it imports the tables of the one verb and little else. It says
nothing of what is wrong; the command itself does when it is run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import cast

from ingot_build_rules.tools.cli.shell.options import Argument, Option
from ingot_build_rules.tools.cli.shell.verbs import VERBS, Verb, read_verb

Candidates = list[tuple[str, str]]
"""A word, and what it means."""
FILES = {
    "arrays": ".npz",
    "bundle": ".ingot",
    "bundle-or-model": "",
    "file": "",
    "json": ".json",
    "model": ".onnx",
    "page": ".html",
}
"""Kind of a value -> how its files end."""
_HELP = ("help", "explain a verb, with examples")
_OPTIONS_OF_ALL = [("--help", "show the verbs"), ("--version", "print the version")]


def print_candidates(arguments: Sequence[str]) -> int:
    """Answer the script of a shell: ``SHELL --words WORD...``, the last word being the one at the
    cursor."""
    sys.stdout.write("\n".join(answer(arguments[0], arguments[2:] or [""])) + "\n")
    return 0


def answer(shell: str, texts: Sequence[str]) -> list[str]:
    """``words`` and a line for each, or ``files .SUFFIX``, or ``folders``."""
    words = _joined(texts) if shell == "bash" else texts
    current = words[-1]
    found = _at_cursor(words[:-1], current)
    if isinstance(found, str):
        return [found]
    kept = [(word, text) for word, text in found if word.startswith(current)]
    return ["words", *(_line(shell, word, text, current) for word, text in kept)]


def _line(shell: str, word: str, text: str, current: str) -> str:
    """A candidate as the script of the shell reads it."""
    if shell == "fish":
        return f"{word}\t{text}"
    if shell == "zsh":
        escaped = word.replace(":", "\\:")
        return f"{escaped}:{text}" if text else escaped
    # bash replaces what follows the last of its separators alone.
    return word[max(current.rfind("="), current.rfind(":")) + 1 :]


def _joined(words: Sequence[str]) -> list[str]:
    """Undo what bash does to a word that has ``=`` or ``:`` in it: it hands over three."""
    found: list[str] = []
    is_open = False
    for word in words:
        separates = word != "" and not word.strip("=:")
        if found and (is_open or separates):
            found[-1] += word
        else:
            found.append(word)
        is_open = separates
    return found


def _at_cursor(before: Sequence[str], current: str) -> Candidates | str:
    """All candidates behind the words ``before``, or which files are."""
    if not before or before == ["help"]:
        verbs = [*VERBS, *([] if before else [_HELP])]
        return [*verbs, *(_OPTIONS_OF_ALL if current.startswith("-") else [])]
    if before[0] not in dict(VERBS):
        return []
    verb = read_verb(before[0])
    by_name = {name: option for option in verb.options for name in option.names.split()}
    last = by_name.get(before[-1]) if len(before) > 1 else None
    if last is not None and not last.is_flag:
        return _values(last, before)
    name, equals, _ = current.partition("=")
    if equals and name in by_name:
        return _with_name(name, _values(by_name[name], before))
    if current.startswith("-"):
        return _options(verb, before, current)
    return _positional(verb, by_name, before)


def _with_name(name: str, values: Candidates | str) -> Candidates | str:
    if isinstance(values, str):
        return values
    return [(f"{name}={value}", text) for value, text in values]


def _options(verb: Verb, before: Sequence[str], current: str) -> Candidates:
    """Options that are not given yet; a single dash asks for the short names as well."""
    found: Candidates = []
    for option in verb.options:
        names = option.names.split()
        if option.repeats or not any(word.split("=", 1)[0] in names for word in before):
            found += [
                (name, option.help)
                for name in names
                if name.startswith("--") or not current.startswith("--")
            ]
    return [*found, ("--help", "show what the verb takes, with examples")]


def _positional(verb: Verb, by_name: dict[str, Option], before: Sequence[str]) -> Candidates | str:
    """Values of the argument that is next."""
    given, takes_value = 0, False
    for word in before[1:]:
        if not takes_value and not word.startswith("-"):
            given += 1
        option = by_name.get(word)
        takes_value = option is not None and not option.is_flag
    if given < len(verb.arguments):
        return _values(verb.arguments[given], before)
    last = verb.arguments[-1] if verb.arguments else None
    return _values(last, before) if last and last.times in ("*", "+") else []


def _values(item: Argument | Option, before: Sequence[str]) -> Candidates | str:
    """What a value may be."""
    if item.choices:
        return _plain(item.choices)
    if item.kind in FILES:
        return f"files {FILES[item.kind]}".rstrip()
    if item.kind == "folder":
        return "folders"
    if item.kind == "target":
        from ingot_runtime.format.features import LEVELS

        return _plain(("native", *LEVELS))
    if item.kind == "planner":
        from ingot_build_rules.making.options.options import words_of

        return _plain(words_of("planner"))
    if item.kind == "verb":
        return list(VERBS)
    if item.kind == "project-name":
        return _project_names(before)
    return []


def _plain(words: Iterable[str]) -> Candidates:
    return [(word, "") for word in words]


def _project_names(before: Sequence[str]) -> Candidates:
    """Bundles and tests of the project around; nothing without one, or where its file is
    damaged."""
    path = _project_path(_folder(before))
    if path is None:
        return []
    import tomllib

    try:
        with open(path, "rb") as file:
            tables = tomllib.load(file)
    except (OSError, ValueError):
        return []
    bundles, tests = (_table(tables.get(name)) for name in ("bundle", "test"))
    # A name that a bundle and a test share stands for the bundle.
    named = [(f"test.{name}" if name in bundles else name, "test") for name in sorted(tests)]
    return [*((name, "bundle") for name in sorted(bundles)), *named]


def _table(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _folder(before: Sequence[str]) -> str:
    """The folder that the command would be about."""
    folder = "."
    for word, after in zip(before, [*before[1:], "."], strict=True):
        if word in ("-C", "--folder"):
            folder = after
        elif word.startswith("--folder="):
            folder = word.partition("=")[2]
    return os.path.expanduser(folder)


def _project_path(start: str) -> str | None:
    folder = os.path.abspath(start)
    while True:
        path = os.path.join(folder, "ingot.toml")
        if os.path.isfile(path):
            return path
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
