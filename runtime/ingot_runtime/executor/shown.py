"""What a session tells of itself: one line, or a table for a notebook.

In: what it runs on, its inputs and outputs. Out: texts. Not done here: what a bundle holds
(``format.describe``).
"""

from ..errors import InputError
from ..html_table import html_table
from ..printable import printable
from .loaded import Loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    Specs = tuple[object, ...]


def session_text(loaded: Loaded, inputs: "Specs", outputs: "Specs") -> str:
    """Return the model's call, and what runs it."""
    call = f"({_listed(inputs)}) -> ({_listed(outputs)})"
    facts = ", ".join(f"{name} {value}" for name, value in _facts(loaded))
    return printable(f"<ingot_runtime.Session {loaded.plan.model}{call}; {facts}>")


def session_html(loaded: Loaded, inputs: "Specs", outputs: "Specs") -> str:
    """Return the model's call, and what runs it, as a table of HTML."""
    tensors = [("inputs", _listed(inputs)), ("outputs", _listed(outputs))]
    return html_table(f"session of {loaded.plan.model}", [*tensors, *_facts(loaded)])


def _facts(loaded: Loaded) -> "list[tuple[str, str]]":
    try:
        threads = str(loaded.pool.n_threads)
    except InputError:
        threads = "0 (closed)"
    return [
        ("target", loaded.variant.target),
        ("threads", threads),
        ("digest", loaded.source.root_digest.hex()[:16]),
    ]


def _listed(specs: "Specs") -> str:
    return ", ".join(map(str, specs))
