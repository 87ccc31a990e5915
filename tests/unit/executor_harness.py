"""Actions as data for tests of executors, made without a scheduler.

In: rules, inputs. Out: ``ActionSpec``. Not done here: executors, assertions.
"""

from __future__ import annotations

from typing import Any

from ingot_build_rules.engine.action_spec import ActionSpec, Cost, specify
from ingot_build_rules.engine.key import KeyMaker
from ingot_build_rules.engine.rule import Rule
from ingot_build_rules.engine.values import Values


def spec_of(rule: Rule[Any, Any], inputs: object, values: Values, cost: Cost | None = None) -> ActionSpec:
    """Return the action that a scheduler would hand over; code and tools have the digests ``code`` and ``tool NAME``."""
    keys = KeyMaker(lambda _: "code", lambda name: f"tool {name}")
    return specify(rule, keys.key(rule, inputs), inputs, values, cost or Cost())
