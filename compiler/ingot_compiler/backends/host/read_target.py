"""The hook ``parse_target`` of the host.

In: a text. Out: a ``Target``. Not done here: ``native``, which only the build machine knows.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.targets.target import Target, parse_target


def read_target(text: str, host_targets: Sequence[str]) -> Target:
    """Read a target of the host; it is one of ``host_targets`` itself, so these say nothing
    more."""
    del host_targets
    return parse_target(text)
