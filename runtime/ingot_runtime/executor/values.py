"""Sessions of bundles some of whose inputs or outputs are no tensors: lists of arrays, strings,
None.

In: values by name. Out: values by name. Not done here: running (``session``), which tensors a value
is made of (``format.values`` checks that). Imported for such bundles alone.
"""

import math
from array import array as Ints  # made faster than numpy's
from itertools import accumulate

import numpy as np

from ..errors import InputError
from ..format.plan import BundlePlan, TensorPlan, ValuePlan
from ..format.values import (
    END,
    LIST,
    NOTHING,
    OPTIONAL,
    SEQUENCE,
    SHAPED,
    STRINGS,
    TENSOR,
)
from .arrays import by_name, default_of, unexpected_input
from .numpy_dtypes import dtype_of, with_dtype
from .session import Session, TensorSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from .bound import Bound
    from .context import ExecutionContext

    Array = np.ndarray
    Values = Mapping[str, Any]

_FEW = 64  # strings: fewer are looked at one by one; bytes of one that is short
_ASCII_MAX = 127
_WORDS = {OPTIONAL: "optional ", SEQUENCE: "sequence of ", LIST: "list of ", SHAPED: ""}


class ValueSpec(TensorSpec):
    """An input or output. ``element``: ``string``, or begins with ``sequence of``, ``list of`` or
    ``optional``; ``shape``: ``("?",)`` where it is no tensor of a rank that is known."""

    __slots__ = ("_dtype",)

    def __init__(self, value: ValuePlan, first: "TensorSpec | None") -> None:
        inner = value.form.lstrip("".join(_WORDS))
        kinds = value.form.removesuffix(inner)
        of_strings = inner[:1] == STRINGS
        self.name = value.name
        self.has_default = first is not None and first.has_default
        self.element, self._dtype = "nothing", "object"
        self.shape = ()
        if first is not None:
            self._dtype = "str" if of_strings else first.dtype
            words = [_WORDS[kind] for kind in kinds]
            self.element = "".join(words) + ("string" if of_strings else first.element)
            self.shape = first.shape[:-1] if of_strings else first.shape
        if set(kinds) & {SHAPED, SEQUENCE, LIST}:
            self.shape = ("?",)

    @property
    def dtype(self) -> str:
        """What numpy calls the elements; ``str`` for strings."""
        return self._dtype


class ValueSession(Session):
    """Runs such a bundle: sequences are lists of arrays, strings arrays of ``str`` objects, what an
    optional lacks is None. ``Session.run`` of such a session takes and gives the tensors."""

    __slots__ = ("_values",)

    def __init__(self, contexts: "tuple[ExecutionContext, ...]") -> None:
        """See ``Session``."""
        super().__init__(contexts)
        values = self.loaded.plan.values
        assert values is not None
        self._values = values
        given = _firsts(values[0], self.inputs)
        made = _firsts(values[1], self.outputs)
        self.inputs = tuple(map(ValueSpec, values[0], given))
        self.outputs = tuple(map(ValueSpec, values[1], made))

    def run(self, inputs: "Values", timeout: "float | None" = None) -> "dict[str, Any]":
        """See ``Session.run``."""
        plan = self.loaded.plan
        return unpacked(plan, super().run(packed(plan, inputs), timeout))

    async def arun(
        self,
        inputs: "Values",
        timeout: "float | None" = None,  # noqa: ASYNC109  # as `run` has it
    ) -> "dict[str, Any]":
        """See ``Session.arun``."""
        plan = self.loaded.plan
        return unpacked(plan, await super().arun(packed(plan, inputs), timeout))

    def bind(self, inputs: object = None, outputs: object = None) -> "Bound":  # noqa: ARG002
        """Refuse: the sizes of values change from call to call."""
        what, why = "cannot bind", "an input or output is no tensor, and has no fixed address"
        raise InputError(what, "session.bind", why, "call session.run")


def of_arrays(session: Session, arrays: "dict[str, Array]") -> "dict[str, Any]":
    """Return the inputs that arrays of a file are: those named ``x[0]``, ``x[1]``, .. are the list
    ``x``, and an optional that is not there is None."""
    values: dict[str, Any] = dict(arrays)
    for spec in session.inputs:
        items: list[Array] = []
        while f"{spec.name}[{len(items)}]" in values:
            items.append(values.pop(f"{spec.name}[{len(items)}]"))
        if items or (spec.element.startswith("sequence") and spec.name not in values):
            values[spec.name] = items
        elif spec.element.startswith("optional"):
            values.setdefault(spec.name, None)
    return values


def as_arrays(session: Session, values: "Values") -> "tuple[dict[str, Array], dict[str, str]]":
    """Return outputs as arrays for a file, as ``of_arrays`` reads them, and their element types."""
    arrays: dict[str, Array] = {}
    elements: dict[str, str] = {}
    for spec in session.outputs:
        value = values[spec.name]
        named: dict[str, Any] = {spec.name: value}
        if isinstance(value, list):
            named = {f"{spec.name}[{at}]": item for at, item in enumerate(values[spec.name])}
        for name, item in named.items():
            if item is not None:
                arrays[name] = item.astype(str) if item.dtype.hasobject else item
                elements[name] = spec.element.split()[-1]
    return arrays, elements


def _firsts(
    values: "tuple[ValuePlan, ...]", specs: "tuple[TensorSpec, ...]"
) -> "list[TensorSpec | None]":
    """Return the first tensor of each value, None for a list of nothing."""
    at, found = 0, list[TensorSpec | None]()
    for value in values:
        count = _count(value.form)
        found.append(specs[at] if count else None)
        at += count
    return found


def _count(form: str) -> int:
    return sum({TENSOR: 1, STRINGS: 2, LIST: 0, END: 0, NOTHING: 0}.get(kind, 1) for kind in form)


def packed(plan: BundlePlan, given: "Any") -> "dict[str, Array]":
    """Return the tensors that inputs are made of."""
    assert plan.values is not None
    given, values = by_name("inputs", given, "session.run"), plan.values[0]
    names = [value.name for value in values]
    for name in given:
        if name not in names:
            raise unexpected_input(name, names, given)
    packer = _Packer(plan)
    for value in values:
        packer.name = value.name
        if value.name in given:
            packer.put(value.form, given[value.name])
        else:
            packer.put_absent(value.form)
    return packer.arrays


class _Packer:
    """Makes the tensors of one input after the other."""

    __slots__ = ("_plan", "_tensors", "arrays", "name")

    def __init__(self, plan: BundlePlan) -> None:
        self._plan = plan
        self._tensors: Iterator[TensorPlan] = iter(plan.inputs)
        self.arrays: dict[str, Array] = {}
        self.name = ""

    @property
    def where(self) -> str:
        """For messages."""
        return f"input {self.name!r}"

    def put_absent(self, form: str) -> None:
        """What a call does not give: the defaults, or the loader's own error for a tensor."""
        for _ in range(_count(form)):
            tensor = next(self._tensors)
            if tensor.name in self._plan.defaults:
                self.arrays[tensor.name] = default_of(tensor, self._plan)
            elif form != TENSOR:
                why, do = f"expected a value of form {form!r}, got nothing", "give it"
                raise InputError(f"missing input {self.name!r}", self.where, why, do)

    def put(self, form: str, value: "Any") -> None:
        """Make the tensors of a value."""
        kind = form[0]
        if kind == OPTIONAL:
            if value is None:
                self._put_nothing(_count(form[1:]))
            else:
                self.put(form[1:], value)
            self._add(np.array(value is not None))
        elif kind == STRINGS:
            (array,), places, data = self._strings([value])
            self._add(places if array.ndim == 1 else places.reshape(*array.shape, 2))
            self._add(data)
        elif kind == SHAPED:
            self._flat(form[1], [value], None)
        elif kind == SEQUENCE:
            self._sequence(form[1], value)
        else:
            self._add(value)

    def _add(self, array: "Any") -> None:
        self.arrays[next(self._tensors).name] = array

    def _put_nothing(self, count: int) -> None:
        for _ in range(count):
            tensor = next(self._tensors)
            shape = [max(dim, 0) for dim in tensor.dims]
            self.arrays[tensor.name] = np.zeros(shape, dtype_of(tensor.dtype))

    def _sequence(self, kind: str, value: "Sequence[Any]") -> None:
        # Who calls may not look at types.
        if not isinstance(value, (list, tuple)):
            why = f"expected a list of arrays, got {type(value).__name__}"
            do = f"give [{self.name}]" if isinstance(value, np.ndarray) else "give a list"
            raise InputError(f"input {self.name!r} is not a list", self.where, why, do)
        self._flat(kind, value, len(value))

    def _flat(self, kind: str, values: "Sequence[Any]", count: "int | None") -> None:
        """Arrays one after the other, and their shapes; without a count, the shape of the only
        one."""
        if kind == STRINGS:
            arrays, places, data = self._strings(values)
            self._add(places)
            self._add(data)
        else:
            tensor = next(self._tensors)
            arrays = [self._element(tensor, index, each) for index, each in enumerate(values)]
            parts = [np.empty(0, dtype_of(tensor.dtype)), *(array.ravel() for array in arrays)]
            self.arrays[tensor.name] = np.concatenate(parts)
        tensor = next(self._tensors)
        ranks = [array.ndim for array in arrays]
        rank = tensor.dims[-1] if tensor.dims[-1] >= 0 else max(ranks, default=0)
        for index, found in enumerate(ranks):
            if tensor.dims[-1] >= 0 and found != rank:
                where, why = f"{self.where}, element {index}", f"expected {rank}, got {found}"
                what = f"wrong rank of an element of input {self.name!r}"
                raise InputError(what, where, why, f"give {rank} dimensions")
        shapes = np.full((len(arrays), rank), -1, np.int64)
        for row, array in zip(shapes, arrays, strict=True):
            row[: array.ndim] = array.shape
        self.arrays[tensor.name] = shapes if count is not None else shapes[0]

    def _element(self, tensor: TensorPlan, index: int, value: "Any") -> "Array":
        where = f"{self.where}, element {index}"
        try:
            array = with_dtype(np.asarray(value), tensor.dtype)
        except Exception as error:  # whatever numpy says of a foreign object is the user's error
            what = f"an element of input {self.name!r} is not an array"
            raise InputError(what, where, str(error)) from error
        dtype = dtype_of(tensor.dtype)
        if array.dtype != dtype:
            what = f"wrong dtype of an element of input {self.name!r}"
            why, do = (
                f"expected {dtype}, got {array.dtype}",
                f"convert it: x.astype({dtype.name!r})",
            )
            raise InputError(what, where, why, do)
        return array

    def _strings(self, values: "Sequence[Any]") -> "tuple[list[Array], Array, Array]":
        """Return the arrays, where each of their strings begins and ends, and bytes."""
        try:
            arrays = [np.asarray(value) for value in values]
            found = _padded(arrays[0]) if len(arrays) == 1 else None
            if found is None:
                items: list[Any] = []
                for array in arrays:
                    items += array.ravel().tolist()
                found = _apart(items) or _one_by_one(items)
        except Exception as error:
            what = f"input {self.name!r} is not an array of strings"
            do = "give an array of str, or of bytes that are UTF-8"
            raise InputError(what, self.where, str(error), do) from error
        return arrays, *found


def _padded(array: "Array") -> "tuple[Array, Array] | None":
    """Return where each of many strings begins and ends, and bytes, with numpy's own padding; None
    where they are no `str` that numpy pads, or a character is no byte."""
    dtype = array.dtype
    if array.size < _FEW or dtype.kind != "U" or not dtype.isnative or not dtype.itemsize:
        return None
    units = array.ravel().view(np.uint32)
    ends = np.strings.str_len(array).ravel()
    if units.max() > _ASCII_MAX or 4 * ends.sum() < units.size:  # mostly padding
        return None
    places = np.empty((array.size, 2), np.int64)
    places[:, 0] = np.arange(0, units.size, dtype.itemsize // 4)
    np.add(places[:, 0], ends, out=places[:, 1])
    return places, units.astype(np.uint8)


def _apart(items: "list[Any]") -> "tuple[Array, Array] | None":
    """Return where each begins and ends, and bytes in which a 0 stands behind each: found together,
    not one by one. None where some are no text, or have a 0."""
    try:
        if len(items) < _FEW:
            text = "".join(items)
            few = np.frombuffer(text.encode(), np.uint8)
            if few.size == len(text):
                # They overlap.
                bounds = Ints("q", [*accumulate(map(len, items), initial=0)])
                return np.ndarray((len(items), 2), np.int64, bounds, 0, (8, 8)), few
        data = np.frombuffer(("\0".join(items) + "\0").encode(), np.uint8)
    except (TypeError, UnicodeError):
        return None
    ends = (data == 0).nonzero()[0]
    if len(ends) != len(items):
        return None
    places = np.zeros((len(items), 2), np.int64)
    places[:, 1] = ends
    places[1:, 0] = ends[:-1] + 1
    return places, data


def _one_by_one(items: "list[Any]") -> "tuple[Array, Array]":
    texts = [_utf8(item) for item in items]
    ends = np.cumsum([0, *map(len, texts)])
    return np.stack([ends[:-1], ends[1:]], -1), np.frombuffer(b"".join(texts), np.uint8)


def _utf8(item: object) -> bytes:
    if isinstance(item, bytes):
        item.decode()
        return item
    if isinstance(item, str):
        return item.encode()
    raise TypeError(f"expected str, got {type(item).__name__}")


def unpacked(plan: BundlePlan, arrays: "dict[str, Array]") -> "dict[str, Any]":
    """Return the outputs that tensors make up."""
    assert plan.values is not None
    tensors = iter([arrays[tensor.name] for tensor in plan.outputs])
    return {value.name: _taken(iter(value.form), tensors) for value in plan.values[1]}


def _taken(form: "Iterator[str]", tensors: "Iterator[Array]") -> "Any":
    """Return the value of the form that comes next; `END` where a list ends."""
    kind = next(form)
    if kind == OPTIONAL:
        value = _taken(form, tensors)
        return value if next(tensors) else None
    if kind == LIST:
        items: list[Any] = []
        while (item := _taken(form, tensors)) is not END:
            items.append(item)
        return items
    if kind == SHAPED:
        flat, shape = _taken(form, tensors), next(tensors)
        return flat.reshape(shape[shape >= 0])
    if kind == SEQUENCE:
        return _elements(_taken(form, tensors), next(tensors))
    if kind == STRINGS:
        return _decoded(next(tensors), next(tensors))
    if kind == NOTHING:
        return None
    return END if kind == END else next(tensors)


def _elements(flat: "Array", shapes: "Array") -> "list[Array]":
    found: list[Array] = []
    at = 0
    for row in shapes.tolist():
        shape = [size for size in row if size >= 0]
        count = math.prod(shape)
        found.append(flat[at : at + count].reshape(shape))
        at += count
    return found


def _decoded(spans: "Array", pool: "Array") -> "Array":
    pairs = spans.reshape(-1, 2)
    if pool.size < len(pairs) and len(pairs) >= _FEW:
        # Few labels, many times: each is decoded once, unless two begin at one place.
        starts, ends = pairs.T
        lasts = np.full(pool.size + 1, -1)
        lasts[starts] = ends
        if (lasts[starts] == ends).all():
            firsts = np.flatnonzero(lasts >= 0)
            texts = np.empty(lasts.size, object)
            texts[firsts] = _texts(pool, np.stack([firsts, lasts[firsts]], -1))
            found: Array = texts[starts].reshape(spans.shape[:-1])
            return found
    flat = np.fromiter(_texts(pool, pairs), object, len(pairs))
    return flat if spans.ndim == 2 else flat.reshape(spans.shape[:-1])


def _texts(pool: "Array", pairs: "Array") -> "list[str]":
    if len(pairs) >= _FEW and pool.size:
        # The bytes of all with a 0 behind each, where none has one, are taken apart at once.
        starts, ends = pairs.T
        sizes = ends - starts + 1
        lasts = sizes.cumsum()
        if lasts[-1] < _FEW * len(pairs):
            shifts: Array = (ends + 1 - lasts).repeat(sizes)
            places = shifts + np.arange(shifts.size)
            apart = pool.take(places, mode="clip")
            apart[lasts - 1] = 0
            texts = apart.tobytes().decode().split("\0")
            if len(texts) == len(pairs) + 1:
                return texts[:-1]
    data = pool.tobytes()
    return [data[start:end].decode() for start, end in pairs.tolist()]
