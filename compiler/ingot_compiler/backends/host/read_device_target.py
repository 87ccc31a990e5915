"""The hook ``parse_target`` of devices that run the host's code: their targets are the host's.

In: a text, the host's targets. Out: a ``Target``. Not done here: reading a target of the host
(``targets``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.targets.target import Target, parse_target


def read_device_target(text: str, host_targets: Sequence[str]) -> Target:
    """Read a target; without a text it is that of the host's which most machines run."""
    if text:
        return parse_target(text)
    return min(map(parse_target, host_targets), key=lambda target: target.rank)
