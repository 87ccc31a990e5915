"""What the user says by an option of the command, by an argument of a function in Python, or by a
key of a project's file: an error of any layer refers to it, and who shows the error has the words.

In: the option's name on the command line. Out: ``OptionRef``, ``OptionClause``, pieces of a text
(``ingot_error``). Not done here: the words (``api.python_errors``, ``cli.shell.in_words_of_verb``).
"""

from __future__ import annotations

from .lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class OptionRef:
    """An option; ``str()`` is that of the command, ``value`` may be "".

    ``name`` is the option's, without dashes.
    """

    name: str
    value: str = ""

    def __str__(self) -> str:
        dashes = "-" if len(self.name) == 1 else "--"
        return f"{dashes}{self.name} {self.value}".rstrip()


@dataclass(frozen=True, slots=True)
class OptionClause:
    """A part of a sentence that depends on whether who reads it has the option: ``said``, with the
    option in the place of ``{}``, or else ``otherwise``. ``str()`` is that of the command."""

    option: OptionRef
    said: str
    otherwise: str = ""

    def __str__(self) -> str:
        return self.said.format(self.option)
