"""What a session tells of itself: one line, or a table for a notebook.

In: a session. Out: texts. Not done here: what a bundle holds (``format.describe``).
"""

from ..errors import InputError
from ..html_table import html_table
from ..printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .session import Session, TensorSpec


def session_text(session: "Session") -> str:
    """Return the model's call, and what runs it."""
    call = f"({_listed(session.inputs)}) -> ({_listed(session.outputs)})"
    facts = ", ".join(f"{name} {value}" for name, value in _facts(session))
    return printable(f"<ingot_runtime.Session {session.loaded.plan.model}{call}; {facts}>")


def session_html(session: "Session") -> str:
    """Return the same as a table."""
    tensors = [("inputs", _listed(session.inputs)), ("outputs", _listed(session.outputs))]
    return html_table(f"session of {session.loaded.plan.model}", [*tensors, *_facts(session)])


def _facts(session: "Session") -> "list[tuple[str, str]]":
    loaded = session.loaded
    try:
        threads = str(loaded.pool.n_threads)
    except InputError:
        threads = "0 (closed)"
    return [
        ("target", loaded.variant.target),
        ("threads", threads),
        ("digest", session.digest[:16]),
    ]


def _listed(specs: "tuple[TensorSpec, ...]") -> str:
    return ", ".join(map(str, specs))
