"""Streams of words and texts, and the records in them as tables: classes whose fields are rows. From
rows are made: what reads and writes a record, the manifest, the tables of FORMAT.md, and those that
the loader in C walks.

In: bytes. Out: words, texts and records, checked; plain values of a record. Not done here: rules about
several fields (``plan``), writing (``ingot_artifacts.bundle.encode_plan``), the tables for C
(``ingot_build_rules.tools.export.abi_header``).
"""

from struct import Struct, unpack_from

from .checks import require, unknown
from .dtypes import DTYPE_SIZES_BYTES
from .limits import ELEMENT_COUNT_MAX, NAME_SIZE_BYTES_MAX, SIZE_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform

    R = TypeVar("R", bound="Record")
else:

    def dataclass_transform(**_):  # noqa: ANN003, ANN201
        return lambda cls: cls


# FORMAT.md, "Words and texts": names that move the cursor, or turn the direction of writing, could
# print the word "verified" themselves. C0, DEL and C1; the marks and embeddings that
# reorder text; separators of lines and paragraphs; the byte order mark. Surrogates have no UTF-8.
FORBIDDEN_RANGES = (
    (0x00, 0x1F), (0x7F, 0x9F), (0x061C, 0x061C), (0x200E, 0x200F), (0x2028, 0x202E),
    (0x2066, 0x2069), (0xD800, 0xDFFF), (0xFEFF, 0xFEFF),
)  # fmt: skip


CODE_MAX = (1 << 31) - 1
_LISTS = ("texts", "sorted texts", "words per device")
# In a struct of fixed size, by kind of row.
_LAYOUTS = {"u16": "H", "u32": "I", "u64": "Q", "i64": "q", "bytes": "s"}


class Reader:
    """Reads words one by one from private bytes; every read is checked against the end."""

    __slots__ = ("_at", "_text_at", "_texts", "_words", "counts", "minor", "where")

    def __init__(self, data: bytes, where: str, minor: int = 0) -> None:
        """Split `data`: one word with the count of words, the words, the text. ``minor``: the
        bundle's version; ``counts``: of lists that were read, by name.

        Raises:
            FormatError: the count lies.
        """
        require(len(data) >= 8, "section ends too early", where, f"{len(data)} bytes")
        (count,) = unpack_from("<q", data)
        why = f"{count} words in {len(data)} bytes"
        require(0 <= count <= len(data) // 8 - 1, "word count lies", where, why)
        self._words: tuple[int, ...] = unpack_from(f"<{count}q", data, 8)
        self._texts = data[8 + 8 * count :]
        self._at = 0
        self._text_at = 0
        self.where, self.minor = where, minor
        self.counts: dict[str, int] = {}

    def word(self, what: str, low: int, high: int) -> int:
        """Return the next word; it must lie in [`low`, `high`]."""
        require(self._at < len(self._words), "section ends too early", f"{self.where}, {what}")
        value = self._words[self._at]
        why = f"expected {low} to {high}, got {value}"
        require(low <= value <= high, f"bad {what}", f"{self.where}, word {self._at}", why)
        self._at += 1
        return value

    def words(self, what: str, count: int) -> tuple[int, ...]:
        """Return the next `count` words, unchecked."""
        fits = 0 <= count <= len(self._words) - self._at
        require(fits, "section ends too early", f"{self.where}, {what}")
        self._at += count
        return self._words[self._at - count : self._at]

    def text(self, what: str, size_bytes_max: int = NAME_SIZE_BYTES_MAX) -> str:
        """Return the next text; its length in bytes is the next word."""
        size_bytes = self.word(f"length of {what}", 0, size_bytes_max)
        data = self._texts[self._text_at : self._text_at + size_bytes]
        require(len(data) == size_bytes, "section ends too early", f"{self.where}, {what}")
        self._text_at += size_bytes
        return checked_text(data, what, self.where)

    def texts(self, what: str, count_max: int) -> tuple[str, ...]:
        """Return the next texts; their count is the next word."""
        count = self.word(f"{what} count", 0, count_max)
        return tuple(self.text(what) for _ in range(count))

    def finish(self) -> None:
        """Raise unless everything was read."""
        left = len(self._words) - self._at
        require(left == 0, "words left over", self.where, f"{left} words")
        left = len(self._texts) - self._text_at
        require(left == 0, "text left over", self.where, f"{left} bytes")


class Row:
    """A field of a record.

    ``kind``: text, word, the number of a name in ``of`` (device kind, dtype), or a list: texts, sorted
    texts, records of class ``of``, ranges (offset, size), dims, words per device; in structs of fixed
    size u16, u32, u64, i64, bytes. ``low``, ``high``: bounds of a word, or of a list's length.
    ``what``: its name in errors, "{}" is the record's. ``unique``: the field in which all items
    differ. ``key``: in the manifest, "" if it is not there. ``since``: the first minor version that
    has it; before, it is ``default``. ``rule``: takes the record as far as it is read.
    """

    name: str
    unique = what = ""
    low = high = since = 0
    default: "Any" = ...
    key: "str | None" = None
    of: "Any" = None
    rule: "Callable[[Any], None] | None" = None

    def __init__(
        self, kind: str, low: int = 0, high: int = 0, what: str = "", **rest: "Any"
    ) -> None:
        self.kind = kind
        vars(self).update(rest, low=low, high=high, what=what)

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name
        self.key = name if self.key is None else self.key

    def read(
        self, words: Reader, noun: str, index: "int | None", values: "dict[str, Any]"
    ) -> "Any":
        """Read the value that comes next; `values` are those of the fields before."""
        what, place = (self.what or f"{{}} {self.name}").format(noun), words.where
        if index is not None:
            place = f"{place}, {noun} {repr(values['name']) if 'name' in values else index}"
        if self.kind == "text":
            return words.text(what)
        if self.kind == "word":
            return words.word(what, self.low, self.high)
        if self.kind in ("device kind", "dtype"):
            code = words.word(what, self.low, CODE_MAX)
            if code >= len(self.of):
                raise unknown(f"{self.kind} {code}", place)
            return code if self.kind == "dtype" else self.of[code]
        if self.kind == "words per device":
            count = words.counts["devices"]
            return tuple(words.word(what, self.low, self.high) for _ in range(count))
        if self.kind == "dims":
            return self._dims(words, noun, place, values["dtype"])
        count = words.counts[self.name] = words.word(f"{what} count", self.low, self.high)
        if self.kind == "ranges":
            return _ranges(words, what, count)
        if self.kind == "records":
            made = tuple(read_record(words, self.of, what, index) for index in range(count))
            names = [getattr(each, self.unique) for each in made] if self.unique else []
        else:
            made = tuple(words.text(what) for _ in range(count))
            names = list(made)
        if self.kind == "sorted texts":
            good = names == sorted(set(names))
            require(good, f"{self.name} not sorted", words.where, values["target"])
        why = ", ".join(sorted(names))[:200]
        require(len(set(names)) == len(names), f"{what} name appears twice", words.where, why)
        return made

    def _dims(self, words: Reader, noun: str, place: str, dtype: int) -> "tuple[int, ...]":
        rank, low = words.word(f"{noun} rank", self.low, self.high), -words.counts["symbols"]
        dims = tuple(words.word(f"{noun} dimension", low, ELEMENT_COUNT_MAX) for _ in range(rank))
        size_bytes = DTYPE_SIZES_BYTES[dtype]
        for dim in dims:
            size_bytes *= max(dim, 1)
        require(size_bytes <= ELEMENT_COUNT_MAX, f"{noun} too large", place, f"{dims}")
        return dims

    def plain(self, value: "Any", plan: "Any") -> object:
        """Return a value as the manifest has it."""
        if self.kind == "records":
            return [record_dict(record, plan) for record in value]
        if self.kind == "dims":
            return [dim if dim >= 0 else plan.symbols[-dim - 1] for dim in value]
        if self.kind == "dtype":
            return self.of[value]
        return [*value] if self.kind in _LISTS else value


def _ranges(words: Reader, what: str, count: int) -> "tuple[tuple[int, int], ...]":
    ranges, end = list[tuple[int, int]](), 0
    for _ in range(count):
        offset = words.word(f"{what} offset", end, SIZE_BYTES_MAX)
        size_bytes = words.word(f"{what} size", 1, SIZE_BYTES_MAX)
        end = offset + size_bytes
        ranges.append((offset, size_bytes))
    return tuple(ranges)


def row(*values: "Any", **named: "Any") -> "Any":
    """Return a ``Row``, for the body of a record's class."""
    return Row(*values, **named)


def beside(value: "Any", *, init: "Literal[False]" = False) -> "Any":  # noqa: ARG001  # for checkers
    """Return what a field is until another section is read; it is in no table."""
    return value


@dataclass_transform(field_specifiers=(row, beside))
class Record:
    """Its fields are ``rows`` in the order of the file."""

    rows: "ClassVar[tuple[Row, ...]]"

    def __init_subclass__(cls) -> None:
        cls.rows = tuple(each for each in vars(cls).values() if isinstance(each, Row))

    def __init__(self, *values: object, **named: object) -> None:
        given = dict(zip((each.name for each in self.rows), values)) | named  # noqa: B905
        for each in self.rows:
            defaults = () if each.default is ... else (each.default,)
            setattr(self, each.name, given.pop(each.name, *defaults))
        assert not given, f"no field {given}"


def read_record(words: Reader, made: "type[R]", noun: str, index: "int | None" = None) -> "R":
    """Read the fields of a record; errors name it by noun and index, or by the section alone.

    Raises:
        FormatError: a value is none of its row's. VersionError: a number is not known here.
    """
    record = made.__new__(made)
    values = vars(record)
    for each in made.rows:
        is_there = each.since <= words.minor
        values[each.name] = each.read(words, noun, index, values) if is_there else each.default
        if each.rule:
            each.rule(record)
    return record


def layout(made: "type[Record]") -> Struct:
    """Return how the fields of a record lie in a struct of fixed size."""
    return Struct("<" + "".join(f"{each.high or ''}{_LAYOUTS[each.kind]}" for each in made.rows))


def record_dict(record: Record, plan: "Any") -> "dict[str, object]":
    """Return a record as the manifest of its plan has it."""
    rows = [each for each in record.rows if each.key and each.since <= plan.minor]
    return {str(each.key): each.plain(getattr(record, each.name), plan) for each in rows}


def checked_text(data: bytes, what: str, where: str) -> str:
    """Return a text of the file.

    Raises:
        FormatError: not UTF-8, or with a character that a bundle may not hold.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        require(False, f"{what} is not UTF-8", where, str(error))
        raise AssertionError from None  # `require(False)` has raised
    forbidden = forbidden_character(text)
    why = f"{forbidden!a} in {text[:200]!a}"
    require(not forbidden, f"{what} holds a control character", where, why)
    return text


def forbidden_character(text: str) -> str:
    """Return the first character of `text` that a bundle may not hold, "" if there is none."""
    if text.isprintable():  # no forbidden character is
        return ""
    for character in text:
        code = ord(character)
        if any(first <= code <= last for first, last in FORBIDDEN_RANGES):
            return character
    return ""
