"""Computations that need one another, however deep, without recursion.

In: a generator that yields the computations whose values it needs, and is sent these values. Out:
its value. Not done here: what is computed.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

Value = TypeVar("Value")


def finish(steps: Generator[Any, Value, Value]) -> Value:
    """Run a computation and all that it needs, one after the other."""
    stack: list[Generator[Any, Value, Value]] = [steps]
    value: Value | None = None
    while True:
        try:
            needed = next(stack[-1]) if value is None else stack[-1].send(value)
        except StopIteration as stop:
            stack.pop()
            value = stop.value
            if not stack:
                assert value is not None
                return value
        else:
            stack.append(needed)
            value = None
