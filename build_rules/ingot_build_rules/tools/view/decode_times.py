"""Times of one token of a decoder behind caches of some lengths.

In: a session with states. Out: seconds per length. Not done here: text (``cli.bench``).

Which sizes of the inputs are the new tokens and which all of them, no bundle says: they are what a
call with a few accepts.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ingot_build_rules.tools.view.measure import measure_blocks
from ingot_compiler.ir.errors import UserError
from ingot_runtime.errors import InputError
from ingot_runtime.option_ref import OptionRef

if TYPE_CHECKING:
    from ingot_runtime.executor.sequence import Sequence as States
    from ingot_runtime.executor.session import Session

_PROMPT_LENGTH = 512
_SYMBOLS_MAX = 6
_ROLES = ("one", "new", "all")


def decode_times(
    session: Session, lengths: Sequence[int], seconds: float
) -> list[tuple[int, list[list[float]]]]:
    """Return for each length the blocks of times of one token behind so many.

    Raises:
        UserError: a call takes other sizes than a batch, the new tokens and all tokens.
        InputError: the bundle has no state.
    """
    roles = _roles(session)
    found: list[tuple[int, list[list[float]]]] = []
    for length in lengths:
        sequence = session.sequence(sizes=_given(session, roles))
        while len(sequence) < length:
            _extend(session, sequence, roles, min(_PROMPT_LENGTH, length - len(sequence)))
        feed = _feed(session, roles, length, 1)

        def token(sequence: States = sequence, length: int = length, feed: Any = feed) -> object:
            result = sequence.run(feed)
            sequence.truncate(length)
            return result

        found.append((length, measure_blocks(token, seconds)))
        sequence.close()
    return found


def _extend(session: Session, sequence: States, roles: Mapping[str, str], count: int) -> None:
    sequence.run(_feed(session, roles, len(sequence), count))


def _roles(session: Session) -> dict[str, str]:
    """What each symbol of the inputs is: a batch (one), the new tokens, all of them."""
    session.sequence()  # says what a bundle without states lacks
    symbols = _symbols(session)
    if len(symbols) <= _SYMBOLS_MAX:
        for chosen in itertools.product(_ROLES, repeat=len(symbols)):
            roles: dict[str, str] = dict(zip(symbols, chosen, strict=True))
            if _fit(session, roles):
                return roles
    raise UserError(
        "no call of one token is found",
        ("option ", OptionRef("decode")),
        f"none of {', '.join(symbols)} as a batch of one, the new tokens or all of them is accepted",
        "measure the calls of your program, by session.sequence()",
    )


def _fit(session: Session, roles: Mapping[str, str]) -> bool:
    """Whether calls of two tokens, then of three, are accepted, and rows are those of tokens."""
    sequence = session.sequence(sizes=_given(session, roles))
    try:
        for count, total in ((2, 2), (3, 5)):
            _extend(session, sequence, roles, count)
            if len(sequence) != total:
                return False
    except InputError:
        return False
    return True


def _symbols(session: Session) -> list[str]:
    """The open sizes of all inputs, but for the rows of states."""
    states = {state.input: state.axis for state in session.loaded.plan.states}
    return list(
        dict.fromkeys(
            dim
            for index, spec in enumerate(session.inputs)
            for axis, dim in enumerate(spec.shape)
            if isinstance(dim, str) and states.get(index) != axis
        )
    )


def _given(session: Session, roles: Mapping[str, str]) -> dict[str, int]:
    """The sizes that only states have."""
    fed = {dim for spec in session.inputs if spec.name not in session.states for dim in spec.shape}
    return {name: 1 for name in roles if name not in fed}


def _feed(session: Session, roles: Mapping[str, str], past: int, count: int) -> dict[str, Any]:
    """Ones for all integers and masks, small numbers for floats."""
    import numpy as np

    sizes = {"one": 1, "new": count, "all": past + count}
    feed: dict[str, Any] = {}
    for spec in session.inputs:
        if spec.name not in session.states:
            shape = [dim if isinstance(dim, int) else sizes[roles[dim]] for dim in spec.shape]
            feed[spec.name] = np.full(shape, 0.1 if "float" in spec.dtype else 1, spec.dtype)
    return feed
