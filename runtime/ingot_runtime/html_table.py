"""What a notebook shows of an object: a small table.

In: texts. Out: HTML. Not done here: which facts an object tells.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def html_table(title: str, rows: "Iterable[Sequence[str]]") -> str:
    """Return a table with a title; the first cell of each row names it."""
    lines = ""
    for name, *cells in rows:
        shown = "".join(f"<td>{_escaped(cell)}</td>" for cell in cells)
        lines += f"<tr><th>{_escaped(name)}</th>{shown}</tr>"
    return f"<table><caption>{_escaped(title)}</caption>{lines}</table>"


def _escaped(text: str) -> str:
    # The module `html` knows every entity, for which it takes milliseconds.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
