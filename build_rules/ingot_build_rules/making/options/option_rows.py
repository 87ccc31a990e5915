"""Every option of a compilation, and how the command line, ``ingot.toml``, Python and records
present it.

In: nothing. Out: ``GivenOptions``, whose fields are the options as a user gives them through any
face; ``Choices``, those of them that mean the same on every machine, whatever files there are;
``ROWS``. Not done here: reading files and machines (``options.options``), what an option does
(the stage that reads its field).

To add one, write a field and its keyword here, and read it. Named tuples, since a shell asks for
completions whenever a key is pressed.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypedDict, TypeVar

from ingot_compiler.ir.precision import F32, OPTIMIZE_FOR, PRECISIONS, SPEED

if TYPE_CHECKING:
    import os

    from ingot_compiler.backends.target_forms import GivenTarget, GivenTargets

FORBID, WARN, ALLOW = FALLBACKS = ("forbid", "warn", "allow")
"""What happens to a node that is placed on a device that has no code for it: the model is refused,
or the host runs it, and the user is told or not."""
GENERAL, REFUSE = OTHER_SHAPES = ("general", "refuse")
"""What happens to a call that fits no profile: the general version runs, or there is none."""
NATIVE = "native"
"""The target that this machine is."""
PROGRAM, GRAPH, PLACED, LOOPS = ("ingot-text", "graph", "placed", "loops")
"""Stages whose texts can be compiled; the first is also the suffix of a program's file."""

ValueType = Literal["flag", "text", "texts", "pairs", "places", "shapes"]
Pairs = tuple[tuple[str, str], ...]
Shape = str | Sequence["int | str | tuple[int, int] | None"]
"""``"?x3x224x224"``, or its sizes one by one: None is any, a pair a range."""
Shapes = Mapping[str, Shape] | Sequence[Mapping[str, Shape]]
"""Input name -> shape: of one profile, or of several in the order of preference."""


class OptionRow(NamedTuple):
    """What every face tells of one option.

    ``text`` is for ``--help``, ``meaning`` for pages; ``value_type`` is that of the value: a truth
    value, a text (one of ``words`` where there are any, the first of them the default), texts, a
    table of texts, one of devices by glob, shapes by input.

    On the command line it is called ``option``, if not as the field, and its values are
    ``metavar``, read and completed as ``kind`` says. In ``ingot.toml`` it is ``key``, if not as the
    field; it may stand in ``tables``, and looks like ``example``; ``entry`` stands for a name in a
    table.

    ``name``: of the option in errors about its value. ``said_by``: the texts of stages that say it
    already, or have no place for it. ``has_files``: what it says is a path. ``recorded``: whether
    records have it also where it is the default, as all records do that there ever were, or
    today's. ``elsewhere``: a value, "" for any -> what other tools call it.
    """

    text: str
    meaning: str
    value_type: ValueType = "flag"
    name: str = ""
    words: tuple[str, ...] = ()
    option: str = ""
    metavar: str = ""
    kind: str = "text"
    key: str = ""
    entry: str = ""
    example: str = "true"
    tables: tuple[str, ...] = ("defaults", "bundle")
    said_by: tuple[str, ...] = ()
    has_files: bool = False
    recorded: Literal["unless default", "always", "from the first"] = "unless default"
    elsewhere: Mapping[str, str] = {}

    @property
    def is_many(self) -> bool:
        """Whether it may be said several times."""
        return self.value_type not in ("flag", "text")


class Choices(NamedTuple):
    """What means the same everywhere: truth values, words, names, lists of texts."""

    fallback: Annotated[
        str,
        OptionRow(
            "of a node that its device has no code for: refuse it (default), or run it on the host",
            "what happens to a node that is placed where there is no code for it",
            "text",
            "fallback",
            FALLBACKS,
            example='"warn"',
            tables=("bundle",),
            said_by=(PROGRAM, PLACED, LOOPS),
            recorded="always",
        ),
    ] = FORBID
    precision: Annotated[
        str,
        OptionRow(
            "sums of products: error at most a chain's (default) or 2.5 times that; rounded in one "
            "order; of factors in two bf16, in one",
            "how near sums of products are to the true ones",
            "text",
            "precision",
            PRECISIONS,
            example='"fast"',
            elsewhere={
                "": "--fast --fast-math --ffast-math -Ofast --math --strict --bf16 --bf16x3 --bfloat16 --amp"
            },
        ),
    ] = F32
    optimize: Annotated[
        str,
        OptionRow(
            "for speed (default), or for size: no kernels whose weights take more bytes",
            "whether kernels may be faster with larger weights",
            "text",
            "optimisation",
            OPTIMIZE_FOR,
            example='"size"',
            elsewhere={
                "speed": "-O -O1 -O2 -O3 --opt-level --optimization-level --release",
                "size": "--small -Os -Oz",
                "": "--optimise --optimize-for",
            },
        ),
    ] = SPEED
    strict_dims: Annotated[
        bool,
        OptionRow(
            "dimensions of one name are one size in every call, or it is refused",
            "dimensions of one name are one size in every call",
            said_by=(LOOPS,),
            recorded="always",
        ),
    ] = False
    strip: Annotated[
        bool,
        OptionRow(
            "leave the names of nodes and the loops of kernels out of the bundle",
            "leave the names of nodes and the loops of kernels out of the bundle",
            said_by=(LOOPS,),
            recorded="always",
        ),
    ] = False
    planner: Annotated[
        str,
        OptionRow(
            "memory planner (default: best of all)",
            "memory planner",
            "text",
            "memory planner",
            metavar="NAME",
            kind="planner",
            example='"best"',
            recorded="from the first",
        ),
    ] = "best"
    pools: Annotated[
        tuple[str, ...],
        OptionRow(
            "a pool for what is computed on the host, at most so large (default: one that grows); the "
            "first that has room",
            "memory for what is computed on the host, the preferred first",
            "texts",
            option="pool",
            metavar="NAME[=SIZE]",
            example='["fast=200kB", "slow"]',
            tables=("bundle",),
        ),
    ] = ()


DEFAULTS = Choices()


class GivenOptions(NamedTuple):
    """All that a user says of one compilation; ``shapes`` and ``other_shapes`` are None in a bundle
    of a project that takes those of its model."""

    targets: Annotated[
        "GivenTargets",
        OptionRow(
            "ARCH[:cpu][+feature|-feature]..., one variant each (default: native)",
            "one, or several with one variant each, in any form; a dict gives them names",
            "texts",
            option="target",
            metavar="T",
            kind="target",
            example='["x86-64-v3"]',
            recorded="from the first",
            elsewhere={
                "": "--arch --architecture --cpu --mcpu --march --mtriple --triple --isa --platform "
                "--features --mattr --target-cpu --cpu-features -mcpu -march -mtriple -mattr -t --targets"
            },
        ),
    ] = (NATIVE,)
    shapes: Annotated[
        Shapes | Sequence[Pairs] | None,
        OptionRow(
            "also compile a version for this shape of an input: ? for any size, 1..8 for a range; the "
            "second shape of an input begins another version",
            "input name -> ``(1, 3, None, (1, 224))`` with a version of its own; or several",
            "shapes",
            option="shape",
            metavar="NAME=1x3x224x224",
            kind="shape",
            key="shape",
            entry="INPUT",
            example='{ x = "1x3x224x224" }',
            tables=("defaults", "model", "bundle"),
            said_by=(PROGRAM, GRAPH, PLACED, LOOPS),
            recorded="from the first",
            elsewhere={
                "": "--shapes --input-shape --input-shapes --batch --batch-size --dims --size --optShapes "
                "--minShapes --maxShapes --min-shape --max-shape"
            },
        ),
    ] = ()
    other_shapes: Annotated[
        str | None,
        OptionRow(
            "what serves calls of no --shape: the general version (default), or nothing",
            "what serves calls of no such shape",
            "text",
            "choice of other shapes",
            OTHER_SHAPES,
            example='"refuse"',
            tables=("defaults", "model", "bundle"),
            recorded="from the first",
        ),
    ] = GENERAL
    devices: Annotated[
        Mapping[str, str] | Pairs,
        OptionRow(
            "declare a virtual device",
            'virtual device -> ``"cpu:1"``; ``host`` is always there',
            "pairs",
            option="device",
            metavar="NAME=KIND[:ID][,target=T][,scope=S]",
            kind="device",
            entry="NAME",
            example='{ acc = "cpu:1" }',
            tables=("bundle",),
            said_by=(PROGRAM, PLACED, LOOPS),
            recorded="from the first",
            elsewhere={"": "--devices --backend --gpu --cuda --provider --accelerator"},
        ),
    ] = ()
    place: Annotated[
        Pairs,
        OptionRow(
            "put nodes on a device, the last glob that matches wins; auto: on the device where a call "
            "is predicted to take the least time (auto alone: all nodes that no glob places)",
            'glob over node names -> virtual device or "auto"; or "auto" for all nodes',
            "places",
            metavar="GLOB=NAME",
            kind="place",
            entry='"GLOB"',
            example='{ "/layer1/*" = "acc" }',
            tables=("bundle",),
            said_by=(PROGRAM, GRAPH, PLACED, LOOPS),
            recorded="from the first",
            elsewhere={"": "--placement --assign --map"},
        ),
    ] = ()
    plugins: Annotated[
        tuple[str, ...],
        OptionRow(
            "a target from outside, which runs with your rights (docs/plugins.md)",
            'targets from outside, ``"module:TARGET"``; they run with your rights',
            "texts",
            option="plugin",
            metavar="MODULE:TARGET[,ATTRIBUTE=VALUE]",
            example='["package.module:TARGET"]',
            tables=("project", "bundle"),
            said_by=(LOOPS,),
        ),
    ] = ()
    ops: Annotated[
        Pairs,
        OptionRow(
            "an op of a domain of your own, and the file that defines it: a program, or ONNX functions "
            "(docs/custom-ops.md)",
            '``"my.domain::Foo"`` -> the file that defines it',
            "pairs",
            option="op",
            metavar="DOMAIN::NAME=FILE",
            kind="device",
            entry='"DOMAIN::NAME"',
            has_files=True,
            example='{ "my.domain::Foo" = "foo.ingot-text" }',
            tables=("bundle",),
            said_by=(PROGRAM, GRAPH, PLACED, LOOPS),
        ),
    ] = ()
    tuning: Annotated[
        str | None,
        OptionRow(
            "what ingot tune has measured of the layers",
            "a file of ``ingot tune``",
            "text",
            metavar="FILE",
            kind="file",
            has_files=True,
            example='"a.tune"',
            tables=("bundle",),
        ),
    ] = None
    choices: Choices = DEFAULTS


NOTHING_GIVEN = GivenOptions()


class ChoiceKeywords(TypedDict, total=False):
    """``Choices`` as arguments of Python's functions."""

    fallback: str
    precision: str
    optimize: str
    strict_dims: bool
    strip: bool
    planner: str
    pools: str | Sequence[str]


class _GivenKeywords(ChoiceKeywords, total=False):
    targets: "str | Sequence[GivenTarget] | Mapping[str, GivenTarget]"
    other_shapes: str
    devices: Mapping[str, str] | None
    place: Mapping[str, str] | str | None
    plugins: str | Sequence[str]
    ops: Mapping[str, str] | None
    tuning: "str | os.PathLike[str] | None"


class CompileKeywords(_GivenKeywords, total=False):
    """All options as arguments of ``ingot.compile``."""

    shapes: Shapes | None


class BundleKeywords(_GivenKeywords, total=False):
    """All options as arguments of ``Project.bundle``, which are called as the keys of a table."""

    shape: Shapes | None


Row = TypeVar("Row")


def rows_of(fields: type, kind: type[Row]) -> dict[str, Row]:
    """Return the rows of a class by field: what annotations say beside the type; ``kind`` is theirs."""
    notes = (
        (field, getattr(hint, "__metadata__", ())) for field, hint in fields.__annotations__.items()
    )
    return {field: row for field, found in notes for row in found if isinstance(row, kind)}


CHOICE_ROWS = rows_of(Choices, OptionRow)
ROWS = rows_of(GivenOptions, OptionRow) | CHOICE_ROWS
"""By field."""


def spelling(field: str) -> str:
    """Return what an option is called on the command line."""
    return ROWS[field].option or field.replace("_", "-")


def entry_parts(field: str, value: str) -> tuple[str, str, str]:
    """Split one entry of a table, as the command line has it: name, ``=``, what is said of it. A glob
    and an input may contain "="; what is said of a device or an op has its own."""
    return value.partition("=") if ROWS[field].value_type == "pairs" else value.rpartition("=")


def key(field: str) -> str:
    """Return what an option is called in ``ingot.toml``."""
    return ROWS[field].key or field.replace("_", "-")


FIELDS = {spelling(field): field for field in ROWS}
"""By the names on the command line."""


def require_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse keywords that a function does not take, as Python does where they are written out.

    Raises:
        TypeError: names one.
    """
    unknown = set(given) - set(known)
    if unknown:
        raise TypeError(f"{function}() got an unexpected keyword argument {min(unknown)!r}")


def given_options(values: Mapping[str, Any]) -> GivenOptions:
    """Return options by field as one value, those that are left out as nothing given."""
    chosen = {field: value for field, value in values.items() if field in CHOICE_ROWS}
    given = {field: value for field, value in values.items() if field not in CHOICE_ROWS}
    return NOTHING_GIVEN._replace(**given, choices=DEFAULTS._replace(**chosen))


def by_field(given: GivenOptions) -> dict[str, Any]:
    """Return each option's value."""
    values = given._asdict() | given.choices._asdict()
    return {field: values[field] for field in ROWS}


def files_of(given: GivenOptions) -> list[str]:
    """Return the paths that options say."""
    values = [value for field, value in by_field(given).items() if ROWS[field].has_files and value]
    pairs = [[("", value)] if isinstance(value, str) else value for value in values]
    return [path for each in pairs for _, path in each]


def recorded(choices: Choices) -> dict[str, object]:
    """Return what a record has of them."""
    return {
        field: list(value) if ROWS[field].is_many else value
        for field, value in choices._asdict().items()
        if ROWS[field].recorded != "unless default" or value != getattr(DEFAULTS, field)
    }
