"""The form of inputs and outputs that are no tensors: FORMAT.md, "Values".

In: forms as texts, names. Out: the names of the tensors that values are made of. Not done here: what
such values are while a model is translated (``frontend.build.values``).

A form is a text: ``t`` a tensor, ``s`` strings (two tensors), ``d`` a tensor whose number of dimensions
a run decides, ``q`` a sequence, ``o`` an optional, ``l`` to ``e`` a list of known length, ``n`` nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from ingot_compiler.ir.graph import Names

TENSOR = "t"
_PARTS = {"s": ("", ".bytes"), "t": ("",)}
_BEHIND = {"d": ".shape", "q": ".shapes", "o": ".given"}

Forms = tuple[tuple[str, ...], tuple[str, ...]]
"""The forms of inputs and of outputs."""


def count_of(form: str) -> int:
    """How many tensors a value is made of."""
    return sum(len(_PARTS[kind]) if kind in _PARTS else kind in _BEHIND for kind in form)


def part_names(names: Sequence[str], forms: Sequence[str]) -> tuple[str, ...]:
    """The names of all tensors of values, each once; the first of each value has its name, but for
    lists."""
    found: list[str] = []
    taken = {name for name, form in zip(names, forms, strict=True) if form == TENSOR}
    for name, form in zip(names, forms, strict=True):
        own = (
            [name] if form == TENSOR else [_free(part, taken) for part in _named(name, iter(form))]
        )
        found += own
        taken.update(own)
    return tuple(found)


def _free(name: str, taken: Container[str]) -> str:
    while name in taken:
        name += "'"
    return name


def of_tensors(names: Names, forms: Sequence[Sequence[str]]) -> Names:
    """Names whose outputs are those of tensors, as the inputs of an import are already."""
    return replace(names, outputs=part_names(names.outputs, forms[1])) if forms else names


def _named(name: str, form: Iterator[str]) -> Iterator[str]:
    kind = next(form)
    if kind == "l":
        for index, inner in enumerate(_items(form)):
            yield from _named(f"{name}[{index}]", iter(inner))
    elif kind == "n":
        return
    elif kind in _PARTS:
        yield from (name + end for end in _PARTS[kind])
    else:
        yield from _named(name, form)
        yield name + _BEHIND[kind]


def _items(form: Iterator[str]) -> Iterator[str]:
    """The forms of the items of a list, up to its end."""
    item, depth = "", 0
    for kind in form:
        if kind == "e" and not depth:
            return
        depth += (kind == "l") - (kind == "e")
        item += kind
        if not depth and kind in "tsen":
            yield item
            item = ""
