"""The options of a compilation that are one value each: a truth value, or one of some words.

In: nothing. Out: ``Choices``, whose fields are the options, and ``ROWS``, what every face tells of
each: the command line, ``ingot.toml``, Python, records. Not done here: options that are lists,
tables or files (``compile_options``), what an option does (the stage that reads its field).

To add one, write a field and its keyword here, and read it. Named tuples, since a shell asks for
completions whenever a key is pressed.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple, TypedDict

from ingot_compiler.ir.optimize_for import OPTIMIZE_FOR, SPEED
from ingot_compiler.ir.precision import F32, PRECISIONS

FORBID, WARN, ALLOW = FALLBACKS = ("forbid", "warn", "allow")
"""What happens to a node that is placed on a device that has no code for it: the model is refused,
or the host runs it, and the user is told or not."""
PROGRAM, PLACED, LOOPS = ("ingot-text", "placed", "loops")


class ChoiceRow(NamedTuple):
    """``text`` is for ``--help``, ``meaning`` for pages; without ``words`` it is a truth value.

    ``name``: of the option in errors about its value. ``example``: a value in ``ingot.toml``, where
    it may stand in ``[defaults]`` if ``has_default``. ``said_by``: the texts that say it already,
    or have no place for it. ``always_recorded``: records have it also where it is the default.
    ``elsewhere``: a value, "" for any -> what other tools call it.
    """

    text: str
    meaning: str
    name: str = ""
    words: tuple[str, ...] = ()
    example: str = "true"
    has_default: bool = True
    said_by: tuple[str, ...] = ()
    always_recorded: bool = False
    elsewhere: Mapping[str, str] = {}


class Choices(NamedTuple):
    """One value of each option."""

    fallback: Annotated[
        str,
        ChoiceRow(
            "of a node that its device has no code for: refuse it (default), or run it on the host",
            "what happens to a node that is placed where there is no code for it",
            "fallback",
            FALLBACKS,
            '"warn"',
            has_default=False,
            said_by=(PROGRAM, PLACED, LOOPS),
            always_recorded=True,
        ),
    ] = FORBID
    precision: Annotated[
        str,
        ChoiceRow(
            "sums of products: error at most a chain's (default) or 2.5 times that; rounded in one "
            "order; of factors in two bf16, in one",
            "how near sums of products are to the true ones",
            "precision",
            PRECISIONS,
            '"fast"',
            elsewhere={
                "": "--fast --fast-math --ffast-math -Ofast --math --strict --bf16 --bf16x3 --bfloat16 --amp"
            },
        ),
    ] = F32
    optimize: Annotated[
        str,
        ChoiceRow(
            "for speed (default), or for size: no kernels whose weights take more bytes",
            "whether kernels may be faster with larger weights",
            "optimisation",
            OPTIMIZE_FOR,
            '"size"',
            elsewhere={
                "speed": "-O -O1 -O2 -O3 --opt-level --optimization-level --release",
                "size": "--small -Os -Oz",
                "": "--optimise --optimize-for",
            },
        ),
    ] = SPEED
    strict_dims: Annotated[
        bool,
        ChoiceRow(
            "dimensions of one name are one size in every call, or it is refused",
            "dimensions of one name are one size in every call",
            said_by=(LOOPS,),
            always_recorded=True,
        ),
    ] = False
    strip: Annotated[
        bool,
        ChoiceRow(
            "leave the names of nodes and the loops of kernels out of the bundle",
            "leave the names of nodes and the loops of kernels out of the bundle",
            said_by=(LOOPS,),
            always_recorded=True,
        ),
    ] = False


class ChoiceKeywords(TypedDict, total=False):
    """The same as arguments of Python's functions."""

    fallback: str
    precision: str
    optimize: str
    strict_dims: bool
    strip: bool


ROWS: dict[str, ChoiceRow] = {
    field: hint.__metadata__[0] for field, hint in Choices.__annotations__.items()
}
"""By field."""
DEFAULTS = Choices()


def spelling(field: str) -> str:
    """Return what a field is called on the command line and in ``ingot.toml``."""
    return field.replace("_", "-")


def require_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse keywords that a function does not take, as Python does where they are written out.

    Raises:
        TypeError: names one.
    """
    unknown = set(given) - set(known)
    if unknown:
        raise TypeError(f"{function}() got an unexpected keyword argument {min(unknown)!r}")


def recorded(choices: Choices) -> dict[str, object]:
    """Return what a record has of them."""
    return {
        field: value
        for field, value in choices._asdict().items()
        if ROWS[field].always_recorded or value != getattr(DEFAULTS, field)
    }
