"""The sections debug and lock: what a bundle tells of itself. FORMAT.md, "Lock and debug".

In: a source, or bytes. Out: plain values of the shapes that the format names, kernels' symbols. Not
done here: anything that a run depends on.
"""

from ..errors import BundleError
from .header import DEBUG, KIND_NAMES, LOCK
from .msgpack_decode import unpack
from .shapes import check_shape
from .source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NODES = [(str, str)]  # name, op
_LAUNCH = {
    "kernel": str, "kind": str, "method?": str, "nodes": _NODES, "writes": [str], "saved_bytes": int, "ends": str,
    "users": [str],
}  # fmt: skip
_REFUSAL = {"pattern": str, "nodes": _NODES, "reason": str, "others": _NODES}
_VERSION = {
    "sizes": [(str, str)],
    "refused": bool,
    "launches": int,
}  # name and sizes of each dimension
_MEMORY = {"planned_bytes": int, "lower_bound_bytes": int, "fixed": bool}
_PLACED_VALUE = {
    "op": str, "nodes": _NODES, "name?": str, "of?": int, "device": str, "reason": str, "from?": int, "asked?": str,
    "globs?": [int], "plan?": [str], "picoseconds?": [(str, int)],
}  # fmt: skip
_PLACEMENT = {
    "sizes": [(str, str)],
    "devices": [{"name": str, "node_count": int, "operation_count": int}],
    "copies": [{"source": str, "destination": str, "copy_count": int, "size_bytes": int}],
    "values": [_PLACED_VALUE],
    "outputs": [int],
}
# Maps whose key is "*" are by target.
SHAPES: "dict[int, Any]" = {
    LOCK: {},
    DEBUG: {
        "kernels": {"*": [str]},
        "libraries": [[str]],
        "debug": {
            "launches?": {"*": [_LAUNCH]},
            "programs?": {"*": {"*": bytes}},
            "refusals?": [_REFUSAL],
            "messages?": {"*": str},
            "memory?": {"*": _MEMORY},
            "versions?": {"*": [_VERSION]},
            "placement?": [_PLACEMENT],
        },
    },
}


def decode_record(data: bytes, kind: int) -> "dict[str, Any]":
    """Return the values of a section of `kind` ``LOCK`` or ``DEBUG``.

    Raises:
        FormatError: not canonical msgpack, or not of the section's shape.
    """
    where = f"section {KIND_NAMES[kind]} 0"
    value: dict[str, Any] = unpack(data, where)
    check_shape(value, SHAPES[kind], where)
    return value


def read_record(source: Source, kind: int) -> "dict[str, Any]":
    """Return the values of a section of an open bundle, as ``decode_record`` does.

    Raises:
        BundleError: the section is missing or damaged, or breaks a rule.
    """
    return decode_record(source.section(kind), kind)


def named_message(source: Source, text: str) -> str:
    """Return a program's message, or one that was cut off, in the user's names; as it is where the
    section has none, or is damaged."""
    try:
        known: dict[str, str] = read_record(source, DEBUG)["debug"].get("messages", {})
    except (BundleError, OSError):
        return text
    return known.get(text) or next(
        (named for raw, named in sorted(known.items()) if raw.startswith(text)), text
    )


def kernel_names(source: Source, target: str, count: int) -> list[str]:
    """Return the symbols of a variant's kernels in the image's order; numbers where the section has
    no names."""
    return _named(read_record(source, DEBUG)["kernels"].get(target, []), count)


def library_kernel_names(source: Source, library: int, count: int) -> list[str]:
    """Return the symbols of a library's kernels, as ``kernel_names`` does."""
    libraries: list[list[str]] = read_record(source, DEBUG)["libraries"]
    return _named(libraries[library] if library < len(libraries) else [], count)


def _named(names: list[str], count: int) -> list[str]:
    return [names[index] if index < len(names) else f"kernel {index}" for index in range(count)]
