"""Which values can be copied to another device.

In: a type. Out: whether there are no functions, references or storage in it: those have one
identity. Not done here: whether a copy is wanted.
"""

from __future__ import annotations

from collections.abc import Sequence

from ingot_compiler.programs.program import DataDefinition
from ingot_compiler.programs.types import (
    DataType,
    FunctionType,
    ReferenceType,
    StorageType,
    TupleType,
    Type,
)


def is_copyable(type_: Type, data: Sequence[DataDefinition]) -> bool:
    """Whether a value of the type is made of tensors alone."""
    definitions = {definition.name: definition for definition in data}
    seen: set[str] = set()
    waiting: list[Type] = [type_]
    while waiting:
        found = waiting.pop()
        if isinstance(found, FunctionType | ReferenceType | StorageType):
            return False
        if isinstance(found, TupleType):
            waiting += found.items
        elif isinstance(found, DataType) and found.name not in seen:
            seen.add(found.name)
            for constructor in definitions[found.name].constructors:
                waiting += constructor.fields
    return True
