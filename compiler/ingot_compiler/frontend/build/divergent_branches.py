"""An If whose branches give different types: what older exporters write for ``squeeze``, whose rank
depends on a size.

In: the node, the nodes behind it, and a scope that translates them. Out: the scope's values hold
the results, and the nodes that are left to translate. Not done here: branches whose types agree
(``control.build_if``).

The nodes that read such a result move into both branches, until what they give is alike; then the
rest of the graph follows once. Where a branch gives what a node behind it cannot take, that branch
can never run: the other one is translated in the place of the If, and a check refuses the calls
that would have taken the first. Where a result is an output of the model, the type that the model
declares for it decides in the same way; where it does not, a run decides how many dimensions the
output has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from ingot_compiler.frontend.build import value_kinds
from ingot_compiler.frontend.build.context import OpContext, Unsupported
from ingot_compiler.frontend.build.control import (
    DivergentNode,
    Fill,
    OpenRegion,
    alike,
    as_parts,
    join_branches,
)
from ingot_compiler.frontend.build.index_checks import checked
from ingot_compiler.frontend.build.value_kinds import ValueKind, all_remade, kind_of
from ingot_compiler.frontend.model.imported import DeclaredType, ImportedNode
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.graph import Graph
from ingot_compiler.ir.message import Text, message
from ingot_compiler.ir.types import TensorType
from ingot_runtime.lazy_dataclass import dataclass

Numbered = tuple[int, ImportedNode]
"""A node and its ordinal."""
_NAMES = ("then_branch", "else_branch")
_MOVED_MAX = 128  # nodes that two branches have each, where one branch alone would do


class NodeScope(Protocol):
    """What translates nodes; ``values``: tensor ordinal -> value id."""

    @property
    def values(self) -> dict[int, int]:
        """The values of all tensors that the scope sees."""
        ...

    def inner(self) -> NodeScope:
        """One that begins with the same values, and keeps its own."""
        ...

    def translate_whole(self, ordinal: int, node: ImportedNode) -> None:
        """Put the results of a node into the values; Unsupported or ModelError where it has
        none."""
        ...


@dataclass(slots=True)
class _Branch:
    """One branch with the nodes that have moved into it; ``dead``: why it can never run."""

    scope: NodeScope
    region: OpenRegion
    dead: Text = ""

    def take(self, numbered: Numbered) -> None:
        """Translate a node inside."""
        try:
            with self.region.entered():
                self.scope.translate_whole(*numbered)
        except Unsupported as error:
            self.dead = error.reason
        except ModelError as error:
            self.dead = message(error.parts[2])

    def type_of(self, tensor: int) -> TensorType:
        """The type of a tensor inside."""
        if self.scope.values[tensor] < 0:
            raise Unsupported("a value that is no tensor beside branches of different types")
        return self.region.types_of([self.scope.values[tensor]])[0]


@dataclass(slots=True)
class DivergentTranslation:
    """The work on one If; ``declared``: what the file says of the outputs of the model;
    ``outputs``: of the graph or region that the If is in."""

    scope: NodeScope
    context: OpContext
    node: ImportedNode
    ways: DivergentNode
    declared: Mapping[int, DeclaredType]
    outputs: frozenset[int]
    branches: tuple[_Branch, ...] = ()
    unlike: set[int] = field(default_factory=set[int])
    """Tensors whose types differ between the branches."""
    joined: list[int] = field(default_factory=list[int])
    """Tensors that are alike, and become results of the if."""
    later: list[Numbered] = field(default_factory=list[Numbered])
    moved: int = 0
    """How many nodes have moved into both branches."""

    def translate(self, behind: Sequence[Numbered]) -> Sequence[Numbered]:
        """Translate the If; ``behind`` are the nodes that follow from it. Return those that are
        left."""
        # The branches see what is there before them.
        self.branches = tuple(map(self._open, (self.ways.then, self.ways.otherwise)))
        self._sort(self.node)
        for numbered in behind:
            if self.unlike.isdisjoint(numbered[1].reads()):
                self.later.append(numbered)
            else:
                self._move(numbered)
            if any(branch.dead for branch in self.branches):
                return self._only_one(behind)
        if self.unlike & self.outputs and self._choose_declared():
            return self._only_one(behind)
        self._join()
        return self.later

    def _open(self, fill: Fill) -> _Branch:
        branch = _Branch(self.scope.inner(), OpenRegion(self.context, ()))
        with branch.region.entered():
            made = fill(())
        branch.scope.values.update(zip(self.node.results, made, strict=True))
        return branch

    def _move(self, numbered: Numbered) -> None:
        """Let both branches have a node, after those that it needs and that were to stay behind."""
        makers = {result: each for each in self.later for result in each[1].results}
        for tensor in numbered[1].reads():
            if tensor in makers and makers[tensor] in self.later:
                self.later.remove(makers[tensor])
                self._move(makers[tensor])
        self.moved += 1
        if self.ways.is_default and self.moved > _MOVED_MAX:
            raise Unsupported(f"more than {_MOVED_MAX} nodes behind a rank that a run decides")
        for branch in self.branches:
            if not branch.dead:
                branch.take(numbered)
        if not any(branch.dead for branch in self.branches):
            self._sort(numbered[1])

    def _sort(self, node: ImportedNode) -> None:
        """Note which results of a node are alike in both branches."""
        for tensor in node.results:
            if tensor in self.branches[0].scope.values:
                types = [branch.type_of(tensor) for branch in self.branches]
                if alike(*types):
                    self.joined.append(tensor)
                else:
                    self.unlike.add(tensor)

    def _join(self) -> None:
        """Both branches live: an if whose results are alike."""
        read = self.outputs.union(*(node.reads() for _, node in self.later))
        joined = [tensor for tensor in self.joined if tensor in read]
        joined += sorted(self.unlike & self.outputs)
        found = [self._made(branch, joined) for branch in self.branches]
        kinds = [value_kinds.joined(*pair) for pair in zip(*found, strict=True)]
        regions = [self._finished(branch, joined, kinds) for branch in self.branches]
        parts = join_branches(self.context, self.ways.condition, regions)
        results = all_remade(self.context, kinds, parts)
        self.scope.values.update(zip(joined, results, strict=True))

    def _made(self, branch: _Branch, tensors: Sequence[int]) -> list[ValueKind]:
        """What a branch gives."""
        with branch.region.entered():
            return [kind_of(self.context, branch.scope.values[tensor]) for tensor in tensors]

    def _finished(
        self, branch: _Branch, tensors: Sequence[int], kinds: Sequence[ValueKind]
    ) -> Graph:
        """The region of a branch, whose results are of kinds that both have."""
        with branch.region.entered():
            values = [branch.scope.values[tensor] for tensor in tensors]
            parts = as_parts(self.context, kinds, values)
        return branch.region.finish(parts)

    def _choose_declared(self) -> bool:
        """Whether a result that is an output of the model tells which branch is meant: one that
        gives another type than the model declares can never run. A rank that both may have is what
        a run decides."""
        tensor = min(self.unlike & self.outputs)
        types = [branch.type_of(tensor) for branch in self.branches]
        fits = [_fits(self.declared.get(tensor, DeclaredType(None, None)), each) for each in types]
        if fits[0] != fits[1] and not self.ways.is_default:
            why = "the model declares another type of its output"
            self.branches[fits.index(False)].dead = why
            return True
        if tensor in self.declared and types[0].dtype == types[1].dtype:
            return False
        raise Unsupported(
            message(
                "branches of different types, ", types[0], " and ", types[1],
                ", and nothing behind it says which one is meant: the type of a result "
                "cannot depend on data",
            )
        )  # fmt: skip

    def _only_one(self, behind: Sequence[Numbered]) -> Sequence[Numbered]:
        """One branch is dead: the other one in the place of the If, behind a check."""
        taken = [number for number, branch in enumerate(self.branches) if not branch.dead]
        if not taken:
            reasons = [branch.dead for branch in self.branches]
            raise Unsupported(
                message("branches of different types, neither of which fits what follows: ",
                        reasons[0], "; ", reasons[1])
            )  # fmt: skip
        (number,) = taken
        condition = self.ways.condition
        if number:
            condition = self.context.add("logical_not", condition)
        what = self._expected(number)
        made = (self.ways.then, self.ways.otherwise)[number](())
        results = [checked(self.context, value, condition, what) for value in made]
        self.scope.values.update(zip(self.node.results, results, strict=True))
        return behind

    def _expected(self, number: int) -> Text:
        dead = self.branches[1 - number].dead
        if self.ways.is_default:
            size = "another size than 1" if number else "size 1"
            return message(f"{size} at the first open axis, or axes, for with the other ", dead)
        return message(f"a condition that takes {_NAMES[number]}, for with the other one ", dead)


def _fits(declared: DeclaredType, tensor_type: TensorType) -> bool:
    same_rank = declared.shape is None or len(declared.shape) == tensor_type.rank
    return same_rank and declared.dtype in (None, tensor_type.dtype)
