"""Adds to an error about a node on a device the option that put it there, so that the message names
both sides of a conflict.

In: an error in the user's names, all names, globs. Out: the same error, with that option in its
reason, and one that helps. Not done here: finding the conflict (``placement``).
"""

from __future__ import annotations

import glob
from collections.abc import Sequence

from ingot_build_rules.making.options.compile_options import HOST
from ingot_compiler.frontend.model.place_marks import matching_globs
from ingot_compiler.ir.errors import UnsupportedError
from ingot_compiler.ir.graph import Names
from ingot_compiler.ir.message import message
from ingot_runtime.option_ref import OptionRef


def with_placing_option(
    error: UnsupportedError, names: Names, place: Sequence[tuple[str, str]]
) -> UnsupportedError:
    """Return the error with the glob that counts for its node; as it is where no glob does."""
    called = {f"node {name!r} ({op})": name for name, op in names.nodes}
    name = called.get(str(error.where).split(", ")[-1])
    numbers = matching_globs(name, place) if name is not None else ()
    if not numbers:
        return error
    option = OptionRef("place", "=".join(place[numbers[-1]]))
    why = message(error.why, "; the node is there by ", option)
    host = OptionRef("place", f"{glob.escape(name or '')}={HOST}")
    do = message(
        "leave it on the host: ", host, ", behind that, or give ", OptionRef("fallback", "warn")
    )
    return type(error)(error.what, error.where, why, do)
