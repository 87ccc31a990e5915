"""Follows an advice: the commands that one has after reading it.

In: a command, the error that it gave, and what the reader puts in the place of words such as DIR.
Out: ``Step``: a command, perhaps a line for ``ingot.toml`` before it. Not done here: running anything.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ingot_build_rules.tools.cli.shell.verbs import VERBS, read_verb
from ingot_runtime import command as runtime
from ingot_runtime.ingot_error import IngotError

Words = tuple[str, ...]
_QUOTED = re.compile(r"`((?:ingot|python -m ingot_runtime) [^`]*)`")
_BARE = re.compile(r"(?:^|see )((?:ingot|python -m ingot_runtime)(?: [a-z]+)* --help)$")
_MEANT = re.compile(r"did you mean '?(.+?)'?\?")
_LEFT_OUT = re.compile(r"(?:leave|without)(?: out)? (--?[a-z-]+(?:(?: and | or )--?[a-z-]+)*)")
_OPTION = re.compile(r"(?<![\w'-])(--?[a-zC][a-z-]*)(?:[ =]('[^']*'|[^\s;()`]+))?")
_NAMED = re.compile(r"`ingot [a-z-]+` takes --?[a-z-]+")
_KEY = re.compile(r"""(?<!\S)([a-z-]+(?:\.(?:"[^"]*"|[\w-]+))? = (?:"[^"]*"|\[.*?\]))""")
_ELSEWHERE = " (of ingot compile)"


@dataclass(frozen=True)
class Step:
    """A command; ``line``: what [bundle.NAME] of the project gets before it."""

    words: Words
    line: str = ""


def steps_of(command: str, error: IngotError, values: Mapping[str, str]) -> list[Step]:
    """Return one step for each command that the advice names; none if it names none."""
    words, do = tuple(shlex.split(command)), error.do
    for word, value in values.items():
        do = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", value.replace("\\", r"\\"), do)
    do = _NAMED.sub("", do)
    quoted = [Step(tuple(shlex.split(found))) for found in _QUOTED.findall(do)]
    rest = _QUOTED.sub("", do)
    if found := _BARE.search(rest):
        return [*quoted, Step(tuple(shlex.split(found[1])))]
    if found := _MEANT.search(rest):
        return [*quoted, Step(_replaced(words, error, found[1]))]
    if error.what.startswith("unknown option"):
        words = _without(words, error.what.split("'")[1])
    steps = [Step(_without(words, option)) for option in _named(" ".join(_LEFT_OUT.findall(rest)))]
    if "leave it out, and " in rest:
        words = _without_it(words, error)
    elif "leave it out" in rest:
        steps.append(Step(_without_it(words, error)))
    if "leave one of them out" in rest:
        named = _named(f"{error.what} {error.where}")
        again = [at for at, word in enumerate(words) if word in named][-1]
        steps += [Step(_without(words, name)) for name in named[1:] and named]
        steps += [Step((*words[:again], *words[again + 2 :]))] if not named[1:] else []
    rest = _LEFT_OUT.sub("", rest)
    keys = [Step(words, line) for line in _KEY.findall(rest)]
    added = [_with_options(words, clause) for clause in re.split(r",? or |; ", rest)]
    steps += map(Step, added)
    steps = [step for step in steps if step != Step(tuple(shlex.split(command)))]
    return list(dict.fromkeys([*quoted, *keys, *steps]))


def _named(text: str) -> list[str]:
    """The options in a text."""
    return re.findall(r"(?<!\S)--?[a-z][a-z-]*", text)


def flags_of(words: Words) -> tuple[set[str], set[str]]:
    """Return (options without a value, options that repeat) of a command's verb."""
    if words[0] == "ingot" and words[1] in [name for name, _ in VERBS]:
        options = read_verb(words[1]).options
        flags = {name for it in options if it.is_flag for name in it.names.split()}
        return flags, {name for it in options if it.repeats for name in it.names.split()}
    known: dict[str, dict[str, object]] = vars(runtime)["_VERBS"][words[3]][2]
    flags = {name for name, it in known.items() if it.get("action") == "store_true"}
    return flags, {name for name, it in known.items() if it.get("action") == "append"}


def _with_options(words: Words, clause: str) -> Words:
    """The command with the options of a clause; another value in the place of one for the same
    name, or of one that comes once."""
    if _ELSEWHERE in clause:
        words, clause = ("ingot", "compile", *words[2:3]), clause.replace(_ELSEWHERE, "")
    for option, text in _OPTION.findall(clause):
        flags, repeats = flags_of(words)
        value = shlex.split(text.rstrip(",:"))[0] if text and option not in flags else ""
        name = value.rpartition("=")[0]
        words = _without(words, option, name if option in repeats else None)
        words = (*words, option, *([value] if value else []))
    return words


def _without(words: Words, option: str, name: str | None = None) -> Words:
    """The command without an option and its value; of several, without what is said of a name."""
    flags = flags_of(words)[0]
    kept: list[str] = []
    at = 0
    while at < len(words):
        size = 1 if option in flags else 2
        value = words[at + 1] if size == 2 and at + 1 < len(words) else ""
        if words[at] == option and (name in (None, value.rpartition("=")[0]) or "=" not in value):
            at += size if size == 1 or value == "-" or not value.startswith("-") else 1
            continue
        if not words[at].startswith(f"{option}="):
            kept.append(words[at])
        at += 1
    return tuple(kept)


def _without_it(words: Words, error: IngotError) -> Words:
    """The command without what the error is about: its first option, or a quoted word."""
    told = f"{error.what} {error.where}"
    if options := [name for name in _named(told.replace("'", " ")) if name in words]:
        return _without(words, options[0])
    for at, word in enumerate(words):
        if words[at - 1].startswith("--") and repr(word.partition("=")[0]) in told:
            return (*words[: at - 1], *words[at + 1 :])
    return tuple(word for word in words if repr(word) not in told)


def _replaced(words: Words, error: IngotError, meant: str) -> Words:
    """The command with what was meant in the place of the word that the error names."""
    told = f"{error.what} {error.where} {error.why}"
    places = [part for part in re.split(r"[ =]", error.where) if part and part[0] != "-"]
    wrong = [part for part in (*re.findall(r"'([^']+)'", told), *places) if part != meant]
    if meant.startswith("ingot "):
        return ("ingot", meant.split()[1], *words[2:])
    for part in wrong:
        for at, word in enumerate(words):
            if at > 1 and part in _parts(word):
                now = shlex.split(word.replace(part, meant, 1))
                return (*words[:at], *now, *words[at + 1 :])
    return words


def _parts(word: str) -> Sequence[str]:
    return [word, *re.split(r"[=,:]", word)]
