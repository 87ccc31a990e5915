"""Dimensions of inputs that the file calls by one name: which of them are one size; and those that
an op fixes, which the file might as well have said.

In: groups of symbols, one for each name that several dimensions have; the sizes that ops compare.
Out: which symbol or number stands for which others. Not done here: the symbols (``input_types``),
the translation that compares (``context``).

A name alone is no evidence: files call dimensions by one name that differ in a call, and others run
them. So each dimension has a symbol of its own, and two of one name become one size where an op
compares them: there the name says what the comparison would have to find out at run time, and the
graph is as good as if the file had said so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from ingot_compiler.ir.attributes import Attribute
from ingot_compiler.ir.dims import Call, Dim, Sum, dim_product, symbol, symbol_set, terms_of
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.shape_constraints import BroadcastSizes, EqualSizes, ShapeConstraint, Size
from ingot_compiler.ir.sizes.profile import Profile
from ingot_compiler.ir.types import TensorType
from ingot_runtime.lazy_dataclass import dataclass

Groups = tuple[tuple[str, ...], ...]
"""Symbols of one name each, in order of appearance."""


@dataclass(slots=True)
class SameNames:
    """``groups``: symbols that are not one size yet; ``joined``: symbol -> the one that stands for
    it; ``numbers``: symbol -> the only size that it may have; ``firsts``: the first of some sizes
    that are alike."""

    groups: Groups = ()
    joined: dict[str, str] = field(default_factory=dict[str, str])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    firsts: dict[str, Dim] = field(default_factory=dict[str, Dim])

    def compare_alike(self, what: str, size: Dim) -> None:
        """Note that a size is one of several that would be alike if the file calls them so."""
        self.compare(self.firsts.setdefault(what, size), size)

    def fix(self, name: str, size: int) -> None:
        """Note that a node which every call runs refuses any other size."""
        self.numbers.setdefault(name, size)

    def compare(self, left: Dim, right: Dim) -> None:
        """Note that an op compares two sizes."""
        if left == right or not self.groups:
            return
        ours, theirs = _symbols(left), _symbols(right)
        for group in self.groups:
            one, other = ours & {*group}, theirs & {*group}
            if one and other and one != other:
                # What both have says nothing: s0 + s1 and s0 + s2 are equal where s1 and s2 are.
                alone = one ^ other if one - other and other - one else one | other
                self._join([name for name in group if name in alone])

    def compare_shapes(self, left: Sequence[Dim], right: Sequence[Dim]) -> None:
        """Note that an op compares two shapes of one rank, axis by axis."""
        for one, other in zip(left, right, strict=False):
            self.compare(one, other)

    def compare_constraints(
        self, types: Sequence[TensorType], constraints: Sequence[ShapeConstraint]
    ) -> None:
        """Note what an op's rule asks for."""
        for constraint in constraints if self.groups else ():
            if isinstance(constraint, EqualSizes):
                sizes = [
                    types[size.operand].shape[size.axis] if isinstance(size, Size) else size
                    for size in constraint.sizes
                ]
                for size in sizes[1:]:
                    self.compare(sizes[0], size)
            elif isinstance(constraint, BroadcastSizes):
                self._compare_broadcast(constraint.shapes)

    def compare_reshape(self, shape: Sequence[Dim], wanted: Sequence[Dim]) -> None:
        """Note that two shapes have as many elements; sizes that both have say nothing."""
        if not self.groups:
            return
        ours, theirs = list(shape), list(wanted)
        for size in shape:
            if size in theirs:
                ours.remove(size)
                theirs.remove(size)
        self.compare(dim_product(tuple(ours)), dim_product(tuple(theirs)))

    def _compare_broadcast(self, shapes: Sequence[Sequence[Dim]]) -> None:
        rank = max(map(len, shapes), default=0)
        for axis in range(-rank, 0):
            sizes = [shape[axis] for shape in shapes if len(shape) >= -axis and shape[axis] != 1]
            for size in sizes[1:]:
                self.compare(sizes[0], size)

    def _join(self, names: Sequence[str]) -> None:
        first = self.representative(names[0])
        for name in names[1:]:
            other = self.representative(name)
            if other != first:
                first, other = sorted((first, other), key=_number)
                self.joined[other] = first

    def representative(self, name: str) -> str:
        """The symbol that stands for ``name``."""
        while name in self.joined:
            name = self.joined[name]
        return name

    def bindings(self) -> dict[str, Dim]:
        """What takes the place of each symbol that another one or a number stands for."""
        numbers = {self.representative(name): size for name, size in self.numbers.items()}
        names = {name: self.representative(name) for name in (*self.joined, *numbers)}
        return {name: numbers.get(first, symbol(first)) for name, first in names.items()}

    def note_graph(self, graph: Graph) -> None:
        """Note what the expressions of a graph compare: arguments of functions such as max."""
        if not self.groups:
            return
        seen = set[Dim]()
        for tensor_type in graph.types:
            for dim in tensor_type.shape:
                self._note(dim, seen)
        for node in graph.nodes:
            for _, value in node.attributes:
                self._note_attribute(value, seen)
            for region in node.regions:
                self.note_graph(region)

    def _note_attribute(self, value: Attribute, seen: set[Dim]) -> None:
        if isinstance(value, tuple):
            for item in value:
                self._note_attribute(item, seen)
        elif isinstance(value, Sum):
            self._note(value, seen)

    def _note(self, dim: Dim, seen: set[Dim]) -> None:
        if isinstance(dim, int) or dim in seen:
            return
        seen.add(dim)
        for monomial, _ in terms_of(dim):
            for atom in monomial:
                if isinstance(atom, Call):
                    self.compare(atom.left, atom.right)
                    self._note(atom.left, seen)
                    self._note(atom.right, seen)


def left_apart(groups: Groups, bindings: Mapping[str, Dim]) -> Groups:
    """The groups without the symbols that something else stands for."""
    left = (tuple(name for name in group if name not in bindings) for group in groups)
    return tuple(group for group in left if len(group) > 1)


def own_sizes(profile: Profile, inputs: Sequence[TensorType]) -> Profile:
    """A profile without the sizes of symbols that something else stands for."""
    free = {name for tensor_type in inputs for dim in tensor_type.shape for name in symbol_set(dim)}
    return tuple(item for item in profile if item.symbol in free)


def _symbols(dim: Dim) -> frozenset[str]:
    return frozenset() if isinstance(dim, int) else symbol_set(dim)


def _number(name: str) -> tuple[int, str]:
    """Symbols of inputs in their order."""
    return len(name), name
