"""The workspace of a call as a formula over the sizes of its inputs, read from the program of
`main`.

In: a decoded program, the plan's inputs and symbols. Out: a text per device. Not done here: the
bytes at given sizes (``evaluate_call``).

Every way that the program may take through its sizes is followed. Where two of them need other
workspaces, or where the data decide, there is no formula.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ingot_build_rules.tools.view.largest_parts import largest_parts
from ingot_compiler.ir.dims import (
    Dim,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mod,
    dim_mul,
    format_dim_in_names,
    symbol,
)
from ingot_compiler.ir.errors import LimitError
from ingot_runtime.format.plan import TensorPlan
from ingot_runtime.format.program import OPCODES, Program
from ingot_runtime.lazy_dataclass import dataclass

_WAYS_MAX = 16
_NUMBERS = {name: compute for name, *_, compute in OPCODES if compute is not None}
_ARITHMETIC: Mapping[str, Callable[[Dim, Dim], Dim]] = {
    "add": lambda left, right: left + right,
    "sub": lambda left, right: left - right,
    "mul": dim_mul,
    "floordiv": dim_floordiv,
    "mod": dim_mod,
    "min": dim_min,
    "max": dim_max,
}


@dataclass(slots=True)
class _Way:
    """How far one way through the program has come; None is a number that nobody knows yet."""

    at: int
    registers: dict[int, Dim | None]
    workspaces: list[Dim | None]

    def going_to(self, label: int) -> _Way:
        """A way of its own that goes on at ``label``; no way leads back."""
        return _Way(max(self.at + 1, label), dict(self.registers), list(self.workspaces))


def workspace_formulas(
    program: Program, inputs: Sequence[TensorPlan], symbols: Sequence[str], device_count: int
) -> tuple[str | None, ...]:
    """Return the bytes of each device's workspace over the model's own names of sizes; None where
    there is no formula."""
    reader = _Reader(program, inputs)
    try:
        found = reader.ends_of(_Way(0, {}, [0] * device_count))
    except LimitError:
        return (None,) * device_count
    called = {f"s{number}": name for number, name in enumerate(symbols)}
    return tuple(_formula({end[device] for end in found}, called) for device in range(device_count))


def _formula(sizes: set[Dim | None], called: Mapping[str, str]) -> str | None:
    if len(sizes) != 1:
        return None
    (dim,) = sizes
    if dim is None:
        return None
    texts = [format_dim_in_names(part, called) for part in largest_parts(dim)]
    return texts[0] if len(texts) == 1 else f"max({', '.join(sorted(texts))})"


@dataclass(frozen=True, slots=True)
class _Reader:
    program: Program
    inputs: Sequence[TensorPlan]

    def ends_of(self, start: _Way) -> list[tuple[Dim | None, ...]]:
        """Return the workspaces at the end of each way from ``start``.

        Raises:
            LimitError: too many ways, or a formula that is too large.
        """
        waiting, ends = [start], list[tuple[Dim | None, ...]]()
        while waiting:
            way = waiting.pop()
            waiting += self._follow(way)
            if way.at < 0:
                ends.append(tuple(way.workspaces))
            if len(waiting) + len(ends) > _WAYS_MAX:
                raise LimitError("too many ways through the sizes", "program of main")
        return ends

    def _follow(self, way: _Way) -> list[_Way]:
        """Follow a way to its end, which makes ``at`` -1, or to where it parts."""
        while way.at < len(self.program.instructions):
            opcode, operands = self.program.instructions[way.at]
            name = OPCODES[opcode][0]
            if name in ("begin", "return"):  # no workspace is asked for behind `begin`
                break
            if name in ("jump", "branch"):
                return [way.going_to(label) for label in _labels(way, name, operands)]
            self._run(way, name, operands)
            way.at += 1
        way.at = -1
        return []

    def _run(self, way: _Way, name: str, operands: Any) -> None:
        if name == "workspace_bytes":
            device, register = map(int, operands)
            before, size = way.workspaces[device], way.registers.get(register)
            way.workspaces[device] = _largest(before, size)
        elif name in _NUMBERS or name in ("const", "input_dim", "read"):
            way.registers[operands[0]] = self._value(way, name, operands)

    def _value(self, way: _Way, name: str, operands: Any) -> Dim | None:
        """What an instruction writes to its first register."""
        if name == "const":
            return int(operands[1])
        if name == "input_dim":
            # Sizes that are open stand as -1 - number of the symbol.
            _, tensor, axis = map(int, operands)
            dim = self.inputs[tensor].dims[axis]
            return dim if dim >= 0 else symbol(f"s{-dim - 1}")
        if name not in _NUMBERS:
            return None
        left, right = (way.registers.get(operand) for operand in operands[1:])
        if left is None or right is None:
            return None
        if isinstance(left, int) and isinstance(right, int):
            return int(_NUMBERS[name](left, right))
        return _ARITHMETIC[name](left, right) if name in _ARITHMETIC else None


def _largest(before: Dim | None, size: Dim | None) -> Dim | None:
    """The larger of two sizes; none is negative."""
    if before is None or size is None:
        return None
    return size if before == 0 else dim_max(before, size)


def _labels(way: _Way, name: str, operands: Any) -> Sequence[int]:
    """Where a jump or branch may lead."""
    if name == "jump":
        return [int(operands[0])]
    decided, labels = way.registers.get(operands[0]), [int(label) for label in operands[1:]]
    return labels[:1] if decided else labels[1:] if isinstance(decided, int) else labels
