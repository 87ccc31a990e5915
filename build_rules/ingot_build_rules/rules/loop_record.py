"""Loop programs as plain values, so that a bundle can carry what each kernel was made from (a few kB).

In: a ``LoopProgram``. Out: lists, strings, integers for msgpack; and the program again. Not done here: code
(``assembly`` makes it again: the same LLVM makes the same code of the same program).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import cast

from ingot_compiler.ir import dims
from ingot_compiler.ir.errors import UserError
from ingot_compiler.lowering import loops
from ingot_compiler.lowering.loops import LoopProgram

_CLASSES = (
    dims.Symbol, dims.Call, dims.Sum,
    loops.Load, loops.Constant, loops.FromIndex, loops.Compare, loops.Local, loops.Apply,
    loops.Let, loops.LetIndex, loops.Store, loops.For, loops.Reduce, loops.Require, loops.If,
    loops.Tile, loops.Contraction, loops.Depthwise, loops.DepthwisePlane, loops.Attention, loops.Transpose, loops.Buffer,
    loops.LoopProgram,
)  # fmt: skip
# Called with fields that a record gives; a wrong count of them is a TypeError.
_BY_NAME: dict[str, Callable[..., object]] = {item.__name__: item for item in _CLASSES}
_TUPLE, _FLOAT = "()", "float"


def record_program(program: LoopProgram) -> object:
    """Return the program as nested lists: ``[class, field, ...]``, ``["()", item, ...]``, ``["float", hex]``."""
    return _record(program)


def read_program(record: object) -> LoopProgram:
    """Build the program that ``record`` describes.

    Raises:
        UserError: not a record of a program; no other classes are built than those of loop programs.
    """
    try:
        program = _read(record)
    except (TypeError, ValueError, KeyError, RecursionError) as error:
        raise UserError("a kernel's record is damaged", why=str(error), do="compile the model again") from None
    if not isinstance(program, LoopProgram):
        raise UserError("a kernel's record is damaged", why="it is no loop program", do="compile the model again")
    return program


def _record(value: object) -> object:
    if isinstance(value, tuple):
        return [_TUPLE, *map(_record, cast("tuple[object, ...]", value))]
    if isinstance(value, float):
        return [_FLOAT, value.hex()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (field for field in dataclasses.fields(value) if field.init)  # without a kept hash
        return [type(value).__name__, *(_record(getattr(value, field.name)) for field in fields)]
    assert value is None or isinstance(value, str | int), value
    return value


def _read(record: object) -> object:
    if not isinstance(record, list):
        return record
    head, *items = cast("list[object]", record)
    if head == _FLOAT:
        return float.fromhex(str(items[0]))
    if head == _TUPLE:
        return tuple(map(_read, items))
    return _BY_NAME[str(head)](*map(_read, items))
