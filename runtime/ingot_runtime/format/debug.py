"""The debug section: names for people. FORMAT.md, "Debug".

In: a source. Out: kernels' symbols, the section as plain values. Not done here: anything that a run depends on.
"""

from ..errors import BundleError
from .checks import require
from .header import DEBUG
from .source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LENGTH_MAX = 1 << 26


def unpack_section(source: Source, kind: int) -> "dict[str, Any]":
    """Return the debug or lock section as plain values; its digest holds, its types are checked by nobody.

    Raises:
        FormatError: not a msgpack map.
    """
    data = source.section(kind)
    where = "section debug 0" if kind == DEBUG else "section lock 0"
    try:
        value = _unpack(data)
    except (ValueError, TypeError, RecursionError) as error:
        # msgpack's exceptions are ValueErrors.
        require(False, "not msgpack", where, str(error))
        raise AssertionError from error  # `require(False)` has raised
    require(isinstance(value, dict), "not a map", where)
    table: dict[str, Any] = value
    return table


def _unpack(data: bytes) -> "Any":
    import msgpack

    limits = dict.fromkeys(("max_str_len", "max_bin_len", "max_array_len", "max_map_len"), _LENGTH_MAX)
    unpack: Any = msgpack.unpackb  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # no stubs
    return unpack(data, strict_map_key=True, max_ext_len=0, **limits)  # pyright: ignore[reportUnknownVariableType]


def named_message(source: Source, text: str) -> str:
    """Return a program's message, or one that was cut off, in the user's names; as it is where the section has none, or is damaged."""
    try:
        known: Any = unpack_section(source, DEBUG)["debug"]["messages"]
        cut_off = (named for raw, named in sorted(known.items()) if raw.startswith(text))
        return str(known[text] if text in known else next(cut_off, text))
    except (BundleError, LookupError, TypeError, AttributeError, ImportError, OSError):
        return text


def kernel_names(source: Source, target: str, count: int) -> list[str]:
    """Return the symbols of a variant's kernels in the image's order; numbers where the section has no names."""
    names: Any = unpack_section(source, DEBUG).get("kernels")
    known: Any = names.get(target) if hasattr(names, "get") else None
    named: list[str] = [str(name) for name in known] if hasattr(known, "append") else []
    return [named[index] if index < len(named) else f"kernel {index}" for index in range(count)]
