"""What is true of a kind of kernel stands in its record; fusion's rules use an interface of
methods."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

import pytest
from tests.tidy.source import ROOT

from ingot_compiler.kernels.kinds import KINDS
from ingot_compiler.kernels.products.choose import ALGORITHMS
from ingot_compiler.kernels.products.tuned import METHODS_OF
from ingot_compiler.lowering.groups.method import Method

COMPILER = ROOT / "compiler" / "ingot_compiler"
OWNER = COMPILER / "lowering" / "fusion" / "fuser.py"
SOURCES = sorted(
    path for name in ("compiler", "build_rules") for path in (ROOT / name).rglob("*.py")
)


def _compared_kinds(source: str) -> Iterator[str]:
    """Names of kinds that an attribute ``kind`` is compared with."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Compare)
            and isinstance(node.left, ast.Attribute)
            and node.left.attr == "kind"
        ):
            for constant in ast.walk(node):
                if isinstance(constant, ast.Constant) and constant.value in KINDS:
                    yield constant.value


def _written(source: str) -> Iterator[str]:
    """Fields of ``fuser`` that are assigned to, whole or in part, or changed by a method of what
    they hold."""
    for node in ast.walk(ast.parse(source)):
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AugAssign)
            else []
        )
        for target in targets:
            owner = target.value if isinstance(target, ast.Subscript) else target
            if (
                isinstance(owner, ast.Attribute)
                and isinstance(owner.value, ast.Name)
                and owner.value.id == "fuser"
            ):
                yield owner.attr


def test_nothing_asks_for_a_kind_by_its_name() -> None:
    """Stage 6 alone knows one kind by name: the one that computes no value."""
    found = {
        (path.name, kind)
        for path in SOURCES
        for kind in _compared_kinds(path.read_text(encoding="utf-8"))
    }
    assert found == {("fused.py", "fill_halo")}


def test_nobody_writes_into_the_fuser() -> None:
    """Its rules call methods; that they use no private name, the linter sees."""
    assert OWNER.exists()
    found = {
        path.name: sorted(_written(path.read_text(encoding="utf-8")))
        for path in COMPILER.rglob("*.py")
    }
    assert {name: fields for name, fields in found.items() if fields} == {}


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        ("fuser.steps = []", ["steps"]),
        ("fuser.stored[value] = place", ["stored"]),
        ("fuser.images |= {1}", ["images"]),
    ],
)
def test_what_counts_as_writing(source: str, fields: list[str]) -> None:
    """Assignments to a field, to a part of it, and in place."""
    assert list(_written(source)) == fields


def test_what_counts_as_asking_for_a_kind() -> None:
    """Comparisons with a name or a list of names."""
    assert list(
        _compared_kinds(
            'a = deferred.kind in ("conv", "pool")\nb = group.kind == "rows"\nc = spec.kind == "input"'
        )
    ) == ["conv", "pool", "rows"]


def test_methods_that_are_measured_are_those_of_their_op() -> None:
    """Every name that a tuning file may have is a kind of one of the algorithms of its op."""
    for op, methods in METHODS_OF.items():
        kinds = {kind.name for algorithm in ALGORITHMS[op] for kind in algorithm.kinds}
        assert set(methods) <= kinds


def test_no_node_says_how_it_is_computed() -> None:
    """Attributes of nodes are those of their op: a group has a method."""
    said = {field.name for field in dataclasses.fields(Method)} - {"kind"}
    folder = COMPILER / "backends"
    found = {
        f"{path.name}:{node.value}"
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in said
    }
    assert found == set()
