"""Manual pages in the language of man(7), from what the command knows of its verbs.

In: a verb's data, the version. Out: the text of a page, the same each time: it has no date. Not
done here: writing files (``man``; ``hatch_build.py`` puts them into the wheel, where nothing else
of ours is installed, so this imports data alone).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ingot_build_rules.tools.cli.shell.options import Argument, Example, Option
from ingot_build_rules.tools.cli.shell.verbs import VERBS, Verb, read_verb

EXIT_CODES = (
    ("0", "success"),
    ("1", "a mistake of the user"),
    ("2", "a problem of the machine, or a bug in Ingot"),
    ("3", "not supported"),
    ("4", "verification failed"),
    ("5", "it cannot run on this machine"),
    ("130", "interrupted by Ctrl-C"),
)
_ENVIRONMENT = (
    ("INGOT_CACHE", "the folder of the cache"),
    ("INGOT_CACHE_MAX", "what the cache may take, such as 50GB; none for no limit"),
    ("XDG_CACHE_HOME", "without INGOT_CACHE, the cache is the folder ingot in this one"),
    ("MAKEFLAGS", "below a make with -j, its job slots are shared"),
    ("NO_COLOR, TERM, CI", "with NO_COLOR, CI or TERM=dumb, progress is plain lines"),
)


def all_pages(version: str) -> dict[str, str]:
    """Return the text of each page by the name of its file: ``ingot.1``, ``ingot-VERB.1``."""
    verbs = {f"ingot-{name}.1": verb_page(read_verb(name), version) for name, _ in VERBS}
    return {"ingot.1": command_page(version), **verbs}


def command_page(version: str) -> str:
    """Return the page of ``ingot`` itself."""
    lines = [
        *_head("ingot", "compile machine-learning models ahead of time into one file", version),
        *_section("SYNOPSIS", [_bold("ingot VERB"), "\\&..."]),
        *_section(
            "DESCRIPTION",
            [
                "Ingot compiles ONNX models ahead of time, each into one file, the bundle.",
                "It builds projects of many models as far as something has changed.",
                f"The page of a verb is called {_bold('ingot-VERB')}(1).",
            ],
        ),
        *_section("VERBS", _listed(VERBS)),
        *_section("ENVIRONMENT", _listed(_ENVIRONMENT)),
        *_section("EXIT STATUS", _listed(EXIT_CODES)),
        *_see_also(f"ingot-{name}" for name, _ in VERBS),
    ]
    return "\n".join(lines) + "\n"


def verb_page(verb: Verb, version: str) -> str:
    """Return the page of one verb."""
    name = f"ingot-{verb.name}"
    words = [_placeholder(argument) for argument in verb.arguments]
    arguments = [(argument.metavar, argument.help) for argument in verb.arguments]
    lines = [
        *_head(name, verb.summary, version),
        *_section(
            "SYNOPSIS", [" ".join([_bold(f"ingot {verb.name}"), r"[\fIoption\fR]...", *words])]
        ),
        *_section("ARGUMENTS", _listed(arguments)),
        *_section("OPTIONS", [line for option in verb.options for line in _option(option)]),
        *_section("EXAMPLES", _examples(verb.examples)),
        *_section("EXIT STATUS", _listed(EXIT_CODES)),
        *_see_also(["ingot"]),
    ]
    return "\n".join(lines) + "\n"


def _head(name: str, summary: str, version: str) -> list[str]:
    return [
        f'.TH {_text(name.upper())} 1 "" "ingot {version}" "Ingot"',
        *_section("NAME", [f"{_text(name)} \\- {_text(summary)}"]),
    ]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f".SH {title}", *lines] if lines else []


def _listed(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [line for term, text in rows for line in (".TP", _bold(term), _text(text))]


def _option(option: Option) -> list[str]:
    value = "" if option.is_flag else f" {_italic(_value(option))}"
    names = ", ".join(f"{_bold(name)}{value}" for name in option.names.split())
    more = "; may be repeated" if option.repeats else ""
    return [".TP", names, _text(option.help + more)]


def _examples(examples: Sequence[Example]) -> list[str]:
    lines: list[str] = []
    for example in examples:
        between = [".PP"] if lines else []
        lines += [
            *between,
            ".EX",
            _text(example.command),
            ".EE",
            ".RS 4",
            _text(example.says),
            ".RE",
        ]
    return lines


def _value(option: Option) -> str:
    text = option.metavar or "|".join(option.choices)
    return f"[{text}]" if option.suffix else text


def _placeholder(argument: Argument) -> str:
    forms = {"": "{}", "?": "[{}]", "*": "[{}]...", "+": "{}..."}
    return forms[argument.times].format(_italic(argument.metavar))


def _see_also(names: Iterable[str]) -> list[str]:
    pages = [f"{_bold(name)}(1)" for name in names]
    return _section("SEE ALSO", [",\n".join(pages)])


def _bold(text: str) -> str:
    return rf"\fB{_text(text)}\fR"


def _italic(text: str) -> str:
    return rf"\fI{_text(text)}\fR"


def _text(text: str) -> str:
    """A text that means itself: no escape, no request at its start, hyphens that can be copied."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
