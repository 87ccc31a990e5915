"""What an executor says that came of an action, checked before anybody relies on it.

In: an outcome. Out: the result as a value. Not done here: the bytes of blobs, which whoever reads
them compares with their digests.
"""

from __future__ import annotations

from ingot_build_rules.engine.actions.errors import ActionError
from ingot_build_rules.engine.actions.perform import Outcome
from ingot_build_rules.engine.actions.values import Values


def checked_result(rule: str, outcome: Outcome, values: Values) -> object:
    """Return the result of an action that ended without an error.

    Raises:
        ActionError: it is no encoded value, or it names other artifacts than the outcome says.
    """
    try:
        result, refs = values.codec.decode_with_refs(outcome.result, values)
    except ValueError as error:
        raise _refused(rule, f"expected an encoded value, got something else: {error}") from None
    if refs != outcome.refs:
        expected = f"expected the artifacts that the result names ({len(refs)})"
        raise _refused(rule, f"{expected}, got {len(outcome.refs)} others")
    return result


def _refused(rule: str, why: str) -> ActionError:
    do = "build again; if it happens again, what runs the actions is at fault: report it"
    return ActionError("an executor gave a result that cannot be used", f"rule {rule}", why, do)
