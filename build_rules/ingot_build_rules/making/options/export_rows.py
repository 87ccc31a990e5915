"""The formats in which a bundle or a model can be exported, and the settings of an export.

In: nothing. Out: ``EXPORT_ROWS``, the kinds; ``ExportFields``, whose fields are what may be said,
and ``FIELD_ROWS``, what the command line and ``ingot.toml`` tell of each. Not done here: writing
files (``export.export_kinds``, one function a kind).

To add a kind, write a row and its writer; to add a field, a field here, and read it. Named tuples,
since a shell asks for completions whenever a key is pressed.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

from ingot_build_rules.making.options.option_rows import Pairs, rows_of

KeyType = Literal["text", "texts", "count", "flag", "shapes"]
Profiles = tuple[Pairs, ...]


class ExportRow(NamedTuple):
    """``text``: of the command's flag. The output is a file, or where ``in_folder`` is set the folder
    of several. ``of_model``: what is exported is a model, and no bundle. ``of_project``: only a
    project has it, which knows what the bundle was made of."""

    text: str
    in_folder: bool = False
    of_model: bool = False
    of_project: bool = False


EXPORT_ROWS: dict[str, ExportRow] = {
    "executable": ExportRow(
        "a program of one file for Linux, which needs no Python and no library"
    ),
    "library": ExportRow(
        "a library to link, and its header, which need no libc and no memory", in_folder=True
    ),
    "module-archive": ExportRow(
        "a tar in the Model Library Format: objects, their C, headers, metadata"
    ),
    "c-source": ExportRow(
        "the model as C99: structs with its names, its kernels, its weights; any compiler takes it",
        in_folder=True,
        of_model=True,
    ),
    "wasm": ExportRow(
        "the model as WebAssembly with SIMD, and an ES module that loads it",
        in_folder=True,
        of_model=True,
    ),
    "release": ExportRow("", of_project=True),
}
_LIBRARIES = ("library", "module-archive")


class FieldRow(NamedTuple):
    """``kinds`` of exports take it. ``key``: in ``ingot.toml``, of ``key_type`` and with an
    ``example``; none where only the command has it. ``option``: of the command, with ``text``; none
    where only a project has it. ``json``: in a project as plain values."""

    kinds: tuple[str, ...]
    key: str
    example: str
    key_type: KeyType = "text"
    option: str = ""
    text: str = ""
    metavar: str = ""
    option_kind: str = "text"
    words: tuple[str, ...] = ()
    json: str = ""


class ExportFields(NamedTuple):
    """What is said of one export; "" and 0 where nothing is."""

    shared: Annotated[
        bool,
        FieldRow(
            ("library",),
            "shared",
            "true",
            "flag",
            "shared",
            "a library that is loaded when the program starts (default: a static one)",
        ),
    ] = False
    model_name: Annotated[
        str,
        FieldRow(
            (*_LIBRARIES, "c-source", "wasm"),
            "name",
            '"a"',
            option="name",
            text="what the model is called in C (default: as the bundle's file)",
            metavar="NAME",
        ),
    ] = ""
    variant: Annotated[
        str,
        FieldRow(
            _LIBRARIES,
            "variant",
            '"x86-64-v3"',
            option="variant",
            text="the one to export (default: the only one)",
            metavar="TARGET",
        ),
    ] = ""
    pools: Annotated[
        tuple[str, ...],
        FieldRow(
            _LIBRARIES,
            "pools",
            '["workspace=internal"]',
            "texts",
            "pool",
            "who gives the memory of a pool: caller, or internal for a section of the library; "
            "perhaps at most so large",
            "POOL=PLACE[,SIZE]",
            "pair",
        ),
    ] = ()
    tensors_in: Annotated[
        str,
        FieldRow(
            (*_LIBRARIES, "c-source"),
            "tensors-in",
            '"workspace"',
            option="tensors-in",
            text="the pool that inputs and outputs lie in",
            metavar="POOL",
        ),
    ] = ""
    target: Annotated[
        str,
        FieldRow(
            ("c-source",),
            "target",
            '"c-256"',
            option="target",
            text="of --c-source: c (default), c-small (microcontrollers, the least code) and c-wide "
            "(Clang on hosts) have numbers alone, c-128 and c-256 vectors of so many bits, which GCC "
            "and Clang know",
            metavar="FORM",
            words=("c", "c-small", "c-wide", "c-128", "c-256"),
        ),
    ] = ""
    weights_apart: Annotated[
        bool,
        FieldRow(
            ("c-source",),
            "weights-apart",
            "true",
            "flag",
            "weights-apart",
            "of --c-source: weights in a file, which the program gives",
        ),
    ] = False
    dynamic: Annotated[
        bool,
        FieldRow(
            ("executable",),
            "dynamic",
            "true",
            "flag",
            "dynamic",
            "an executable that is linked with the machine's glibc, for bundles with devices beside "
            "the host",
        ),
    ] = False
    selftest: Annotated[int, FieldRow(("release",), "selftest", "2", "count")] = 0
    sign: Annotated[
        tuple[str, ...], FieldRow(("release",), "sign", '["release.pem"]', "texts")
    ] = ()
    expires: Annotated[str, FieldRow(("release",), "expires", '"2030-12-31"')] = ""
    number: Annotated[int, FieldRow(("release",), "number", "7", "count")] = 0
    shapes: Annotated[
        Profiles,
        FieldRow(
            (*_LIBRARIES, "c-source", "wasm"),
            "shape",
            '{ x = "1x3x224x224" }',
            "shapes",
            "shape",
            "the shape of an input whose sizes are open (all but --executable)",
            "NAME=1x3x224x224",
            "shape",
            json="shapes",
        ),
    ] = ()
    also: Annotated[
        tuple[str, ...],
        FieldRow(
            ("module-archive",),
            "",
            "",
            "texts",
            "also",
            "another model in the archive",
            "BUNDLE",
            "bundle",
        ),
    ] = ()


class ExportKeywords(TypedDict, total=False):
    """The settings of an export of a project, as arguments of ``Project.export``."""

    shared: bool
    model_name: str
    variant: str
    pools: Sequence[str]
    tensors_in: str
    target: str
    weights_apart: bool
    dynamic: bool
    selftest: int
    sign: Sequence[Any]
    expires: str
    number: int
    shape: Any


FIELD_ROWS = rows_of(ExportFields, FieldRow)
"""By field."""
FIELDS_OF_OPTIONS = {row.option: field for field, row in FIELD_ROWS.items() if row.key}
"""By the names on the command line, of what a project can say, too."""
NOTHING_SAID = ExportFields()


def misfits(kind: str, fields: ExportFields) -> list[str]:
    """Return the fields that say something, and nothing of this kind."""
    said = zip(fields._fields, fields, strict=True)
    return [field for field, value in said if value and kind not in FIELD_ROWS[field].kinds]
