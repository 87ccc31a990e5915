"""Library sections that are a table of kernels and their text.

In: the section's bytes. Out: the rows and the text; ``KernelRow``. Not done here: what a kind has in
its head and behind the table (``cuda_library``, ``opencl_library``).
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from ingot_runtime.errors import FormatError

    Damaged = Callable[[str], FormatError]

ROW = r"([A-Za-z_]\w{0,127}) (\d{1,6}) (\d{1,6}) ([01]) ([01])"


class KernelRow:
    """One kernel: ``reports``: it may return a code; ``has_scratch``: no more may run it at once
    than its scratch has places for."""

    __slots__ = ("buffer_count", "has_scratch", "name", "reports", "scalar_count")

    def __init__(self, fields: "tuple[str, ...]") -> None:
        self.name = fields[0]
        self.buffer_count = int(fields[1])
        self.scalar_count = int(fields[2])
        self.reports = fields[3] == "1"
        self.has_scratch = fields[4] == "1"


def split_library(
    code: bytes, title: str, is_head: "Callable[[str], bool]", damaged: "Damaged"
) -> "tuple[str, list[str], str]":
    """Return head, rows and text of a library.

    Raises:
        FormatError: it is no ASCII, has no such head, or no table.
    """
    try:
        table, empty, text = code.decode("ascii").partition("\n\n")
    except UnicodeDecodeError as error:
        raise damaged(f"{error}") from error
    head, *rows = table.split("\n")
    if not empty or not is_head(head):
        raise damaged(f"expected {title!r} and a table, got {head[:60]!r}")
    return head, rows, text


def read_rows(
    rows: "list[str]", pattern: "re.Pattern[str]", count: int, damaged: "Damaged"
) -> "list[tuple[str, ...]]":
    """Return the fields of each kernel's row, its name first; ``count`` is the plan's.

    Raises:
        FormatError: a row that is none, more or fewer kernels, two of one name.
    """
    found = [match.groups() for match in map(pattern.fullmatch, rows) if match]
    if not len(found) == len(rows) == count:
        raise damaged(f"expected {count} kernels, got {len(found)}")
    if len({fields[0] for fields in found}) != len(found):
        raise damaged("two kernels of one name")
    return found
