"""Inputs and outputs that are no tensors, and the tensors that each is made of: FORMAT.md, "Values".

In: the section, the plan. Out: ``ValuePlan`` rows, checked. Not done here: packing and unpacking
(``executor.values``).
"""

from .checks import require
from .dtypes import DTYPE_CODES
from .limits import TENSOR_COUNT_MAX
from .plan import BundlePlan, TensorPlan, ValuePlan
from .schema import Reader, read_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

TENSOR, STRINGS, SHAPED, SEQUENCE, OPTIONAL, LIST, END, NOTHING = "tsdqolen"
_WHERE = "section values 0"
_I64, _U8, _BOOL = DTYPE_CODES["i64"], DTYPE_CODES["u8"], DTYPE_CODES["bool"]


def decode_values(
    data: bytes, plan: BundlePlan
) -> "tuple[tuple[ValuePlan, ...], tuple[ValuePlan, ...]]":
    """Decode the section: the inputs as callers give them, and the outputs.

    Raises:
        FormatError: any rule of FORMAT.md, "Values", broken.
    """
    words = Reader(data, _WHERE)
    inputs = _values(words, "input", plan.inputs)
    outputs = _values(words, "output", plan.outputs)
    words.finish()
    return inputs, outputs


def _values(words: Reader, what: str, tensors: "tuple[TensorPlan, ...]") -> "tuple[ValuePlan, ...]":
    values: list[ValuePlan] = []
    walk = _Walk(iter(tensors))
    for _ in range(words.word(f"{what} count", 0, TENSOR_COUNT_MAX)):
        value = read_record(words, ValuePlan, what)
        walk.where = f"{_WHERE}, {what} {value.name!r}"
        own = walk.form(value.form, 1 if what == "input" else 3)
        walk.require(own == len(value.form), "a form that is none", value.form)
        values.append(value)
    left = len(list(walk.tensors))
    require(not left, f"an {what} of no value", _WHERE, f"{left} are left over")
    names = [value.name for value in values]
    require(len(set(names)) == len(names), f"{what} name appears twice", _WHERE, str(names)[:200])
    return tuple(values)


class _Walk:
    """Takes the tensors of one form after the other."""

    __slots__ = ("tensors", "where")

    def __init__(self, tensors: "Iterator[TensorPlan]") -> None:
        self.tensors = tensors
        self.where = ""

    def require(self, good: bool, what: str, why: str) -> None:
        require(good, what, self.where, why)

    def form(self, text: str, depth: int) -> int:
        """Check the form that `text` begins with, `depth` more of which may be in it; return its
        length."""
        kind = text[:1]
        if kind == OPTIONAL and depth and text[1:2] != OPTIONAL:
            end = 1 + self.form(text[1:], depth - 1)
            self.tensor(_BOOL, 0)
        elif kind == LIST and depth > 1:
            end = 1
            while text[end : end + 1] not in ("", END):
                end += self.form(text[end:], 1)
            self.require(text[end : end + 1] == END, "a list without an end", text)
            end += 1
        elif kind == NOTHING and depth > 1:
            end = 1
        elif kind in (SHAPED, SEQUENCE):
            end = 2
            self.flat(text[1:2], 1)
            self.tensor(_I64, 1 if kind == SHAPED else 2)
        else:
            end = 1
            self.flat(kind, None)
        return end

    def flat(self, kind: str, rank: "int | None") -> None:
        """Take a tensor or strings, of that rank where one is given."""
        self.require(kind in (TENSOR, STRINGS) and kind != "", "an unknown form", repr(kind))
        if kind == TENSOR:
            self.tensor(None, rank)
            return
        spans = self.tensor(_I64, None if rank is None else rank + 1)
        self.require(spans.dims[-1:] == (2,), "strings without begin and end", f"{spans.dims}")
        self.tensor(_U8, 1)

    def tensor(self, dtype: "int | None", rank: "int | None") -> TensorPlan:
        """Take the next tensor, of that element type and rank where they are given."""
        tensor = next(self.tensors, None)
        self.require(tensor is not None, "a value without tensors", "there are no more")
        assert tensor is not None
        good = dtype in (None, tensor.dtype) and rank in (None, len(tensor.dims))
        self.require(good, "a value of other tensors", f"tensor {tensor.name!r}")
        return tensor
