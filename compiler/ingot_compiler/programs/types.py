"""Types of the values of a program: tensors, tuples, functions, references, data.

In: tensor types. Out: ``Type``. Not done here: which expression has which type (``infer_types``),
devices (``planner``).
"""

from __future__ import annotations

from ingot_compiler.ir.types import TensorType
from ingot_runtime.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TupleType:
    """Values side by side; ``()`` is what a write to a reference gives."""

    items: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))}{',' if len(self.items) == 1 else ''})"


@dataclass(frozen=True, slots=True)
class FunctionType:
    """A function, global or closure."""

    parameters: tuple[Type, ...]
    result: Type

    def __str__(self) -> str:
        return f"fn({', '.join(map(str, self.parameters))}) -> {self.result}"


@dataclass(frozen=True, slots=True)
class ReferenceType:
    """A place whose content can be replaced."""

    content: Type

    def __str__(self) -> str:
        return f"ref[{self.content}]"


@dataclass(frozen=True, slots=True)
class DataType:
    """A data type that the program defines, by its name."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class StorageType:
    """A block of memory in which tensors are made."""

    def __str__(self) -> str:
        return "storage"


Type = TensorType | TupleType | FunctionType | ReferenceType | DataType | StorageType
UNIT = TupleType(())
