r"""A depfile: tells make and ninja which files a result depends on, in the part of make's language
that both read alike.

In: paths. Out: text. Not done here: writing it, knowing the dependencies.

Both read ``\ ``, ``\#``, ``$$`` and ``\:`` as the character; backslashes elsewhere stand for
themselves (GNU make manual "Rule Syntax"; ninja's ``depfile_parser.in.cc``). Other characters that
one of them takes for its own language have no spelling that both read: paths with these are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ingot_artifacts.errors import OutputError

_REFUSED = (
    (re.compile(r"[\0-\x1f\x7f]"), "a line break or another control character"),
    (re.compile(r"[;|<>^`*?\[]"), "one of ; | < > ^ ` * ? ["),
    (re.compile(r"\\(?![\\ \w./-])"), "a backslash before a special character or at its end"),
    (re.compile(r"^(~|[+!]?=)"), "~ or = at its start"),
    (re.compile(r"[ :)]$"), "a space, : or ) at its end"),
    (re.compile(r"^$"), "an empty name"),
)
_REFUSED_TARGET = (*_REFUSED, (re.compile("[%=&]"), "one of % = &"))


def depfile_text(target: str, dependencies: Sequence[str]) -> str:
    """Return the text of a depfile. A dependency that is gone makes the target out of date; it is
    no error.

    Raises:
        OutputError: a path that make and ninja do not both read right, or dependencies that all
            have ``=`` in their name.
    """
    escaped = {_escaped(path, _REFUSED) for path in dependencies}
    names = sorted(escaped, key=lambda name: ("=" in name, name))
    if names and "=" in names[0]:
        # `a: b=c` gives a variable a value, unless something else stands before it.
        why = "make takes = for an assignment unless another name stands before it"
        raise _refusal(names[0], why)
    rules = [" \\\n  ".join([f"{_escaped(target, _REFUSED_TARGET)}:", *names])]
    # Without a rule for it, make stops at a file that is gone.
    rules += [f"{name}:" for name in names if not re.search("[%=&]", name)]
    return "\n\n".join(rules) + "\n"


def _escaped(path: str, refused: Sequence[tuple[re.Pattern[str], str]]) -> str:
    for pattern, what in refused:
        if pattern.search(path):
            raise _refusal(path, f"make and ninja read {what} differently")
    path = re.sub(r"(\\*) ", r"\1\1\\ ", path)
    return path.replace("$", "$$").replace("#", "\\#").replace(":", "\\:")


def _refusal(path: str, why: str) -> OutputError:
    do = "give the file another name, or build without a depfile"
    return OutputError("no depfile can name this file", path, why, do)
