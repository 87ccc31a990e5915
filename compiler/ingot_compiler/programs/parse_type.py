"""Reads types of programs.

In: a ``Reader`` that stands before one. Out: ``Type``. Not done here: tensor types
(``read_terms``).
"""

from __future__ import annotations

from collections.abc import Collection

from ingot_compiler.ir.text.read_terms import read_type
from ingot_compiler.ir.text.text_reader import Reader
from ingot_compiler.programs.types import (
    DataType,
    FunctionType,
    ReferenceType,
    StorageType,
    TupleType,
    Type,
)


def read_program_type(reader: Reader, data: Collection[str]) -> Type:
    """``f32[3]``, ``(T, T)``, ``fn(T) -> T``, ``ref[T]``, ``storage``, or a name out of
    ``data``."""
    with reader.nested():
        if reader.accept("("):
            return TupleType(reader.items(lambda: read_program_type(reader, data), ")"))
        if reader.accept("fn"):
            reader.expect("(")
            parameters = reader.items(lambda: read_program_type(reader, data), ")")
            reader.expect("->")
            return FunctionType(parameters, read_program_type(reader, data))
        if reader.accept("ref"):
            reader.expect("[")
            content = read_program_type(reader, data)
            reader.expect("]")
            return ReferenceType(content)
        if reader.accept("storage"):
            return StorageType()
        if reader.token.text in data:
            return DataType(reader.name())
        return read_type(reader)
