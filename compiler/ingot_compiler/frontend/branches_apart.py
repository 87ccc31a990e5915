"""An If whose branches give different types: what older exporters write for ``squeeze``, whose rank
depends on a size.

In: the node, the nodes behind it, and a scope that translates them. Out: the scope's values hold
the results, and the nodes that are left to translate. Not done here: branches whose types agree
(``control.build_if``).

The nodes that read such a result move into both branches, until what they give is alike; then the
rest of the graph follows once. Where a branch gives what a node behind it cannot take, that branch
can never run: the other one is translated in the place of the If, and a check refuses the calls
that would have taken the first. Where a result is an output of the model, the type that the model
declares for it decides in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ingot_compiler.frontend.compose import reshape
from ingot_compiler.frontend.context import OpContext, Unsupported
from ingot_compiler.frontend.control import OpenRegion, alike, join_branches
from ingot_compiler.frontend.imported import DeclaredType, ImportedNode
from ingot_compiler.frontend.index_checks import checked
from ingot_compiler.ir.errors import ModelError
from ingot_compiler.ir.message import Text, message
from ingot_compiler.ir.types import TensorType

Numbered = tuple[int, ImportedNode]
"""A node and its ordinal."""
_NAMES = ("then_branch", "else_branch")


class NodeScope(Protocol):
    """What translates nodes; ``values``: tensor ordinal -> value id."""

    @property
    def values(self) -> dict[int, int]:
        """Of all tensors that it sees."""
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
        return self.region.types_of([self.scope.values[tensor]])[0]


@dataclass(slots=True)
class Apart:
    """The work on one If; ``declared``: what the file says of the outputs of the model; ``outputs``:
    of the graph or region that the If is in."""

    scope: NodeScope
    context: OpContext
    node: ImportedNode
    declared: Mapping[int, DeclaredType]
    outputs: frozenset[int]
    condition: int = -1
    branches: tuple[_Branch, ...] = ()
    unlike: set[int] = field(default_factory=set[int])
    """Tensors whose types differ between the branches."""
    joined: list[int] = field(default_factory=list[int])
    """Tensors that are alike, and become results of the if."""
    later: list[Numbered] = field(default_factory=list[Numbered])

    def translate(self, behind: Sequence[Numbered]) -> Sequence[Numbered]:
        """Translate the If; ``behind`` are the nodes that follow from it. Return those that are
        left."""
        # The branches see what is there before them.
        self.condition = reshape(self.context, self.context.operand(0), ())
        self.branches = tuple(self._open(name) for name in _NAMES)
        self._sort(self.node)
        for numbered in behind:
            if self.unlike.isdisjoint(numbered[1].reads()):
                self.later.append(numbered)
            else:
                self._move(numbered)
            if any(branch.dead for branch in self.branches):
                return self._only_one(behind)
        if self.unlike & self.outputs:
            self._choose_declared()
            return self._only_one(behind)
        self._join()
        return self.later

    def _open(self, name: str) -> _Branch:
        branch = _Branch(self.scope.inner(), OpenRegion(self.context, ()))
        with branch.region.entered():
            made = self.context.body(name).translate(())
        branch.scope.values.update(zip(self.node.results, made, strict=True))
        return branch

    def _move(self, numbered: Numbered) -> None:
        """Let both branches have a node, after those that it needs and that were to stay behind."""
        makers = {result: each for each in self.later for result in each[1].results}
        for tensor in numbered[1].reads():
            if tensor in makers and makers[tensor] in self.later:
                self.later.remove(makers[tensor])
                self._move(makers[tensor])
        for branch in self.branches:
            if not branch.dead:
                branch.take(numbered)
        if not any(branch.dead for branch in self.branches):
            self._sort(numbered[1])

    def _sort(self, node: ImportedNode) -> None:
        """Note which results of a node are alike in both branches."""
        for tensor in node.results:
            if tensor in self.branches[0].scope.values:
                kinds = [branch.type_of(tensor) for branch in self.branches]
                if alike(*kinds):
                    self.joined.append(tensor)
                else:
                    self.unlike.add(tensor)

    def _join(self) -> None:
        """Both branches live: an if whose results are alike."""
        read = self.outputs.union(*(node.reads() for _, node in self.later))
        joined = [tensor for tensor in self.joined if tensor in read]
        regions = [
            branch.region.finish([branch.scope.values[tensor] for tensor in joined])
            for branch in self.branches
        ]
        results = join_branches(self.context, self.condition, regions)
        self.scope.values.update(zip(joined, results, strict=True))

    def _choose_declared(self) -> None:
        """Where a result is an output of the model, a branch that gives another type than the model
        declares is one that can never run."""
        tensor = min(self.unlike & self.outputs)
        declared = self.declared.get(tensor, DeclaredType(None, None))
        kinds = [branch.type_of(tensor) for branch in self.branches]
        fits = [_fits(declared, kind) for kind in kinds]
        if fits[0] == fits[1]:
            raise Unsupported(
                message(
                    "branches of different types, ", kinds[0], " and ", kinds[1],
                    ", and nothing behind it says which one is meant: the type of a result "
                    "cannot depend on data",
                )
            )  # fmt: skip
        why = "the model declares another type of its output"
        self.branches[fits.index(False)].dead = why

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
        condition = self.condition
        if number:
            condition = self.context.add("logical_not", condition)
        what = self._expected(number)
        made = self.context.body(_NAMES[number]).translate(())
        results = [checked(self.context, value, condition, what) for value in made]
        self.scope.values.update(zip(self.node.results, results, strict=True))
        return behind

    def _expected(self, number: int) -> Text:
        dead = self.branches[1 - number].dead
        return message(f"a condition that takes {_NAMES[number]}, for with the other one ", dead)


def _fits(declared: DeclaredType, kind: TensorType) -> bool:
    same_rank = declared.shape is None or len(declared.shape) == kind.rank
    return same_rank and declared.dtype in (None, kind.dtype)
